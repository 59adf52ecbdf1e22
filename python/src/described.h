// `stepcast.predict(...)` of a described step without the command line between: what keywords of Python say as a DescribedStep.
#pragma once

#include <optional>

#include <nanobind/nanobind.h>

#include "described_step.h"

namespace stepcast::python {

// Nothing where a keyword or its value is not one of the plain ones that are read here: the command line reads all of
// them, and says what is wrong.
[[nodiscard]] std::optional<cli::DescribedStep> described_step(const nanobind::dict& keywords);

}  // namespace stepcast::python
