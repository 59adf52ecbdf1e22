// Classifies every layout of a space: invalid, a duplicate of another, too large for the memory, or priced.
//
//   STEPCAST_ASSIGN(const SearchedLayouts found, search_layouts(space, prototypes, platform, {.memory = memory}));
//   found.priced.front()     // the fastest; all layouts that fit are listed, in ascending order
//   found.rejections         // reasons of the others, most frequent first
//
// Nothing is skipped by heuristics. Invalid layouts cannot run, at least not with the framework. Duplicates compute and
// communicate the same as another layout of the space. All other layouts that fit are priced. Every layout is counted once:
// size = refused + same + too large + priced. The result does not depend on the number of threads.
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

// A layout that fits, with its forecast.
struct PricedLayout {
  LayoutPoint point;
  double step_us = 0;
  double peak_bytes = 0;  // peak memory of the worst stage
};

// Layouts rejected for one reason.
struct LayoutRejection {
  std::string reason;   // "n_heads 40 is not divisible by tensor_parallel 16"
  std::string example;  // from the layout closest to running, or the first one; may be empty
  std::string cure;     // the smallest change that makes it run; empty: unknown
  std::uint64_t count = 0;
  bool is_of_degrees = false;  // the degrees do not divide the number of GPUs
};

// Inputs of a search besides the space.
struct LayoutSearchOptions {
  Bytes memory;          // memory per GPU
  unsigned threads = 0;  // 0: one per hardware thread
  StepAssumptions assumptions;
  const StepModel* steps = nullptr;  // model of the platform with cached prices; null: a new one
};

// All layouts of the space by result.
struct SearchedLayouts {
  std::vector<PricedLayout> priced;         // ascending in time
  std::vector<LayoutRejection> rejections;  // cannot run; most frequent first
  std::vector<LayoutRejection> same;        // duplicates of another layout of the space
  std::vector<LayoutRejection> too_large;   // by the largest part of their memory
  std::uint64_t n_rejected = 0, n_same = 0, n_too_large = 0;
  [[nodiscard]] std::uint64_t n_layouts() const { return n_rejected + n_same + n_too_large + priced.size(); }
};

// Errors: those of the platform. A space without a layout that fits is not an error: `priced` is then empty.
[[nodiscard]] Result<SearchedLayouts> search_layouts(const LayoutSpace& space,
                                                     const LayoutPrototypes& prototypes,
                                                     const Platform& platform,
                                                     const LayoutSearchOptions& options);

}  // namespace stepcast
