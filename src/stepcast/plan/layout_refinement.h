// What the lists of a space do not hold, tried on its layouts: stages of uneven length, full recomputation of some layers
// of a stage instead of all or of some parts of every layer, and the choices of a recipe (recipe_dimensions.h).
//
//   STEPCAST_ASSIGN(const auto refined, refine_layouts(ranking, found.priced, prototypes, steps, {...}));
//   refined.front().changes      // {"stages Et*9|(t*11|)*2,t*9L", "recompute 3 layers a stage"}
//
// A layout far behind can be the fastest once it is refined. So every priced layout has a bound: its step without
// recomputation, without the communication that refinement hides, and with stages of equal length. Those whose bound is
// below the fastest refined one are refined, in the order of their bounds, until none is left: one choice after the other.
// Of those that come out close to the fastest, sets of choices are tried (layout_refiner.h).
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

struct RefinedLayout {
  std::size_t of = 0;  // index of the ranking's layouts
  Layout layout;
  StepPrediction step;
  MemoryForecast memory;
  JobSettings settings;              // that say it
  std::vector<std::string> changes;  // in words; each made it faster
};

struct RefinedLayouts {
  std::vector<RefinedLayout> faster;  // than they were, ascending in time
  std::size_t n_tried = 0;
};

struct RefinementOptions {
  Bytes memory;          // of a GPU
  unsigned threads = 0;  // 0: one per hardware thread; the result is the same
  StepAssumptions assumptions{};
  JobSettings said{};                       // of the recipe: what was said stays
  std::vector<Recompute> recomputations{};  // that were searched: others stand in for full recomputation, too
  const StepModel* steps = nullptr;         // of the platform, that keeps what is priced; nothing: its own
};

// The first of the ranking are refined in any case; layouts
// that are not in it are added to it where they came out among the best. Only what Megatron-LM has flags for is looked
// for beyond the ranking. Errors: those of the platform.
[[nodiscard]] Result<RefinedLayouts> refine_layouts(LayoutRanking& ranking,
                                                    const std::vector<PricedLayout>& priced,
                                                    const LayoutPrototypes& prototypes,
                                                    const Platform& platform,
                                                    const RefinementOptions& options);

// Whether the software has flags for all that a refinement changed: Megatron-LM has, others have not.
[[nodiscard]] bool has_flags(const RankedLayout& ranked, const LayoutPrototypes& prototypes);

// The best stages of a layout with a pipeline, by balanced_stages() on its priced layers; empty if none.
[[nodiscard]] std::vector<std::int64_t> best_stages(const PricedStep& step, const Transformer& model);

// How layers are dealt out to pipeline stages so that the slowest stage is as fast as can be, with the embedding in front
// of the first, and further predicted tokens and the loss behind the last.

// Layers of every chunk, in the order of the model. `layer_us`: forward and backward of each layer for one micro-batch;
// `front_us` and `back_us` stand before the first and behind the last layer. By dynamic programming over all contiguous
// partitions: the least time of the slowest chunk and, of several, the least sum of squares. Chunks at either end may be
// empty, those between have a layer at least. Empty if there are fewer layers than that.
[[nodiscard]] std::vector<std::int64_t> balanced_stages(std::span<const double> layer_us, double front_us,
                                                        double back_us, std::size_t n_chunks);

}  // namespace stepcast
