// All prices of a shape, one struct per shape: ShapeCost<GemmShape> and so on, each with
//
//   closed_form_us      time without the launch, from figures of the device (analytic_model.h)
//   reference           elements, arithmetic and GEMMs that its reference time counts
//                       (families/reference_time.h)
//   kFeatures, features inputs of fitted models (families/kernel_features.h)
//   generic             inputs of models for unmeasured devices (generic_kernel.h)
//
// A shape that lacks one of them does not compile. Device-independent properties are in
// operation/detail/shape_traits.h.
#pragma once

#include <type_traits>

#include "stepcast/cost/detail/product_costs.h"
#include "stepcast/cost/detail/row_costs.h"
#include "stepcast/cost/detail/stream_costs.h"

namespace stepcast::detail {

// ShapeCost of a shape with reference and const removed, for std::visit.
template <class Shape>
using CostOf = ShapeCost<std::remove_cvref_t<Shape>>;

}  // namespace stepcast::detail
