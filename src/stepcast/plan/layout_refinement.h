// Refines layouts beyond the lists of a search space: stages of uneven length, full recomputation of only some layers of a
// stage or some parts of every layer, and the choices of a recipe (recipe_dimensions.h).
//
//   STEPCAST_ASSIGN(const auto refined, refine_layouts(ranking, found.priced, prototypes, steps, {...}));
//   refined.front().changes      // {"stages Et*9|(t*11|)*2,t*9L", "recompute 3 layers a stage"}
//
// A layout far behind the fastest can win after refinement. Every priced layout therefore gets a lower bound: its step without
// recomputation, without the communication that refinement can hide, and with equal stages. Layouts with a bound below the
// fastest refined step are refined in the order of their bounds, one choice at a time, until no bound is lower. For results
// close to the fastest, sets of choices are tried as well (layout_refiner.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_ranking.h"

namespace stepcast {

class StepModel;

// A layout that refinement made faster.
struct RefinedLayout {
  std::size_t of = 0;  // index into the layouts of the ranking
  Layout layout;
  StepPrediction step;
  MemoryForecast memory;
  JobSettings settings;              // settings that describe it
  std::vector<std::string> changes;  // for the user; each one made it faster
};

// The result of a refinement.
struct RefinedLayouts {
  std::vector<RefinedLayout> faster;  // layouts with an improvement, ascending in time
  std::size_t n_tried = 0;            // layouts on which refinement was tried
};

// Inputs of a refinement besides the layouts.
struct RefinementOptions {
  Bytes memory;          // memory per GPU
  unsigned threads = 0;  // 0: one per hardware thread; the result is the same
  StepAssumptions assumptions{};
  JobSettings said{};  // settings given by the user; they are not changed
  // Kinds searched; alternatives to full recomputation use only these.
  std::vector<Recompute> recomputations{};
  const StepModel* steps = nullptr;  // model of the platform with cached prices; null: a new one
};

// The first layouts of the ranking are always refined. Other layouts are added to the ranking if they end among the best.
// Beyond the ranking, only layouts with Megatron-LM flags are searched. Errors: those of the platform.
[[nodiscard]] Result<RefinedLayouts> refine_layouts(LayoutRanking& ranking,
                                                    const std::vector<PricedLayout>& priced,
                                                    const LayoutPrototypes& prototypes,
                                                    const Platform& platform,
                                                    const RefinementOptions& options);

// True if the framework has flags for every change of a refinement; only Megatron-LM does.
[[nodiscard]] bool has_flags(const RankedLayout& ranked, const LayoutPrototypes& prototypes);

// Layers per stage from balanced_stages() with the priced layers of a pipeline; empty if there is no such division.
[[nodiscard]] std::vector<std::int64_t> best_stages(const PricedStep& step, const Transformer& model);

// Division of layers among pipeline stages for the fastest slowest stage. The embedding precedes the first stage; further
// predicted tokens and the loss follow the last.

// Layers of every chunk, in model order. `layer_us`: forward plus backward of each layer for one micro-batch. `front_us` and
// `back_us`: time before the first and after the last layer. Dynamic programming over all contiguous partitions minimises the
// slowest chunk, then the sum of squares. The first and last chunk may be empty; all others have at least one layer. Empty
// if there are too few layers.
[[nodiscard]] std::vector<std::int64_t> balanced_stages(std::span<const double> layer_us, double front_us,
                                                        double back_us, std::size_t n_chunks);

}  // namespace stepcast
