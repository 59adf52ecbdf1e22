// The choices of a training recipe besides degrees, batch and recomputation: token dispatcher, communication of context
// parallelism, overlaps, transport of fp8 weights, CUDA graphs. Each table row is one choice with its values.
//
//   for (const RecipeDimension& one : recipe_dimensions())
//     if (one.is_open(said) && one.applies(layout, model, device))
//       for (const RecipeChange& change : one.changes) change.apply(layout, settings);
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "stepcast/describe/job.h"
#include "stepcast/platform/platform.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// One value of a choice.
struct RecipeChange {
  std::string_view words;                // for the user
  void (*apply)(Layout&, JobSettings&);  // to the layout and to the settings that describe it
};

// The effect of a choice on memory.
enum class Room : std::uint8_t {
  // No effect on memory.
  keeps,
  frees,  // frees memory and is tried before choices that use it
  // Uses memory that the model does not count. Tried only with enough headroom, and kept only for a clear gain.
  needs,
};

// One choice of a recipe.
struct RecipeDimension {
  bool (*is_open)(const JobSettings& said);  // the user did not set it
  bool (*applies)(const Layout& layout, const Transformer& model, const Device& device);
  std::span<const RecipeChange> changes;  // exclusive values; the last one has the least remaining time
  Room room = Room::keeps;
};

// In the order of trial. Megatron-LM has flags for all of them.
[[nodiscard]] std::span<const RecipeDimension> recipe_dimensions();

}  // namespace stepcast
