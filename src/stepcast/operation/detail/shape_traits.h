// All that is known of a shape whatever device runs it, one struct per shape: ShapeTraits<GemmShape> and so on, each with
//
//   fields()            its members, once: name, pointer, least value. What tells operations apart, what is hashed and
//                       what is checked is this list, in the order of the declarations
//   family, kernel_class, describe, problem      see operation.h
//   work                what it has to do at the least; docs/operations.md writes the same formulas for people
//   smallest            the least work that the same kernel is launched for: one block
//   grow                a shape of more samples; `batch` knows which extents count samples. False: nothing of it grows
//
// A shape without one of them does not compile. cost/detail/shape_cost.h has what depends on the device.
#pragma once

#include <tuple>
#include <type_traits>

#include "stepcast/operation/detail/product_shapes.h"
#include "stepcast/operation/detail/row_shapes.h"
#include "stepcast/operation/detail/stream_shapes.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

// The traits of a shape at hand.
template <class Shape>
using TraitsOf = ShapeTraits<std::remove_cvref_t<Shape>>;

// Calls `use` with every field of `shape`.
template <class Shape, class Use>
constexpr void for_each_field(const Shape& /*shape*/, const Use& use) {
  std::apply([&](const auto&... field) { (use(field), ...); }, ShapeTraits<Shape>::fields());
}

}  // namespace stepcast::detail
