// Which layouts of a space cannot run, and which are another one: rules on degrees, batches, stages and sharding that
// need no price. The checks of workload/layout.h hold besides.
#pragma once

#include <cstdint>
#include <string>

#include "stepcast/plan/layout_point.h"
#include "stepcast/plan/layout_space.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct LayoutVerdict {
  enum class Kind : std::uint8_t { runs, refused, same };
  Kind kind = Kind::runs;
  std::string reason, example, cure;
  bool is_of_degrees = false;  // refused as the GPUs do not divide
};

// Of GPUs and degrees alone; `point.data` is filled in if they divide.
[[nodiscard]] LayoutVerdict check_degrees(LayoutPoint& point, const LayoutSpace& space,
                                          const LayoutPrototypes& prototypes);
// Micro-batches and chunks of layers of a point whose degrees run.
[[nodiscard]] LayoutVerdict check_batch(const LayoutPoint& point, const LayoutPrototypes& prototypes);
[[nodiscard]] LayoutVerdict check_stages(const LayoutPoint& point, const LayoutPrototypes& prototypes);
// Sequence parallelism, recomputation.
[[nodiscard]] LayoutVerdict check_layers(const LayoutPoint& point, const LayoutSpace& space,
                                         const LayoutPrototypes& prototypes);
[[nodiscard]] LayoutVerdict check_sharding(const LayoutPoint& point, const LayoutSpace& space,
                                           const LayoutPrototypes& prototypes);

}  // namespace stepcast
