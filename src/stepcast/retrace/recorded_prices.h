// Prices the tasks of recorded ranks for another GPU, other links or a faster host.
//
//   RecordedPricing how{.target = &pricer_of_mi300x, .origin = &pricer_of_h100};
//   STEPCAST_ASSIGN(const RecordedPrices prices, price_recorded(recorded, how));
//   score_replay(recorded, prices.costs)        // the step with these times
//   prices.coverage.unmodelled                  // work without a model, and why
//
// The Program keeps the recorded order, dependencies and learned delays; GPU work and host time get new durations.
// Three sources of GPU times:
//   recorded  the recorded time on the same GPU, times the what-if factors.
//   models    the models of the target, independent of the recorded times (the published method).
//   ratio     recorded time x model(target) / model(GPU that recorded). A model error of a kernel cancels if both GPUs
//             share it.
// Work without an Operation (Triton and other custom kernels) keeps its recorded time on the same GPU. On another GPU it
// scales with the bound of its kernel class and is listed as unmodelled.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/coverage.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

enum class KernelTimeSource : std::uint8_t { recorded, models, ratio };
// The name of the value, as in the enum.
[[nodiscard]] std::string_view to_string(KernelTimeSource ground);

// Half-width of the band of kernels priced by ratio, in ln, p10 or p90: future_quantile() at 0.8 of the errors of kernel
// classes in two workloads that were recorded on an H100 and an MI300X, in both directions.
inline constexpr double kRatioSpread = 0.156;

// How to price recorded ranks.
struct RecordedPricing {
  KernelTimeSource kernels = KernelTimeSource::recorded;
  // Prices on the target GPU and links, including what-if factors; required for `models` and `ratio`.
  StepPricer* target = nullptr;
  // Prices on the GPU and links that recorded, without what-if factors; required for `ratio`.
  StepPricer* origin = nullptr;
  // What-if factors on recorded times without a model.
  StepAssumptions assumptions{};
  // Work without a recorded time is priced by the models of the target, whatever `kernels` is.
  bool price_unrecorded = false;
  double ratio_spread = kRatioSpread;     // 0: use the error bands of the models of both GPUs
  std::int64_t gpus_per_node = 0;         // of the target; 0: all recorded ranks share a node
  std::int64_t origin_gpus_per_node = 0;  // of the recorded job; 0: as above
};

// Times of all tasks in us and their coverage by models.
struct RecordedPrices {
  Costs costs;      // the expected times
  Costs low, high;  // all GPU work at its p10, and at its p90
  Coverage coverage;
  // Errors within a kernel class are fully correlated, those of different classes only in part. The p10 (p90) of the sum is
  // this share of the way from the expected sum to the sum of all p10 (p90).
  double together_low = 1, together_high = 1;
};
// The same for sums of classes: expected time, all tasks at p10 and all at p90, in us. Without classes or bands: 1.
struct ClassBand {
  double us = 0, low_us = 0, high_us = 0;
};
struct BandShares {
  double low = 1, high = 1;
};
[[nodiscard]] BandShares shares_together(std::span<const ClassBand> classes,
                                         KernelTimeSource ground = KernelTimeSource::models);

// Leaves host times as recorded (host_prices.h changes them). Error: a source of times without the prices it requires.
[[nodiscard]] Result<RecordedPrices> price_recorded(const RecordedProgram& recorded,
                                                    const RecordedPricing& how);

}  // namespace stepcast
