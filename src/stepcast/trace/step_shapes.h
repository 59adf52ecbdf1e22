// Groups of steps with the same shapes of tensors, since batches of packed or bucketed sequences can differ
// between steps.
//
// The size of a step is the sum over its GEMMs, convolutions and attentions of the geometric mean of their
// numbers of input elements. This measure changes with batch and sequence even if weights are large. Table
// lookups do not count, as they vary slightly in every step. Without recorded shapes (`record_shapes=True` of
// the profiler), all steps are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// The size of a step on one rank.
struct StepSize {
  std::int64_t number = 0;
  double size = 0;  // 0: no shapes were recorded
};

// The size of a step; 0 if it is not in the list.
[[nodiscard]] double size_of(std::span<const StepSize> work, std::int64_t step);

// The contribution of an operator to the size of its step, from the text of "Input Dims": "[[2048, 13], [512,
// 13]]". 0 for all operators except GEMMs, convolutions and attentions.
[[nodiscard]] double size_by_shapes(std::string_view op, std::string_view input_dims);

// A step that several ranks can have.
struct StepLength {
  std::int64_t number = 0;
  double us = 0;               // duration on the rank where it took longest
  bool is_special = false;     // on at least one rank
  std::vector<double> size{};  // [rank] size by its shapes
};

// Steps of one shape: their sizes differ by less than 1 % on every rank.
struct ShapeGroup {
  std::vector<std::int64_t> steps;  // ascending
  // The step of median length; with an even number of steps, the later of the two middle ones.
  std::int64_t median_step = 0;
  double median_ms = 0;  // length of that step
};

// Groups of the ordinary steps (of all steps if none is ordinary), the largest group first, then the one with
// the first step. At most one group if all steps have one shape. Steps of unknown size are in no group.
[[nodiscard]] std::vector<ShapeGroup> shape_groups(std::vector<StepLength> steps);

// The step that represents the others by default: among the ordinary steps (all steps if none is ordinary)
// with the most frequent shape, the one of median length. Shapes that are equally frequent count together.
// Empty without steps.
[[nodiscard]] std::optional<std::int64_t> typical_step(std::vector<StepLength> steps);

// A text for users: "the steps are of 2 shapes: 4 as step 7 (median 12.345 ms), 2 as step 9 (20.100 ms;
// --step 9)". Empty for one shape. `replayed`: the step that is replayed; none: no step is.
[[nodiscard]] std::string describe(std::span<const ShapeGroup> groups, std::optional<std::int64_t> replayed);

}  // namespace stepcast
