// Host times of jobs that share some of their operators: how fast the host of one is by those of others, and many of them
// together.
#pragma once

#include <span>

#include "stepcast/retrace/host_prices.h"

#include "calibrate/overhead_fit.h"

namespace stepcast {

// Time of `job` on operators and calls that `others` know, too, over what those say of as many: how much slower its host
// is. 1 where they have nothing in common; a part of which they share little counts as the whole. A data loader is as
// much slower as the median of the operators that run inside of it; 1 where none does.
[[nodiscard]] HostSpeed speed_of(const OverheadFit& job, const OverheadFit& others);
// Share of the occurrences in `job` that are of operators and calls `others` know themselves, 0 to 1.
[[nodiscard]] double share_known(const OverheadFit& others, const OverheadFit& job);

// Medians over jobs, each counting alike whatever its length and the speed of its host: the first says how fast a host
// the times are of, the others are brought to it by what they share with those before.
[[nodiscard]] OverheadFit pooled_jobs(std::span<const OverheadFit> jobs);
// Medians over jobs as their hosts took them: where nothing says how fast the host of another one is.
[[nodiscard]] OverheadFit median_costs(std::span<const OverheadFit> jobs);
// With operators of a family all alike: what is left without knowing operators by name.
[[nodiscard]] OverheadFit by_family_alone(OverheadFit fit);

}  // namespace stepcast
