// What fitting and scoring do with measured rows before they look at a time: names, keys, and which of them
// cannot be.
#pragma once

#include <string>
#include <vector>

#include "stepcast/cost/analytic_model.h"

#include "calibrate/kernel_measurements.h"

namespace stepcast {

// Clocks are read with jitter and peaks are nominal: a row is impossible below this share of the bound.
inline constexpr double kImpossibleShareOfBound = 0.95;

[[nodiscard]] bool is_impossible(const KernelMeasurement& measurement, const AnalyticModel& device);

// Takes impossible rows out. They are returned by gpu, label and direction with their number.
[[nodiscard]] std::vector<SkippedRows> remove_impossible_rows(std::vector<KernelMeasurement>& rows,
                                                              const AnalyticModel& device);

// Leaves rows of one regime for each family, type and direction, as both together would say two things about
// one shape: the sustained ones, for a step is one long run, unless they reach less than a quarter of the
// extents of the others. `rows`: of one device. Those taken out are returned as above.
std::vector<SkippedRows> keep_one_regime(std::vector<KernelMeasurement>& rows);

// "A100-SXM4-80GB/linear1/backward": how reports call the rows of one operator.
[[nodiscard]] std::string kernel_set_name(const KernelMeasurement& measurement);

// "gemm/fp16/forward": the rows that one model is fitted to, which is what its record is called.
[[nodiscard]] std::string kernel_record_key(const Operation& operation);

}  // namespace stepcast
