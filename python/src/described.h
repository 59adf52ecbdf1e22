// `stepcast.predict(...)` of a described step without a command line: converts Python keywords into a DescribedStep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "described_step.h"

namespace stepcast::python {

// `keywords`: names, kinds and values in turn (library.h). Nothing if a keyword is not one of the simple ones
// that are read here. Then the command line reads all keywords and reports errors.
[[nodiscard]] std::optional<cli::DescribedStep> described_step(const std::vector<std::string>& keywords);

}  // namespace stepcast::python
