// Scores collectives on machines without measurements: every machine left out in turn, and every family (architecture and
// kind of link, for example NVLink 5) as a whole.
//
//   unseen_system                     a machine left out; its family may remain
//   unseen_system_generation          its whole family left out
//   ..._two_sizes                     the same with two measured sizes of every curve, two_sizes(), which are not scored
//   unseen_system_nodes               a machine left out, groups over several nodes; no related machine is used there yet
#pragma once

#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/collective_measurements.h"
#include "lab/metrics.h"
#include "lab/suite.h"

namespace stepcast {

// Machines without a shipped platform are left out and named. Tests without rows to score are left out.
[[nodiscard]] Result<std::vector<TestScore>> unseen_systems(const MeasuredCollectives& measured,
                                                            unsigned threads, std::vector<Skipped>& skipped);

}  // namespace stepcast
