#include "lab/learned_lookups.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/plan/table_sets.h"
#include "stepcast/platform/platform_file.h"

#include "calibrate/lookup_fit.h"
#include "lab/sharding_reference.h"

namespace stepcast {
namespace {

constexpr std::size_t kTrained = 600, kTested = 200;
constexpr std::uint64_t kTrainedSeed = 61, kTestedSeed = 71;

// What the reference's variants make of a kernel: narrow rows dearer, the longest bag binds a forward and the hottest row a
// backward, of which reuse factors and sums over tables say little.
constexpr ReferenceVariant kAllOfThese{.narrow_rows_and_long_bags = true, .hot_rows = true};

struct Timed {
  LookupMeasurement kernel;                        // forward; its time is set where it is asked for
  std::array<std::array<double, 2>, 2> time_us{};  // [variant][direction]
};

// Numbers from 0 to n - 1, the same for the same arguments.
std::size_t draw(std::uint64_t seed, std::uint64_t nth, std::size_t n) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ULL + nth * 0xbf58476d1ce4e5b9ULL + 0x2545f4914f6cdd1dULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return static_cast<std::size_t>((z ^ (z >> 31U)) % n);
}

// One kernel over tables of the set, timed by the reference.
Timed time_kernel(const std::vector<EmbeddingTable>& set, std::uint64_t seed) {
  const std::size_t n_tables = 2 + draw(seed, 0, 29), bags = std::size_t{512} << draw(seed, 1, 4);
  std::vector<SampledTable> batch;
  std::vector<ReferenceShard> shards;
  LookupMeasurement m{.gpu = "A100-SXM4-40GB", .bags = static_cast<double>(bags)};
  for (std::size_t t = 0; t < n_tables; ++t) {
    const EmbeddingTable& table = set[draw(seed, 2 + t, set.size())];
    const ReferenceTable truth{static_cast<double>(table.rows), static_cast<double>(table.dim), table.pooling,
                               table.skew};
    batch.push_back(sample_table(truth, bags, seed * 100 + t));
    shards.push_back({.table = static_cast<std::uint32_t>(t), .columns = truth.dim});
    const auto lookups = static_cast<double>(batch.back().rows.size());
    LookupMeasurement::Table told{truth.rows, truth.dim, lookups / static_cast<double>(bags), {}};
    for (const std::uint32_t times : lookups_by_row(batch.back()))
      told.reuse[reuse_bin(times)] += 1.0 / static_cast<double>(batch.back().distinct_rows);
    m.tables.push_back(told);
  }
  const ReferenceMachine machine;
  const RankLookups rank = look_up(batch, shards, bags, machine);
  Timed timed{std::move(m), {}};
  for (const std::size_t v : {0U, 1U}) {
    const ReferenceVariant variant = v == 0 ? ReferenceVariant{} : kAllOfThese;
    timed.time_us[v] = {reference_forward_us(rank, machine, variant),
                        reference_backward_us(rank, machine, variant)};
  }
  return timed;
}

Result<std::vector<Timed>> time_kernels(std::size_t n, std::uint64_t seed, unsigned threads) {
  const std::vector<EmbeddingTable> set = generate_tables(kPublished2021, {.seed = seed});
  std::vector<Timed> kernels(n);
  STEPCAST_TRY(parallel_for(n, threads, [&](std::size_t k) -> Status {
    kernels[k] = time_kernel(set, seed * 100'000 + k);
    return Ok{};
  }));
  return kernels;
}

}  // namespace

Status score_learned_lookups(const SuiteOptions& options, SuiteResult& result) {
  STEPCAST_ASSIGN(const Platform platform, load_platform("hpc-4xa100-40gb"));
  STEPCAST_ASSIGN(const std::vector<Timed> trained, time_kernels(kTrained, kTrainedSeed, options.threads));
  STEPCAST_ASSIGN(const std::vector<Timed> tested, time_kernels(kTested, kTestedSeed, options.threads));
  struct Way {
    std::size_t variant = 0;
    Direction direction = Direction::forward;
    SetScore learned, analytic;
  };
  std::array<Way, 4> ways;
  STEPCAST_TRY(parallel_for(ways.size(), options.threads, [&](std::size_t w) -> Status {
    Way& way = ways[w];
    way.variant = w / 2;
    way.direction = w % 2 == 0 ? Direction::forward : Direction::backward;
    const auto of = [&](const Timed& timed) {
      LookupMeasurement kernel = timed.kernel;
      kernel.direction = way.direction;
      kernel.time_us = timed.time_us[way.variant][w % 2];
      return kernel;
    };
    std::vector<LookupMeasurement> kernels;
    for (const Timed& timed : trained) kernels.push_back(of(timed));
    STEPCAST_ASSIGN(const LearnedLookup model, train_lookup(kernels, platform.device));
    way.learned.set = way.analytic.set = std::string{to_string(way.direction)};
    way.learned.n_fit = kernels.size();
    for (std::size_t k = 0; k < tested.size(); ++k) {
      const LookupMeasurement kernel = of(tested[k]);
      const LookupTimes us = lookup_times(model, kernel, platform.device);
      const std::string name = fmt::format("kernel {}, {} tables", k, kernel.tables.size());
      way.learned.rows.push_back({name, kernel.time_us, us.learned_us});
      way.analytic.rows.push_back({name, kernel.time_us, us.analytic_us});
    }
    return Ok{};
  }));
  for (const std::size_t v : {0U, 1U}) {
    const std::string suffix = v == 0 ? "" : "_all_variants";
    TestScore learned{.test = "learned_lookups" + suffix, .protocol = "refit", .unit = "us"};
    TestScore analytic{.test = "lookups_not_learned" + suffix, .protocol = "shipped", .unit = "us"};
    for (Way& way : ways) {
      if (way.variant != v) continue;
      learned.sets.push_back(std::move(way.learned));
      analytic.sets.push_back(std::move(way.analytic));
    }
    result.add(finished({&learned, &analytic}));
  }
  return Ok{};
}

}  // namespace stepcast
