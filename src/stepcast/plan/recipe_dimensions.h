// What a recipe says besides degrees, batch and recomputation: who moves tokens, how context parallelism exchanges, what runs
// beside what, how fp8 weights travel, CUDA graphs. A row of the table is one such choice with what it can be.
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

struct RecipeChange {
  std::string_view words;
  void (*apply)(Layout&, JobSettings&);  // to the layout, and to the settings that say it
};

enum class Room : std::uint8_t {
  keeps,
  frees,  // memory: it comes before what fills it
  // Takes memory that is not counted: only where memory is to spare, and for a gain that is worth its words.
  needs,
};

struct RecipeDimension {
  bool (*is_open)(const JobSettings& said);  // nobody said it
  bool (*applies)(const Layout& layout, const Transformer& model, const Device& device);
  std::span<const RecipeChange> changes;  // one instead of the other; the last leaves least to do
  Room room = Room::keeps;
};

// In the order in which a refinement tries them. Megatron-LM has flags for all.
[[nodiscard]] std::span<const RecipeDimension> recipe_dimensions();

}  // namespace stepcast
