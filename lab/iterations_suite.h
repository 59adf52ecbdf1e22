// Scores step times predicted from a description against measured LLM runs. Nothing is fitted to their
// times, but docs/constants.md lists what was chosen with them in view.
#pragma once

#include "lab/suite.h"

namespace stepcast {

[[nodiscard]] Suite iterations_suite();

}  // namespace stepcast
