// The end of a search for shardings: tries every way to keep one table, and every swap of two, that could shorten the step,
// until none does.
//
//   SharderChoice best = descend(steps, plan, {.host_memory = true, .deadline = ...});
//
// A way is how a table is split (whole, by columns, by rows over all ranks or those of a node, by both), on which ranks,
// and in which memory: of the GPU, of the host behind a cache that holds a share of its rows, or of the host alone.
#pragma once

#include <chrono>
#include <cstddef>

#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/sharding_search.h"

namespace stepcast {

class DlrmStepModel;

inline constexpr std::int64_t kFewestColumns = 16;  // of a shard

struct DescentOptions {
  std::size_t max_evaluations = 1000;  // of whole steps
  bool split = true;
  bool copies = true;        // small tables on every rank
  bool host_memory = false;  // tables may leave the memory of the GPUs
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// `plan` or a better one; with what it was expected to take where it was infinite: still so where nothing fits.
[[nodiscard]] SharderChoice descend(DlrmStepModel& steps, const ShardingPlan& plan,
                                    const DescentOptions& options = {});

// Shares of a table's rows that a cache in the memory of the GPU may hold, largest first.
inline constexpr double kCachedShares[] = {0.5, 0.2, 0.1, 0.05, 0.02, 0.01};

}  // namespace stepcast
