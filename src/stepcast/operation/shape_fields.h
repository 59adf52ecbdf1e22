// The members of every shape, once: name, pointer, and the least value that makes sense. What tells operations
// apart, what is hashed and what is checked is this list.
//
//   std::apply([&](const auto&... f) { ((use(f.name, shape.*f.member)), ...); }, shape_fields(shape));
#pragma once

#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "stepcast/operation/operation.h"

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

// The order is that of the declarations.
constexpr auto shape_fields(const GemmShape& /*of*/) {
  using S = GemmShape;
  return std::tuple{ShapeField{"batch", &S::batch, 0}, ShapeField{"m", &S::m, 0},
                    ShapeField{"n", &S::n, 0},         ShapeField{"k", &S::k, 0},
                    ShapeField{"bias", &S::bias},      ShapeField{"accumulates", &S::accumulates},
                    ShapeField{"layout", &S::layout},  ShapeField{"output", &S::output}};
}
constexpr auto shape_fields(const AttentionShape& /*of*/) {
  using S = AttentionShape;
  return std::tuple{ShapeField{"batch", &S::batch, 0},
                    ShapeField{"query_length", &S::query_length, 0},
                    ShapeField{"key_length", &S::key_length, 0},
                    ShapeField{"heads", &S::heads, 1},
                    ShapeField{"key_value_heads", &S::key_value_heads, 0},
                    ShapeField{"head_dim", &S::head_dim, 1},
                    ShapeField{"value_head_dim", &S::value_head_dim, 0},
                    ShapeField{"causal", &S::causal},
                    ShapeField{"window", &S::window, 0},
                    ShapeField{"kernel", &S::kernel}};
}
constexpr auto shape_fields(const ConvolutionShape& /*of*/) {
  using S = ConvolutionShape;
  return std::tuple{ShapeField{"batch", &S::batch, 0},
                    ShapeField{"in_channels", &S::in_channels, 1},
                    ShapeField{"out_channels", &S::out_channels, 1},
                    ShapeField{"height", &S::height, 1},
                    ShapeField{"width", &S::width, 1},
                    ShapeField{"kernel_height", &S::kernel_height, 1},
                    ShapeField{"kernel_width", &S::kernel_width, 1},
                    ShapeField{"stride", &S::stride, 1},
                    ShapeField{"padding", &S::padding, 0},
                    ShapeField{"dilation", &S::dilation, 1},
                    ShapeField{"groups", &S::groups, 1}};
}
constexpr auto shape_fields(const LookupShape& /*of*/) {
  using S = LookupShape;
  return std::tuple{ShapeField{"tables", &S::tables, 0},
                    ShapeField{"rows", &S::rows, 0},
                    ShapeField{"dim", &S::dim, 1},
                    ShapeField{"bags", &S::bags, 0},
                    ShapeField{"pooling", &S::pooling, 0},
                    ShapeField{"distinct_fraction", &S::distinct_fraction},
                    ShapeField{"fused_update", &S::fused_update}};
}
constexpr auto shape_fields(const NormShape& /*of*/) {
  using S = NormShape;
  return std::tuple{ShapeField{"kind", &S::kind}, ShapeField{"rows", &S::rows, 0},
                    ShapeField{"cols", &S::cols, 0}, ShapeField{"fused", &S::fused}};
}
constexpr auto shape_fields(const SoftmaxShape& /*of*/) {
  using S = SoftmaxShape;
  return std::tuple{ShapeField{"kind", &S::kind}, ShapeField{"rows", &S::rows, 0},
                    ShapeField{"cols", &S::cols, 0}};
}
constexpr auto shape_fields(const CrossEntropyShape& /*of*/) {
  using S = CrossEntropyShape;
  return std::tuple{ShapeField{"rows", &S::rows, 0}, ShapeField{"classes", &S::classes, 0},
                    ShapeField{"fused", &S::fused}};
}
constexpr auto shape_fields(const ElementwiseShape& /*of*/) {
  using S = ElementwiseShape;
  return std::tuple{ShapeField{"function", &S::function},
                    ShapeField{"elements", &S::elements, 0},
                    ShapeField{"reads", &S::reads, 0},
                    ShapeField{"writes", &S::writes, 0},
                    ShapeField{"flops_per_element", &S::flops_per_element, 0},
                    ShapeField{"inner", &S::inner, 0}};
}
constexpr auto shape_fields(const MovementShape& /*of*/) {
  using S = MovementShape;
  return std::tuple{ShapeField{"kind", &S::kind}, ShapeField{"elements", &S::elements, 0},
                    ShapeField{"inner", &S::inner, 0}, ShapeField{"routes_tokens", &S::routes_tokens}};
}
constexpr auto shape_fields(const ReductionShape& /*of*/) {
  using S = ReductionShape;
  return std::tuple{ShapeField{"rows", &S::rows, 0}, ShapeField{"cols", &S::cols, 0}};
}
constexpr auto shape_fields(const OptimizerShape& /*of*/) {
  using S = OptimizerShape;
  return std::tuple{ShapeField{"kind", &S::kind},
                    ShapeField{"implementation", &S::implementation},
                    ShapeField{"parameters", &S::parameters, 0},
                    ShapeField{"tensors", &S::tensors, 1},
                    ShapeField{"bytes_read_per_parameter", &S::bytes_read_per_parameter, 0},
                    ShapeField{"bytes_written_per_parameter", &S::bytes_written_per_parameter, 0}};
}
constexpr auto shape_fields(const TransferShape& /*of*/) {
  using S = TransferShape;
  return std::tuple{ShapeField{"kind", &S::kind}, ShapeField{"bytes", &S::bytes, 0},
                    ShapeField{"pinned", &S::pinned}};
}
constexpr auto shape_fields(const SparseShape& /*of*/) {
  using S = SparseShape;
  return std::tuple{ShapeField{"rows", &S::rows, 0},   ShapeField{"inner", &S::inner, 0},
                    ShapeField{"cols", &S::cols, 0},   ShapeField{"nonzeros", &S::nonzeros, 0},
                    ShapeField{"reuse", &S::reuse, 0}, ShapeField{"sparse_result", &S::sparse_result}};
}
constexpr auto shape_fields(const AmountShape& /*of*/) {
  using S = AmountShape;
  return std::tuple{ShapeField{"flops", &S::flops, 0}, ShapeField{"bytes_read", &S::bytes_read, 0},
                    ShapeField{"bytes_written", &S::bytes_written, 0}, ShapeField{"matrix", &S::matrix},
                    ShapeField{"kernel_class", &S::kernel_class}};
}

// Calls `use` with every field of `shape`.
template <class Shape, class Use>
constexpr void for_each_field(const Shape& shape, const Use& use) {
  std::apply([&](const auto&... field) { (use(field), ...); }, shape_fields(shape));
}

}  // namespace stepcast
