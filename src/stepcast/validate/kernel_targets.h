// How good kernel models are wanted: docs/accuracy.md shows these beside what they are.
#pragma once

#include <vector>

#include "stepcast/validate/suite.h"

namespace stepcast {

// The targets that these tests of the suite kernels have figures for.
[[nodiscard]] std::vector<Target> kernel_targets(const std::vector<TestScore>& tests);

}  // namespace stepcast
