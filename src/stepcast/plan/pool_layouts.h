// Layouts of one training on several pools of GPUs: searched on the platform of each pool, then divided among the pools.
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

// A layout that spans all pools.
struct PooledLayout {
  ResolvedJob job;
  PoolSplit split;
  JobSettings chosen;  // settings chosen in addition to the job
};

// What to search.
struct PoolLayoutsRequest {
  Job job;
  std::vector<std::string> names;  // [pool] name in errors
  LayoutRestrictions restrictions{};
  // True: also searches open settings of a job that fixes part of its layout. False: searches only for jobs without any layout.
  bool completes = false;
};

// Sorted: layouts that fit all pools first, then by tokens per second. Candidates are the layouts of plan_layouts() for all
// GPUs on each platform, the fastest per choice of degrees. If none keeps stages or replicas within a pool and fits, a grid
// of degrees is tried, with numbers of stages that fill the pools. Errors: an unresolvable job; a pool that no layout can
// fill, with sizes that work; those of split_over_pools().
[[nodiscard]] Result<std::vector<PooledLayout>> pool_layouts(const PoolLayoutsRequest& request,
                                                             std::span<const SplitPool> pools);

}  // namespace stepcast
