// Building blocks of the traits of shapes.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "stepcast/operation/operation.h"
#include "stepcast/operation/shape_changes.h"

namespace stepcast {

// No minimum.
inline constexpr double kAnyValue = -std::numeric_limits<double>::infinity();

// A field of a shape, with its minimum.
template <class Shape, class Value>
struct ShapeField {
  std::string_view name;
  Value Shape::*member;
  double least = kAnyValue;  // minimum of a number
};
template <class Shape, class Value>
ShapeField(std::string_view, Value Shape::*, double) -> ShapeField<Shape, Value>;
template <class Shape, class Value>
ShapeField(std::string_view, Value Shape::*) -> ShapeField<Shape, Value>;

}  // namespace stepcast

namespace stepcast::detail {

// Primary template without definition; see shape_traits.h.
template <class Shape>
struct ShapeTraits;

// Indices and targets are 64-bit integers, masks are booleans, statistics kept for the backward are fp32.
inline constexpr double kBytesOfIndex = 8;
inline constexpr double kBytesOfMask = 1;
inline constexpr double kBytesOfStatistic = 4;

// An extent as a double.
constexpr double real_of(std::int64_t value) { return static_cast<double>(value); }

// Work from plain numbers.
inline Work make_work(double flops, double bytes_read, double bytes_written, std::int64_t kernels = 1,
                      bool matrix = false) {
  return {Flops{flops}, matrix, Bytes{bytes_read}, Bytes{bytes_written}, kernels};
}

// The requested part of an operation.
struct AskedWork {
  DType dtype;
  Direction direction;
  double element = element_size(dtype).value();  // bytes

  [[nodiscard]] bool forward() const { return direction == Direction::forward; }
  // Whether the direction includes the input gradient, and the weight gradient, of a GEMM or convolution.
  [[nodiscard]] bool wants_input_gradient() const { return direction != Direction::weight_gradient; }
  [[nodiscard]] bool wants_weight_gradient() const { return direction != Direction::input_gradient; }
};

}  // namespace stepcast::detail
