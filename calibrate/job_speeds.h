// How fast the host was in each of several recorded jobs, told by the operators and calls that they have in common.
#pragma once

#include <span>
#include <vector>

#include "calibrate/overhead_traces.h"

namespace stepcast {

// [job] Host time over that of the median job for the same operators and calls, 1.2: a fifth slower. 1 for a job that has none in
// common with the others. Typical times of operators are medians over jobs, so that one slow job moves none of them.
[[nodiscard]] std::vector<double> job_speeds(std::span<const OverheadSamples> jobs);

// Half-width of the band of another job on that host, as a factor above 1 less 1: how far the host time of each job is off
// what the others say, at the 80th percentile of future jobs. `left_out_us`: [job] what the others say of its host time;
// `recorded_us`: its host time. 0 without jobs.
[[nodiscard]] double job_band(std::span<const double> left_out_us, std::span<const double> recorded_us);

}  // namespace stepcast
