// Sharders that place tables by rules: the published greedy ones, and a planner that balances rows as HugeCTR
// does.
#include "stepcast/recommend/sharders.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "stepcast/base/names.h"
#include "stepcast/recommend/dlrm_step.h"

namespace stepcast {

namespace {

// SplitMix64, so that the same seed gives the same plan with every standard library.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

// Candidates of the planner: tables up to this size in bytes are copied to every rank; a part may take up to
// this share of a rank's mean time.
constexpr double kCopiedBytes[] = {0, 1 << 20, 8 << 20};
constexpr double kShares[] = {1, 0.5, 0.25};

// Splits large tables by rows and places the parts on the least loaded ranks, node by node.
class RowBalanced {
 public:
  explicit RowBalanced(DlrmStepModel& steps)
      : steps_(steps),
        n_(static_cast<std::size_t>(steps.n_ranks())),
        in_node_(std::min(n_, static_cast<std::size_t>(steps.gpus_per_node()))) {}

  // The plan for one combination of candidates. Tables up to `copied_bytes` are copied. A larger table is
  // split until a part takes at most `share` of a rank's mean time and half of its memory; it has at least
  // `fewest` parts.
  ShardingPlan plan(double copied_bytes, double share, std::size_t fewest) {
    const Dlrm& model = steps_.model();
    ShardingPlan plan{.name = "row_balanced", .tables = std::vector<TablePlan>(model.tables.size())};
    std::vector<double> whole(model.tables.size(), 0);
    double all = 0;
    for (std::size_t t = 0; t < whole.size(); ++t) {
      if (model.tables[t].bytes() <= copied_bytes) {
        plan.tables[t].kind = ShardingKind::data_parallel;
        continue;
      }
      whole[t] = time_of(t, 1);
      all += whole[t];
    }
    std::vector<std::size_t> order(whole.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return whole[a] > whole[b]; });
    load_.assign(n_, 0);
    used_.assign(n_, 0);
    columns_.assign(n_ / in_node_ + 1, 0);
    const double memory = steps_.table_memory_bytes();
    for (const std::size_t t : order) {
      TablePlan& p = plan.tables[t];
      if (p.kind == ShardingKind::data_parallel) continue;
      const double bytes = steps_.shard_bytes({.table = static_cast<std::uint32_t>(t)});
      std::size_t parts = fewest;
      while (2 * parts <= n_ && (time_of(t, parts) > share * all / static_cast<double>(n_) ||
                                 bytes / static_cast<double>(parts) > 0.5 * memory)) {
        parts *= 2;
      }
      p.ranks = place(parts, static_cast<double>(model.tables[t].dim));
      p.kind = parts > 1 ? ShardingKind::row_wise : ShardingKind::table_wise;
      for (const std::int32_t r : p.ranks) {
        load_[static_cast<std::size_t>(r)] += time_of(t, parts);
        used_[static_cast<std::size_t>(r)] += bytes / static_cast<double>(parts);
      }
    }
    return plan;
  }

 private:
  // Time of one part, forward and backward, in microseconds.
  double time_of(std::size_t table, std::size_t parts) {
    const LookupCost& cost =
        steps_.shard_cost({static_cast<std::uint32_t>(table), 0, static_cast<std::uint32_t>(parts),
                           parts > 1 ? ShardingKind::row_wise : ShardingKind::table_wise});
    return cost.forward_us + cost.backward_us;
  }

  // Ranks for the parts of a table with `columns` columns: the least loaded ranks of as few nodes as
  // possible. Nodes are compared by their lookup time and by the columns they send, each relative to the
  // maximum.
  std::vector<std::int32_t> place(std::size_t parts, double columns) {
    const std::size_t nodes = n_ / in_node_, wanted = std::max<std::size_t>(1, parts / in_node_),
                      each = std::min(parts, in_node_);
    std::vector<std::vector<std::size_t>> ranks(nodes);  // [node], least load first
    std::vector<double> loads(nodes, 0);
    for (std::size_t node = 0; node < nodes; ++node) {
      for (std::size_t k = 0; k < in_node_; ++k) ranks[node].push_back(node * in_node_ + k);
      std::ranges::stable_sort(ranks[node],
                               [&](std::size_t a, std::size_t b) { return load_[a] < load_[b]; });
      for (std::size_t k = 0; k < each; ++k) loads[node] += load_[ranks[node][k]];
    }
    const double most_load = std::max(1e-9, *std::ranges::max_element(loads)),
                 most_columns = std::max(1e-9, *std::ranges::max_element(columns_));
    for (std::size_t node = 0; node < nodes; ++node)
      loads[node] = loads[node] / most_load + columns_[node] / most_columns;
    std::vector<std::size_t> order(nodes);
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return loads[a] < loads[b]; });
    std::vector<std::int32_t> chosen;
    for (std::size_t k = 0; k < std::min(wanted, nodes); ++k) {
      columns_[order[k]] += columns;
      for (std::size_t i = 0; i < each; ++i) chosen.push_back(static_cast<std::int32_t>(ranks[order[k]][i]));
    }
    std::ranges::sort(chosen);
    return chosen;
  }

  // [rank] lookup time and bytes.
  DlrmStepModel& steps_;
  std::size_t n_, in_node_;
  std::vector<double> load_, used_;
  std::vector<double> columns_;  // [node] columns sent
};

}  // namespace

std::string_view to_string(Sharder sharder) {
  return name_of<Sharder::size_lookup>(sharder,
                                       {"naive", "random", "size", "lookup", "norm_lookup", "size_lookup"});
}

// Also accepts names with '-' and with the suffix "_greedy".
std::optional<Sharder> parse_sharder(std::string_view text) {
  std::string name{text};
  std::replace(name.begin(), name.end(), '-', '_');
  if (name.ends_with("_greedy")) name.resize(name.size() - 7);
  for (const Sharder sharder : kSharders)
    if (to_string(sharder) == name) return sharder;
  return std::nullopt;
}

double sharder_cost(const EmbeddingTable& t, Sharder sharder) {
  const auto rows = static_cast<double>(t.rows), dim = static_cast<double>(t.dim);
  switch (sharder) {
    case Sharder::size: return rows;
    case Sharder::lookup: return t.pooling * dim;
    case Sharder::norm_lookup: return t.pooling / rows;
    case Sharder::size_lookup: return t.pooling * dim * std::log10(rows);
    case Sharder::naive:
    case Sharder::random: break;
  }
  return 0;
}

// Greedy, O(tables x ranks). naive and random ignore memory.
ShardingPlan shard(const Dlrm& model, std::int64_t n_ranks, Sharder sharder, const SharderOptions& options) {
  ShardingPlan plan{.name = std::string{to_string(sharder)},
                    .tables = std::vector<TablePlan>(model.tables.size())};
  std::uint64_t state = options.seed;
  const auto place = [&](std::size_t table, std::uint64_t rank) {
    plan.tables[table].ranks = {static_cast<std::int32_t>(rank)};
  };
  const auto n = static_cast<std::uint64_t>(n_ranks);
  if (sharder == Sharder::naive || sharder == Sharder::random) {
    for (std::size_t t = 0; t < model.tables.size(); ++t)
      place(t, (sharder == Sharder::naive ? t : next_random(state)) % n);
    return plan;
  }
  std::vector<std::size_t> order(model.tables.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return sharder_cost(model.tables[a], sharder) > sharder_cost(model.tables[b], sharder);
  });
  std::vector<double> costs(n, 0), used(n, 0);
  for (const std::size_t t : order) {
    const double bytes = model.tables[t].bytes() * options.state_factor;
    std::optional<std::size_t> best;
    for (std::size_t r = 0; r < n; ++r) {
      if (options.memory_bytes > 0 && used[r] + bytes > options.memory_bytes) continue;
      if (!best || costs[r] < costs[*best] || (costs[r] == costs[*best] && used[r] < used[*best])) best = r;
    }
    const std::size_t rank =
        best.value_or(static_cast<std::size_t>(std::ranges::min_element(used) - used.begin()));
    costs[rank] += sharder_cost(model.tables[t], sharder);
    used[rank] += bytes;
    place(t, rank);
  }
  return plan;
}

// Tries all combinations of the candidates and keeps the one with the shortest expected step.
SharderChoice row_balanced_sharding(DlrmStepModel& steps) {
  RowBalanced planner{steps};
  SharderChoice best{.expected_us = std::numeric_limits<double>::infinity()};
  const auto n = static_cast<std::size_t>(steps.n_ranks());
  std::vector<std::size_t> fewest{1};
  // The ranks of a node send one sum. With several nodes, each table may therefore be spread over all ranks
  // of a node.
  for (std::size_t parts = 2; static_cast<std::int64_t>(parts) <= steps.gpus_per_node() && 2 * parts <= n;
       parts *= 2)
    fewest.push_back(parts);
  for (const double copied : kCopiedBytes) {
    for (const double share : kShares) {
      for (const std::size_t parts : fewest) {
        ShardingPlan plan = planner.plan(copied, share, parts);
        const double us = steps.expected_us(plan);
        ++best.evaluations;
        if (us >= best.expected_us && !best.plan.tables.empty()) continue;
        best.expected_us = us;
        best.plan = std::move(plan);
      }
    }
  }
  best.fits = std::isfinite(best.expected_us);
  return best;
}

std::optional<ShardingPlan> stack_sharding(DlrmStepModel& steps) {
  if (steps.is_hybrid()) return ShardingPlan{.name = "hybrid", .tables = {}};
  if (steps.training().stack != DlrmStack::hugectr) return std::nullopt;
  SharderChoice choice = row_balanced_sharding(steps);
  if (!choice.fits) return std::nullopt;
  choice.plan.name = "row_balanced";
  return std::move(choice.plan);
}

ShardingPlan usual_sharding(DlrmStepModel& steps) {
  if (std::optional<ShardingPlan> of_stack = stack_sharding(steps)) return std::move(*of_stack);
  return search_sharding(steps).plan;
}

}  // namespace stepcast
