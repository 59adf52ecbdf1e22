// Fits the constants of a reference time (cost/families/reference_time.h) to measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stepcast/cost/families/reference_time.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

namespace stepcast::detail {

// The device figures that a reference of this dtype reads. The constants have their defaults.
[[nodiscard]] ReferenceParameters reference_of_device(const Device& device, DType dtype, bool matrix);

// Fits by least absolute error of the logarithm over at most 500 of the operations, drawn with `seed`. Constants that few
// points determine stay near their defaults.
[[nodiscard]] ReferenceParameters fit_reference(std::span<const Operation* const> operations,
                                                std::span<const double> log_times,
                                                const ReferenceParameters& start, std::uint64_t seed);

}  // namespace stepcast::detail
