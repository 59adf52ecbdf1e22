#include "lab/sharding_study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/cost/access_pattern.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/recommend/dlrm_presets.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/sharders.h"
#include "stepcast/recommend/sharding_search.h"
#include "stepcast/recommend/table_sets.h"

#include "lab/ranking_score.h"
#include "lab/sharding_reference.h"

namespace stepcast {
namespace {

constexpr std::size_t kGpus = 4, kTasksOfAKind = 5, kBatch = 4096;
constexpr std::array<std::size_t, 4> kBatches{512, 1024, 2048, 4096};
constexpr std::size_t kMeanOver = 2;    // default number of batches in a mean of the reference
constexpr std::size_t kOtherBatch = 3;  // the batch that the predictor knows; it is not scored
constexpr double kPoolingNoise = 0.05;  // of the pooling that the predictor is given
constexpr double kMemoryAboveEven =
    1.15;  // memory of a rank over an even share, in the variant with little memory
constexpr double kAsGood = 1.02;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kSeed = 31;  // not used in development

struct Variant {
  std::string name;
  ReferenceVariant reference;
  bool slow_links = false, little_memory = false;
};
const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{
      {"plain", {}},
      {"narrow rows dearer, longest bag binds", {.narrow_rows_and_long_bags = true}},
      {"hot rows one by one", {.hot_rows = true}},
      {"links 4 to 9 times slower", {}, true},
      {"all of these", {.narrow_rows_and_long_bags = true, .hot_rows = true}, true},
      {"memory 15 % above the even share", {}, false, true},
      {"TorchRec's estimator", {.estimator = true}},
  };
  return all;
}

// Uniform in (0, 1), a function of its arguments only.
double noise(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15ULL + b * 0xbf58476d1ce4e5b9ULL + 0x94d049bb133111ebULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return (static_cast<double>((z ^ (z >> 31U)) >> 11U) + 0.5) * 0x1p-53;
}
double normal_noise(std::uint64_t a, std::uint64_t b) {
  return std::sqrt(-2 * std::log(noise(a, 2 * b))) * std::cos(6.28318530717958648 * noise(a, 2 * b + 1));
}

// One task: the truth, known only to the reference, and the input of the predictor.
class Task {
 public:
  // The reference is the mean over `batches` batches.
  Task(std::string name, std::uint64_t seed, const std::vector<EmbeddingTable>& tables, std::size_t batches)
      : name_(std::move(name)), seed_(seed), told_(*dlrm_preset("dlrm-multi-gpu")), batches_(batches) {
    told_.tables = tables;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      truth_.push_back({static_cast<double>(tables[t].rows), static_cast<double>(tables[t].dim),
                        tables[t].pooling, tables[t].skew});
      const SampledTable other = sample_table(truth_[t], kBatch, seed_ + 1000 * kOtherBatch + t);
      EmbeddingTable& told = told_.tables[t];
      told.skew = EmbeddingTable{}.skew;
      told.pooling *= std::max(0.5, 1 + kPoolingNoise * normal_noise(seed_, t));
      if (other.rows.empty()) continue;
      told.reuse.emplace().fill(0);
      for (const std::uint32_t times : lookups_by_row(other))
        (*told.reuse)[reuse_bin(times)] += 1.0 / static_cast<double>(other.distinct_rows);
      told.reuse_lookups = static_cast<double>(other.rows.size());
    }
    for (std::size_t b = 0; b < batches; ++b)
      for (std::size_t t = 0; t < tables.size(); ++t)
        batches_[b].push_back(
            sample_table(truth_[t], kBatch, seed_ + 1000 * (b < kOtherBatch ? b : b + 1) + t));
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] const Dlrm& told() const { return told_; }
  [[nodiscard]] double links_slower() const { return 4 + 5 * noise(seed_, 777'777); }

  // True if the weights fit on every rank.
  [[nodiscard]] bool fits(const ShardingPlan& plan, double bytes) const {
    std::array<double, kGpus> held{};
    for (const TableShard& s : shards_of(told_, plan, kGpus))
      held[static_cast<std::size_t>(s.rank)] += truth_[s.table].rows * truth_[s.table].dim * 4 / s.parts;
    return *std::ranges::max_element(held) <= bytes * (1 + 1e-12);
  }

  // Step of the reference, mean over the batches.
  double step_us(const ShardingPlan& plan, std::size_t batch, ReferenceVariant variant,
                 const ReferenceMachine& machine = {}) {
    std::array<std::vector<ReferenceShard>, kGpus> shards;
    std::map<std::pair<std::uint32_t, ShardingKind>, std::uint32_t> parts;
    for (const TableShard& s : shards_of(told_, plan, kGpus)) {
      ReferenceShard r{.table = s.table, .columns = truth_[s.table].dim};
      if (s.kind == ShardingKind::column_wise) r.columns /= s.parts;
      if (s.kind == ShardingKind::row_wise || s.kind == ShardingKind::table_row_wise) {
        r.row_parts = s.parts;
        r.row_part = parts[{s.table, s.kind}]++;
      }
      shards[static_cast<std::size_t>(s.rank)].push_back(r);
    }
    double sum = 0;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
      std::array<RankLookups, kGpus> ranks;
      for (std::size_t r = 0; r < kGpus; ++r) {
        if (!variant.estimator) {
          ranks[r] = of_rank(shards[r], batch, b);
          continue;
        }
        for (const ReferenceShard& s : shards[r]) ranks[r] += of_rank({s}, batch, b);
      }
      sum += reference_step_us(ranks, job(batch), machine, variant);
    }
    return sum / static_cast<double>(batches_.size());
  }

  // The step by the reference after a local search: moves and swaps of whole tables from `plan` until none shortens the
  // step. Only with `estimator`, where the times of tables add up.
  double searched_us(const ShardingPlan& plan, std::size_t batch, ReferenceVariant variant, double bytes) {
    std::vector<std::size_t> rank_of;
    for (const TablePlan& t : plan.tables) rank_of.push_back(static_cast<std::size_t>(t.ranks.front()));
    std::vector<std::vector<RankLookups>> of_table(batches_.size());
    for (std::size_t b = 0; b < batches_.size(); ++b)
      for (std::uint32_t t = 0; t < rank_of.size(); ++t)
        of_table[b].push_back(of_rank({{.table = t, .columns = truth_[t].dim}}, batch, b));
    const auto us_of = [&] {
      double sum = 0;
      std::array<double, kGpus> held{};
      for (std::size_t t = 0; t < rank_of.size(); ++t) held[rank_of[t]] += truth_[t].rows * truth_[t].dim * 4;
      if (*std::ranges::max_element(held) > bytes) return kNever;
      for (const std::vector<RankLookups>& tables : of_table) {
        std::array<RankLookups, kGpus> ranks;
        for (std::size_t t = 0; t < tables.size(); ++t) ranks[rank_of[t]] += tables[t];
        sum += reference_step_us(ranks, job(batch), {}, variant);
      }
      return sum / static_cast<double>(batches_.size());
    };
    double best = us_of();
    const auto keep = [&](std::size_t a, std::size_t rank_a, std::size_t b, std::size_t rank_b) {
      const std::pair before{rank_of[a], rank_of[b]};
      rank_of[a] = rank_a;
      rank_of[b] = rank_b;
      const double us = us_of();
      if (us < best * (1 - 1e-9)) {
        best = us;
        return true;
      }
      std::tie(rank_of[a], rank_of[b]) = before;
      return false;
    };
    for (bool shorter = true; shorter;) {
      shorter = false;
      for (std::size_t a = 0; a < rank_of.size(); ++a) {
        for (std::size_t r = 0; r < kGpus; ++r)
          if (r != rank_of[a] && keep(a, r, a, r)) shorter = true;
        for (std::size_t b = 0; b < a; ++b)
          if (rank_of[a] != rank_of[b] && keep(a, rank_of[b], b, rank_of[a])) shorter = true;
      }
    }
    return best;
  }

 private:
  [[nodiscard]] ReferenceJob job(std::size_t batch) const {
    ReferenceJob job{.batch = static_cast<double>(batch)};
    for (const ReferenceTable& t : truth_) job.sum_of_dims += t.dim;
    return job;
  }

  const RankLookups& of_rank(const std::vector<ReferenceShard>& shards, std::size_t batch, std::size_t b) {
    std::string key = fmt::format("{} {}", batch, b);
    for (const ReferenceShard& s : shards)
      key += fmt::format(" {}:{}:{}/{}", s.table, s.columns, s.row_part, s.row_parts);
    const auto [found, is_new] = known_.try_emplace(key);
    if (is_new) found->second = look_up(batches_[b], shards, batch, ReferenceMachine{});
    return found->second;
  }

  std::string name_;
  std::uint64_t seed_;
  Dlrm told_;
  std::vector<ReferenceTable> truth_;
  std::vector<std::vector<SampledTable>> batches_;
  std::map<std::string, RankLookups> known_;
};

// Results of a task for one variant.
struct Judged {
  std::array<double, kSharders.size()> reference_us{}, predicted_us{};  // infinite: does not fit
  double search_us = kNever;
  double own_search_us = kNever;  // result of a search by the reference; only if requested
  [[nodiscard]] double best_us() const { return *std::ranges::min_element(reference_us); }
  [[nodiscard]] double chosen_us() const {
    const auto chosen = std::ranges::min_element(predicted_us) - predicted_us.begin();
    return reference_us[static_cast<std::size_t>(chosen)];
  }
  [[nodiscard]] double of(Sharder sharder) const {
    return reference_us[static_cast<std::size_t>(std::ranges::find(kSharders, sharder) - kSharders.begin())];
  }
};

DlrmTraining training_of(std::size_t batch) {
  return {.stack = DlrmStack::torchrec,
          .cuda_graphs = true,
          .global_batch = static_cast<std::int64_t>(batch),
          .dtype = DType::fp32};
}

// Predictions for one task on one machine. The predictor does not know the variants of the kernels.
struct Predicted {
  std::array<ShardingPlan, kSharders.size()> plans;
  std::array<double, kSharders.size()> us{};  // infinite: does not fit
  SharderChoice search;
  double table_memory_bytes = 0;  // of one rank
};
Result<Predicted> predict(const Task& task, const Variant& variant, Platform platform) {
  Predicted predicted;
  if (variant.slow_links)
    platform.node.intra.bandwidth_per_gpu = platform.node.intra.bandwidth_per_gpu / task.links_slower();
  const auto create = [&] {
    return DlrmStepModel::create(task.told(), training_of(kBatch), platform, kGpus);
  };
  STEPCAST_ASSIGN(DlrmStepModel steps, create());
  if (variant.little_memory) {
    const double dense = platform.device.memory_size.value() - steps.table_memory_bytes();
    platform.device.memory_size =
        Bytes{dense + kMemoryAboveEven * task.told().table_bytes() / static_cast<double>(kGpus)};
    STEPCAST_ASSIGN(steps, create());
  }
  predicted.table_memory_bytes = steps.table_memory_bytes();
  for (std::size_t s = 0; s < kSharders.size(); ++s) {
    predicted.plans[s] = shard(task.told(), kGpus, kSharders[s],
                               {.memory_bytes = predicted.table_memory_bytes, .seed = task.seed()});
    predicted.us[s] = steps.expected_us(predicted.plans[s]);
  }
  predicted.search =
      search_sharding(steps, {.seed = 1, .max_seconds = 60, .copies = false, .host_memory = false});
  return predicted;
}

Judged judge(Task& task, const Variant& variant, const Predicted& predicted) {
  Judged judged;
  ReferenceVariant truth = variant.reference;
  if (variant.slow_links) truth.links_slower = task.links_slower();
  judged.predicted_us = predicted.us;
  const auto reference = [&](const ShardingPlan& plan) {
    return task.fits(plan, predicted.table_memory_bytes) ? task.step_us(plan, kBatch, truth) : kNever;
  };
  for (std::size_t s = 0; s < kSharders.size(); ++s) judged.reference_us[s] = reference(predicted.plans[s]);
  judged.search_us = predicted.search.fits ? reference(predicted.search.plan) : kNever;
  for (std::size_t s = 0; s < kSharders.size() && truth.estimator; ++s) {
    judged.own_search_us = std::min(judged.own_search_us, task.searched_us(predicted.plans[s], kBatch, truth,
                                                                           predicted.table_memory_bytes));
  }
  return judged;
}

struct BatchStep {
  double reference_us = 0, streaming_us = 0;  // with row accesses at streaming bandwidth
  Estimate predicted;
};
Result<BatchStep> step_of(Task& task, std::size_t batch, const Platform& platform) {
  STEPCAST_ASSIGN(DlrmStepModel steps,
                  DlrmStepModel::create(task.told(), training_of(batch), platform, kGpus));
  const ShardingPlan plan =
      shard(task.told(), kGpus, Sharder::size_lookup, {.memory_bytes = steps.table_memory_bytes()});
  STEPCAST_ASSIGN(const DlrmStep step, steps.predict(plan));
  ReferenceMachine streaming;
  streaming.memory_bytes_per_us = streaming.stream_bytes_per_us;
  return BatchStep{task.step_us(plan, batch, {}), task.step_us(plan, batch, {}, streaming), step.time};
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

SetScore choice_of(const Variant& variant, const std::vector<std::pair<std::string, Judged>>& heavy) {
  SetScore set{.set = variant.name};
  double good = 0, correlation = 0, n = 0;
  std::array<double, 2> always_good{}, always_regret{}, always_n{};
  for (const auto& [name, judged] : heavy) {
    const double best = judged.best_us();
    if (!(best < kNever)) continue;
    n += 1;
    set.rows.push_back({name, best * 1e-3, judged.chosen_us() * 1e-3});
    good += judged.chosen_us() <= kAsGood * best ? 1 : 0;
    std::vector<double> reference, predicted;
    for (std::size_t s = 0; s < kSharders.size(); ++s) {
      if (!(judged.reference_us[s] < kNever)) continue;
      reference.push_back(judged.reference_us[s]);
      predicted.push_back(judged.predicted_us[s]);
    }
    correlation += rank_correlation(reference, predicted).value_or(1);
    for (const std::size_t k : {0U, 1U}) {
      const double us = judged.of(k == 0 ? Sharder::size_lookup : Sharder::lookup);
      if (!(us < kNever)) continue;
      always_good[k] += us <= kAsGood * best ? 1 : 0;
      always_regret[k] += us / best - 1;
      always_n[k] += 1;
    }
  }
  set.extras = {{"within_2_percent_share", percent(good, n)},
                {"rank_correlation", n > 0 ? correlation / n : 0},
                {"size_lookup_within_2_percent_share", percent(always_good[0], n)},
                {"size_lookup_regret_percent", percent(always_regret[0], always_n[0])},
                {"lookup_within_2_percent_share", percent(always_good[1], n)},
                {"lookup_regret_percent", percent(always_regret[1], always_n[1])}};
  return set;
}

SetScore search_of(const Variant& variant, const std::vector<std::pair<std::string, Judged>>& heavy) {
  SetScore set{.set = variant.name};
  double infeasible = 0, only_search = 0, gain = 0, n_gain = 0, failed = 0, room = 0;
  for (const auto& [name, judged] : heavy) {
    const double best = judged.best_us();
    if (!(judged.search_us < kNever)) {
      infeasible += 1;
      continue;
    }
    if (!(best < kNever)) {
      only_search += 1;
      continue;
    }
    set.rows.push_back({name, best * 1e-3, judged.search_us * 1e-3});
    if (variant.reference.estimator) room += judged.own_search_us / best - 1;
    const double always = judged.of(Sharder::size_lookup);
    if (always < kNever) {
      gain += judged.search_us / always - 1;
      n_gain += 1;
    } else {
      failed += 1;
    }
  }
  using Over = ExtraMetric::Over;
  set.extras = {{"against_size_lookup_percent", percent(gain, n_gain)},
                {"infeasible_n", infeasible, Over::sum},
                {"feasible_where_no_sharder_is_n", only_search, Over::sum},
                {"size_lookup_infeasible_n", failed, Over::sum}};
  if (variant.reference.estimator)
    set.extras.push_back({"own_search_percent", percent(room, static_cast<double>(set.rows.size()))});
  return set;
}

// Results of one random task.
struct Outcome {
  std::string name;
  bool heavy = false;
  std::vector<Judged> judged;    // [variant]
  std::vector<BatchStep> steps;  // [batch]
};

// Adds the tests over all outcomes.
void add_tests(const std::vector<Outcome>& outcomes, SuiteResult& result) {
  TestScore choice{.test = "sharding_choice", .protocol = "shipped", .unit = "ms"};
  TestScore search{.test = "sharding_search", .protocol = "shipped", .unit = "ms"};
  TestScore step{.test = "sharded_step", .protocol = "shipped", .unit = "ms"};
  for (std::size_t v = 0; v < variants().size(); ++v) {
    std::vector<std::pair<std::string, Judged>> heavy;
    for (const Outcome& out : outcomes)
      if (out.heavy) heavy.emplace_back(out.name, out.judged[v]);
    choice.sets.push_back(choice_of(variants()[v], heavy));
    search.sets.push_back(search_of(variants()[v], heavy));
  }
  TestScore streaming = step;
  streaming.test = "sharded_step_if_rows_stream";
  for (std::size_t b = 0; b < kBatches.size(); ++b) {
    for (TestScore* test : {&step, &streaming}) {
      SetScore set{.set = fmt::format("batch {}", kBatches[b])};
      for (const Outcome& out : outcomes) {
        const Estimate& e = out.steps[b].predicted;
        const double us = test == &step ? out.steps[b].reference_us : out.steps[b].streaming_us;
        set.rows.push_back(
            {out.name, us * 1e-3, e.time.value() * 1e-3, e.p10.value() * 1e-3, e.p90.value() * 1e-3});
      }
      test->sets.push_back(std::move(set));
    }
  }
  result.add(finished({&choice, &search, &step, &streaming}));
}

}  // namespace

Status score_shardings(const SuiteOptions& options, SuiteResult& result) {
  STEPCAST_ASSIGN(const Platform platform, load_platform("hpc-4xa100-40gb"));
  const double memory = platform.device.memory_size.value();
  constexpr std::size_t kTasks = 4 * kTasksOfAKind;
  const std::vector<std::uint64_t> seeds = options.seeds.empty() ? std::vector{kSeed} : options.seeds;
  std::vector<Outcome> outcomes(kTasks * seeds.size());
  std::vector<std::array<std::vector<EmbeddingTable>, 2>> pools;
  for (const std::uint64_t seed : seeds) {
    pools.push_back({generate_tables(kPublished2021, {.seed = seed}),
                     generate_tables(kPublished2022, {.seed = seed + 1})});
  }
  STEPCAST_TRY(parallel_for(outcomes.size(), options.threads, [&](std::size_t nth) -> Status {
    const std::size_t k = nth % kTasks, year = k / (2 * kTasksOfAKind);
    const bool heavy = k / kTasksOfAKind % 2 == 0;
    Outcome& out = outcomes[nth];
    out.name = fmt::format("seed {} task {}, {}{}", seeds[nth / kTasks], k, year == 0 ? 2021 : 2022,
                           heavy ? " heavy" : "");
    out.heavy = heavy;
    const std::uint64_t seed = seeds[nth / kTasks] + 100 * (k + 1);
    Task task{
        out.name, seed,
        draw_task(pools[nth / kTasks][year], {.heavy_only = heavy, .memory_bytes = memory, .seed = seed}),
        options.batches > 0 ? options.batches : kMeanOver};
    std::map<std::pair<bool, bool>, Predicted> predicted;
    for (const Variant& variant : variants()) {
      if (!heavy) break;
      const std::pair machine{variant.slow_links, variant.little_memory};
      if (!predicted.contains(machine)) {
        STEPCAST_ASSIGN(predicted[machine], predict(task, variant, platform));
      }
      out.judged.push_back(judge(task, variant, predicted[machine]));
    }
    for (const std::size_t batch : kBatches) {
      STEPCAST_ASSIGN(const BatchStep step, step_of(task, batch, platform));
      out.steps.push_back(step);
    }
    return Ok{};
  }));
  add_tests(outcomes, result);
  return Ok{};
}

}  // namespace stepcast
