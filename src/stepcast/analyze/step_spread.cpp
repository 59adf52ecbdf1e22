#include "stepcast/analyze/step_spread.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/step_series.h"
#include "stepcast/analyze/tail_causes.h"
#include "stepcast/base/error_text.h"
#include "stepcast/base/parallel.h"

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

}  // namespace stepcast
