#include "stepcast/validate/predict_suite.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/predict/host_prices.h"
#include "stepcast/predict/recorded_prices.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/untimed_program.h"
#include "stepcast/trace/recorded_program.h"
#include "stepcast/trace/trace_set.h"
#include "stepcast/validate/recorded_job.h"
#include "stepcast/validate/recorded_sets.h"
#include "stepcast/validate/trace_baselines.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr double kUsPerMs = 1e3;
// Standard deviations from the mean to the 10th and 90th percentile of a normal distribution.
constexpr double kTenthPercentile = 1.2816;

// Bands of a step, as factors to either side: with the host times of another capture or rank of the job; of
// another host; of a related job, which holds two of three public traces; of one with other operators. Assumed where not
// said otherwise; the first two are those of `stepcast predict --trace`.
constexpr double kOverheadBand = 1.08, kOtherHostBand = 1.2, kRelatedBand = 1.45, kUnrelatedBand = 2;
// A job is related to another if its host times know this share of the other's calls.
constexpr double kRelated = 0.6;

std::string row_name(const RecordedStepFacts& facts) {
  return facts.step_number >= 0 ? fmt::format("rank {} step {}", facts.rank, facts.step_number)
                                : fmt::format("rank {}", facts.rank);
}

// Mean of the values and the half-width of the band that a further one lies in with 80 %; none of a single value,
// which says nothing of how far apart they are.
struct Spread {
  double mean = 0;
  std::optional<double> half_width;
};
Spread spread_of(std::span<const double> values) {
  Spread spread;
  if (values.empty()) return spread;
  for (const double v : values) spread.mean += v / static_cast<double>(values.size());
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double v : values) squares += (v - spread.mean) * (v - spread.mean);
  const auto n = static_cast<double>(values.size());
  spread.half_width = kTenthPercentile * std::sqrt(squares / (n - 1) * (1 + 1 / n));
  return spread;
}

// A row with the band of `spread` around what was predicted, where it has one.
ScoredRow row_of(std::string name, double measured_us, double predicted_us, const Spread& spread = {}) {
  ScoredRow row{std::move(name), measured_us / kUsPerMs, predicted_us / kUsPerMs,
                std::nullopt,    std::nullopt,           {}};
  if (spread.half_width) {
    row.p10 = (predicted_us - *spread.half_width) / kUsPerMs;
    row.p90 = (predicted_us + *spread.half_width) / kUsPerMs;
  }
  return row;
}

class Scores {
 public:
  TestScore& test(std::string_view name) {
    for (TestScore& t : tests_) {
      if (t.test == name) return t;
    }
    TestScore& added = tests_.emplace_back();
    added.test = name;
    added.protocol = "recorded";
    added.unit = "ms";
    return added;
  }
  void add(std::string_view name, const std::string& set, ScoredRow row, std::uint64_t n_fit = 0,
           const std::string& group = {}) {
    TestScore& of = test(name);
    auto found =
        std::find_if(of.sets.begin(), of.sets.end(), [&](const SetScore& s) { return s.set == set; });
    if (found == of.sets.end()) {
      SetScore& added = of.sets.emplace_back();
      added.set = set;
      added.group = group;
      added.n_fit = n_fit;
      found = std::prev(of.sets.end());
    }
    found->rows.push_back(std::move(row));
  }
  std::vector<TestScore> finish() && {
    std::erase_if(tests_, [](const TestScore& t) { return t.sets.empty() && t.test != "step_time"; });
    for (TestScore& t : tests_) t.finish();
    return std::move(tests_);
  }

 private:
  std::vector<TestScore> tests_{1, TestScore{.test = "step_time",
                                             .protocol = "recorded",
                                             .unit = "ms",
                                             .relative = true,
                                             .sets = {},
                                             .overall = {},
                                             .pooled = {},
                                             .extras = {},
                                             .groups = {}}};
};

// Predicted step of one rank under these costs; nothing where the Program cannot be simulated.
std::optional<double> step_us(const RecordedProgram& recorded, const Costs& costs, std::size_t c) {
  const Result<ReplayScores> scores = score_replay(recorded, costs);
  if (!scores.ok()) return std::nullopt;
  return scores->ranks[c].step.simulated_us;
}

void leave_one_rank_out(Scores& scores, const RecordedJob& job) {
  const RecordedProgram& recorded = job.steps.back();
  const std::size_t n = recorded.facts.size();
  if (n < 2 || recorded.facts.front().step_number < 0) return;
  for (std::size_t c = 0; c < n; ++c) {
    std::vector<RankClassId> others;
    for (std::size_t o = 0; o < n; ++o) {
      if (o != c) others.emplace_back(o);
    }
    Costs costs{recorded.program};
    (void)HostTimes::learn(recorded, others).apply(recorded, RankClassId{c}, costs);
    const std::optional<double> us = step_us(recorded, costs, c);
    if (!us) continue;
    // How far it would be with each of the others alone.
    std::vector<double> alone;
    double mean = 0;
    for (const RankClassId o : others) {
      mean += recorded.facts[o.index()].step_us.length_us() / static_cast<double>(others.size());
      Costs of_one{recorded.program};
      (void)job.host_of_ranks[o.index()].apply(recorded, RankClassId{c}, of_one);
      if (const auto one = step_us(recorded, of_one, c)) alone.push_back(*one);
    }
    const double measured = recorded.facts[c].step_us.length_us();
    const std::string row = row_name(recorded.facts[c]);
    Spread spread = spread_of(alone);
    if (!spread.half_width) spread.half_width = (kOverheadBand - 1) * *us;
    scores.add("step_time", job.name, row_of(row, measured, *us, spread), others.size());
    scores.add("mean_of_others", job.name, row_of(row, measured, mean));
  }
}

void own_overheads(Scores& scores, const RecordedJob& job) {
  const RecordedProgram& recorded = job.steps.back();
  if (recorded.facts.front().step_number < 0) return;
  Costs costs{recorded.program};
  for (const RankClassId c : all_classes(recorded)) {
    (void)job.host_of_ranks[c.index()].apply(recorded, c, costs);
  }
  const Result<ReplayScores> result = score_replay(recorded, costs);
  if (!result.ok()) return;
  for (const ReplayedRank& rank : result->ranks) {
    const RecordedStepFacts& facts = recorded.facts[rank.rank_class.index()];
    scores.add("own_overheads", job.name,
               {row_name(facts),
                rank.step.measured_us / kUsPerMs,
                rank.step.simulated_us / kUsPerMs,
                std::nullopt,
                std::nullopt,
                {}});
  }
}

// The step as each of the others had it, its data loader's time given: their median.
void cross_step(Scores& scores, const RecordedJob& job, std::vector<Skipped>& skipped) {
  const std::size_t first = first_steady_step(job);
  if (first > 0) {
    skipped.push_back({job.name + " cross_step",
                       fmt::format("the first {} steps differ by more than {:.0f} % from those behind them",
                                   first, 100 * kSteadyWithin)});
  }
  if (job.steps.size() - first < 3) return;
  for (std::size_t s = first; s < job.steps.size(); ++s) {
    const std::size_t n_ranks = job.steps[s].facts.size();
    std::vector<std::vector<double>> predicted(n_ranks), recorded_us(n_ranks);
    for (std::size_t o = first; o < job.steps.size(); ++o) {
      if (o == s || job.steps[o].facts.size() != n_ranks) continue;
      const RecordedProgram& structure = job.steps[o];
      Costs costs{structure.program};
      for (const RankClassId c : all_classes(structure)) {
        const double own = data_loader_us(structure, c), given = data_loader_us(job.steps[s], c);
        if (own > 0 && given > 0) scale_data_loader(structure, c, costs, given / own);
      }
      const Result<ReplayScores> result = score_replay(structure, costs);
      if (!result.ok()) continue;
      for (std::size_t c = 0; c < n_ranks; ++c) {
        predicted[c].push_back(result->ranks[c].step.simulated_us);
        recorded_us[c].push_back(structure.facts[c].step_us.length_us());
      }
    }
    for (std::size_t c = 0; c < n_ranks; ++c) {
      if (predicted[c].empty()) continue;
      const double measured = job.steps[s].facts[c].step_us.length_us();
      const double us = median(predicted[c]);
      const std::string row = row_name(job.steps[s].facts[c]);
      scores.add("cross_step", job.name, row_of(row, measured, us, spread_of(predicted[c])),
                 predicted[c].size());
      scores.add("median_of_others", job.name, row_of(row, measured, median(recorded_us[c])));
    }
  }
}

// Steps of one rank with these host times: [rank class][step], measured and predicted.
std::vector<std::vector<TimePair>> steps_with_host_of(const RecordedJob& job, const HostTimes& times,
                                                      double factor, bool loader_given) {
  std::vector<std::vector<TimePair>> pairs;
  for (const RecordedProgram& recorded : job.steps) {
    Costs costs{recorded.program};
    for (const RankClassId c : all_classes(recorded)) {
      (void)times.apply(recorded, c, costs, factor);
      if (loader_given) scale_data_loader(recorded, c, costs, 1);
    }
    const Result<ReplayScores> result = score_replay(recorded, costs);
    if (!result.ok()) continue;
    pairs.resize(std::max(pairs.size(), result->ranks.size()));
    for (std::size_t r = 0; r < result->ranks.size(); ++r) {
      pairs[r].push_back(result->ranks[r].step);
    }
  }
  return pairs;
}
// Means of host times predict the mean of the steps.
TimePair mean_of(std::span<const TimePair> pairs) {
  TimePair mean;
  for (const TimePair& pair : pairs) {
    mean.measured_us += pair.measured_us / static_cast<double>(pairs.size());
    mean.simulated_us += pair.simulated_us / static_cast<double>(pairs.size());
  }
  return mean;
}
std::string mean_row_name(const RecordedJob& job, std::size_t r, std::size_t n) {
  const RecordedStepFacts& facts = job.steps.back().facts[r];
  return n == 1 ? row_name(facts) : fmt::format("rank {} mean of {} steps", facts.rank, n);
}

// The mean step of `job` with these host times; `band`: to either side, a factor.
void with_host_of(Scores& scores, std::string_view test, const RecordedJob& job, const HostTimes& times,
                  double factor, std::size_t n_fit, double band, bool loader_given = false) {
  const auto pairs = steps_with_host_of(job, times, factor, loader_given);
  for (std::size_t r = 0; r < pairs.size() && r < job.steps.back().facts.size(); ++r) {
    const TimePair mean = mean_of(pairs[r]);
    const double ms = mean.simulated_us / kUsPerMs;
    scores.add(
        test, job.name,
        {mean_row_name(job, r, pairs[r].size()), mean.measured_us / kUsPerMs, ms, ms / band, ms * band, {}},
        n_fit);
  }
}

// Every step of `job` alone, with the host times of another capture.
void each_step_of_two_captures(Scores& scores, const RecordedJob& job, const HostTimes& times,
                               std::size_t n_fit) {
  const auto pairs = steps_with_host_of(job, times, 1, true);
  for (std::size_t r = 0; r < pairs.size(); ++r) {
    for (std::size_t s = 0; s < pairs[r].size(); ++s) {
      const double ms = pairs[r][s].simulated_us / kUsPerMs;
      scores.add(
          "two_captures_each_step", job.name,
          {fmt::format("rank {} step {} of {}", job.steps.back().facts[r].rank, s + 1, pairs[r].size()),
           pairs[r][s].measured_us / kUsPerMs,
           ms,
           ms / kOverheadBand,
           ms * kOverheadBand,
           {}},
          n_fit);
    }
  }
}

void between_jobs(Scores& scores, std::span<const RecordedJob> jobs) {
  std::vector<HostTimes> host_of_jobs;
  host_of_jobs.reserve(jobs.size());
  for (const RecordedJob& job : jobs) host_of_jobs.push_back(host_of_job(job));
  for (const RecordedJob& job : jobs) {
    if (job.steps.back().facts.front().step_number < 0) continue;
    const HostTimes& own = host_of_jobs[static_cast<std::size_t>(&job - jobs.data())];
    HostTimes captures;
    std::size_t n_captures = 0;
    // Of all others, whatever their GPU, the one whose host times know most of this job's calls.
    std::size_t nearest = jobs.size();
    double most = 0;
    for (std::size_t o = 0; o < jobs.size(); ++o) {
      const RecordedJob& other = jobs[o];
      if (&other == &job) continue;
      if (other.folder == job.folder && other.device == job.device && !job.device.empty() &&
          same_workload(other, job)) {
        captures.add(host_of_jobs[o]);
        n_captures += other.steps.size();
      } else if (!same_workload(other, job)) {
        const double known = host_of_jobs[o].share_known(own);
        if (known <= most) continue;
        most = known;
        nearest = o;
      }
    }
    if (n_captures > 0) {
      with_host_of(scores, "two_captures", job, captures, 1, n_captures, kOverheadBand, true);
      with_host_of(scores, "two_captures_loader_learned", job, captures, 1, n_captures, kOtherHostBand);
      each_step_of_two_captures(scores, job, captures, n_captures);
    }
    if (nearest < jobs.size()) {
      const HostTimes& foreign = host_of_jobs[nearest];
      const std::string_view test = most >= kRelated ? "foreign_overheads" : "foreign_overheads_unrelated";
      with_host_of(scores, test, job, foreign, foreign.factor_of(own), jobs[nearest].steps.size(),
                   most >= kRelated ? kRelatedBand : kUnrelatedBand);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------
// GPU time

// Prices on the platform of a GPU, kept for all traces of it.
class Devices {
 public:
  // Null where no platform has this GPU.
  StepPricer* find(const std::string& device) {
    auto [it, fresh] = of_device_.try_emplace(device);
    if (fresh) {
      Result<PlatformChoice> choice = platform_for(
          {.name = {}, .gpu = device, .gpus_per_node = 0, .network_kind = {}, .node_bandwidth_Gbps = {}});
      if (choice.ok()) {
        it->second.platform = std::make_unique<Platform>(std::move(choice->platform));
        it->second.prices = std::make_unique<StepPricer>(*it->second.platform, StepAssumptions{});
      }
    }
    return it->second.prices.get();
  }

 private:
  struct Device {
    std::unique_ptr<Platform> platform;
    std::unique_ptr<StepPricer> prices;
  };
  std::map<std::string, Device> of_device_;
};

struct KernelTimes {
  double recorded_us = 0, predicted_us = 0, low_us = 0, high_us = 0;
  void add(double recorded, double predicted, double low, double high) {
    recorded_us += recorded;
    predicted_us += predicted;
    low_us += low;
    high_us += high;
  }
};

bool is_lookup(const RecordedProgram& recorded, const TaskInfo& task) {
  return std::holds_alternative<LookupShape>(recorded.program.works.operation(task.work)->shape) ||
         recorded.program.names.text(task.name).find("fbgemm") != std::string_view::npos;
}

// Kernels with a known operation, without communication and copies; by class, table lookups under `none`.
std::map<KernelClass, KernelTimes> kernel_times(const RecordedProgram& recorded, const RecordedPrices& prices,
                                                std::size_t c) {
  std::map<KernelClass, KernelTimes> times;
  const BlockId id = recorded.program.rank_class(RankClassId{c}).instances.front().block;
  const Block& block = recorded.program.block(id);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const TaskInfo& task = block.tasks()[t];
    if (task.kind != TaskKind::kernel || recorded.program.works.operation(task.work) == nullptr) continue;
    const KernelClass kernel_class = is_lookup(recorded, task) ? KernelClass::none : task.kernel_class;
    times[kernel_class].add(block.duration_us()[t], prices.costs.duration_us(id)[t],
                            prices.low.duration_us(id)[t], prices.high.duration_us(id)[t]);
  }
  return times;
}

// Convolutions by what decides how libraries run them; empty: none.
std::string_view convolution_sort(const Operation& operation) {
  const auto* shape = std::get_if<ConvolutionShape>(&operation.shape);
  if (shape == nullptr) return {};
  if (shape->stride > 1) return "strided";
  if (shape->groups > 1) return "grouped";
  return shape->kernel_height == 1 && shape->kernel_width == 1 ? "1x1" : "larger than 1x1";
}
// All kernels of convolutions, copies between layouts too.
std::map<std::string_view, KernelTimes> convolution_times(const RecordedProgram& recorded,
                                                          const RecordedPrices& prices, std::size_t c) {
  std::map<std::string_view, KernelTimes> times;
  const BlockId id = recorded.program.rank_class(RankClassId{c}).instances.front().block;
  const Block& block = recorded.program.block(id);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const TaskInfo& task = block.tasks()[t];
    const Operation* operation = recorded.program.works.operation(task.work);
    if (task.kind != TaskKind::kernel || operation == nullptr) continue;
    const std::string_view sort = convolution_sort(*operation);
    if (sort.empty()) continue;
    times[sort].add(block.duration_us()[t], prices.costs.duration_us(id)[t], prices.low.duration_us(id)[t],
                    prices.high.duration_us(id)[t]);
  }
  return times;
}

ScoredRow kernel_row(std::string name, const KernelTimes& times) {
  return {std::move(name),         times.recorded_us / kUsPerMs, times.predicted_us / kUsPerMs,
          times.low_us / kUsPerMs, times.high_us / kUsPerMs,     {}};
}

void gpu_active(Scores& scores, const RecordedJob& job, Devices& devices, std::vector<Skipped>& skipped) {
  StepPricer* prices = devices.find(job.device);
  if (prices == nullptr) {
    skipped.push_back({job.name, fmt::format("no platform has the GPU \"{}\"", job.device)});
    return;
  }
  const RecordedProgram& recorded = job.steps.back();
  const Result<RecordedPrices> priced =
      price_recorded(recorded, {.kernels = KernelGround::models, .target = prices, .origin = prices});
  if (!priced.ok()) return;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const std::map<KernelClass, KernelTimes> times = kernel_times(recorded, *priced, c);
    KernelTimes all;
    for (const auto& [kernel_class, of_class] : times) {
      const bool lookups = kernel_class == KernelClass::none;
      const std::string name{lookups ? "table lookups" : to_string(kernel_class)};
      if (!lookups) all.add(of_class.recorded_us, of_class.predicted_us, of_class.low_us, of_class.high_us);
      scores.add("gpu_active_by_class", fmt::format("{} {}", job.name, name),
                 kernel_row(row_name(recorded.facts[c]), of_class), 0, name);
    }
    for (const auto& [sort, of_sort] : convolution_times(recorded, *priced, c)) {
      scores.add("gpu_active_of_convolutions", fmt::format("{} {}", job.name, sort),
                 kernel_row(row_name(recorded.facts[c]), of_sort), 0, std::string{sort});
    }
    if (all.recorded_us > 0) {
      scores.add("gpu_active", job.name, kernel_row(row_name(recorded.facts[c]), all));
    }
  }
}

void cross_device(Scores& scores, const RecordedJob& from, const RecordedJob& to, Devices& devices) {
  StepPricer* origin = devices.find(from.device);
  StepPricer* target = devices.find(to.device);
  if (origin == nullptr || target == nullptr) return;
  const std::size_t last = 0;  // one rank each
  const auto sum = [&](const RecordedJob& job, const Costs& costs) {
    const BlockId id = job.steps.back().program.rank_class(RankClassId{last}).instances.front().block;
    const Block& block = job.steps.back().program.block(id);
    double us = 0;
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (block.tasks()[t].kind == TaskKind::kernel) us += costs.duration_us(id)[t];
    }
    return us / kUsPerMs;
  };
  const RecordedProgram& recorded = from.steps.back();
  const double measured = sum(to, Costs{to.steps.back().program});
  const std::string row = fmt::format("{} to {}", from.device, to.device);
  scores.add("cross_device_unchanged", to.name,
             {row, measured, sum(from, Costs{recorded.program}), std::nullopt, std::nullopt, {}});
  for (const auto& [test, ground] : {std::pair{"cross_device", KernelGround::ratio},
                                     std::pair{"cross_device_models", KernelGround::models}}) {
    const Result<RecordedPrices> priced =
        price_recorded(recorded, {.kernels = ground, .target = target, .origin = origin});
    if (!priced.ok()) continue;
    scores.add(
        test, to.name,
        {row, measured, sum(from, priced->costs), sum(from, priced->low), sum(from, priced->high), {}});
  }
}

// ---------------------------------------------------------------------------------------------------------
// Execution traces alone

// A rank's step from its execution trace, with what the profiler traces of the other ranks say of the host;
// the other ranks' structure from their execution traces, too.
void execution_traces_alone(Scores& scores, const RecordedJob& job, const TraceSet& set, Devices& devices) {
  const RecordedProgram& recorded = job.steps.back();
  const std::size_t n = recorded.facts.size();
  StepPricer* prices = devices.find(job.device);
  if (n < 2 || prices == nullptr || job.steps.size() > 1 || recorded.facts.front().step_number < 0) return;
  std::vector<UntimedRank> ranks;
  for (std::size_t r = 0; r < n; ++r) {
    if (!set.execution_traces[r]) return;
    ranks.push_back({&*set.execution_traces[r], recorded.facts[r].rank, recorded.facts[r].step_us.start_us});
  }
  for (std::size_t c = 0; c < n; ++c) {
    std::vector<RankClassId> others;
    for (std::size_t o = 0; o < n; ++o) {
      if (o != c) others.emplace_back(o);
    }
    const Result<RecordedProgram> untimed = untimed_program(ranks, launches_of(recorded, others));
    if (!untimed.ok()) return;
    const Result<RecordedPrices> priced =
        price_recorded(*untimed, {.kernels = KernelGround::models, .target = prices, .origin = prices});
    if (!priced.ok()) return;
    Costs costs = priced->costs;
    const HostTimes times = HostTimes::learn(recorded, others);
    for (std::size_t r = 0; r < n; ++r) (void)times.apply(*untimed, RankClassId{r}, costs);
    const std::optional<double> us = step_us(*untimed, costs, c);
    if (!us) continue;
    scores.add("execution_traces_alone", job.name,
               {row_name(recorded.facts[c]),
                recorded.facts[c].step_us.length_us() / kUsPerMs,
                *us / kUsPerMs,
                std::nullopt,
                std::nullopt,
                {}},
               others.size());
  }
}

// ---------------------------------------------------------------------------------------------------------

void baselines(Scores& scores, const RecordedJob& job, const TraceSet& set, Devices& devices) {
  const auto add = [&](std::string_view test, const std::vector<BaselineStep>& steps) {
    for (const BaselineStep& step : steps) {
      const RecordedStepFacts& facts = job.steps.back().facts[step.rank_class];
      scores.add(test, job.name, row_of(row_name(facts), facts.step_us.length_us(), step.step_us),
                 step.n_fit);
    }
  };
  if (job.steps.back().facts.front().step_number < 0) return;
  add("overlap_factor", overlap_factor(job));
  StepPricer* prices = devices.find(job.device);
  if (prices == nullptr) return;
  add("speed_of_light", speed_of_light(job, prices->platform()));
  add("published_algorithm", published_algorithm(job, set, *prices));
}

}  // namespace

Result<SuiteResult> validate_predict(const fs::path& data, const SuiteOptions& options) {
  if (!options.protocol.empty() && options.protocol != "recorded") {
    return Error{fmt::format("the predict suite has no protocol '{}'", options.protocol)}.expected(
        "recorded");
  }
  STEPCAST_ASSIGN(const std::vector<fs::path> folders, folders_of(data));
  SuiteResult result;
  result.suite = "predict";
  Scores scores;
  std::vector<RecordedJob> jobs;
  Devices devices;
  for (const fs::path& folder : folders) {
    const std::vector<fs::path> place{folder};
    const Result<TraceListing> listing = list_traces(place);
    if (!listing.ok()) continue;
    std::vector<TraceListing::Other> not_read;
    for (const TraceSet& set :
         read_trace_sets(*listing, {.ranks = {}, .threads = options.threads}, not_read)) {
      const std::string name = relative_name(set.name, data);
      Result<RecordedJob> job = rebuild_job(set, name, options.threads);
      if (job.ok()) {
        execution_traces_alone(scores, *job, set, devices);
        baselines(scores, *job, set, devices);
        jobs.push_back(std::move(*job));
      } else {
        result.skipped.push_back({name, message_without_file(job.error())});
      }
    }
  }
  if (jobs.empty()) {
    return Error::at(data.string(), "no profiler trace here or in a folder below")
        .expected("Kineto traces, *.json or *.json.gz");
  }
  for (const RecordedJob& job : jobs) {
    leave_one_rank_out(scores, job);
    own_overheads(scores, job);
    cross_step(scores, job, result.skipped);
    gpu_active(scores, job, devices, result.skipped);
  }
  between_jobs(scores, jobs);
  for (const RecordedJob& from : jobs) {
    for (const RecordedJob& to : jobs) {
      if (from.device != to.device && from.steps.back().facts.size() == 1 && from.operators.size() > 5 &&
          same_workload(from, to)) {
        cross_device(scores, from, to, devices);
      }
    }
  }
  result.tests = std::move(scores).finish();
  return result;
}

Suite predict_suite() {
  return {.name = "predict",
          .summary = "steps of recorded traces with host times and kernel times that come from elsewhere",
          .data_folder = ".",
          .run = [](const fs::path& data, const SuiteOptions& options) {
            return validate_predict(data, options);
          }};
}

}  // namespace stepcast
