// The device-independent properties of a shape, one struct per shape: ShapeTraits<GemmShape> and so on, each
// with
//
//   fields()            the members of the shape: name, pointer, minimum. Comparison, hashing and checks use
//                       this list, in the order of the declarations
//   family, kernel_class, describe, problem      see operation.h
//   work                the minimum work; docs/operations.md has the same formulas
//   smallest            the shape for which the same kernel runs a single block
//   grow                the shape for more samples; `batch` knows the extents that count samples. False: no
//                       extent counts them
//
// A shape that lacks one of them does not compile. Device-dependent properties are in
// cost/detail/shape_cost.h.
#pragma once

#include <tuple>
#include <type_traits>

#include "stepcast/operation/detail/product_shapes.h"
#include "stepcast/operation/detail/row_shapes.h"
#include "stepcast/operation/detail/stream_shapes.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

// ShapeTraits of a shape with reference and const removed, for std::visit.
template <class Shape>
using TraitsOf = ShapeTraits<std::remove_cvref_t<Shape>>;

// Calls `use` with every field of `shape`.
template <class Shape, class Use>
constexpr void for_each_field(const Shape& /*shape*/, const Use& use) {
  std::apply([&](const auto&... field) { (use(field), ...); }, ShapeTraits<Shape>::fields());
}

}  // namespace stepcast::detail
