// Rules that exclude layouts of a space without pricing them: degrees, batches, stages and sharding that cannot run, or that
// give the same layout as another point. The checks of workload/layout.h apply in addition.
#pragma once

#include <cstdint>
#include <string>

#include "stepcast/plan/layout_point.h"
#include "stepcast/plan/layout_space.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// The verdict on a point. `same`: another point of the space is the same layout.
struct LayoutVerdict {
  enum class Kind : std::uint8_t { runs, refused, same };
  Kind kind = Kind::runs;
  // Why it does not run, an example and a change that makes it run; empty if it runs.
  std::string reason, example, cure;
  bool is_of_degrees = false;  // refused because the degrees do not divide the number of GPUs
};

// Checks only the number of GPUs and the degrees. Sets `point.data` if they divide.
[[nodiscard]] LayoutVerdict check_degrees(LayoutPoint& point, const LayoutSpace& space,
                                          const LayoutPrototypes& prototypes);
// Checks the micro-batches of a point with valid degrees.
[[nodiscard]] LayoutVerdict check_batch(const LayoutPoint& point, const LayoutPrototypes& prototypes);
// Checks the division of layers into chunks of a point with valid degrees.
[[nodiscard]] LayoutVerdict check_stages(const LayoutPoint& point, const LayoutPrototypes& prototypes);
// Checks sequence parallelism and recomputation.
[[nodiscard]] LayoutVerdict check_layers(const LayoutPoint& point, const LayoutSpace& space,
                                         const LayoutPrototypes& prototypes);
// Checks the sharding of data-parallel ranks.
[[nodiscard]] LayoutVerdict check_sharding(const LayoutPoint& point, const LayoutSpace& space,
                                           const LayoutPrototypes& prototypes);

}  // namespace stepcast
