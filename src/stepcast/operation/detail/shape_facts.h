// What the traits of shapes are written in.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "stepcast/operation/operation.h"
#include "stepcast/operation/shape_changes.h"

namespace stepcast {

inline constexpr double kAnyValue = -std::numeric_limits<double>::infinity();

template <class Shape, class Value>
struct ShapeField {
  std::string_view name;
  Value Shape::*member;
  double least = kAnyValue;  // of a number
};
template <class Shape, class Value>
ShapeField(std::string_view, Value Shape::*, double) -> ShapeField<Shape, Value>;
template <class Shape, class Value>
ShapeField(std::string_view, Value Shape::*) -> ShapeField<Shape, Value>;

}  // namespace stepcast

namespace stepcast::detail {

// See shape_traits.h.
template <class Shape>
struct ShapeTraits;

// Indices and targets are 64-bit integers, masks are booleans, statistics kept for the backward are fp32.
inline constexpr double kBytesOfIndex = 8;
inline constexpr double kBytesOfMask = 1;
inline constexpr double kBytesOfStatistic = 4;

constexpr double real_of(std::int64_t value) { return static_cast<double>(value); }

inline Work make_work(double flops, double bytes_read, double bytes_written, std::int64_t kernels = 1,
                      bool matrix = false) {
  return {Flops{flops}, matrix, Bytes{bytes_read}, Bytes{bytes_written}, kernels};
}

// Which part of an operation is asked for.
struct AskedWork {
  DType dtype;
  Direction direction;
  double element = element_size(dtype).value();

  [[nodiscard]] bool forward() const { return direction == Direction::forward; }
  // A direction that stands for one of the two gradients of a product.
  [[nodiscard]] bool wants_input_gradient() const { return direction != Direction::weight_gradient; }
  [[nodiscard]] bool wants_weight_gradient() const { return direction != Direction::input_gradient; }
};

}  // namespace stepcast::detail
