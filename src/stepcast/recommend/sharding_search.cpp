// Search for the sharding with the shortest expected step. Phases: several starting plans, a randomised local
// search from the best ones, a descent over all placements (sharding_descent.h), and for few tables a branch
// and bound that proves the optimum among placements of whole tables.
#include "stepcast/recommend/sharding_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "stepcast/base/stop.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/sharders.h"
#include "stepcast/recommend/sharding_descent.h"

namespace stepcast {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Largest number of tables for which branch and bound is used.
constexpr std::size_t kProvedTables = 14;
// The randomised search gets a fraction 1/4 of the evaluations, since the descent needs few.
constexpr std::size_t kPartAtRandom = 4;
constexpr std::size_t kMostSpilled = 4;  // number of largest tables that are tried by rows in host memory
constexpr std::size_t kLeastDescent = 400, kSpillDescent = 4000;  // evaluations of the final descent
// Least gain of the step for which tables are split; smaller gains are within the model's error.
constexpr double kSplitGain = 0.02;
constexpr double kLargeTable = 0.5;  // share of a rank's memory for tables from which memory decides
constexpr double kTooMuch = 0.6;     // share of a rank's time or memory from which a table is split

// The state of one search.
class Search {
 public:
  Search(DlrmStepModel& steps, const SearchOptions& options)
      : steps_(steps),
        options_(options),
        n_(static_cast<std::size_t>(steps.n_ranks())),
        random_(options.seed) {
    limit_ = steps.table_memory_bytes();
    // Converts sent bytes to time, in both directions, from the exchange of an even placement. A table's cost
    // is its lookups plus the bytes it sends.
    ShardingPlan even{.name = "even", .tables = std::vector<TablePlan>(model().tables.size())};
    for (std::size_t t = 0; t < even.tables.size(); ++t)
      even.tables[t].ranks = {static_cast<std::int32_t>(t % n_)};
    const Result<DlrmStep> step = steps.predict(even);
    if (step && n_ > 1) {
      double most = 0;
      for (const DlrmRank& rank : step->ranks) most = std::max(most, rank.sent_bytes);
      us_per_sent_byte_ = most > 0 ? (step->exchange_us + step->gradient_exchange_us) / most : 0;
    }
    for (const EmbeddingTable& table : model().tables) {
      column_bytes_.push_back(static_cast<double>(steps.training().global_batch) *
                              static_cast<double>(table.dim) * 4);
    }
  }

  // Runs all phases and returns the best plan with its expected step time.
  SharderChoice run() {
    began_ = std::chrono::steady_clock::now();
    std::vector<ShardingPlan> starts;
    starts.push_back(
        by_time(options_.split ? splits() : std::vector<std::size_t>(model().tables.size(), 1), false));
    if (options_.split) starts.push_back(by_time(std::vector<std::size_t>(model().tables.size(), 1), false));
    for (const Sharder sharder : kSharders) {
      starts.push_back(
          shard(model(), steps_.n_ranks(), sharder,
                {.memory_bytes = limit_, .state_factor = state_factor(), .seed = options_.seed}));
    }
    SharderChoice best{.plan = starts.front(), .expected_us = kNever};
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t s = 0; s < starts.size(); ++s) order.emplace_back(time_of(starts[s]), s);
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first < b.first; });
    if (order.front().first == kNever && options_.host_memory) {
      ShardingPlan spilled =
          by_time(options_.split ? splits() : std::vector<std::size_t>(model().tables.size(), 1), true);
      order.insert(order.begin(), {time_of(spilled), starts.size()});
      starts.push_back(std::move(spilled));
      spill_largest(starts, order);
    }
    for (std::size_t k = 0; k < std::min<std::size_t>(order.size(), 3); ++k) {
      if (order[k].first == kNever) break;
      const std::size_t budget = options_.max_evaluations * (k + 1) / (3 * kPartAtRandom);
      improve(starts[order[k].second], order[k].first, budget, best);
    }
    const bool spills = std::ranges::any_of(best.plan.tables,
                                            [](const TablePlan& p) { return p.memory != TableMemory::hbm; });
    const std::size_t left =
        kLeastDescent + options_.max_evaluations - std::min(evaluations_, options_.max_evaluations);
    SharderChoice end =
        descend(steps_, best.plan,
                {.max_evaluations = spills ? std::max(left, kSpillDescent) : left,
                 .split = options_.split,
                 .copies = options_.copies,
                 .host_memory = spills && options_.host_memory,
                 .deadline = began_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                          std::chrono::duration<double>(options_.max_seconds))});
    evaluations_ += end.evaluations;
    if (end.expected_us < best.expected_us) best = std::move(end);
    best.fits = best.expected_us < kNever;
    if (!best.fits) best.expected_us = steps_.expected_us(best.plan, true);
    best.evaluations = evaluations_;
    best.plan.name = "search";
    return best;
  }

 private:
  [[nodiscard]] const Dlrm& model() const { return steps_.model(); }
  // Bytes of weights and optimizer state, relative to the weights alone.
  [[nodiscard]] double state_factor() const {
    const double weights = model().tables.front().bytes();
    return weights > 0 ? steps_.shard_bytes({.table = 0}) / weights : 1;
  }
  [[nodiscard]] bool out_of_time() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count() >
           options_.max_seconds;
  }
  // Evaluates a plan and counts the evaluation.
  double time_of(const ShardingPlan& plan) {
    ++evaluations_;
    return steps_.expected_us(plan);
  }
  // Linear congruential generator, so that results depend on the seed only.
  std::uint64_t random() {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return random_ >> 33U;
  }

  // Time in microseconds that a table, or one of `parts` parts, costs its rank: lookups and sent bytes.
  double time_of_shard(std::size_t table, std::size_t parts, ShardingKind kind,
                       TableMemory memory = TableMemory::hbm) {
    const double lookups_us = steps_.expected_lookup_us(
        {static_cast<std::uint32_t>(table), 0, static_cast<std::uint32_t>(parts), kind, memory});
    const double columns = kind == ShardingKind::column_wise
                               ? column_bytes_[table] / static_cast<double>(parts)
                               : column_bytes_[table];
    return lookups_us + columns * us_per_sent_byte_;
  }

  // [table] number of ranks to split it over by columns, so that no part takes more than a rank's share of
  // time or memory.
  std::vector<std::size_t> splits() {
    double all = 0;
    for (std::size_t t = 0; t < model().tables.size(); ++t)
      all += time_of_shard(t, 1, ShardingKind::table_wise);
    const double share = all / static_cast<double>(n_);
    std::vector<std::size_t> parts(model().tables.size(), 1);
    for (std::size_t t = 0; t < parts.size(); ++t) {
      const double slow = time_of_shard(t, 1, ShardingKind::table_wise) / (kTooMuch * share);
      const double large =
          steps_.shard_bytes({.table = static_cast<std::uint32_t>(t)}) / std::max(1.0, kTooMuch * limit_);
      const double wanted = std::ceil(std::max(slow, large));
      const auto columns =
          static_cast<std::size_t>(std::max<std::int64_t>(1, model().tables[t].dim / kFewestColumns));
      std::size_t p = 1;
      while (static_cast<double>(p) < wanted && 2 * p <= n_ && 2 * p <= columns) p *= 2;
      parts[t] = p;
    }
    return parts;
  }

  // Adds starting plans with the largest tables split by rows over all ranks in host memory, with the largest
  // cache that fits. The other tables are placed by time or by the sharders.
  void spill_largest(std::vector<ShardingPlan>& starts, std::vector<std::pair<double, std::size_t>>& order) {
    if (!options_.split || n_ < 2) return;
    std::vector<std::uint32_t> largest(model().tables.size());
    std::iota(largest.begin(), largest.end(), 0U);
    std::ranges::stable_sort(largest, [&](std::uint32_t a, std::uint32_t b) {
      return steps_.shard_bytes({.table = a}) > steps_.shard_bytes({.table = b});
    });
    std::vector<TablePlan> kept(largest.size());
    const std::vector<std::size_t> whole(largest.size(), 1);
    const auto consider = [&](ShardingPlan plan) {
      const double us = time_of(plan);
      if (us == kNever) return;
      order.insert(std::ranges::lower_bound(order, us, {}, &std::pair<double, std::size_t>::first),
                   {us, starts.size()});
      starts.push_back(std::move(plan));
    };
    Dlrm others = model();
    others.tables[largest.front()].rows = 1;
    for (std::size_t k = 0; k < std::min<std::size_t>(largest.size(), kMostSpilled); ++k) {
      TablePlan& p = kept[largest[k]];
      p = {.kind = ShardingKind::row_wise, .memory = TableMemory::uvm_cached};
      for (std::size_t r = 0; r < n_; ++r) p.ranks.push_back(static_cast<std::int32_t>(r));
      for (const double share : kCachedShares) {
        for (std::size_t t = 0; t <= k; ++t) kept[largest[t]].cached_share = share;
        consider(by_time(whole, true, kept));
        for (const Sharder sharder : kSharders) {
          if (k > 0) break;
          ShardingPlan plan =
              shard(others, steps_.n_ranks(), sharder,
                    {.memory_bytes = limit_, .state_factor = state_factor(), .seed = options_.seed});
          plan.tables[largest.front()] = p;
          consider(std::move(plan));
        }
      }
    }
  }

  // Greedy placement by time: the slowest tables first, each part on the rank with least time that has memory
  // left. Tables that have ranks in `kept` are not changed. With `spill`, tables that do not fit go to host
  // memory.
  ShardingPlan by_time(const std::vector<std::size_t>& parts, bool spill,
                       const std::vector<TablePlan>& kept = {}) {
    ShardingPlan plan{.name = "by_time", .tables = std::vector<TablePlan>(model().tables.size())};
    std::vector<std::size_t> order(parts.size());
    std::iota(order.begin(), order.end(), 0U);
    std::vector<double> times(parts.size());
    for (std::size_t t = 0; t < parts.size(); ++t) {
      const ShardingKind kind = parts[t] > 1 ? ShardingKind::column_wise : ShardingKind::table_wise;
      times[t] = time_of_shard(t, parts[t], kind);
    }
    if (spill) {
      // Tables with most lookup time per byte get the GPU memory.
      std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        return times[a] / model().tables[a].bytes() > times[b] / model().tables[b].bytes();
      });
    } else {
      std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return times[a] > times[b]; });
    }
    std::vector<double> load(n_, 0), used(n_, 0);
    for (std::size_t t = 0; t < kept.size(); ++t) {
      if (kept[t].ranks.empty()) continue;
      plan.tables[t] = kept[t];
      const double time = time_of_shard(t, kept[t].ranks.size(), kept[t].kind, kept[t].memory);
      const double bytes =
          steps_.shard_bytes({.table = static_cast<std::uint32_t>(t)}) * kept[t].cached_share;
      for (const std::int32_t r : kept[t].ranks) {
        load[static_cast<std::size_t>(r)] += time;
        used[static_cast<std::size_t>(r)] += bytes / static_cast<double>(kept[t].ranks.size());
      }
    }
    for (const std::size_t t : order) {
      TablePlan& p = plan.tables[t];
      if (!p.ranks.empty()) continue;
      const std::size_t k = parts[t];
      double bytes = steps_.shard_bytes({.table = static_cast<std::uint32_t>(t)}) / static_cast<double>(k);
      std::vector<std::size_t> ranks(n_);
      std::iota(ranks.begin(), ranks.end(), 0U);
      std::ranges::stable_sort(ranks, [&](std::size_t a, std::size_t b) { return load[a] < load[b]; });
      std::vector<std::size_t> chosen;
      for (const std::size_t r : ranks)
        if (chosen.size() < k && used[r] + bytes <= limit_) chosen.push_back(r);
      p.kind = k > 1 ? ShardingKind::column_wise : ShardingKind::table_wise;
      double time = times[t];
      if (chosen.size() < k) {
        const double even =
            steps_.shard_bytes({.table = static_cast<std::uint32_t>(t)}) / static_cast<double>(n_);
        const bool by_row = std::ranges::all_of(used, [&](double u) { return u + even <= limit_; });
        chosen.assign(ranks.begin(), ranks.end());
        if (by_row && n_ > 1) {
          p.kind = ShardingKind::row_wise;
          bytes = even;
          time = time_of_shard(t, n_, p.kind);
        } else if (spill) {
          p.memory = TableMemory::uvm_cached;
          p.kind = ShardingKind::table_wise;
          chosen.resize(1);
          bytes = p.cached_share * even * static_cast<double>(n_);
          if (used[chosen[0]] + bytes > limit_) {
            p.memory = TableMemory::uvm;
            bytes = 0;
          }
          time = time_of_shard(t, 1, p.kind, p.memory);
        } else {
          std::ranges::stable_sort(chosen, [&](std::size_t a, std::size_t b) { return used[a] < used[b]; });
          chosen.resize(k);
        }
      }
      for (const std::size_t r : chosen) {
        p.ranks.push_back(static_cast<std::int32_t>(r));
        load[r] += time;
        used[r] += bytes;
      }
    }
    return plan;
  }

  // Local search: moves a part of a table to another rank, or swaps two parts, while the step becomes
  // shorter. After `patience` tries without success it continues from the best plan with three random
  // changes.
  void improve(ShardingPlan plan, double time, std::size_t budget, SharderChoice& best) {
    const std::size_t patience = 40 * n_ + 4 * model().tables.size();
    ShardingPlan shortest = plan;
    double shortest_time = time, spread = spread_of(plan);
    for (std::size_t without = 0, tries = 0; evaluations_ < budget && tries < 20 * budget && n_ > 1;
         ++tries) {
      if (out_of_time() || is_stop_requested()) break;
      ShardingPlan changed = plan;
      if (!change(changed)) continue;
      const bool kick = without >= patience;
      if (kick) {
        changed = shortest;
        for (int k = 0; k < 3; ++k) (void)change(changed);
      }
      const double next = time_of(changed);
      const double next_spread = spread_of(changed);
      // Among plans with the same step time, prefer evenly loaded ranks.
      const bool better = next < time || (next <= time && next_spread < spread);
      without = kick || next < time * (1 - 1e-6) ? 0 : without + 1;
      if (!better && !(kick && next < kNever)) continue;
      plan = std::move(changed);
      time = next;
      spread = next_spread;
      if (time < shortest_time) {
        shortest = plan;
        shortest_time = time;
      }
    }
    if (shortest_time < best.expected_us) {
      best.expected_us = shortest_time;
      best.plan = shortest;
    }
  }

  // [rank] time of the tables on it.
  std::vector<double> loads_of(const ShardingPlan& plan) {
    std::vector<double> load(n_, 0);
    for (const TableShard& s : shards_of(model(), plan, steps_.n_ranks()))
      load[static_cast<std::size_t>(s.rank)] += time_of_shard(s.table, s.parts, s.kind, s.memory);
    return load;
  }
  // Sum of squared loads; smaller is more even.
  double spread_of(const ShardingPlan& plan) {
    double sum = 0;
    for (const double load : loads_of(plan)) sum += load * load;
    return sum;
  }

  // True if the parts of a table may be on any ranks.
  static bool moves(const TablePlan& p) {
    return p.kind == ShardingKind::table_wise || p.kind == ShardingKind::column_wise;
  }

  // Makes one random move or swap. False if the chosen one is not possible.
  bool change(ShardingPlan& plan) {
    const std::vector<double> load = loads_of(plan);
    // Three times out of four the slowest rank, else any rank.
    std::size_t from = static_cast<std::size_t>(std::ranges::max_element(load) - load.begin());
    if (random() % 4 == 0) from = random() % n_;
    std::vector<std::pair<std::size_t, std::size_t>> held;  // table, position in its ranks
    for (std::size_t t = 0; t < plan.tables.size(); ++t) {
      if (!moves(plan.tables[t])) continue;
      for (std::size_t k = 0; k < plan.tables[t].ranks.size(); ++k)
        if (plan.tables[t].ranks[k] == static_cast<std::int32_t>(from)) held.emplace_back(t, k);
    }
    if (held.empty()) return false;
    const auto [table, position] = held[random() % held.size()];
    const std::size_t to = random() % n_;
    if (to == from) return false;
    std::vector<std::int32_t>& ranks = plan.tables[table].ranks;
    const auto target = static_cast<std::int32_t>(to);
    if (std::ranges::find(ranks, target) != ranks.end()) return false;
    if (random() % 2 == 0) {
      ranks[position] = target;
      return true;
    }
    // Swap with a table on the other rank.
    for (std::size_t tries = 0; tries < 8; ++tries) {
      const std::size_t other = random() % plan.tables.size();
      std::vector<std::int32_t>& others = plan.tables[other].ranks;
      const auto found = std::ranges::find(others, target);
      if (found == others.end() || !moves(plan.tables[other])) continue;
      if (std::ranges::find(others, static_cast<std::int32_t>(from)) != others.end()) continue;
      *found = static_cast<std::int32_t>(from);
      ranks[position] = target;
      return true;
    }
    return false;
  }

  DlrmStepModel& steps_;
  SearchOptions options_;
  std::size_t n_;
  std::uint64_t random_;
  double limit_ = 0, us_per_sent_byte_ = 0;
  std::vector<double> column_bytes_;  // [table] bytes of its vectors for a batch
  std::size_t evaluations_ = 0;
  std::chrono::steady_clock::time_point began_;
};

// True if the planner of the stack splits tables by rows. Plain PyTorch and NVIDIA's examples place whole
// tables and column slices.
bool splits_by_rows(DlrmStack stack) { return stack == DlrmStack::hugectr || stack == DlrmStack::torchrec; }

// Searches with and without splits, and uses splits only if they are worth at least 2 %. The costs of split
// tables are less certain, and a search for the minimum would exploit errors in their favour. If memory
// requires splits, they are always allowed.
SharderChoice split_where_worth_it(DlrmStepModel& steps, const SearchOptions& options) {
  double largest = 0;
  for (std::uint32_t t = 0; t < steps.model().tables.size(); ++t)
    largest = std::max(largest, steps.shard_bytes({.table = t}));
  if (!options.split || largest > steps.table_memory_bytes() * kLargeTable)
    return Search{steps, options}.run();
  SearchOptions whole = options, parts = options;
  whole.split = whole.host_memory = false;
  whole.max_evaluations = parts.max_evaluations = options.max_evaluations / 2;
  SharderChoice found = Search{steps, whole}.run();
  if (!found.fits) return Search{steps, options}.run();
  SharderChoice split = Search{steps, parts}.run();
  std::size_t evaluations = found.evaluations + split.evaluations;
  if (splits_by_rows(steps.training().stack)) {
    SharderChoice rows = row_balanced_sharding(steps);
    evaluations += rows.evaluations;
    if (rows.expected_us < split.expected_us) split = std::move(rows);
  }
  if (split.expected_us < found.expected_us * (1 - kSplitGain)) found = std::move(split);
  found.plan.name = "search";
  found.evaluations = evaluations;
  return found;
}

}  // namespace

SharderChoice search_sharding(DlrmStepModel& steps, const SearchOptions& options) {
  SharderChoice found = split_where_worth_it(steps, options);
  found.least_expected_us = steps.least_expected_us();
  if (!found.fits || steps.model().tables.size() > kProvedTables) return found;
  SharderChoice proof = best_whole_tables(steps, found.plan, options.max_evaluations);
  found.evaluations += proof.evaluations;
  found.proved = proof.proved;
  if (proof.expected_us < found.expected_us) {
    found.plan = std::move(proof.plan);
    found.plan.name = "search";
    found.expected_us = proof.expected_us;
  }
  return found;
}

// Depth-first. Each partial plan is evaluated, and dropped if it is not shorter than the best complete plan.
SharderChoice best_whole_tables(DlrmStepModel& steps, const ShardingPlan& incumbent,
                                std::size_t max_evaluations) {
  const std::size_t n_tables = steps.model().tables.size();
  const auto n = static_cast<std::int32_t>(steps.n_ranks());
  SharderChoice best{
      .plan = incumbent, .expected_us = kNever, .least_expected_us = steps.least_expected_us()};
  if (!incumbent.tables.empty()) best.expected_us = steps.expected_us(incumbent);
  std::vector<std::size_t> order(n_tables);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return steps.expected_lookup_us({.table = static_cast<std::uint32_t>(a)}) >
           steps.expected_lookup_us({.table = static_cast<std::uint32_t>(b)});
  });
  // Tables without a rank take no time, so placing more tables never shortens the step. A partial plan is
  // therefore a lower bound.
  ShardingPlan plan{.name = "best", .tables = std::vector<TablePlan>(n_tables)};
  bool complete = true;
  const auto place = [&](auto&& self, std::size_t placed, std::int32_t in_use) -> void {
    if (best.expected_us <= best.least_expected_us * (1 + 1e-12)) return;
    if (best.evaluations >= max_evaluations || is_stop_requested()) {
      complete = false;
      return;
    }
    ++best.evaluations;
    const double us = steps.expected_us(plan);
    if (!(us < best.expected_us)) return;
    if (placed == n_tables) {
      best.expected_us = us;
      best.plan = plan;
      return;
    }
    // Ranks are interchangeable: a table goes to a rank in use, or to the first unused one.
    std::vector<std::int32_t>& ranks = plan.tables[order[placed]].ranks;
    for (std::int32_t r = 0; r < std::min(n, in_use + 1); ++r) {
      ranks = {r};
      self(self, placed + 1, std::max(in_use, r + 1));
    }
    ranks.clear();
  };
  place(place, 0, 0);
  best.fits = best.expected_us < kNever;
  best.proved = complete;
  best.plan.name = "best";
  return best;
}

}  // namespace stepcast
