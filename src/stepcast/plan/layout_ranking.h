// Ranks the priced layouts: the fastest, those tied with it within forecast error, and the one to recommend.
//
//   STEPCAST_ASSIGN(const LayoutRanking ranking, rank_layouts(found.priced, prototypes, platform, {...}));
//   ranking.layouts[0]                         // the fastest, with its band, memory and parts
//   ranking.n_alike, ranking.chosen
//
// Forecasts of two layouts of one model on one platform share most of their errors: the same kernels are too slow or too fast
// in both. The remaining uncertainty of their difference has two sources. (1) Parts with unequal time in the two layouts: each
// part errs by its forecast band, independently of the others. (2) Structural effects outside the model: 7 % of the step, 20 %
// with expert layers (docs/constants.md). A layout is tied with the fastest if the times differ by less than both together.
//
// Layouts of an unmeasured kind (unmeasured_kind(): no published run) have a larger error. Such a layout wins only if it is
// faster than the fastest measured kind by more than the band of their difference.
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

// A layout with its full forecast.
struct RankedLayout {
  LayoutPoint point;
  Layout layout;
  StepPrediction step;
  MemoryForecast memory;
  double behind_us = 0;     // of the fastest layout
  double uncertain_us = 0;  // half-width of the band (p10-p90) of `behind_us`
  bool alike = false;       // tied with the fastest within forecast error
  std::size_t rank = 0;     // among all priced layouts, from 0
  // From unmeasured_kind(): the kind without any published run; empty: measured.
  std::string_view unmeasured{};
  [[nodiscard]] double step_ms() const { return step.step.time.value() * 1e-3; }
};

struct LayoutRanking {
  // Ascending in time: all layouts tied with the fastest, at least `most` layouts, and those added by refine_layouts().
  std::vector<RankedLayout> layouts;
  std::size_t n_alike = 0;  // number of tied layouts; other layouts may be listed between them
  bool more_alike = false;  // more than kMostRanked layouts are tied
  // Index of the recommended layout.
  std::size_t chosen = 0;
};

// Most layouts that are forecast in full.
inline constexpr std::size_t kMostRanked = 400;

// The kind of layouts that differ; it sets the structural uncertainty.
enum class DifferenceOf : std::uint8_t { dense, experts, unmeasured };
// Half-width in us of the band of the time difference between two layouts.
[[nodiscard]] double uncertain_difference_us(const StepPrediction& a, const StepPrediction& b,
                                             DifferenceOf of);

// Index of the recommended layout. Of the layouts tied with the fastest, of a measured kind and with enough headroom, it is the
// fastest, or one that is at most 0.2 % slower but differs less from the plain layout `from`. If no layout qualifies, first
// headroom and then time decide.
[[nodiscard]] std::size_t choose(const std::vector<RankedLayout>& layouts, const LayoutPoint& from);

// What to optimise among tied layouts. For a fixed number of equal GPUs the fastest layout is also the cheapest and uses the
// least energy. Between machines and numbers of GPUs these objectives differ (training_plan.h).
enum class PlanObjective : std::uint8_t {
  step_time,
  cost,
  energy,
  memory,  // the most headroom
};
// Words: "time" (or "step-time"), "money" (or "cost"), "energy" (or "carbon", equivalent at one carbon intensity), "memory".
[[nodiscard]] Result<PlanObjective> parse_objective(const std::string& word);
// Index of the layout with the most headroom.
[[nodiscard]] std::size_t with_most_memory(const std::vector<RankedLayout>& layouts);

// The full forecast of priced[rank].
[[nodiscard]] Result<RankedLayout> look_at(const std::vector<PricedLayout>& priced, std::size_t rank,
                                           const LayoutPrototypes& prototypes, const StepModel& steps,
                                           Bytes memory);

// `priced` must be ascending in time. Errors: only those of the platform.
[[nodiscard]] Result<LayoutRanking> rank_layouts(const std::vector<PricedLayout>& priced,
                                                 const LayoutPrototypes& prototypes, const StepModel& steps,
                                                 Bytes memory, std::size_t most);

}  // namespace stepcast
