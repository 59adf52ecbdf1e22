// Which of the priced layouts to run: the fastest, those that no forecast can tell from it, and one of these.
//
//   STEPCAST_ASSIGN(const LayoutRanking ranking, rank_layouts(found.priced, prototypes, platform, {...}));
//   ranking.layouts[0]                         // the fastest, with its band, memory and parts
//   ranking.n_alike, ranking.chosen
//
// Two layouts of one model on one platform share most of what their forecasts err by: kernels of the same kind are too
// slow or too fast in both. What is left is (1) the error of parts of which one layout has more than the other, each
// part off by the share that its forecast's band says, independently of the other parts; (2) what the structure leaves
// out of either: 7 % of the step, 20 % where layers have experts (docs/constants.md). A layout cannot be told from the fastest if the two times differ by less than
// both together.
//
// A kind of layouts of which no run was ever published (unmeasured_kind()) errs by more than that, and wins only where it
// is faster by more than the band of its difference to the fastest of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_search.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/step_prediction.h"
#include "stepcast/workload/memory.h"

namespace stepcast {

struct RankedLayout {
  LayoutPoint point;
  Layout layout;
  StepPrediction step;
  MemoryForecast memory;
  double behind_us = 0;           // the fastest one
  double uncertain_us = 0;        // half of the band (p10-p90) of that difference
  bool alike = false;             // cannot be told from the fastest
  std::size_t rank = 0;           // among all that were priced, from 0
  std::string_view unmeasured{};  // what unmeasured_kind() says
  [[nodiscard]] double step_ms() const { return step.step.time.value() * 1e-3; }
};

struct LayoutRanking {
  // Ascending in time: all that cannot be told apart, at least `most`, and what refine_layouts() added.
  std::vector<RankedLayout> layouts;
  std::size_t n_alike = 0;  // from the front on, not necessarily without gaps
  bool more_alike = false;  // kMostRanked was not enough to list them
  std::size_t chosen = 0;
};

// Layouts that are looked at in full.
inline constexpr std::size_t kMostRanked = 400;

// What the structure leaves out of one layout and not of another.
enum class DifferenceOf : std::uint8_t { dense, experts, unmeasured };
// Half of the band of what is left between the two.
[[nodiscard]] double uncertain_difference_us(const StepPrediction& a, const StepPrediction& b,
                                             DifferenceOf of);

// Of those that cannot be told from the fastest: the fastest of a measured kind whose memory is not tight, or one that
// is up to 0.2 % slower by the forecast and in fewer things unlike `from` (a plain layout). Where all are tight or of
// an unmeasured kind, the first of these that stays: not tight, then the fastest.
[[nodiscard]] std::size_t choose(const std::vector<RankedLayout>& layouts, const LayoutPoint& from);

// What is wanted of the layouts that cannot be told from the fastest. On so many GPUs of one kind the fastest is also the
// cheapest and takes the least energy; between machines and numbers of GPUs these differ (training_plan.h).
enum class PlanObjective : std::uint8_t {
  step_time,
  cost,
  energy,
  memory,  // the most memory to spare
};
// "time" (or "step-time"), "money" (or "cost"), "energy" (or "carbon": one intensity makes them one), "memory".
[[nodiscard]] Result<PlanObjective> parse_objective(const std::string& word);
// The one that leaves most memory.
[[nodiscard]] std::size_t with_most_memory(const std::vector<RankedLayout>& layouts);

// One of `priced`, in full.
[[nodiscard]] Result<RankedLayout> look_at(const std::vector<PricedLayout>& priced, std::size_t rank,
                                           const LayoutPrototypes& prototypes, const StepModel& steps,
                                           Bytes memory);

// `priced` ascends in time. Errors: none but those of the platform.
[[nodiscard]] Result<LayoutRanking> rank_layouts(const std::vector<PricedLayout>& priced,
                                                 const LayoutPrototypes& prototypes, const StepModel& steps,
                                                 Bytes memory, std::size_t most);

}  // namespace stepcast
