#include "lab/dlrm_lookups.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/parallel.h"
#include "stepcast/cost/analytic_model.h"
#include "stepcast/cost/embedding_lookup.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/recommend/table_sets.h"

#include "calibrate/lookup_fit.h"
#include "lab/sharding_reference.h"

namespace stepcast {

namespace {

constexpr double kLongUs = 1000;  // the targets are about operators at least this long

// Constants fitted to the other sets. Forward: the share of the memory bandwidth that scattered rows reach. Backward: how
// skewed the popularity of rows is. Both: a factor on the times.
struct Fitted {
  LookupConstants constants;
  double exponent = kTypicalSkew;
  double scale = 1;
};

// Start of fits: the share that benchmarks of scattered rows reach (docs/constants.md); no trace was used for it.
constexpr double kBenchmarkedShare = 0.795;

class Predictor {
 public:
  explicit Predictor(const SuiteOptions& options) : options_(&options) {}

  Result<const Device*> device(const std::string& gpu) {
    if (const auto found = devices_.find(gpu); found != devices_.end()) return found->second.get();
    auto device = std::make_unique<Device>();
    const auto given = std::ranges::find_if(
        options_->platforms, [&](const auto& p) { return same_name(p.first, gpu) || p.first == "*"; });
    if (given != options_->platforms.end()) {
      STEPCAST_ASSIGN(Platform platform, load_platform(given->second.string()));
      *device = std::move(platform.device);
    } else {
      STEPCAST_ASSIGN(PlatformChoice choice, platform_for({.gpu = gpu}));
      *device = std::move(choice.platform.device);
    }
    const Device* pointer = device.get();
    devices_.emplace(gpu, std::move(device));
    return pointer;
  }

  // Only totals are known: tables of equal size and equal pooling, as wide as the rows are on average, because wide tables
  // are large and looked up often.
  Result<Estimate> predict(const MeasuredLookup& m, const Fitted& fitted) {
    STEPCAST_ASSIGN(const Device* device, this->device(m.gpu));
    const LookupModel model{*device, fitted.constants};
    const double rows = std::max(1.0, m.sum_rows / m.tables);
    const AccessPattern pattern = AccessPattern::zipf(rows, fitted.exponent);
    TableLookup table{.rows = rows,
                      .dim = m.sum_rows_times_dim / m.sum_rows,
                      .bags = m.batch,
                      .pooling = m.lookups / m.tables / m.batch,
                      .weight_bytes = m.weight_bytes,
                      .gradient_bytes = m.gradient_bytes,
                      .state_bytes_per_row = 4,
                      .weighted = m.weighted,
                      .pattern = &pattern};
    LookupCost all = model.cost(table);
    all.forward_us *= m.tables;
    all.backward_us *= m.tables;
    all.sort_us *= m.tables;
    const double us = m.backward ? model.backward_us(all) : model.forward_us(all);
    return model.estimate(us * fitted.scale, false, m.backward ? Direction::backward : Direction::forward);
  }

  // The published heuristic for the same lookup as `predict`, from totals only.
  Result<double> published(const MeasuredLookup& m) {
    STEPCAST_ASSIGN(const Device* device, this->device(m.gpu));
    LookupShape shape{.tables = static_cast<std::int64_t>(m.tables),
                      .rows = static_cast<std::int64_t>(std::max(1.0, m.sum_rows / m.tables)),
                      .dim = static_cast<std::int64_t>(std::max(1.0, m.sum_dim / m.tables)),
                      .bags = static_cast<std::int64_t>(m.batch),
                      .pooling = m.lookups / m.tables / m.batch,
                      .fused_update = true};
    const Operation operation{shape, m.weight_bytes > 2 ? DType::fp32 : DType::fp16,
                              m.backward ? Direction::backward : Direction::forward};
    return AnalyticModel{*device}.time(operation).value();
  }

  // Least squares in ln with a prior at the shipped constants: two numbers from a few operators of one direction.
  Result<Fitted> fit(const std::vector<const MeasuredLookup*>& rows) {
    constexpr double kScaleBand = 0.1, kShareBand = 0.3, kExponentBand = 0.5, kNoise = 0.1;
    Fitted best;
    double best_loss = 1e300;
    for (int step = 0; step <= 24; ++step) {
      Fitted tried;
      tried.constants.memory_share = tried.constants.backward_memory_share = kBenchmarkedShare;
      double away = 0;  // from the shipped constants, in widths of the prior
      if (!rows.empty() && rows.front()->backward) {
        tried.exponent = 0.05 * step;
        away = (tried.exponent - kTypicalSkew) / kExponentBand;
      } else {
        tried.constants.memory_share = 0.4 * std::pow(1.0 / 0.4, step / 24.0);
        away = std::log(tried.constants.memory_share / kBenchmarkedShare) / kShareBand;
      }
      double sum = 0, squares = 0;
      for (const MeasuredLookup* m : rows) {
        STEPCAST_ASSIGN(const Estimate e, predict(*m, tried));
        const double off = std::log(m->time_us / e.time.value());
        sum += off;
        squares += off * off;
      }
      const auto n = static_cast<double>(rows.size());
      const double pull = kNoise * kNoise / (kScaleBand * kScaleBand);
      const double log_scale = sum / (n + pull);  // minimises the squares with the prior
      const double loss =
          squares - 2 * log_scale * sum + (n + pull) * log_scale * log_scale + kNoise * kNoise * away * away;
      if (loss >= best_loss) continue;
      best_loss = loss;
      best = tried;
      best.scale = std::exp(log_scale);
    }
    return best;
  }

 private:
  const SuiteOptions* options_;
  std::map<std::string, std::unique_ptr<Device>> devices_;
};

std::string row_name(const MeasuredLookup& m) {
  return fmt::format("{} {}{} tables, batch {:.0f}, {:.2f} M lookups, dim {:.0f}", m.set,
                     m.weighted ? "weighted " : "", m.tables, m.batch, m.lookups / 1e6,
                     m.sum_rows_times_dim / m.sum_rows);
}

TestScore test_of(std::string name, std::string_view protocol) {
  TestScore test{.test = std::move(name), .protocol = std::string{protocol}, .unit = "us"};
  return test;
}

// Forecasts with `fitted`, or with the shipped constants if it is null.
std::vector<ScoredRow> rows_of(const std::vector<const MeasuredLookup*>& lookups, Predictor& predictor,
                               const Fitted* fitted, std::vector<Skipped>& skipped) {
  std::vector<ScoredRow> rows;
  for (const MeasuredLookup* m : lookups) {
    const Result<Estimate> e = predictor.predict(*m, fitted != nullptr ? *fitted : Fitted{});
    if (!e) {
      skipped.push_back({row_name(*m), e.error().message(), 1});
      continue;
    }
    rows.push_back({row_name(*m), m->time_us, e->time.value(), e->p10.value(), e->p90.value()});
    if (fitted == nullptr) continue;
    rows.back().shares = fmt::format("memory_share {:.3f} exponent {:.2f} scale {:.3f}",
                                     fitted->constants.memory_share, fitted->exponent, fitted->scale);
  }
  return rows;
}

std::vector<ScoredRow> published_rows(const std::vector<const MeasuredLookup*>& lookups,
                                      Predictor& predictor) {
  std::vector<ScoredRow> rows;
  for (const MeasuredLookup* m : lookups)
    if (const Result<double> us = predictor.published(*m)) rows.push_back({row_name(*m), m->time_us, *us});
  return rows;
}

// Ratios of the times of ranks of one job, with shipped constants.
TestScore score_rank_ratios(const std::vector<MeasuredLookup>& lookups, Predictor& predictor) {
  std::map<std::string, std::array<std::array<double, 2>, 2>> sums;  // [set][direction][measured, predicted]
  for (const MeasuredLookup& m : lookups) {
    const Result<Estimate> e = predictor.predict(m, Fitted{});
    if (!e) continue;
    sums[m.set][m.backward ? 1 : 0][0] += m.time_us;
    sums[m.set][m.backward ? 1 : 0][1] += e->time.value();
  }
  TestScore ratios = test_of("lookup_rank_ratio", "shipped");
  ratios.unit = "ratio";
  SetScore score{.set = "ranks of one job"};
  const auto stem = [](const std::string& set) { return set.substr(0, set.find("_rank")); };
  for (auto a = sums.begin(); a != sums.end(); ++a) {
    for (auto b = std::next(a); b != sums.end(); ++b) {
      if (a->first.find("_rank") == std::string::npos || stem(a->first) != stem(b->first)) continue;
      for (const std::size_t d : {0U, 1U}) {
        if (!(a->second[d][0] > 0) || !(b->second[d][0] > 0)) continue;
        score.rows.push_back({fmt::format("{} / {} {}", b->first, a->first, d == 0 ? "forward" : "backward"),
                              b->second[d][0] / a->second[d][0], b->second[d][1] / a->second[d][1]});
      }
    }
  }
  if (!score.rows.empty()) ratios.sets.push_back(std::move(score));
  ratios.finish();
  return ratios;
}

constexpr std::size_t kTrained = 600, kTested = 200;
constexpr std::uint64_t kTrainedSeed = 61, kTestedSeed = 71;

// Variants of the reference: narrow rows cost more, the longest bag limits a forward, and the hottest row limits a backward.
// Reuse factors and sums over tables hardly describe the last two.
constexpr ReferenceVariant kAllOfThese{.narrow_rows_and_long_bags = true, .hot_rows = true};

struct Timed {
  LookupMeasurement kernel;                        // forward; its time is set per variant and direction
  std::array<std::array<double, 2>, 2> time_us{};  // [variant][direction]
};

// A pseudo-random number from 0 to n - 1 that depends only on the arguments.
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

bool looks_like_lookups(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  return header.find("sum_rows_times_dim") != std::string_view::npos &&
         header.find("direction") != std::string_view::npos;
}

Result<std::vector<MeasuredLookup>> parse_lookups(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  for (const std::string_view column : {"set", "gpu", "direction", "tables", "batch", "lookups", "sum_rows",
                                        "sum_rows_times_dim", "sum_dim", "weights_dtype", "op_us"}) {
    if (!rows.has(column)) return Error::at(name, "line 1").found("no column").expected(std::string{column});
  }
  std::vector<MeasuredLookup> all;
  while (true) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    MeasuredLookup m{.set = std::string{rows.cell("set")}, .gpu = std::string{rows.cell("gpu")}};
    const std::string_view direction = rows.cell("direction");
    if (direction != "forward" && direction != "backward")
      return rows.error("direction").expected("forward or backward");
    m.backward = direction == "backward";
    STEPCAST_ASSIGN(m.weighted, rows.truth("weighted", false));
    STEPCAST_ASSIGN(m.tables, rows.number("tables", 1));
    STEPCAST_ASSIGN(m.batch, rows.number("batch", 1));
    STEPCAST_ASSIGN(m.lookups, rows.number("lookups", 0));
    STEPCAST_ASSIGN(m.sum_rows, rows.number("sum_rows", 1));
    STEPCAST_ASSIGN(m.sum_rows_times_dim, rows.number("sum_rows_times_dim", 1));
    STEPCAST_ASSIGN(m.sum_dim, rows.number("sum_dim", 1));
    STEPCAST_ASSIGN(const double us, rows.number("op_us", 0));
    if (!(us > 0)) return rows.error("op_us").expected("a time above 0");
    const auto bytes_of = [&](std::string_view column, double otherwise) {
      const double bytes = element_size(parse_dtype(rows.cell(column))).value();
      return bytes > 0 ? bytes : otherwise;
    };
    m.weight_bytes = bytes_of("weights_dtype", 4);
    m.gradient_bytes = bytes_of("gradient_dtype", 4);
    const auto same = std::ranges::find_if(all, [&](const MeasuredLookup& o) {
      return o.set == m.set && o.gpu == m.gpu && o.backward == m.backward && o.weighted == m.weighted &&
             o.tables == m.tables && o.batch == m.batch && o.sum_rows == m.sum_rows && o.sum_dim == m.sum_dim;
    });
    MeasuredLookup& kept = same == all.end() ? all.emplace_back(m) : *same;
    const auto n = static_cast<double>(kept.steps);
    kept.lookups = (n * kept.lookups + m.lookups) / (n + 1);
    kept.time_us = (n * kept.time_us + us) / (n + 1);
    ++kept.steps;
  }
  return all;
}

void score_lookups(const std::vector<MeasuredLookup>& lookups, const SuiteOptions& options,
                   SuiteResult& result) {
  Predictor predictor{options};
  std::set<std::string> sets;
  for (const MeasuredLookup& m : lookups) sets.insert(m.set);
  for (const bool backward : {false, true}) {
    const std::string name = backward ? "lookup_backward" : "lookup_forward";
    TestScore fitted_test = test_of(name, "refit"), shipped = test_of(name + "_shipped", "shipped"),
              published = test_of(name + "_published_heuristic", "shipped");
    for (const std::string& set : sets) {
      std::vector<const MeasuredLookup*> others;
      for (const MeasuredLookup& m : lookups)
        if (m.set != set && m.backward == backward && m.time_us > kLongUs) others.push_back(&m);
      const Result<Fitted> fitted = predictor.fit(others);
      for (const bool above : {true, false}) {
        std::vector<const MeasuredLookup*> rows;
        for (const MeasuredLookup& m : lookups)
          if (m.set == set && m.backward == backward && (m.time_us > kLongUs) == above) rows.push_back(&m);
        const auto add = [&](TestScore& test, std::vector<ScoredRow> scored, std::size_t n_fit) {
          if (scored.empty()) return;
          SetScore score{.set = fmt::format("{} {} 1 ms", set, above ? "above" : "up to"),
                         .group = above ? "above 1 ms" : "up to 1 ms",
                         .n_fit = n_fit,
                         .rows = std::move(scored)};
          test.sets.push_back(std::move(score));
        };
        add(fitted_test, rows_of(rows, predictor, fitted ? &*fitted : nullptr, result.skipped),
            fitted ? others.size() : 0);
        add(shipped, rows_of(rows, predictor, nullptr, result.skipped), 0);
        add(published, published_rows(rows, predictor), 0);
      }
    }
    result.add(finished({&fitted_test, &shipped, &published}));
  }
  result.add(score_rank_ratios(lookups, predictor));
}

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
