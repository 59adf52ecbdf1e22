// One layout with what the lists of a space do not hold: fewer recomputed layers or modules, uneven stages, the choices of a
// recipe (recipe_dimensions.h).
//
//   LayoutRefiner refiner{prototypes, steps, options};
//   STEPCAST_ASSIGN(RefinedLayout quick, refiner.refined(ranked));
//   STEPCAST_ASSIGN(RefinedLayout best, refiner.searched(ranked, quick));  // never slower than `quick`
//
// Not for two threads at once.
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

class LayoutRefiner {
 public:
  LayoutRefiner(const LayoutPrototypes& prototypes, const StepModel& steps, const RefinementOptions& options);

  // The step of the layout if refinement did all that it can: no recomputation, the leanest of every choice of the recipe,
  // no exposed communication inside layers, stages of equal length.
  Result<double> bound_us(const LayoutPoint& point);

  Result<RankedLayout> look_at(const std::vector<PricedLayout>& priced, std::size_t rank);

  // One choice after the other, each kept if the step gets faster and still fits: some 20 prices.
  Result<RefinedLayout> refined(const RankedLayout& ranked);

  // Sets of choices: settings that help only together, or that make room for others. Every recomputation, with every set
  // of the recipe's choices for the best of them: some 300 prices. Returns `quick` where none is faster.
  Result<RefinedLayout> searched(const RankedLayout& ranked, RefinedLayout quick);

 private:
  struct Look {
    StepPrediction step;
    MemoryForecast memory;
  };
  // Nothing: it cannot run.
  std::optional<Look> look(const Layout& layout);
  RefinedLayout start_of(const RankedLayout& ranked);
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
  std::vector<std::vector<std::int64_t>> stages_seen_;  // of the layout at hand
};

}  // namespace stepcast
