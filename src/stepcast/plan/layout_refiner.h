// Refines one layout beyond the lists of a search space: fewer recomputed layers or modules, uneven stages, the choices of a
// recipe (recipe_dimensions.h).
//
//   LayoutRefiner refiner{prototypes, steps, options};
//   STEPCAST_ASSIGN(RefinedLayout quick, refiner.refined(ranked));
//   STEPCAST_ASSIGN(RefinedLayout best, refiner.searched(ranked, quick));  // never slower than `quick`
//
// Not thread-safe: use one refiner per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_ranking.h"
#include "stepcast/plan/layout_refinement.h"
#include "stepcast/plan/recipe_dimensions.h"
#include "stepcast/predict/step_model.h"

namespace stepcast {

// Keeps references to the prototypes and options, which must outlive it.
class LayoutRefiner {
 public:
  LayoutRefiner(const LayoutPrototypes& prototypes, const StepModel& steps, const RefinementOptions& options);

  // Lower bound in us of the step after refinement: no recomputation, the leanest value of every open recipe choice, no exposed
  // communication inside layers, stages of equal length.
  Result<double> bound_us(const LayoutPoint& point);

  // The full forecast of priced[rank].
  Result<RankedLayout> look_at(const std::vector<PricedLayout>& priced, std::size_t rank);

  // Greedy: tries one choice at a time and keeps it if the step gets faster and fits. About 20 prices.
  Result<RefinedLayout> refined(const RankedLayout& ranked);

  // Tries sets of choices, which find settings that help only together or that free memory for others. Combines every
  // recomputation with every set of recipe choices for the best of them. About 300 prices. Returns `quick` if none is faster.
  Result<RefinedLayout> searched(const RankedLayout& ranked, RefinedLayout quick);

 private:
  // A forecast of a layout.
  struct Look {
    StepPrediction step;
    MemoryForecast memory;
  };
  // Empty: the layout cannot run.
  std::optional<Look> look(const Layout& layout);
  RefinedLayout start_of(const RankedLayout& ranked);
  // Accepts a variant if it fits and is faster by the share `least_gain`. The helpers below try one kind of change each.
  bool takes(RefinedLayout& best, const Layout& layout, const JobSettings& settings, std::string words,
             double least_gain);
  void takes_instead(RefinedLayout& best, std::size_t n, const Layout& layout, const JobSettings& settings,
                     std::string words, double least_gain);
  Status balance(RefinedLayout& best);
  void see(const std::vector<std::int64_t>& stages);
  void deal(RefinedLayout& best, const std::vector<std::int64_t>& stages);
  Status see_stages(const RefinedLayout& start);
  Status recompute_fewer(RefinedLayout& best);
  void recompute_modules(RefinedLayout& best);
  void vary(RefinedLayout& best, const RecipeDimension& dimension);
  Status settle(RefinedLayout& best);
  Result<std::vector<RefinedLayout>> recomputations(const RefinedLayout& start);
  std::vector<RefinedLayout> best_sets(const RefinedLayout& bare);

  const LayoutPrototypes& prototypes_;
  const Transformer& model_;
  StepModel steps_;
  const Device& device_;
  Bytes memory_;
  const JobSettings& said_;
  const std::vector<Recompute>& recomputations_;
  std::vector<std::vector<std::int64_t>> stages_seen_;  // divisions of layers tried for the current layout
};

}  // namespace stepcast
