// Local search at the end of a search: tries all placements of one table, from the most expensive table down,
// then swaps. Each candidate is first checked against the loads of the ranks, which is much cheaper than
// evaluating the step.
#include "stepcast/recommend/sharding_descent.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "stepcast/base/stop.h"
#include "stepcast/recommend/dlrm_step.h"

namespace stepcast {
namespace {

constexpr double kShorter = 1e-6;  // least relative gain that counts
// A change is evaluated if it raises the largest load of a rank by less than this factor.
constexpr double kWorthTrying = 1.02;
constexpr double kCopiedTableBytes = 8e6;  // bytes; a larger table is not copied to every rank

// The state of one descent: the best plan so far and the loads of its ranks.
class Descent {
 public:
  Descent(DlrmStepModel& steps, ShardingPlan plan, const DescentOptions& options)
      : steps_(steps), options_(options), n_(static_cast<std::size_t>(steps.n_ranks())) {
    best_.plan = std::move(plan);
    best_.expected_us = steps.expected_us(best_.plan);
    best_.evaluations = 1;
    measure();
  }

  // Descends until no change shortens the step, or a limit is reached.
  SharderChoice run() {
    for (bool shorter = true; shorter && !is_over();) {
      shorter = false;
      for (const std::size_t table : dearest_first())
        if (try_ways(table)) shorter = true;
      if (!shorter) shorter = try_swaps();
    }
    best_.fits = std::isfinite(best_.expected_us);
    return std::move(best_);
  }

 private:
  [[nodiscard]] const Dlrm& model() const { return steps_.model(); }
  [[nodiscard]] bool is_over() const {
    return best_.evaluations >= options_.max_evaluations || is_stop_requested() ||
           std::chrono::steady_clock::now() > options_.deadline;
  }

  // Lookup time of a shard. The exchange of its vectors is not included.
  double us_of(const TableShard& shard) { return steps_.expected_lookup_us(shard); }

  // Updates the loads of the ranks and the times of the tables.
  void measure() {
    loads_.assign(n_, 0);
    of_table_.assign(model().tables.size(), 0);
    for (const TableShard& s : shards_of(model(), best_.plan, steps_.n_ranks())) {
      const double us = us_of(s);
      loads_[static_cast<std::size_t>(s.rank)] += us;
      of_table_[s.table] += us;
    }
  }

  // Tables in order of falling lookup time.
  [[nodiscard]] std::vector<std::size_t> dearest_first() const {
    std::vector<std::size_t> order(of_table_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return of_table_[a] > of_table_[b]; });
    return order;
  }

  // A quick test by lookup times: if the slowest rank gets clearly slower, the step cannot become shorter.
  // Not used if tables may be in host memory, since memory then matters, too.
  bool could_help(std::size_t table, const TablePlan& way) {
    if (options_.host_memory) return true;
    const double most = *std::ranges::max_element(loads_);
    std::vector<double> loads = loads_;
    const auto add = [&](const TablePlan& plan, double sign) {
      for (const TableShard& s : shards_of(static_cast<std::uint32_t>(table), plan, steps_.n_ranks()))
        loads[static_cast<std::size_t>(s.rank)] += sign * us_of(s);
    };
    add(best_.plan.tables[table], -1);
    add(way, 1);
    return *std::ranges::max_element(loads) < kWorthTrying * most;
  }

  // Evaluates a plan and keeps it if it is better than the best one.
  bool better(ShardingPlan plan) {
    ++best_.evaluations;
    const double us = steps_.expected_us(plan);
    if (!(us < best_.expected_us * (1 - kShorter))) return false;
    best_.plan = std::move(plan);
    best_.expected_us = us;
    measure();
    return true;
  }

  // Tries all placements of one table. True if one of them shortened the step.
  bool try_ways(std::size_t table) {
    bool shorter = false;
    for (const TablePlan& way : ways_of(table)) {
      if (is_over()) break;
      if (way == best_.plan.tables[table] || !could_help(table, way)) continue;
      ShardingPlan changed = best_.plan;
      changed.tables[table] = way;
      if (better(std::move(changed))) shorter = true;
    }
    return shorter;
  }

  // Ranks in order of rising load.
  [[nodiscard]] std::vector<std::int32_t> idlest_first() const {
    std::vector<std::int32_t> ranks(n_);
    std::iota(ranks.begin(), ranks.end(), 0);
    std::ranges::stable_sort(ranks, [&](std::int32_t a, std::int32_t b) {
      return loads_[static_cast<std::size_t>(a)] < loads_[static_cast<std::size_t>(b)];
    });
    return ranks;
  }

  // All placements of a table, in all allowed memories.
  [[nodiscard]] std::vector<TablePlan> ways_of(std::size_t table) const {
    std::vector<TablePlan> ways;
    splits_of(table, {}, ways);
    if (!options_.host_memory) return ways;
    for (const double share : kCachedShares)
      splits_of(table, {.memory = TableMemory::uvm_cached, .cached_share = share}, ways);
    splits_of(table, {.memory = TableMemory::uvm}, ways);
    return ways;
  }

  // Adds all splits of a table with the memory of `memory`: whole, by rows, by columns, by both, and a copy
  // on every rank.
  void splits_of(std::size_t table, const TablePlan& memory, std::vector<TablePlan>& ways) const {
    const auto add = [&](ShardingKind kind, std::vector<std::int32_t> ranks, std::size_t columns = 1) {
      TablePlan way = memory;
      way.kind = kind;
      way.ranks = std::move(ranks);
      way.column_parts = static_cast<std::uint32_t>(columns);
      ways.push_back(std::move(way));
    };
    const std::vector<std::int32_t> idlest = idlest_first();
    for (const std::int32_t rank : idlest) add(ShardingKind::table_wise, {rank});
    if (!options_.split || n_ < 2) return;
    std::vector<std::int32_t> all(n_);
    std::iota(all.begin(), all.end(), 0);
    const auto in_node = static_cast<std::size_t>(steps_.gpus_per_node());
    const std::size_t nodes = n_ / in_node;
    add(ShardingKind::row_wise, all);
    for (std::size_t node = 0; node < nodes && nodes > 1; ++node) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(node * in_node);
      add(ShardingKind::table_row_wise, {first, first + static_cast<std::ptrdiff_t>(in_node)});
    }
    const std::int64_t dim = model().tables[table].dim;
    for (std::size_t parts = 2; parts <= n_ && dim / static_cast<std::int64_t>(parts) >= kFewestColumns;
         parts *= 2) {
      add(ShardingKind::column_wise, {idlest.begin(), idlest.begin() + static_cast<std::ptrdiff_t>(parts)});
      if (nodes > 1 && parts <= nodes) {
        add(ShardingKind::grid_shard,
            {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(parts * in_node)}, parts);
      }
    }
    if (options_.copies && memory.memory == TableMemory::hbm &&
        model().tables[table].bytes() <= kCopiedTableBytes) {
      add(ShardingKind::data_parallel, {});
    }
  }

  // Swaps whole tables of the slowest rank with tables of other ranks, until one swap shortens the step.
  bool try_swaps() {
    const auto busiest = static_cast<std::int32_t>(std::ranges::max_element(loads_) - loads_.begin());
    const double most = *std::ranges::max_element(loads_);
    const auto is_whole = [](const TablePlan& p) { return p.kind == ShardingKind::table_wise; };
    for (std::size_t a = 0; a < best_.plan.tables.size(); ++a) {
      const TablePlan& mine = best_.plan.tables[a];
      if (!is_whole(mine) || mine.ranks.front() != busiest) continue;
      for (std::size_t b = 0; b < best_.plan.tables.size() && !is_over(); ++b) {
        const TablePlan& theirs = best_.plan.tables[b];
        if (!is_whole(theirs) || theirs.ranks.front() == busiest) continue;
        const double given = of_table_[a] - of_table_[b];
        const auto other = static_cast<std::size_t>(theirs.ranks.front());
        if (!options_.host_memory && (given < 0 || loads_[other] + given > kWorthTrying * most)) continue;
        ShardingPlan changed = best_.plan;
        std::swap(changed.tables[a].ranks, changed.tables[b].ranks);
        if (better(std::move(changed))) return true;
      }
    }
    return false;
  }

  DlrmStepModel& steps_;
  DescentOptions options_;
  std::size_t n_;
  SharderChoice best_;
  // [rank] lookup time; [table] lookup time over all ranks.
  std::vector<double> loads_, of_table_;
};

}  // namespace

SharderChoice descend(DlrmStepModel& steps, const ShardingPlan& plan, const DescentOptions& options) {
  return Descent{steps, plan, options}.run();
}

}  // namespace stepcast
