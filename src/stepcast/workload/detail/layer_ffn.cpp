// The dense feed-forward part of one layer; that of experts is in layer_experts.cpp.
#include <utility>

#include "stepcast/workload/detail/layer_lists.h"

namespace stepcast::detail {

void LayerLists::ffn_forward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const {
  const std::int64_t h = model_.hidden_size, t = tokens_, width = share(ffn, tp_);
  if (communicate) gather_tokens(list, "gather_ffn_input", layout_.layer.overlap.tensor_parallel, fp8);
  const Linear up{.name = "ffn_up",
                  .tokens = t,
                  .n = width * (model_.gated_ffn ? 2 : 1),
                  .k = h,
                  .bias = model_.ffn_bias && !layout_.layer.fused.bias_activation,
                  .fp8 = fp8,
                  .input_of_kernel = true,
                  .parts = communicate ? parts_of_gathered() : 1,
                  .role = ItemRole::ffn_up};
  add_linear(list, up);
  add_adapter(list, up, Edge::column);
  activation(list, static_cast<double>(t * width), Direction::forward);
  add_row_product(list,
                  {.name = "ffn_down",
                   .tokens = t,
                   .n = h,
                   .k = width,
                   .bias = model_.ffn_bias && !layout_.layer.fused.bias_dropout_add,
                   .fp8 = fp8,
                   .input_of_kernel = true,
                   .role = ItemRole::ffn_down},
                  communicate ? "reduce_ffn_output" : std::string_view{});
}

void LayerLists::ffn_backward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const {
  const std::int64_t h = model_.hidden_size, t = tokens_, width = share(ffn, tp_);
  add_linear_gradients(list,
                       {.input_gradient = "ffn_down_input_gradient",
                        .weight_gradient = "ffn_down_weight_gradient",
                        .bias_gradient = "ffn_down_bias_gradient",
                        .tokens = t,
                        .n = h,
                        .k = width,
                        .bias = model_.ffn_bias,
                        .fp8 = fp8,
                        .role = ItemRole::ffn_down},
                       communicate ? Edge::row : Edge::none);
  activation(list, static_cast<double>(t * width), Direction::backward);
  add_linear_gradients(list,
                       {.input_gradient = "ffn_up_input_gradient",
                        .weight_gradient = "ffn_up_weight_gradient",
                        .bias_gradient = "ffn_up_bias_gradient",
                        .tokens = t,
                        .n = width * (model_.gated_ffn ? 2 : 1),
                        .k = h,
                        .bias = model_.ffn_bias,
                        .fp8 = fp8,
                        .gradient_of_kernel = true,
                        .role = ItemRole::ffn_up},
                       communicate ? Edge::column : Edge::none);
}

void LayerLists::add_own_vector(WorkList& list, Direction direction) const {
  const std::int64_t h = model_.hidden_size, width = model_.vector_of_layer, t = tokens_;
  const bool forward = direction == Direction::forward;
  const Linear gate{.name = "layer_vector_gate",
                    .input_gradient = "layer_vector_input_gradient",
                    .weight_gradient = "layer_vector_weight_gradient",
                    .tokens = t,
                    .n = width,
                    .k = h};
  Linear back = gate;
  back.name = "layer_vector_back";
  std::swap(back.n, back.k);
  const auto between = [&] {
    add_elementwise(list, "layer_vector", ElementwiseFunction::gelu, static_cast<double>(t * width), 2, 1,
                    direction);
  };
  if (forward) {
    add_linear(list, gate);
    between();
    add_linear(list, back);
    add_norm(list, "layer_vector_norm", direction, static_cast<double>(t));
    return residual(list, direction);
  }
  add_norm(list, "layer_vector_norm_gradient", direction, static_cast<double>(t));
  add_linear_gradients(list, back, Edge::none);
  between();
  add_linear_gradients(list, gate, Edge::none);
  residual(list, direction);
}

}  // namespace stepcast::detail
