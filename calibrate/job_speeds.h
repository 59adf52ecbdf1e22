// Host speeds of several recorded jobs, from their common operators and calls.
#pragma once

#include <span>
#include <vector>

#include "calibrate/overhead_traces.h"

namespace stepcast {

// [job] Host time over that of the median job for the same operators and calls; 1.2 is a fifth slower. 1 for a job without
// common operators. Typical times of operators are medians over jobs, so that one slow job moves none of them.
[[nodiscard]] std::vector<double> job_speeds(std::span<const OverheadSamples> jobs);

// Half-width of the band of another job on that host, as a factor minus 1: error of the host time of each job when predicted
// from the others, at the 80th percentile for future jobs. `left_out_us`: [job] host time predicted from the others;
// `recorded_us`: [job] recorded host time. 0 without jobs.
[[nodiscard]] double job_band(std::span<const double> left_out_us, std::span<const double> recorded_us);

}  // namespace stepcast
