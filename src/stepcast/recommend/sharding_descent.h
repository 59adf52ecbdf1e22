// The last phase of a search for shardings. Tries every placement of one table, and every swap of two tables,
// that could shorten the step, until none does.
//
//   SharderChoice best = descend(steps, plan, {.host_memory = true, .deadline = ...});
//
// A placement consists of how a table is split (whole, by columns, by rows over all ranks or those of a node,
// or by both), its ranks, and its memory: GPU memory, host memory with a cache of a share of the rows, or
// host memory alone.
#pragma once

#include <chrono>
#include <cstddef>

#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/sharding_search.h"

namespace stepcast {

class DlrmStepModel;

inline constexpr std::int64_t kFewestColumns = 16;  // least number of columns of a shard

// Limits of the search.
struct DescentOptions {
  std::size_t max_evaluations = 1000;  // evaluations of the step time
  // Tables may be split over several ranks.
  bool split = true;
  bool copies = true;        // small tables may be on every rank
  bool host_memory = false;  // tables may be in host memory
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// Returns `plan` or a better one with its expected step time, which is infinite if no plan fits the memory.
[[nodiscard]] SharderChoice descend(DlrmStepModel& steps, const ShardingPlan& plan,
                                    const DescentOptions& options = {});

// Shares of a table's rows that the cache in GPU memory may have, largest first.
inline constexpr double kCachedShares[] = {0.5, 0.2, 0.1, 0.05, 0.02, 0.01};

}  // namespace stepcast
