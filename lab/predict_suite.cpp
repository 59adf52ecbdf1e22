#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/untimed_program.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/host_prices.h"
#include "stepcast/retrace/other_shapes.h"
#include "stepcast/retrace/recorded_prices.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/trace_set.h"

#include "calibrate/overhead_fit.h"
#include "lab/foreign_hosts.h"
#include "lab/gpu_time_scores.h"
#include "lab/recorded_job.h"
#include "lab/step_scores.h"
#include "lab/suites.h"
#include "lab/trace_baselines.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// Bands of a step, as factors on each side. In this order: host times of another capture or rank of the job; of another
// host; of a related job, with a band that covers two of three public traces; of a job with other operators. Assumed unless
// stated.
constexpr double kOverheadBand = 1.08, kOtherHostBand = 1.2, kRelatedBand = 1.45, kUnrelatedBand = 2;
// Least share of a step at which the time of its data loader is used, as in predict/step_orbit.cpp.
constexpr double kLoaderShare = 0.02;
// Two jobs are related if the host times of one know this share of the calls of the other.
constexpr double kRelated = 0.6;

// Predicted step of one rank with these costs; nullopt if the Program cannot be simulated.
std::optional<double> step_us(const RecordedProgram& recorded, const Costs& costs, std::size_t c) {
  const Result<ReplayScores> scores = score_replay(recorded, costs);
  if (!scores.ok()) return std::nullopt;
  return scores->ranks[c].step.simulated_us;
}

// Predicts the step of every rank with the host times of each other rank.
class SwappedHosts {
 public:
  explicit SwappedHosts(const RecordedJob& job) : job_(job) {}

  // Rank `c` with the host times of `o`.
  [[nodiscard]] std::optional<double> as(std::size_t c, std::size_t o) {
    const auto [at, fresh] = known_.try_emplace({c, o});
    if (fresh) {
      const RecordedProgram& recorded = job_.steps.back();
      Costs costs{recorded.program};
      (void)apply_host_overheads(fit_overheads(job_.host_of_ranks[o]).host(), recorded, RankClassId{c},
                                 costs);
      at->second = step_us(recorded, costs, c);
    }
    return at->second;
  }
  // Rank `c` with the host times of each of `others`.
  [[nodiscard]] std::vector<double> as_each(std::size_t c, std::span<const std::size_t> others) {
    std::vector<double> us;
    for (const std::size_t o : others)
      if (const auto one = as(c, o)) us.push_back(*one);
    return us;
  }

 private:
  const RecordedJob& job_;
  std::map<std::pair<std::size_t, std::size_t>, std::optional<double>> known_;
};
double mean_step_us(const RecordedJob& job, std::span<const std::size_t> ranks) {
  double mean = 0;
  for (const std::size_t o : ranks)
    mean += job.steps.back().facts[o].step_us.length_us() / static_cast<double>(ranks.size());
  return mean;
}
std::vector<std::size_t> all_but(std::size_t n, std::size_t c) {
  std::vector<std::size_t> others;
  for (std::size_t o = 0; o < n; ++o)
    if (o != c) others.push_back(o);
  return others;
}

// Predicts each rank with the host of the median one of the others, because a few slow hosts would change the mean. That
// prediction and the mean step of the others are weighted by their errors on the other ranks: the first is right if ranks
// differ, the second if they share delays.
void leave_one_rank_out(StepScores& scores, const RecordedJob& job) {
  const RecordedProgram& recorded = job.steps.back();
  const std::size_t n = recorded.facts.size();
  if (n < 2 || recorded.facts.front().step_number < 0) return;
  SwappedHosts hosts{job};
  for (std::size_t c = 0; c < n; ++c) {
    const std::vector<std::size_t> others = all_but(n, c);
    const std::vector<double> each = hosts.as_each(c, others);
    if (each.empty()) continue;
    const double mean = mean_step_us(job, others);
    TwoWays ways;
    for (const std::size_t o : others) {
      std::vector<std::size_t> rest = others;
      std::erase(rest, o);
      const std::vector<double> as_rest = hosts.as_each(o, rest);
      if (!as_rest.empty())
        ways.seen(recorded.facts[o].step_us.length_us(), median(as_rest), mean_step_us(job, rest));
    }
    const double us = ways.together(median(each), mean);
    const double measured = recorded.facts[c].step_us.length_us();
    const std::string row = row_name(recorded.facts[c]);
    Spread spread = spread_of(each);
    if (!spread.half_width) spread.half_width = (kOverheadBand - 1) * us;
    scores.add("step_time", job.name, row_of(row, measured, us, spread), others.size());
    scores.add("mean_of_others", job.name, row_of(row, measured, mean));
  }
}

void own_overheads(StepScores& scores, const RecordedJob& job) {
  const RecordedProgram& recorded = job.steps.back();
  if (recorded.facts.front().step_number < 0) return;
  Costs costs{recorded.program};
  for (const RankClassId c : all_classes(recorded))
    (void)apply_host_overheads(fit_overheads(job.host_of_ranks[c.index()]).host(), recorded, c, costs);
  const Result<ReplayScores> result = score_replay(recorded, costs);
  if (!result.ok()) return;
  for (const ReplayedRank& rank : result->ranks) {
    const RecordedStepFacts& facts = recorded.facts[rank.rank_class.index()];
    scores.add("own_overheads", job.name,
               {row_name(facts), rank.step.measured_us / kUsPerMs, rank.step.simulated_us / kUsPerMs});
  }
}

// Predicts each step as each other step, with the data loader time and the shapes of the first: the recorded time plus the
// change that these cause in the replay.
class LoaderSwaps {
 public:
  // `models` of the GPU that recorded; null: steps with other shapes are not adjusted.
  LoaderSwaps(const RecordedJob& job, std::size_t first, const StepPricer* models)
      : job_(job), first_(first), models_(models) {}

  [[nodiscard]] double step_us(std::size_t s, std::size_t c) const {
    return job_.steps[s].facts[c].step_us.length_us();
  }
  // Step `s` predicted from step `o`; nullopt if their ranks differ.
  [[nodiscard]] std::optional<double> as_in(std::size_t s, std::size_t o, std::size_t c) {
    if (job_.steps[o].facts.size() != job_.steps[s].facts.size()) return std::nullopt;
    auto [at, fresh] = known_.try_emplace({s, o});
    if (fresh) at->second = changes(s, o);
    return step_us(o, c) + at->second[c];
  }
  // The median over `others`.
  [[nodiscard]] double median_as_in(std::size_t s, std::span<const std::size_t> others, std::size_t c) {
    std::vector<double> us;
    for (const std::size_t o : others)
      if (const auto one = as_in(s, o, c)) us.push_back(*one);
    return median(std::move(us));
  }
  [[nodiscard]] double median_of(std::span<const std::size_t> others, std::size_t c) const {
    std::vector<double> us;
    for (const std::size_t o : others) us.push_back(step_us(o, c));
    return median(std::move(us));
  }
  // All steps from `first_` on with as many ranks as `s`, without `s` and `without`.
  [[nodiscard]] std::vector<std::size_t> others(std::size_t s, std::size_t without) const {
    std::vector<std::size_t> all;
    for (std::size_t o = first_; o < job_.steps.size(); ++o)
      if (o != s && o != without && job_.steps[o].facts.size() == job_.steps[s].facts.size())
        all.push_back(o);
    return all;
  }

 private:
  std::vector<double> changes(std::size_t s, std::size_t o) const {
    const RecordedProgram& structure = job_.steps[o];
    std::vector<double> change(structure.facts.size(), 0.0);
    Costs costs{structure.program};
    bool any = false;
    const Result<OtherShapes> shapes = other_shapes(structure, job_.steps[s]);
    if (models_ != nullptr && shapes.ok() && !has_same_shapes(*shapes)) {
      TracePredictionOptions how;
      how.recorded_on = &models_->platform();
      how.change.shapes_of = &job_.steps[s];
      Result<TracePrediction> by_shape = predict_recorded(structure, how);
      any = by_shape.ok();
      if (any) costs = std::move(by_shape->costs);
    }
    for (const RankClassId c : all_classes(structure)) {
      const double own = data_loader_us(structure, c), given = data_loader_us(job_.steps[s], c);
      if (std::max(own, given) < kLoaderShare * structure.facts[c.index()].step_us.length_us() || own <= 0)
        continue;
      scale_data_loader(structure, c, costs, given / own);
      any = true;
    }
    if (!any) return change;
    const Result<ReplayScores> with = score_replay(structure, costs);
    const Result<ReplayScores> without = score_replay(structure, Costs{structure.program});
    if (!with.ok() || !without.ok()) return change;
    for (std::size_t c = 0; c < change.size(); ++c)
      change[c] = with->ranks[c].step.simulated_us - without->ranks[c].step.simulated_us;
    return change;
  }

  const RecordedJob& job_;
  std::size_t first_;
  const StepPricer* models_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> known_;  // [step, as in][rank class]
};

// The step predicted from the others, with its data loader time and its shapes given if these help to predict the others
// from one another.
void cross_step(StepScores& scores, const RecordedJob& job, PricedDevices& devices,
                std::vector<Skipped>& skipped) {
  const std::size_t first = first_steady_step(job);
  if (first > 0) {
    skipped.push_back({job.name + " cross_step",
                       fmt::format("the first {} steps differ by more than {:.0f} % from those behind them",
                                   first, 100 * kSteadyWithin)});
  }
  if (job.steps.size() - first < 3) return;
  LoaderSwaps swaps{job, first, devices.find(job.device)};
  for (std::size_t s = first; s < job.steps.size(); ++s) {
    const std::vector<std::size_t> others = swaps.others(s, s);
    if (others.empty()) continue;
    for (std::size_t c = 0; c < job.steps[s].facts.size(); ++c) {
      TwoWays ways;
      std::vector<double> predicted;
      for (const std::size_t o : others) {
        if (const auto one = swaps.as_in(s, o, c)) predicted.push_back(*one);
        const std::vector<std::size_t> rest = swaps.others(o, s);
        if (rest.empty()) continue;
        ways.seen(swaps.step_us(o, c), swaps.median_as_in(o, rest, c), swaps.median_of(rest, c));
      }
      const double as_others = swaps.median_of(others, c);
      const double us = ways.together(swaps.median_as_in(s, others, c), as_others);
      const std::string row = row_name(job.steps[s].facts[c]);
      scores.add("cross_step", job.name, row_of(row, swaps.step_us(s, c), us, spread_of(predicted)),
                 predicted.size());
      scores.add("median_of_others", job.name, row_of(row, swaps.step_us(s, c), as_others));
    }
  }
}

// Steps of one rank with these host times, [rank class][step]: measured and predicted.
std::vector<std::vector<TimePair>> steps_with_host_of(const RecordedJob& job, const HostOverheads& host,
                                                      const HostSpeed& speed, bool loader_given) {
  std::vector<std::vector<TimePair>> pairs;
  for (const RecordedProgram& recorded : job.steps) {
    Costs costs{recorded.program};
    for (const RankClassId c : all_classes(recorded)) {
      (void)apply_host_overheads(host, recorded, c, costs, speed);
      if (loader_given) scale_data_loader(recorded, c, costs, 1);
    }
    const Result<ReplayScores> result = score_replay(recorded, costs);
    if (!result.ok()) continue;
    pairs.resize(std::max(pairs.size(), result->ranks.size()));
    for (std::size_t r = 0; r < result->ranks.size(); ++r) pairs[r].push_back(result->ranks[r].step);
  }
  return pairs;
}
// Compares means, because means of host times predict the mean step.
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

// The mean step of `job` with these host times. `band`: factor on each side.
void add_means(StepScores& scores, std::string_view test, const RecordedJob& job,
               std::span<const std::vector<TimePair>> pairs, std::size_t n_fit, double band) {
  for (std::size_t r = 0; r < pairs.size() && r < job.steps.back().facts.size(); ++r) {
    const TimePair mean = mean_of(pairs[r]);
    const double ms = mean.simulated_us / kUsPerMs;
    scores.add(
        test, job.name,
        {mean_row_name(job, r, pairs[r].size()), mean.measured_us / kUsPerMs, ms, ms / band, ms * band, {}},
        n_fit);
  }
}
void with_host_of(StepScores& scores, std::string_view test, const RecordedJob& job,
                  const HostOverheads& host, const HostSpeed& speed, std::size_t n_fit, double band,
                  bool loader_given = false) {
  add_means(scores, test, job, steps_with_host_of(job, host, speed, loader_given), n_fit, band);
}

// Every step of `job` separately, with the host times of another capture.
void each_step_of_two_captures(StepScores& scores, const RecordedJob& job, const HostOverheads& host,
                               std::size_t n_fit) {
  const auto pairs = steps_with_host_of(job, host, {}, true);
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

// Trivial answer: the median step of the other captures.
void median_of_captures(StepScores& scores, const RecordedJob& job,
                        std::span<const RecordedJob* const> captures) {
  std::vector<std::vector<TimePair>> pairs;
  for (const RecordedProgram& step : job.steps) {
    pairs.resize(std::max(pairs.size(), step.facts.size()));
    for (std::size_t r = 0; r < step.facts.size(); ++r)
      pairs[r].push_back({step.facts[r].step_us.length_us(), 0});
  }
  for (std::size_t r = 0; r < pairs.size() && r < job.steps.back().facts.size(); ++r) {
    std::vector<double> us;
    for (const RecordedJob* other : captures)
      for (const RecordedProgram& step : other->steps)
        if (r < step.facts.size()) us.push_back(step.facts[r].step_us.length_us());
    if (us.empty()) continue;
    scores.add("median_of_other_capture", job.name,
               {mean_row_name(job, r, pairs[r].size()), mean_of(pairs[r]).measured_us / kUsPerMs,
                median(us) / kUsPerMs});
  }
}

// Predicts with the host times of all other jobs on any GPU, scaled to the speed of this host by common operators. The data
// loader time is given, because it is an input. A second test does not use the names of operators.
void with_foreign_hosts(StepScores& scores, const RecordedJob& job, const OverheadFit& own,
                        std::span<const OverheadFit> others) {
  const OverheadFit pool = pooled_jobs(others);
  const bool related = share_known(pool, own) >= kRelated;
  const HostSpeed speed = speed_of(own, pool);
  with_host_of(scores, related ? "foreign_overheads" : "foreign_overheads_unrelated", job, pool.host(), speed,
               others.size(), related ? kRelatedBand : kUnrelatedBand, true);
  with_host_of(scores, "foreign_overheads_by_family", job, by_family_alone(pool).host(), speed, others.size(),
               kUnrelatedBand, true);
}

// Predicts without any information about the job: families of operators take the time of the median job. Operators by name
// are known from few jobs, and their hosts and programs differ more than an operator differs from its family. A second test
// uses the median over jobs of each operator. The band is the error on other workloads.
void with_untold_hosts(StepScores& scores, std::span<const RecordedJob> jobs,
                       std::span<const OverheadFit> host_of_jobs) {
  struct Answer {
    const RecordedJob* job;
    std::size_t n_fit;
    std::vector<std::vector<TimePair>> pairs;
  };
  std::vector<Answer> answers;
  for (const RecordedJob& job : jobs) {
    if (job.steps.back().facts.front().step_number < 0) continue;
    std::vector<OverheadFit> others;
    for (std::size_t o = 0; o < jobs.size(); ++o)
      if (!same_workload(jobs[o], job)) others.push_back(host_of_jobs[o]);
    if (others.empty()) continue;
    const OverheadFit costs = median_costs(others);
    answers.push_back(
        {&job, others.size(), steps_with_host_of(job, by_family_alone(costs).host(), {}, true)});
    with_host_of(scores, "foreign_overheads_median_cost", job, costs.host(), {}, others.size(),
                 kUnrelatedBand, true);
  }
  for (const Answer& answer : answers) {
    std::vector<double> off;  // ln, errors on other workloads
    for (const Answer& other : answers) {
      if (same_workload(*other.job, *answer.job)) continue;
      for (const std::vector<TimePair>& pairs : other.pairs)
        off.push_back(std::abs(std::log(mean_of(pairs).simulated_us / mean_of(pairs).measured_us)));
    }
    std::ranges::sort(off);
    const double band = off.empty() ? kUnrelatedBand : std::exp(future_quantile(off, 0.8));
    add_means(scores, "foreign_overheads_speed_untold", *answer.job, answer.pairs, answer.n_fit, band);
  }
}

void between_jobs(StepScores& scores, std::span<const RecordedJob> jobs) {
  std::vector<OverheadFit> host_of_jobs;
  for (const RecordedJob& job : jobs) host_of_jobs.push_back(fit_overheads(job.host));
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const RecordedJob& job = jobs[j];
    if (job.steps.back().facts.front().step_number < 0) continue;
    OverheadSamples captures;
    std::vector<OverheadFit> foreign;
    std::vector<const RecordedJob*> same;
    std::size_t n_captures = 0;
    for (std::size_t o = 0; o < jobs.size(); ++o) {
      const RecordedJob& other = jobs[o];
      if (&other == &job) continue;
      if (other.folder == job.folder && other.device == job.device && !job.device.empty() &&
          same_workload(other, job)) {
        captures.add(other.host);
        same.push_back(&other);
        n_captures += other.steps.size();
      } else if (!same_workload(other, job)) {
        foreign.push_back(host_of_jobs[o]);
      }
    }
    if (n_captures > 0) {
      const OverheadFit fit = fit_overheads(captures);
      const HostOverheads host = fit.host();
      with_host_of(scores, "two_captures", job, host, {}, n_captures, kOverheadBand, true);
      HostSpeed as_its_operators;  // of the data loader; all other times are as learned
      as_its_operators.data_loader = speed_of(host_of_jobs[j], fit).data_loader;
      with_host_of(scores, "two_captures_loader_learned", job, host, as_its_operators, n_captures,
                   as_its_operators.data_loader != 1 ? kOverheadBand : kOtherHostBand);
      // Without any information about the predicted capture: the median step of the other one.
      with_host_of(scores, "two_captures_nothing_given", job, host, {}, n_captures, kOtherHostBand);
      median_of_captures(scores, job, same);
      each_step_of_two_captures(scores, job, host, n_captures);
    }
    if (!foreign.empty()) with_foreign_hosts(scores, job, host_of_jobs[j], foreign);
  }
  with_untold_hosts(scores, jobs, host_of_jobs);
}

// ---------------------------------------------------------------------------------------------------------
// Execution traces alone

// The step of a rank from its execution trace, with host times from the profiler traces of the other ranks, and the
// structure of the other ranks from their execution traces.
void execution_traces_alone(StepScores& scores, const RecordedJob& job, const TraceSet& set,
                            PricedDevices& devices) {
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
    for (std::size_t o = 0; o < n; ++o)
      if (o != c) others.emplace_back(o);
    const OverheadFit of_others = fit_overheads(recorded_overheads(recorded, others));
    const Result<RecordedProgram> untimed = untimed_program(ranks, of_others.launches);
    if (!untimed.ok()) return;
    const Result<RecordedPrices> priced =
        price_recorded(*untimed, {.kernels = KernelTimeSource::models, .target = prices, .origin = prices});
    if (!priced.ok()) return;
    Costs costs = priced->costs;
    const HostOverheads host = of_others.host();
    for (std::size_t r = 0; r < n; ++r) (void)apply_host_overheads(host, *untimed, RankClassId{r}, costs);
    const std::optional<double> us = step_us(*untimed, costs, c);
    if (!us) continue;
    scores.add(
        "execution_traces_alone", job.name,
        {row_name(recorded.facts[c]), recorded.facts[c].step_us.length_us() / kUsPerMs, *us / kUsPerMs},
        others.size());
  }
}

// ---------------------------------------------------------------------------------------------------------

void baselines(StepScores& scores, const RecordedJob& job, const TraceSet& set, PricedDevices& devices) {
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

const TestScore* test_named(std::span<const TestScore> tests, std::string_view name) {
  for (const TestScore& test : tests)
    if (test.test == name) return &test;
  return nullptr;
}

// Adds the ratio of the error of a test to that of its best baseline, set by set.
void hold_against(std::span<TestScore> tests, std::string_view name,
                  std::initializer_list<std::string_view> baselines) {
  for (TestScore& test : tests) {
    if (test.test != name) continue;
    for (SetScore& set : test.sets) {
      double best = std::numeric_limits<double>::infinity();
      for (const std::string_view baseline : baselines) {
        const TestScore* other = test_named(tests, baseline);
        if (other == nullptr) continue;
        for (const SetScore& of : other->sets)
          if (of.set == set.set && of.metrics.mape > 0) best = std::min(best, of.metrics.mape);
      }
      if (std::isfinite(best))
        set.extras.push_back({"of_baseline_pct", 100 * set.metrics.mape / best, ExtraMetric::Over::max});
    }
    test.finish();
  }
}

// The band of a pair is the error on pairs of other workloads.
void cross_device(StepScores& scores, const std::vector<RecordedJob>& jobs, PricedDevices& devices) {
  struct Scored {
    DevicePair pair;
    std::vector<double> errors;
  };
  std::vector<Scored> pairs;
  for (const RecordedJob& from : jobs) {
    for (const RecordedJob& to : jobs) {
      if (from.device == to.device || from.steps.back().facts.size() != 1 || from.operators.size() <= 5 ||
          !same_workload(from, to))
        continue;
      const DevicePair pair{&from, &to};
      pairs.push_back({pair, ratio_errors(pair, devices)});
    }
  }
  for (const Scored& scored : pairs) {
    std::vector<double> others;
    for (const Scored& other : pairs)
      if (!same_workload(*scored.pair.from, *other.pair.from))
        others.insert(others.end(), other.errors.begin(), other.errors.end());
    std::ranges::sort(others);
    score_cross_device(scores, scored.pair, others.empty() ? kRatioSpread : future_quantile(others, 0.8),
                       devices);
  }
}

}  // namespace

Result<SuiteResult> validate_predict(const fs::path& data, const SuiteOptions& options) {
  if (!options.protocol.empty() && options.protocol != "recorded") {
    return Error{fmt::format("the predict suite has no protocol '{}'", options.protocol)}.expected(
        "recorded");
  }
  STEPCAST_ASSIGN(const std::vector<fs::path> folders, folders_of(data));
  SuiteResult result{.suite = "predict"};
  StepScores scores;
  std::vector<RecordedJob> jobs;
  PricedDevices devices;
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
    cross_step(scores, job, devices, result.skipped);
    score_gpu_active(scores, job, devices, result.skipped);
  }
  between_jobs(scores, jobs);
  cross_device(scores, jobs, devices);
  result.tests = std::move(scores).finish();
  hold_against(result.tests, "step_time", {"mean_of_others"});
  hold_against(result.tests, "cross_step", {"median_of_others"});
  hold_against(result.tests, "two_captures_loader_learned", {"median_of_other_capture"});
  for (const std::string_view test : {"cross_device", "cross_device_models"})
    hold_against(result.tests, test,
                 {"cross_device_unchanged", "cross_device_peak_ratio", "cross_device_bandwidth_ratio"});
  return result;
}

}  // namespace stepcast
