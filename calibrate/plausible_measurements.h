// Whether measurements can be of the device that they are to calibrate: another unit, another machine or noise would be
// fitted like anything else. Bounds are wide: what a benchmark may show on a slow day passes.
//
// Errors are one line: what was found, what was expected, what to look at.
#pragma once

#include <span>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

#include "calibrate/collective_measurements.h"
#include "calibrate/kernel_fit.h"
#include "calibrate/kernel_measurements.h"

namespace stepcast {

// All rows of one device, the impossible ones too: of each family, type and direction together no more than 6 times as
// long as the analytic model says, besides 100 us for each launch, and not a quarter of it. Rows of a CPU pass: its caches
// and its other work move times by more than that.
[[nodiscard]] Status check_plausible(std::span<const KernelMeasurement> rows, const Device& device);

// Held-out rows scatter by no more than a factor of 2.5 between their 10 and 90 %; those of a CPU may.
[[nodiscard]] Status check_plausible(const KernelFit& fit, const Device& device);

// Large messages are no faster than twice the links inside the node, and no slower than a two-hundredth of the links that
// they cross.
[[nodiscard]] Status check_plausible(const CollectiveMeasurements& m, const Platform& platform);

// Error: the GPU name in a file is that of another shipped device. An empty GPU name never matches.
[[nodiscard]] Status check_measured_on(std::string_view gpu, const Device& device);

}  // namespace stepcast
