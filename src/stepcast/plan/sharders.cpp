#include "stepcast/plan/sharders.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace stepcast {
namespace {

// SplitMix64: the same plan from the same seed with every standard library.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

}  // namespace

std::string_view to_string(Sharder sharder) {
  switch (sharder) {
    case Sharder::naive: return "naive";
    case Sharder::random: return "random";
    case Sharder::size: return "size";
    case Sharder::lookup: return "lookup";
    case Sharder::norm_lookup: return "norm_lookup";
    case Sharder::size_lookup: return "size_lookup";
  }
  return "naive";
}

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

}  // namespace stepcast
