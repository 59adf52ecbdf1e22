// The sharding of planners that split tables by rows, as HugeCTR's: small tables on every rank, the others over as many
// ranks as give each an even share of the time, inside a node first.
//
//   const SharderChoice found = row_balanced_sharding(steps);
//
// NVIDIA's submissions of DCNv2 to MLPerf Training describe such a planner (`hier_auto`); how small a table has to be and
// how even the shares, it asks the simulated step here.
#pragma once

#include "stepcast/plan/sharding_search.h"

namespace stepcast {

[[nodiscard]] SharderChoice row_balanced_sharding(DlrmStepModel& steps);

}  // namespace stepcast
