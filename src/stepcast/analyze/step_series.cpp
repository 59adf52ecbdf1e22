#include "stepcast/analyze/step_series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/breakdown.h"
#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/operator_times.h"
#include "stepcast/base/duration_text.h"
#include "stepcast/base/error_text.h"
#include "stepcast/base/names.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/statistics.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {
namespace {

constexpr double kPartial = 0.5;   // fraction of the median step
constexpr double kSlower = 0.1;    // relative to the steady steps
constexpr double kDeviations = 4;  // standard deviations of the steady steps
// Median absolute deviation to standard deviation, for a normal distribution.
constexpr double kMadToDeviation = 1.4826;
// Fewer steps than this cannot tell a warm-up from noise.
constexpr std::size_t kFewestSteady = 3;

double& at(std::array<double, kStepPartCount>& parts, StepPart part) {
  return parts[static_cast<std::size_t>(part)];
}

// The time of an operator as a linear function of its work: least squares over ranks and steps, with neither
// the slope nor the constant negative. Work is measured in bytes, since FLOPs and bytes of one operator rise
// and fall together.
class WorkLine {
 public:
  void add(double work, double us) { points_.emplace_back(work, us); }
  // Fits the line to the points that were added.
  void fit() {
    const auto n = static_cast<double>(points_.size());
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
    for (const auto& [x, y] : points_) {
      mean_x += x / n;
      mean_y += y / n;
    }
    for (const auto& [x, y] : points_) {
      xx += (x - mean_x) * (x - mean_x);
      xy += (x - mean_x) * (y - mean_y);
    }
    slope_ = xx > 0 ? std::max(0.0, xy / xx) : 0;
    // A negative constant would mean negative times for little work: force the line through the origin.
    if (slope_ * mean_x > mean_y && mean_x > 0) slope_ = mean_y / mean_x;
    constant_ = mean_y - slope_ * mean_x;
  }
  [[nodiscard]] double us(double work) const { return constant_ + slope_ * work; }

 private:
  std::vector<std::pair<double, double>> points_;
  double constant_ = 0, slope_ = 0;
};

// The work of an operator: bytes, or FLOPs if the bytes are unknown.
double work_in(const OperatorSample& sample) { return sample.bytes > 0 ? sample.bytes : sample.flops; }

// The steps that the statistics include.
std::vector<const StepSample*> counted(std::span<const StepSample> steps) {
  std::vector<const StepSample*> all;
  for (const StepSample& step : steps)
    if (step.left_out.empty()) all.push_back(&step);
  return all;
}

// Fills in how far each rank's GPU time is from that of the mean rank, split in two parts. Data: what the
// linear model of each operator predicts from the rank's work. Hardware: the remaining difference.
void add_skew(const std::vector<const StepSample*>& steps, ForecastSeries& series) {
  const std::size_t n_ranks = series.ranks.size();
  const auto n_steps = static_cast<double>(steps.size());
  std::map<std::string_view, WorkLine> lines;
  // Each rank of each step is one point. Ranks that do not run the operator contribute none.
  for (const StepSample* step : steps) {
    for (const RankSample& rank : step->ranks)
      for (const OperatorSample& op : rank.operators) lines[op.op].add(work_in(op), op.gpu_us);
  }
  for (auto& [op, line] : lines) line.fit();
  std::vector<double> by_work(n_ranks, 0.0), total(n_ranks, 0.0);
  for (const StepSample* step : steps) {
    for (std::size_t c = 0; c < n_ranks; ++c) {
      for (const OperatorSample& op : step->ranks[c].operators) {
        by_work[c] += lines.at(op.op).us(work_in(op)) / n_steps;
        total[c] += op.gpu_us / n_steps;
      }
    }
  }
  double mean_by_work = 0, mean_total = 0;
  for (std::size_t c = 0; c < n_ranks; ++c) {
    mean_by_work += by_work[c] / static_cast<double>(n_ranks);
    mean_total += total[c] / static_cast<double>(n_ranks);
  }
  for (std::size_t c = 0; c < n_ranks; ++c) {
    series.ranks[c].data_skew_ms = 1e-3 * (by_work[c] - mean_by_work);
    series.ranks[c].hardware_ms = 1e-3 * (total[c] - mean_total - (by_work[c] - mean_by_work));
  }
}

// The variance of step times and their covariance with each part. The sum of covariances is the variance, so
// the shares sum to 1.
struct Spread {
  double variance = 0;
  std::array<double, kStepPartCount> with{};
  std::size_t n = 0;

  // Adds steps to the sums, relative to their own mean. Each row has the parts of one step.
  void add(const std::vector<std::array<double, kStepPartCount>>& rows) {
    const auto count = static_cast<double>(rows.size());
    std::array<double, kStepPartCount> mean{};
    for (const auto& row : rows)
      for (std::size_t k = 0; k < kStepPartCount; ++k) mean[k] += row[k] / count;
    for (const auto& row : rows) {
      double step = 0;
      for (std::size_t k = 0; k < kStepPartCount; ++k) step += row[k] - mean[k];
      variance += step * step;
      for (std::size_t k = 0; k < kStepPartCount; ++k) with[k] += step * (row[k] - mean[k]);
    }
    n += rows.size();
  }
  // The share of a part in the variance.
  [[nodiscard]] double share(std::size_t part) const { return variance > 0 ? with[part] / variance : 0; }
  // The standard deviation of the step time.
  [[nodiscard]] double deviation_ms() const {
    return n > 0 ? 1e-3 * std::sqrt(variance / static_cast<double>(n)) : 0;
  }
};

// Fills in the standard deviations over steps and over ranks, and the shares of the parts in both.
void add_spread(const std::vector<const StepSample*>& steps, ForecastSeries& series) {
  using Row = std::array<double, kStepPartCount>;
  const std::size_t n_ranks = series.ranks.size();
  // Over steps: each rank relative to its own mean. Over ranks: the mean steps relative to their mean.
  Spread over_steps, over_ranks;
  std::vector<Row> means(n_ranks, Row{});
  for (std::size_t c = 0; c < n_ranks; ++c) {
    std::vector<Row> rows;
    for (const StepSample* step : steps) {
      rows.push_back(step->ranks[c].parts_us);
      for (std::size_t k = 0; k < kStepPartCount; ++k)
        means[c][k] += rows.back()[k] / static_cast<double>(steps.size());
    }
    over_steps.add(rows);
  }
  over_ranks.add(means);
  series.deviation_over_steps_ms = over_steps.deviation_ms();
  series.deviation_over_ranks_ms = over_ranks.deviation_ms();
  for (std::size_t k = 0; k < kStepPartCount; ++k) {
    series.spread.push_back(
        {std::string{to_string(static_cast<StepPart>(k))}, over_steps.share(k), over_ranks.share(k)});
  }
}

// The quantiles of the positive times that `time_of` returns for the steps.
template <class TimeOf>
ForecastQuantiles quantiles_over(const std::vector<const StepSample*>& steps, const TimeOf& time_of) {
  std::vector<double> us;
  for (const StepSample* step : steps)
    if (const double time = time_of(*step); time > 0) us.push_back(time);
  return quantiles_of(std::move(us));
}

}  // namespace

std::string_view to_string(StepPart part) {
  return name_of<StepPart::rest>(part, {"host", "gpu", "network", "pcie", "other_rank", "rest"}, "rest");
}

double StepSample::simulated_us() const {
  double us = 0;
  for (const RankSample& rank : ranks) us = std::max(us, rank.step.simulated_us);
  return us;
}

double StepSample::measured_us() const {
  double us = 0;
  for (const RankSample& rank : ranks) us = std::max(us, rank.step.measured_us);
  return us;
}

StepSample sample_step(const RecordedProgram& recorded, const Costs& costs, const ReplayScores& scores) {
  StepSample sample;
  sample.step = recorded.facts.empty() ? -1 : recorded.facts.front().step_number;
  const FlatProgram flat{recorded.program};
  const TaskTimes times = TaskTimes::simulated(flat, scores.timeline);
  std::vector<Interval> windows;
  for (const ReplayedRank& rank : scores.ranks) windows.push_back(rank.simulated_step);
  const std::vector<RankBreakdown> parts = break_down(flat, times, costs, windows, recorded.start_offset_us);
  const std::vector<RankTimes> as_recorded = rank_times(recorded, Costs{recorded.program});
  const std::vector<RankTimes> simulated = rank_times(recorded, costs);
  sample.ranks.resize(scores.ranks.size());
  for (std::size_t c = 0; c < sample.ranks.size(); ++c) {
    RankSample& rank = sample.ranks[c];
    const RankBreakdown& b = parts[c];
    rank.step = scores.ranks[c].step;
    rank.recorded = as_recorded[c];
    rank.simulated = simulated[c];
    at(rank.parts_us, StepPart::host) = b.idle.of(IdleCause::cpu) + b.idle.of(IdleCause::between_steps);
    at(rank.parts_us, StepPart::gpu) = b.computation_us + b.idle.of(IdleCause::other_stream);
    at(rank.parts_us, StepPart::network) = b.exposed_comm_us;
    at(rank.parts_us, StepPart::pcie) = b.exposed_memcpy_us;
    at(rank.parts_us, StepPart::other_rank) =
        b.idle.of(IdleCause::other_rank) + b.idle.of(IdleCause::pipeline);
    double sum = 0;
    for (const double us : rank.parts_us) sum += us;
    // Transfers hidden behind computation are not part of the step, so the rest is what the other parts
    // leave.
    at(rank.parts_us, StepPart::rest) = b.window.length_us() - sum;
  }
  for (const OperatorTimes& op : operator_times(flat, times, windows)) {
    for (std::size_t c = 0; c < sample.ranks.size(); ++c) {
      if (op.gpu_us[c] <= 0) continue;
      sample.ranks[c].operators.push_back({std::string{op.op}, op.gpu_us[c], op.flops[c], op.bytes[c]});
    }
  }
  return sample;
}

void leave_out_unsteady(std::vector<StepSample>& steps) {
  std::vector<double> us, whole;
  for (const StepSample& step : steps) {
    us.push_back(step.measured_us() > 0 ? step.measured_us() : step.simulated_us());
    if (step.left_out.empty()) whole.push_back(us.back());
  }
  // Too few steps for a decision: include all of them.
  if (whole.size() <= kFewestSteady) return;
  const double middle = median(whole);
  for (const std::size_t end : {std::size_t{0}, steps.size() - 1})
    if (steps[end].left_out.empty() && us[end] < kPartial * middle)
      steps[end].left_out = fmt::format("partial: {}, median step {}", duration_text(1e-3 * us[end]),
                                        duration_text(1e-3 * middle));
  // From the first step on, each step is compared with all steps behind it until one is steady.
  for (std::size_t i = 0; i < steps.size() / 2; ++i) {
    if (!steps[i].left_out.empty()) continue;
    std::vector<double> later, distance;
    for (std::size_t k = i + 1; k < steps.size(); ++k)
      if (steps[k].left_out.empty()) later.push_back(us[k]);
    if (later.size() < kFewestSteady) return;
    const double steady = median(later);
    for (const double time : later) distance.push_back(std::abs(time - steady));
    // The margin is robust: outliers among the later steps change neither the median nor the median deviation
    // much.
    const double margin = std::max(kSlower * steady, kDeviations * kMadToDeviation * median(distance));
    if (us[i] <= steady + margin) return;
    steps[i].left_out = fmt::format("warm-up: {}, steady steps {}", duration_text(1e-3 * us[i]),
                                    duration_text(1e-3 * steady));
  }
}

ForecastSeries series_of(std::span<const StepSample> steps, std::span<const std::int32_t> ranks) {
  ForecastSeries series;
  for (const StepSample& step : steps)
    series.steps.push_back({step.step, 1e-3 * step.simulated_us(), 1e-3 * step.measured_us(), step.left_out});
  const std::vector<const StepSample*> all = counted(steps);
  if (all.empty()) return series;
  series.step = quantiles_over(all, [](const StepSample& s) { return s.simulated_us(); });
  series.measured = quantiles_over(all, [](const StepSample& s) { return s.measured_us(); });
  for (std::size_t c = 0; c < ranks.size(); ++c) {
    ForecastSeriesRank& rank = series.ranks.emplace_back();
    rank.rank = ranks[c];
    rank.step = quantiles_over(all, [&](const StepSample& s) { return s.ranks[c].step.simulated_us; });
    rank.measured = quantiles_over(all, [&](const StepSample& s) { return s.ranks[c].step.measured_us; });
    for (const StepSample* step : all) {
      rank.host_ms += 1e-3 * step->ranks[c].simulated.host_us / static_cast<double>(all.size());
      rank.gpu_ms += 1e-3 * step->ranks[c].simulated.gpu_us / static_cast<double>(all.size());
    }
  }
  add_skew(all, series);
  add_spread(all, series);
  return series;
}

std::vector<std::vector<RankTimes>> recorded_times(std::span<const StepSample> steps) {
  std::vector<std::vector<RankTimes>> all;
  for (const StepSample* step : counted(steps)) {
    std::vector<RankTimes>& ranks = all.emplace_back();
    for (const RankSample& rank : step->ranks) ranks.push_back(rank.recorded);
  }
  return all;
}

ForecastQuantiles quantiles_of(std::vector<double> times_us) {
  ForecastQuantiles q;
  if (times_us.empty()) return q;
  std::sort(times_us.begin(), times_us.end());
  q.n = times_us.size();
  for (const double us : times_us) q.mean_ms += 1e-3 * us / static_cast<double>(q.n);
  q.p50_ms = 1e-3 * nearest_rank_quantile(times_us, 0.5);
  q.p90_ms = 1e-3 * nearest_rank_quantile(times_us, 0.9);
  q.p99_ms = 1e-3 * nearest_rank_quantile(times_us, 0.99);
  q.max_ms = 1e-3 * times_us.back();
  return q;
}

namespace {

constexpr std::size_t kFewestSteps = 3;  // needed to draw scenarios from steps

// Simulates all steps. A step that fails or launches no GPU work is marked as left out, with the reason.
Result<std::vector<StepSample>> sample_steps(std::span<const std::int64_t> steps,
                                             const SimulateStep& simulate, unsigned threads) {
  std::vector<StepSample> samples(steps.size());
  STEPCAST_TRY(parallel_for(steps.size(), threads, [&](std::size_t i) -> Status {
    const Status done = simulate(
        steps[i], [&](const RecordedProgram& recorded, const Costs& costs, const ReplayScores& scores) {
          samples[i] = sample_step(recorded, costs, scores);
          const bool works =
              std::any_of(scores.ranks.begin(), scores.ranks.end(),
                          [](const ReplayedRank& rank) { return rank.gpu_window.simulated_us > 0; });
          if (!works) samples[i].left_out = "launches no GPU work";
        });
    samples[i].step = steps[i];
    if (!done.ok()) samples[i].left_out = message_without_file(done.error());
    return Ok{};
  }));
  leave_out_unsteady(samples);
  return samples;
}

// A description such as "jitter of host 5 %, gpu 2 %, every rank by itself".
std::string text_of(const Jitter& jitter) {
  std::string text = "jitter of";
  const auto add = [&](const char* name, double sigma) {
    if (sigma > 0) text += fmt::format("{} {} {:.3g} %", text.ends_with("of") ? "" : ",", name, 100 * sigma);
  };
  add("host", jitter.host);
  add("gpu", jitter.gpu);
  add("network", jitter.network);
  return text + ", each rank separately";
}

// The distribution from which scenarios are drawn: the given jitter, else the steps, else the differences
// between ranks.
SlowdownDraws draws_for(const SpreadOptions& options, std::span<const StepSample> samples,
                        const RecordedProgram& recorded) {
  if (options.jitter.any()) {
    SlowdownDraws draws;
    draws.jitter = options.jitter;
    draws.from = text_of(options.jitter);
    return draws;
  }
  const std::vector<RankTimes> base = rank_times(recorded, Costs{recorded.program});
  const std::vector<std::vector<RankTimes>> steps = recorded_times(samples);
  if (steps.size() >= kFewestSteps) return draws_of_steps(steps, base);
  return draws_of_ranks(base);
}

}  // namespace

Status add_spread(const SpreadOptions& options, std::span<const std::int64_t> steps,
                  const SimulateStep& simulate, const RecordedProgram& recorded, const Costs& costs,
                  Forecast& forecast) {
  if (!options.asked()) return Ok{};
  std::vector<StepSample> samples;
  const bool draws_of_steps = options.scenarios > 0 && !options.jitter.any();
  if (options.all_steps || draws_of_steps) {
    STEPCAST_ASSIGN(samples, sample_steps(steps, simulate, options.threads));
  }
  if (options.all_steps) {
    const bool any = std::any_of(samples.begin(), samples.end(),
                                 [](const StepSample& sample) { return sample.left_out.empty(); });
    if (!any) {
      return Error{"no step for statistics"}
          .found(samples.empty() ? "no ProfilerStep common to all ranks"
                                 : fmt::format("step {}: {}", samples.front().step, samples.front().left_out))
          .advice("leave out --all-steps to use the whole trace");
    }
    std::vector<std::int32_t> ranks;
    for (const RecordedStepFacts& facts : recorded.facts) ranks.push_back(facts.rank);
    forecast.series = series_of(samples, ranks);
  }
  if (options.scenarios > 0) {
    const SlowdownDraws draws = draws_for(options, samples, recorded);
    STEPCAST_ASSIGN(
        forecast.scenarios,
        sweep_with_causes(recorded, costs, draws,
                          {.n = options.scenarios, .seed = options.seed, .threads = options.threads}));
  }
  return Ok{};
}

namespace {

constexpr std::size_t kTailParts = 10;  // the slowest 1 / kTailParts of the scenarios count as slow

// The cause of one slow scenario. Without a rank class: the network, or none.
struct Cause {
  std::optional<std::size_t> rank_class;
  std::string_view what = "none";
  double excess_us = 0;
};

// The resource that adds most time to the critical path to the end of the longest step, relative to mean
// factors. `longest`: the rank class with the longest step.
Result<Cause> cause_of(const RecordedProgram& recorded, const Plan& plan, const FlatProgram& flat,
                       const Costs& base, const ScenarioDraw& draw, const ScenarioDraw& mean,
                       std::size_t longest) {
  const Costs costs = scenario_costs(recorded, base, draw);
  STEPCAST_ASSIGN(const Timeline timeline,
                  plan.simulate(costs, {.unfold = false, .start_offset_us = recorded.start_offset_us}));
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  const RecordedStepFacts& facts = recorded.facts[longest];
  CriticalPathOptions to_end{.to_rank = RankClassId{longest}};
  if (facts.step_end_task.valid()) {
    to_end.to_task = flat.flat({.rank_class = RankClassId{longest},
                                .rank = 0,
                                .instance = InstanceId{0U},
                                .task = facts.step_end_task});
    to_end.to_start = facts.step_ends_at_start;
  }
  const CriticalPath path = critical_path(flat, times, costs, recorded.start_offset_us, to_end);
  std::vector<std::array<double, 2>> of_rank(draw.ranks.size());  // [rank class] {host, GPU} microseconds
  double network = 0;
  for (const PathStep& step : path.steps) {
    if (step.kind != PathStep::Kind::task) continue;
    const TaskInfo& info = flat.info(step.rank_class, step.task);
    const std::size_t c = step.rank_class.index();
    // The part of a step of the path that exceeds what it would take with the mean factor.
    const auto excess = [&](double factor, double usual) {
      return factor > 0 ? step.time.length_us() * (1 - usual / factor) : 0;
    };
    if (info.kind == TaskKind::collective || info.kernel_class == KernelClass::communication)
      network += excess(draw.network, mean.network);
    else if (flat.lane_of(step.rank_class, step.task).kind == LaneKind::gpu_stream)
      of_rank[c][1] += excess(draw.ranks[c].gpu, mean.ranks[c].gpu);
    else if (recorded.program.works.host(info.work) != nullptr)
      of_rank[c][0] += excess(draw.ranks[c].host, mean.ranks[c].host);
  }
  Cause most;
  if (network > most.excess_us) most = {std::nullopt, "network", network};
  for (std::size_t c = 0; c < of_rank.size(); ++c) {
    if (of_rank[c][0] > most.excess_us) most = {c, "host", of_rank[c][0]};
    if (of_rank[c][1] > most.excess_us) most = {c, "gpu", of_rank[c][1]};
  }
  return most;
}

}  // namespace

Result<ForecastScenarios> sweep_with_causes(const RecordedProgram& recorded, const Costs& costs,
                                            const SlowdownDraws& draws, const SweepOptions& options) {
  STEPCAST_ASSIGN(const SweptScenarios swept, sweep_scenarios(recorded, costs, draws, options));
  ForecastScenarios out;
  out.seed = options.seed;
  out.drawn_from = draws.from;
  out.step = quantiles_of(swept.step_us);
  for (const std::vector<double>& of_rank : swept.rank_step_us) out.ranks.push_back(quantiles_of(of_rank));
  if (options.n == 0) return out;

  // The slowest scenarios, in descending order of step time. At least one.
  std::vector<std::size_t> slowest(options.n);
  for (std::size_t s = 0; s < slowest.size(); ++s) slowest[s] = s;
  std::stable_sort(slowest.begin(), slowest.end(),
                   [&](std::size_t a, std::size_t b) { return swept.step_us[a] > swept.step_us[b]; });
  slowest.resize(std::max<std::size_t>(1, options.n / kTailParts));
  out.n_tail = slowest.size();
  out.tail_from_ms = 1e-3 * swept.step_us[slowest.back()];
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(recorded.program));
  const FlatProgram flat{recorded.program};
  const ScenarioDraw mean = mean_draw(draws, recorded.facts.size());
  std::vector<Cause> causes(slowest.size());
  STEPCAST_TRY(parallel_for(slowest.size(), options.threads, [&](std::size_t i) -> Status {
    const std::size_t s = slowest[i];
    std::size_t longest = 0;
    for (std::size_t c = 1; c < swept.rank_step_us.size(); ++c)
      if (swept.rank_step_us[c][s] > swept.rank_step_us[longest][s]) longest = c;
    // Scenarios are reproducible: drawing with the same seed and number gives the same factors again.
    const ScenarioDraw draw = draw_scenario(draws, recorded.facts.size(), options.seed, s);
    STEPCAST_ASSIGN(causes[i], cause_of(recorded, plan, flat, costs, draw, mean, longest));
    return Ok{};
  }));
  // Sum the causes by resource and rank.
  std::map<std::pair<std::string_view, std::optional<std::size_t>>, ForecastTailCause> by_cause;
  for (const Cause& cause : causes) {
    ForecastTailCause& sum = by_cause[{cause.what, cause.rank_class}];
    if (cause.rank_class) sum.rank = recorded.facts[*cause.rank_class].rank;
    sum.what = cause.what;
    ++sum.scenarios;
    sum.mean_excess_ms += 1e-3 * cause.excess_us;
  }
  for (auto& [key, cause] : by_cause) {
    cause.mean_excess_ms /= static_cast<double>(cause.scenarios);
    cause.share = static_cast<double>(cause.scenarios) / static_cast<double>(out.n_tail);
    out.tail.push_back(cause);
  }
  std::stable_sort(
      out.tail.begin(), out.tail.end(),
      [](const ForecastTailCause& a, const ForecastTailCause& b) { return a.scenarios > b.scenarios; });
  return out;
}

}  // namespace stepcast
