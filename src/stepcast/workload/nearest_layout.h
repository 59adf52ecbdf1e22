// What to change in a layout that does not fit into the memory of its GPUs.
#pragma once

#include <optional>
#include <string>

#include "stepcast/base/quantity.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct NearestLayout {
  Layout layout;
  std::string change;  // "tensor_parallel 4, the distributed optimizer"
};

// The change that needs least and makes the layout fit into `memory` per GPU, on as many GPUs: sharded optimizer
// states, full recomputation, then more tensor or pipeline parallelism, twice to 16 times, with and without these.
// Nothing if none of them does.
[[nodiscard]] std::optional<NearestLayout> nearest_layout_that_fits(const Transformer& model,
                                                                    const Layout& layout, Bytes memory);

}  // namespace stepcast
