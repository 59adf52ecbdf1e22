// The times of recorded ranks under other circumstances: on another GPU, with other links, on a faster host.
//
//   RecordedPricing how{.target = &pricer_of_mi300x, .origin = &pricer_of_h100};
//   STEPCAST_ASSIGN(const RecordedPrices prices, price_recorded(recorded, how));
//   score_replay(recorded, prices.costs)        // the step with them
//   prices.coverage.unmodelled                  // what no model could move, and why
//
// The Program keeps the recorded order, dependencies and learned delays; GPU work and host time get new
// durations. Three grounds for the time of GPU work:
//   recorded  as it was recorded: the same GPU. What-if factors apply.
//   models    what the models of the target say, whatever was recorded (the published method).
//   ratio     the recorded time, times what the models say of the target over what they say of the GPU that
//             recorded: a model's error on a kernel cancels where it is the same on both.
// Work without an Operation (Triton and other custom kernels) keeps its recorded time on the same GPU; on
// another one it moves with the bound of its class, and is named.
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
[[nodiscard]] std::string_view to_string(KernelTimeSource ground);

// Half-width of the band of kernels whose time moves by the ratio of the models, in ln, p10 or p90: future_quantile() at 0.8 of what
// classes of kernels were off, of the two workloads that were recorded on an H100 and an MI300X, both ways.
inline constexpr double kRatioSpread = 0.156;

struct RecordedPricing {
  KernelTimeSource kernels = KernelTimeSource::recorded;
  // Prices on the GPU and links to predict, with the what-if factors; needed for `models` and `ratio`.
  StepPricer* target = nullptr;
  // Prices on those that recorded, without; needed for `ratio`.
  StepPricer* origin = nullptr;
  // What-if factors on recorded times, where no model is asked.
  StepAssumptions assumptions{};
  // Work without a recorded time takes that of the target's models whatever the ground.
  bool price_unrecorded = false;
  double ratio_spread = kRatioSpread;     // 0: as far as the models of the two GPUs may err
  std::int64_t gpus_per_node = 0;         // of the target; 0: all recorded ranks share a node
  std::int64_t origin_gpus_per_node = 0;  // of the recorded job; 0: as above
};

struct RecordedPrices {
  Costs costs;      // the expected times
  Costs low, high;  // every piece of GPU work at its p10, and at its p90
  Coverage coverage;
  // Of the way from the expected sum to the one of all pieces at their p10, or p90, where the p10 or p90 of the sum lies:
  // kernels of one class err together, classes apart.
  double together_low = 1, together_high = 1;
};
// The same for sums of classes: {expected, all at p10, all at p90} of each. No class or no band: 1.
struct ClassBand {
  double us = 0, low_us = 0, high_us = 0;
};
struct BandShares {
  double low = 1, high = 1;
};
[[nodiscard]] BandShares shares_together(std::span<const ClassBand> classes,
                                         KernelTimeSource ground = KernelTimeSource::models);

// Host time is left as recorded (host_prices.h changes it). Errors: a ground without its prices.
[[nodiscard]] Result<RecordedPrices> price_recorded(const RecordedProgram& recorded,
                                                    const RecordedPricing& how);

}  // namespace stepcast
