// Machines whose collectives nobody measured: every machine left out in turn, and every family (architecture and kind
// of link: all of NVLink 5, ...) as a whole.
//
//   unseen_system                     a machine left out; its family may remain
//   unseen_system_generation          its whole family left out
//   ..._two_sizes                     the same with two measured sizes of every curve, two_sizes(), which are not scored
//   unseen_system_nodes               a machine left out, groups over several nodes: no relative helps there yet
#pragma once

#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/collective_measurements.h"
#include "lab/metrics.h"
#include "lab/suite.h"

namespace stepcast {

// Machines without a platform that ships, and tests with nothing to score, are left out; the former are named.
[[nodiscard]] Result<std::vector<TestScore>> unseen_systems(const MeasuredCollectives& measured,
                                                            unsigned threads, std::vector<Skipped>& skipped);

}  // namespace stepcast
