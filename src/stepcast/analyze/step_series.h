// Several recorded steps of one job, each replayed or predicted separately: how long they take, where their
// spread comes from, and how much of a rank's GPU time is due to its data and how much to its hardware.
//
//   std::vector<StepSample> steps;
//   for (...) steps.push_back(sample_step(recorded, costs, scores));
//   leave_out_unsteady(steps);
//   forecast.series = series_of(steps, ranks);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/scenario_sweep.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// The parts of a rank's step: what it does or waits for (breakdown.h). They sum to the step.
enum class StepPart : std::uint8_t { host, gpu, network, pcie, other_rank, rest };
inline constexpr std::size_t kStepPartCount = 6;
[[nodiscard]] std::string_view to_string(StepPart part);

// The GPU time and work of one operator on one rank in one step.
struct OperatorSample {
  std::string op{};
  double gpu_us = 0, flops = 0, bytes = 0;
};

// One rank in one step.
struct RankSample {
  // Simulated and measured length of the step.
  TimePair step;
  std::array<double, kStepPartCount> parts_us{};  // [StepPart]
  RankTimes recorded;                             // as recorded, even if another platform was predicted
  RankTimes simulated;
  std::vector<OperatorSample> operators{};  // operators with GPU time
};

// One recorded step.
struct StepSample {
  std::int64_t step = 0;
  std::vector<RankSample> ranks{};  // [rank class]
  std::string left_out{};           // why the statistics leave the step out; empty: they include it
  // The longest step of all ranks, in microseconds.
  [[nodiscard]] double simulated_us() const;
  [[nodiscard]] double measured_us() const;
};

// The sample of one step that was simulated from `costs`.
[[nodiscard]] StepSample sample_step(const RecordedProgram& recorded, const Costs& costs,
                                     const ReplayScores& scores);

// Marks steps that the statistics must leave out. Partial: the first or last step, if shorter than half of
// the median. Warm-up: first steps that are slower than the steady steps behind them by more than 10 % and by
// more than four robust standard deviations; at most half of the steps. Recorded times decide if there are
// any, otherwise simulated ones.
void leave_out_unsteady(std::vector<StepSample>& steps);

// The statistics of the steps, in their order. Needs at least one step that is not left out. `ranks`: numbers
// by class.
[[nodiscard]] ForecastSeries series_of(std::span<const StepSample> steps,
                                       std::span<const std::int32_t> ranks);

// [included step][rank class] recorded times.
[[nodiscard]] std::vector<std::vector<RankTimes>> recorded_times(std::span<const StepSample> steps);

// Statistics of times in microseconds, as milliseconds. Quantiles by the nearest rank.
[[nodiscard]] ForecastQuantiles quantiles_of(std::vector<double> times_us);

// The distribution of the step time of recorded ranks: over the steps of a file, or over straggler scenarios.
struct SpreadOptions {
  bool all_steps = false;
  std::size_t scenarios = 0;  // 0: none
  std::uint64_t seed = 1;
  // If given, scenarios are drawn from this instead of from measurements.
  Jitter jitter;
  unsigned threads = 0;  // 0: one thread per hardware thread
  [[nodiscard]] bool asked() const { return all_steps || scenarios > 0; }
};

// ShowStep receives a simulated step. SimulateStep simulates the recorded step with this number and calls
// `show` with it; it may be called from several threads at the same time.
using ShowStep = std::function<void(const RecordedProgram&, const Costs&, const ReplayScores&)>;
using SimulateStep = std::function<Status(std::int64_t step, const ShowStep& show)>;

// Fills in forecast.series and forecast.scenarios as `options` ask. `steps`: the steps that all ranks have.
// `recorded` and `costs`: the step of the forecast, on which scenarios are drawn. Without jitter, scenarios
// are drawn from the included steps (at least three), otherwise from the differences between the ranks of the
// one step. Errors: nothing to draw from, no step is included, those of Plan::simulate.
[[nodiscard]] Status add_spread(const SpreadOptions& options, std::span<const std::int64_t> steps,
                                const SimulateStep& simulate, const RecordedProgram& recorded,
                                const Costs& costs, Forecast& forecast);

// Simulates straggler scenarios of a step and finds what makes the slowest tenth slow: the host or the GPU of
// a rank, or the network. The cause of a slow scenario is the resource to which its factors add most time on
// the critical path to the end of the longest step: the part of the resource's time that exceeds its time at
// mean factors. Errors: those of Plan::simulate.
[[nodiscard]] Result<ForecastScenarios> sweep_with_causes(const RecordedProgram& recorded, const Costs& costs,
                                                          const SlowdownDraws& draws,
                                                          const SweepOptions& options);

}  // namespace stepcast
