// All that prices a shape, one struct per shape: ShapeCost<GemmShape> and so on, each with
//
//   closed_form_us      without the launch, from figures of the device (analytic_model.h)
//   reference           elements, arithmetic and products that its reference time counts (families/reference_time.h)
//   kFeatures, features the numbers that fitted models see (families/kernel_features.h)
//   generic             what models for devices that were not measured see (generic_kernel.h)
//
// A shape without one of them does not compile. operation/detail/shape_traits.h has what no device changes.
#pragma once

#include <type_traits>

#include "stepcast/cost/detail/product_costs.h"
#include "stepcast/cost/detail/row_costs.h"
#include "stepcast/cost/detail/stream_costs.h"

namespace stepcast::detail {

// Of a shape at hand.
template <class Shape>
using CostOf = ShapeCost<std::remove_cvref_t<Shape>>;

}  // namespace stepcast::detail
