// Every layout of a space: refused for a reason, the same as another, too large for the memory, or priced.
//
//   STEPCAST_ASSIGN(const SearchedLayouts found, search_layouts(space, prototypes, platform, {.memory = memory}));
//   found.priced.front()     // the fastest; all that fit are there, in ascending order
//   found.rejections         // why the others are not, by number
//
// Nothing is left out by a guess: what is refused cannot run, or not with the framework; what is passed over as the
// same computes and communicates as another one of the space does; all others that fit are priced. Every layout of
// the space is counted once: size = refused + same + too large + priced. The result does not depend on the threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/plan/layout_point.h"
#include "stepcast/plan/layout_space.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"

namespace stepcast {

class StepModel;

struct PricedLayout {
  LayoutPoint point;
  double step_us = 0;
  double peak_bytes = 0;  // of the worst stage
};

// Layouts that were not priced, for one reason.
struct LayoutRejection {
  std::string reason;   // "n_heads 40 is not divisible by tensor_parallel 16"
  std::string example;  // of the layout that misses least, or that came first; may be empty
  std::string cure;     // the nearest change that makes it run; empty: none is known
  std::uint64_t count = 0;
  bool is_of_degrees = false;  // its degrees are not those of so many GPUs
};

struct LayoutSearchOptions {
  Bytes memory;          // of a GPU
  unsigned threads = 0;  // 0: one per hardware thread
  StepAssumptions assumptions;
  const StepModel* steps = nullptr;  // of the platform, that keeps what is priced; nothing: its own
};

struct SearchedLayouts {
  std::vector<PricedLayout> priced;         // ascending in time
  std::vector<LayoutRejection> rejections;  // that cannot run; most frequent first
  std::vector<LayoutRejection> same;        // that are another layout of the space
  std::vector<LayoutRejection> too_large;   // by the largest part of their memory
  std::uint64_t n_rejected = 0, n_same = 0, n_too_large = 0;
  [[nodiscard]] std::uint64_t n_layouts() const { return n_rejected + n_same + n_too_large + priced.size(); }
};

// Errors: those of the platform. A space without a layout that fits is no error: `priced` is empty.
[[nodiscard]] Result<SearchedLayouts> search_layouts(const LayoutSpace& space,
                                                     const LayoutPrototypes& prototypes,
                                                     const Platform& platform,
                                                     const LayoutSearchOptions& options);

}  // namespace stepcast
