// The layouts of one training on several pools of GPUs: those that a search on the platform of each pool finds, split over
// the pools.
//
//   STEPCAST_ASSIGN(const std::vector<PooledLayout> found, pool_layouts({.job = job, .names = names}, pools));
//   found.front().split.step
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/plan/layout_space.h"
#include "stepcast/plan/pool_split.h"

namespace stepcast {

struct PooledLayout {
  ResolvedJob job;
  PoolSplit split;
  JobSettings chosen;  // what was chosen beyond what the job says
};

struct PoolLayoutsRequest {
  Job job;
  std::vector<std::string> names;  // [pool] for errors
  LayoutRestrictions restrictions{};
  // Also searches what a job leaves open that says some of its layout; otherwise only where it says nothing.
  bool completes = false;
};

// Those that fit into the memory of all pools first, then by tokens per second. Candidates of a platform are those of
// plan_layouts() for all GPUs, the fastest of every choice of degrees; where none of them keeps stages or replicas whole and
// fits, a grid of degrees with as many stages as fill the pools. Errors: a job that cannot be resolved; the pool of which
// no layout uses all GPUs, with sizes that work; those of split_over_pools().
[[nodiscard]] Result<std::vector<PooledLayout>> pool_layouts(const PoolLayoutsRequest& request,
                                                             std::span<const SplitPool> pools);

}  // namespace stepcast
