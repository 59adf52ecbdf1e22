#include "stepcast/analyze/step_spread.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/step_series.h"
#include "stepcast/base/error_text.h"
#include "stepcast/base/parallel.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {
namespace {

constexpr std::size_t kFewestSteps = 3;  // to draw from

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

std::string text_of(const Jitter& jitter) {
  std::string text = "jitter of";
  const auto add = [&](const char* name, double sigma) {
    if (sigma > 0) text += fmt::format("{} {} {:.3g} %", text.ends_with("of") ? "" : ",", name, 100 * sigma);
  };
  add("host", jitter.host);
  add("gpu", jitter.gpu);
  add("network", jitter.network);
  return text + ", every rank by itself";
}

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
      return Error{"no step to make statistics of"}
          .found(samples.empty() ? "no ProfilerStep that all ranks have"
                                 : fmt::format("step {}: {}", samples.front().step, samples.front().left_out))
          .advice("leave out --all-steps to look at the trace as a whole");
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

constexpr std::size_t kTailParts = 10;  // slow is one scenario of so many

struct Cause {
  std::optional<std::size_t> rank_class;
  std::string_view what = "none";
  double excess_us = 0;
};

// What the path to the end of the longest step has too much of.
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
  std::vector<std::array<double, 2>> of_rank(draw.ranks.size());  // host, GPU
  double network = 0;
  for (const PathStep& step : path.steps) {
    if (step.kind != PathStep::Kind::task) continue;
    const TaskInfo& info = flat.info(step.rank_class, step.task);
    const std::size_t c = step.rank_class.index();
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
    const ScenarioDraw draw = draw_scenario(draws, recorded.facts.size(), options.seed, s);
    STEPCAST_ASSIGN(causes[i], cause_of(recorded, plan, flat, costs, draw, mean, longest));
    return Ok{};
  }));
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
