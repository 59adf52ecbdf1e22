// Checks whether measurements can be of the device to calibrate. Values in another unit, of another machine or with much
// noise would otherwise be fitted without an error. Bounds are wide enough for any valid benchmark on a slow day.
//
// Errors are one line: the value found, the value expected, and how to check.
#pragma once

#include <span>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

#include "calibrate/collective_measurements.h"
#include "calibrate/kernel_fit.h"
#include "calibrate/kernel_measurements.h"

namespace stepcast {

// Checks all rows of one device, including impossible ones. The total time of a family, type and direction must be at most 6
// times that of the analytic model plus 100 us for each launch, and at least a quarter of it. Rows of a CPU pass: caches and
// other work change its times by more.
[[nodiscard]] Status check_plausible(std::span<const KernelMeasurement> rows, const Device& device);

// Held-out rows must scatter by at most a factor of 2.5 between their 10th and 90th percentile. Fits of a CPU pass.
[[nodiscard]] Status check_plausible(const KernelFit& fit, const Device& device);

// Large messages must not be faster than twice the links inside the node, nor slower than 1/200 of the links that they
// cross.
[[nodiscard]] Status check_plausible(const CollectiveMeasurements& m, const Platform& platform);

// Error: the GPU name in a file is that of another shipped device. An empty GPU name never matches.
[[nodiscard]] Status check_measured_on(std::string_view gpu, const Device& device);

}  // namespace stepcast
