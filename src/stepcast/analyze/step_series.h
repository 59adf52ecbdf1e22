// Several recorded steps of one job, each replayed or predicted by itself: how long they take, what their spread
// comes from, and what of a rank's GPU time is its data and what its hardware.
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

// What a rank does or waits for in its step: the parts of breakdown.h. They sum to it.
enum class StepPart : std::uint8_t { host, gpu, network, pcie, other_rank, rest };
inline constexpr std::size_t kStepPartCount = 6;
[[nodiscard]] std::string_view to_string(StepPart part);

// GPU time and work of one operator on one rank.
struct OperatorSample {
  std::string op{};
  double gpu_us = 0, flops = 0, bytes = 0;
};

struct RankSample {
  TimePair step;
  std::array<double, kStepPartCount> parts_us{};  // [StepPart]
  RankTimes recorded;                             // as recorded, whatever was predicted
  RankTimes simulated;
  std::vector<OperatorSample> operators{};  // with GPU time
};

struct StepSample {
  std::int64_t step = 0;
  std::vector<RankSample> ranks{};  // [rank class]
  std::string left_out{};           // why it does not count; empty: it does
  // Longest of all ranks.
  [[nodiscard]] double simulated_us() const;
  [[nodiscard]] double measured_us() const;
};

// One step, simulated from `costs`.
[[nodiscard]] StepSample sample_step(const RecordedProgram& recorded, const Costs& costs,
                                     const ReplayScores& scores);

// Marks steps that do not count: the first or last that is shorter than half of the median one (partial), and
// first steps that are slower than the steady ones that follow (warm-up): by more than a tenth and by more than four
// robust standard deviations. At most half of the steps. Recorded times decide where there are any.
void leave_out_unsteady(std::vector<StepSample>& steps);

// In the order of the steps. Needs one that counts.
[[nodiscard]] ForecastSeries series_of(std::span<const StepSample> steps,
                                       std::span<const std::int32_t> ranks);

// [step that counts][rank class], as recorded.
[[nodiscard]] std::vector<std::vector<RankTimes>> recorded_times(std::span<const StepSample> steps);

// Quantiles by the nearest rank; times in microseconds.
[[nodiscard]] ForecastQuantiles quantiles_of(std::vector<double> times_us);

// How the step of recorded ranks is distributed: over the steps of a file, and over straggler scenarios.
struct SpreadOptions {
  bool all_steps = false;
  std::size_t scenarios = 0;  // 0: none
  std::uint64_t seed = 1;
  Jitter jitter;         // where there is any, all that is drawn from
  unsigned threads = 0;  // 0: one per hardware thread
  [[nodiscard]] bool asked() const { return all_steps || scenarios > 0; }
};

// Simulates a recorded step and shows it; may be called from several threads at once.
using ShowStep = std::function<void(const RecordedProgram&, const Costs&, const ReplayScores&)>;
using SimulateStep = std::function<Status(std::int64_t step, const ShowStep& show)>;

// Into forecast.series and forecast.scenarios what `options` ask for. `steps`: numbers of the steps that all ranks
// have; `recorded` and `costs`: the step that the forecast is of, which scenarios are drawn on. Without jitter they
// are drawn from the steps that count (at least three), else from the ranks of the one step. Errors: nothing to draw
// from, no step that counts, those of Plan::simulate.
[[nodiscard]] Status add_spread(const SpreadOptions& options, std::span<const std::int64_t> steps,
                                const SimulateStep& simulate, const RecordedProgram& recorded,
                                const Costs& costs, Forecast& forecast);

// Straggler scenarios of a step: how they are distributed, and which rank's host or GPU, or the network, makes the
// slow ones slow. Slow is the slowest tenth. The cause of a slow scenario is what its draw adds most of to the critical path
// to the end of its longest step: of the time that the path spends on the host or the GPU of a rank, or on the network, the
// part that factors above their mean account for. Errors: those of Plan::simulate.
[[nodiscard]] Result<ForecastScenarios> sweep_with_causes(const RecordedProgram& recorded, const Costs& costs,
                                                          const SlowdownDraws& draws,
                                                          const SweepOptions& options);

}  // namespace stepcast
