// Improves a sharding by moving single tables between the slowest and the fastest rank. It is a local search
// that is cheap enough to run during training.
#include "stepcast/recommend/reshard.h"

#include <algorithm>
#include <utility>

#include "stepcast/recommend/dlrm_step.h"

namespace stepcast {
namespace {

bool is_whole(const TablePlan& plan) {
  return plan.kind == ShardingKind::table_wise && plan.ranks.size() == 1;
}

// Lookup time in microseconds of each rank and of each whole table.
struct Loads {
  std::vector<double> of_table, of_rank, bytes;
  std::size_t busiest = 0, idlest = 0;

  Loads(DlrmStepModel& steps, const ShardingPlan& plan)
      : of_table(plan.tables.size(), 0),
        of_rank(static_cast<std::size_t>(steps.n_ranks()), 0),
        bytes(of_rank.size(), 0) {
    for (const TableShard& s : shards_of(steps.model(), plan, steps.n_ranks())) {
      const double us = steps.expected_lookup_us(s);
      of_rank[static_cast<std::size_t>(s.rank)] += us;
      if (is_whole(plan.tables[s.table])) of_table[s.table] = us;
    }
    busiest = static_cast<std::size_t>(std::ranges::max_element(of_rank) - of_rank.begin());
    idlest = static_cast<std::size_t>(std::ranges::min_element(of_rank) - of_rank.begin());
  }
};

// Moves a table from the slowest rank to the fastest one, or swaps two of their tables, such that the larger
// of both loads becomes minimal. Returns false if no move reduces it.
bool even_out(const Loads& loads, ShardingPlan& plan) {
  const double high = loads.of_rank[loads.busiest], low = loads.of_rank[loads.idlest];
  std::vector<std::size_t> theirs, others;
  for (std::size_t t = 0; t < plan.tables.size(); ++t) {
    if (!is_whole(plan.tables[t])) continue;
    const auto rank = static_cast<std::size_t>(plan.tables[t].ranks[0]);
    if (rank == loads.busiest) theirs.push_back(t);
    if (rank == loads.idlest) others.push_back(t);
  }
  double best = high;
  std::pair<std::size_t, std::size_t> swap{plan.tables.size(), plan.tables.size()};
  for (const std::size_t t : theirs) {
    const auto consider = [&](double given, std::size_t other) {
      const double larger = std::max(high - given, low + given);
      if (larger < best * (1 - 1e-9)) best = larger, swap = {t, other};
    };
    consider(loads.of_table[t], plan.tables.size());
    for (const std::size_t o : others) consider(loads.of_table[t] - loads.of_table[o], o);
  }
  if (swap.first == plan.tables.size()) return false;
  plan.tables[swap.first].ranks[0] = static_cast<std::int32_t>(loads.idlest);
  if (swap.second < plan.tables.size())
    plan.tables[swap.second].ranks[0] = static_cast<std::int32_t>(loads.busiest);
  return true;
}

}  // namespace

Resharded reshard(DlrmStepModel& steps, const ShardingPlan& now, const std::vector<ReuseFactors>& reuse,
                  const ReshardOptions& options) {
  steps.set_reuse(reuse);
  return reshard(steps, now, options);
}

// Makes up to max_evaluations - 1 greedy moves and keeps the best plan on the way, since a single move can
// lengthen the step.
Resharded reshard(DlrmStepModel& steps, const ShardingPlan& now, const ReshardOptions& options) {
  Resharded result;
  result.plan = now;
  result.kept_step_us = result.step_us = steps.step_us(now);
  result.kept_expected_us = result.expected_us = steps.expected_us(now);
  ShardingPlan plan = now, best = now;
  double best_us = result.kept_expected_us;
  for (std::size_t k = 1; k < options.max_evaluations; ++k) {
    if (!even_out(Loads{steps, plan}, plan)) break;
    const double us = steps.expected_us(plan);  // infinite if memory does not suffice
    if (us < best_us) {
      best_us = us;
      best = plan;
    }
  }
  if (!(best_us < (1 - options.least_gain) * result.kept_expected_us)) return result;
  result.expected_us = best_us;
  result.step_us = steps.step_us(best);
  result.plan = std::move(best);
  for (std::uint32_t t = 0; t < now.tables.size(); ++t) {
    if (result.plan.tables[t] == now.tables[t]) continue;
    result.moved_tables.push_back(t);
    result.moved_bytes += steps.shard_bytes({.table = t});
  }
  return result;
}

}  // namespace stepcast
