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
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/scenario_sweep.h"
#include "stepcast/trace/recorded_program.h"

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

}  // namespace stepcast
