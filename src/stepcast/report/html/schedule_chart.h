// A StepPicture as SVG: a row for every rank or stage, time to the right. report.js moves and zooms it.
#pragma once

#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/html/markup.h"

namespace stepcast {

// With its legend and a line that says what is left out; nothing for a picture without rows.
[[nodiscard]] Markup schedule_chart(const StepPicture& picture);

}  // namespace stepcast
