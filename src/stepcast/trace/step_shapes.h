// Steps of a capture by the shapes of their tensors: batches of packed or bucketed sequences are not all alike.
//
// How much a step has to do by its shapes is the sum of a size over its products, convolutions and attentions: the geometric mean
// of the elements of their inputs, which moves with batch and sequence however large the weights are. Lookups count for nothing, as
// they vary a little from step to step. Without recorded shapes (`record_shapes=True` of the profiler) all steps are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// Of one rank.
struct StepSize {
  std::int64_t number = 0;
  double size = 0;  // 0: no shapes were recorded
};

// 0 where the step is not among them.
[[nodiscard]] double size_of(std::span<const StepSize> work, std::int64_t step);

// What an operator adds to the size of its step, by the text of "Input Dims": "[[2048, 13], [512, 13]]". 0 for all but
// products, convolutions and attentions.
[[nodiscard]] double size_by_shapes(std::string_view op, std::string_view input_dims);

// A step that several ranks may have.
struct StepLength {
  std::int64_t number = 0;
  double us = 0;               // of the longest rank
  bool is_special = false;     // on one rank or more
  std::vector<double> size{};  // [rank] by its shapes
};

// Steps of one shape: their sizes differ by less than 1 % on every rank.
struct ShapeGroup {
  std::vector<std::int64_t> steps;  // ascending
  std::int64_t median_step = 0;     // of even numbers the later of the two in the middle
  double median_ms = 0;             // its length
};

// Of the ordinary steps, or of all where none is; the largest first, then the one with the first step. One group, or none,
// where all have one shape. Steps whose size is not known are in none of several.
[[nodiscard]] std::vector<ShapeGroup> shape_groups(std::vector<StepLength> steps);

// The step that stands for all of them where nobody says: of the ordinary ones (of all where none is) those with the most
// frequent shape, and of them the one of median length. Where several shapes are as frequent they count together. Nothing of none.
[[nodiscard]] std::optional<std::int64_t> typical_step(std::vector<StepLength> steps);

// "the steps are of 2 shapes: 4 as step 7 (median 12.345 ms), 2 as step 9 (20.100 ms; --step 9)"; empty for one shape.
// `replayed`: the step that is taken; nothing: none is.
[[nodiscard]] std::string describe(std::span<const ShapeGroup> groups, std::optional<std::int64_t> replayed);

}  // namespace stepcast
