// Compares and pools host times of jobs that share some of their operators.
#pragma once

#include <span>

#include "stepcast/retrace/host_prices.h"

#include "calibrate/overhead_fit.h"

namespace stepcast {

// How much slower the host of `job` is than that of `others`: time on operators and calls that both know, over the time of
// as many by `others`. 1 without common operators. A part with little common time gets the ratio of the whole. A data loader
// gets the median ratio of the operators that run inside it, or 1 if there are none.
[[nodiscard]] HostSpeed speed_of(const OverheadFit& job, const OverheadFit& others);
// Share of the occurrences in `job`, 0 to 1, with operators and calls that `others` has records of.
[[nodiscard]] double share_known(const OverheadFit& others, const OverheadFit& job);

// Medians over jobs, with equal weights for all lengths and host speeds. The first job sets the reference speed. The others
// are scaled to it by the operators that they share with previous jobs.
[[nodiscard]] OverheadFit pooled_jobs(std::span<const OverheadFit> jobs);
// Medians over jobs without scaling, for predictions where the speed of the other host is unknown.
[[nodiscard]] OverheadFit median_costs(std::span<const OverheadFit> jobs);
// Removes the records of single operators: predictions then use only families.
[[nodiscard]] OverheadFit by_family_alone(OverheadFit fit);

}  // namespace stepcast
