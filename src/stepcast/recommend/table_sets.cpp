// Generates sets of embedding tables with the published totals of production sets. Scales are found by
// bisection, so that the totals are met.
#include "stepcast/recommend/table_sets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "stepcast/cost/access_pattern.h"

namespace stepcast {
namespace {

// Sharding tasks: mean number of tables per GPU, and its range.
constexpr double kTablesPerGpu = 13, kFewestShare = 0.7, kMostShare = 1.3;
constexpr double kMostOfMemory = 0.8;  // largest share of GPU memory that a task may need
constexpr double kFewestRows = 100;    // fewest rows of the published tables
constexpr double kMostRowsOfAny = 1e8;
// Widths to draw from.
constexpr std::array<std::int64_t, 4> kDims{32, 64, 128, 256};

// SplitMix64, so that the same seed gives the same tables with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x2545f4914f6cdd1dULL + 0x632be59bd9b4e019ULL) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  // Uniform in (0, 1), without its ends.
  double uniform() { return (static_cast<double>(next() >> 11U) + 0.5) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Standard normal, by Box and Muller.
  double normal() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979323846 * uniform());
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t state_;
};

// Scales the pooling factors of the light tables, which stay below the threshold of heavy ones, until all
// tables together have the total. The first `n_heavy` tables are heavy and unchanged.
void scale_light(std::vector<EmbeddingTable>& tables, std::size_t n_heavy, double total) {
  for (std::size_t t = 0; t < n_heavy; ++t) total -= tables[t].pooling;
  double low = 0, high = 1e6;
  const double most = 0.999 * kHeavyPooling;
  const auto sum = [&](double scale) {
    double s = 0;
    for (std::size_t t = n_heavy; t < tables.size(); ++t) s += std::min(most, scale * tables[t].pooling);
    return s;
  };
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (sum(middle) < total ? low : high) = middle;
  }
  for (std::size_t t = n_heavy; t < tables.size(); ++t)
    tables[t].pooling = std::min(most, high * tables[t].pooling);
}

}  // namespace

// Poolings and rows are drawn from the assumed distributions and then scaled to the published totals.
std::vector<EmbeddingTable> generate_tables(const TableSetTotals& totals, const TableSetOptions& options) {
  Random random{options.seed};
  const auto n = static_cast<std::size_t>(totals.n_tables),
             n_heavy = static_cast<std::size_t>(totals.n_heavy);
  std::vector<EmbeddingTable> tables(n);
  std::vector<double> rows(n);
  for (std::size_t t = 0; t < n; ++t) {
    EmbeddingTable& table = tables[t];
    table.pooling =
        t < n_heavy
            ? kHeavyPooling * std::min(options.heaviest, std::pow(random.uniform(), -1 / options.heavy_index))
            : std::exp(options.light_deviation * random.normal());
    table.skew = random.uniform(options.lowest_skew, options.highest_skew);
    table.dim = kDims[random.below(kDims.size())];
    rows[t] = std::pow(10, random.uniform(0, options.decades_of_rows));
  }
  scale_light(tables, n_heavy, totals.pooling * static_cast<double>(n));
  const double distinct = totals.pooling * static_cast<double>(n) * totals.samples / totals.mean_reuse;
  const auto rows_of = [&](std::size_t t, double scale) {
    return std::floor(std::clamp(scale * rows[t], kFewestRows, kMostRowsOfAny));
  };
  double low = 1e-3, high = 1e9;
  for (int i = 0; i < 50; ++i) {
    const double scale = std::sqrt(low * high);
    double sum = 0;
    for (std::size_t t = 0; t < n; ++t) {
      sum += AccessPattern::zipf(rows_of(t, scale), tables[t].skew)
                 .distinct_rows(tables[t].pooling * totals.samples);
    }
    (sum < distinct ? low : high) = scale;
  }
  for (std::size_t t = 0; t < n; ++t) tables[t].rows = static_cast<std::int64_t>(rows_of(t, high));
  // Shuffle, so that heavy tables are not the first ones.
  for (std::size_t t = n; t > 1; --t) std::swap(tables[t - 1], tables[random.below(t)]);
  for (std::size_t t = 0; t < n; ++t) tables[t].name = fmt::format("table_{}", t);
  return tables;
}

// Draws up to 1000 sets until one fits the memory.
std::vector<EmbeddingTable> draw_task(const std::vector<EmbeddingTable>& pool, const TaskOptions& options) {
  Random random{options.seed};
  std::vector<EmbeddingTable> candidates;
  std::copy_if(pool.begin(), pool.end(), std::back_inserter(candidates), [&](const EmbeddingTable& t) {
    return t.pooling > 0 && (!options.heavy_only || t.pooling >= kHeavyPooling);
  });
  const auto gpus = static_cast<double>(options.n_gpus);
  const auto fewest = static_cast<std::size_t>(kFewestShare * kTablesPerGpu * gpus);
  const auto most = static_cast<std::size_t>(kMostShare * kTablesPerGpu * gpus);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::vector<EmbeddingTable> left = candidates, task;
    const std::size_t n = std::min(left.size(), fewest + random.below(most - fewest));
    double bytes = 0;
    for (std::size_t t = 0; t < n; ++t) {
      const std::size_t k = random.below(left.size());
      bytes += left[k].bytes();
      task.push_back(std::move(left[k]));
      left[k] = std::move(left.back());
      left.pop_back();
    }
    if (bytes <= kMostOfMemory * options.memory_bytes * gpus) return task;
  }
  return {};
}

Result<std::vector<EmbeddingTable>> generate_task(const std::string& words, std::int64_t n_gpus,
                                                  double memory_bytes, std::uint64_t seed) {
  const bool heavy = words.ends_with("-heavy");
  const std::string year = words.substr(0, words.find('-'));
  if ((year != "2021" && year != "2022") || (words != year && words != year + "-heavy")) {
    return Error::at("", "--generate")
        .found(fmt::format("`{}`", words))
        .expected("2021, 2022, 2021-heavy or 2022-heavy");
  }
  const std::vector<EmbeddingTable> pool =
      generate_tables(year == "2021" ? kPublished2021 : kPublished2022, {.seed = seed});
  std::vector<EmbeddingTable> task =
      draw_task(pool, {.heavy_only = heavy, .n_gpus = n_gpus, .memory_bytes = memory_bytes, .seed = seed});
  if (task.empty()) {
    return Error::at("", "--generate")
        .found(fmt::format("no task of about {:.0f} tables that fits on {} GPUs",
                           kTablesPerGpu * static_cast<double>(n_gpus), n_gpus))
        .advice("use GPUs with more memory, or another --seed");
  }
  return task;
}

std::string tables_csv(const std::vector<EmbeddingTable>& tables) {
  std::string text = "name,rows,dim,pooling_factor,dtype,skew\n";
  for (const EmbeddingTable& t : tables) {
    text += fmt::format("{},{},{},{:.4f},{},{:.4f}\n", t.name, t.rows, t.dim, t.pooling, to_string(t.dtype),
                        t.skew);
  }
  return text;
}

}  // namespace stepcast
