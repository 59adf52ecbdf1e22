// A replay as a page (report/document.h): how close it is, what every rank does, who waits for whom, what is not explained.
#pragma once

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/document.h"

namespace stepcast {

// `pictures` of the simulated step; null where there are none.
[[nodiscard]] ReportDocument replay_document(const ReplayAnalysis& analysis,
                                             const StepPictures* pictures = nullptr);

}  // namespace stepcast
