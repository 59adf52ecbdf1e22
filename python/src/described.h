// `stepcast.predict(...)` of a described step without the command line between: what keywords of Python say as a DescribedStep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "described_step.h"

namespace stepcast::python {

// `keywords`: names, kinds and values in turn (library.h). Nothing where one is not of the plain ones that are read here: the
// command line reads all of them, and says what is wrong.
[[nodiscard]] std::optional<cli::DescribedStep> described_step(const std::vector<std::string>& keywords);

}  // namespace stepcast::python
