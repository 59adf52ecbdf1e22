// What the lists of a space do not hold, tried on its best layouts: stages of uneven length, full recomputation of some
// layers of a stage instead of all or of some parts of every layer, communication inside layers beside their products, the
// order of the ranks.
//
//   STEPCAST_ASSIGN(const auto refined, refine_layouts(ranking, prototypes, steps, memory));
//   refined.front().changes      // {"stages Et*9|(t*11|)*2,t*9L", "recompute 3 layers a stage"}
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_ranking.h"

namespace stepcast {

struct RefinedLayout {
  std::size_t of = 0;  // index of the ranking
  Layout layout;
  StepPrediction step;
  MemoryForecast memory;
  JobSettings settings;              // that say it
  std::vector<std::string> changes;  // in words; each made it faster
};

// Layouts that are refined.
inline constexpr std::size_t kMostRefined = 200;

// Those that came out faster than they were, ascending in time. Each change is kept if the step gets faster and still
// fits.
[[nodiscard]] Result<std::vector<RefinedLayout>> refine_layouts(const LayoutRanking& ranking,
                                                                const LayoutPrototypes& prototypes,
                                                                StepModel& steps, Bytes memory);

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
