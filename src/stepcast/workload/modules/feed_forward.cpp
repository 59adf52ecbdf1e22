#include "stepcast/workload/modules/feed_forward.h"

#include <algorithm>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/activation_count.h"
#include "stepcast/workload/detail/feed_forward_writer.h"
#include "stepcast/workload/modules/attention_module.h"

namespace stepcast {
namespace detail {

// Column-split up projection, activation, row-split down projection.
void FeedForwardWriter::ffn_forward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const {
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

void FeedForwardWriter::ffn_backward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const {
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

void FeedForwardWriter::activation(WorkList& list, double elements, Direction direction) const {
  ElementwiseFunction function = ElementwiseFunction::gelu;
  switch (model_.activation) {
    case Activation::gelu: function = ElementwiseFunction::gelu; break;
    case Activation::relu: function = ElementwiseFunction::relu; break;
    case Activation::squared_relu: function = ElementwiseFunction::squared_relu; break;
    case Activation::silu: function = ElementwiseFunction::silu; break;
  }
  const bool fused = layout_.layer.fused.bias_activation || layout_.layer.fused.compiled;
  // GPT-OSS, the only model with sinks in this case, clamps both factors and adds an offset to one.
  if (model_.gated_ffn && model_.attention_sinks && attention_of(model_).traits().clamps_with_sinks &&
      !layout_.layer.fused.compiled)
    return clamped_activation(list, elements, direction);
  if (model_.gated_ffn) {
    if (fused) {
      add_elementwise(list, "gated_activation", ElementwiseFunction::gated_silu, elements, 2, 1, direction);
      return;
    }
    add_elementwise(list, "activation", function, elements, 1, 1, direction);
    add_elementwise(list, "gate", ElementwiseFunction::multiply, elements, 2, 1, direction);
    return;
  }
  add_elementwise(list, "activation", function, elements, 1, 1, direction);
  if (!fused && model_.activation == Activation::squared_relu)
    add_elementwise(list, "square", ElementwiseFunction::power_scalar, elements, 1, 1, direction);
}

// GPT-OSS's activation in separate framework operations (Megatron Core, `glu` of TEGroupedMLP): two clamps,
// three operations of a quick GELU, offset, multiplication, then the scores in fp32 and a cast back. In the
// backward pass every multiplication has two gradients: the gradient of the scores is summed per token,
// gradients of tensors that are used twice are added, and the halves are concatenated; an offset needs
// nothing.
void FeedForwardWriter::clamped_activation(WorkList& list, double elements, Direction direction) const {
  using F = ElementwiseFunction;
  const double wide = 4 / element_bytes_;  // an element in fp32
  const auto add = [&](std::string_view name, ElementwiseFunction function, double reads, double writes) {
    add_elementwise(list, name, function, elements, reads, writes, direction);
  };
  if (direction == Direction::forward) {
    add("clamp_gate", F::relu, 1, 1);
    add("clamp_input", F::relu, 1, 1);
    add("scale_gate", F::multiply_scalar, 1, 1);
    add("sigmoid", F::sigmoid, 1, 1);
    add("multiply_gate", F::multiply, 2, 1);
    add("offset_input", F::add_scalar, 1, 1);
    add("gate", F::multiply, 2, 1);
    add("weigh_by_score", F::multiply, 1, wide);
    add("cast_weighed", F::cast, wide, 1);
    list.back().role = ItemRole::cast;
    return;
  }
  const std::int64_t width = model_.moe
                                 ? share(model_.moe->expert_ffn_hidden_size, layout_.expert_tensor_degree())
                                 : share(model_.ffn_hidden_size, tp_);
  add("cast_weighed_gradient", F::cast, 1, wide);
  add("weigh_by_score_gradient", F::multiply, wide, wide);
  add("cast_unweighed_gradient", F::cast, wide, 1);
  add("multiply_gradient_by_activation", F::multiply, wide + 1, wide);
  list.push_back(
      {"score_gradient_of_activation",
       Operation{ReductionShape{.rows = std::max<std::int64_t>(1, rounded(elements / as_double(width))),
                                .cols = width},
                 DType::fp32}});
  add("gate_gradient", F::multiply, 4, 2);
  add("multiply_gate_gradient", F::multiply, 4, 2);
  add("sigmoid_gradient", F::sigmoid, 2, 1);
  add("scale_gate_gradient", F::multiply_scalar, 1, 1);
  add("add_gate_gradients", F::add, 2, 1);
  add("clamp_gate_gradient", F::relu, 2, 1);
  add("clamp_input_gradient", F::relu, 2, 1);
  add("join_gate_and_input_gradients", F::other, 2, 2);
}

}  // namespace detail

namespace {

using detail::FeedForwardWriter;
using detail::LayerVariant;
using detail::LayerWriter;

// The module of dense feed-forward layers.
class FeedForward final : public LayerModule {
 public:
  void add_parameters(const Transformer& model, ParameterCount& count) const override {
    count.ffn +=
        ffn_parameters(model, model.hidden_size, model.ffn_hidden_size) + model.activation_parameters;
  }
  void forward(const LayerWriter& w, WorkList& list, const LayerVariant& variant) const override {
    FeedForwardWriter{w}.ffn_forward(list, w.model().ffn_hidden_size, w.has_narrow_ffn(variant), w.tp() > 1);
  }
  void backward(const LayerWriter& w, WorkList& list, const LayerVariant& variant) const override {
    FeedForwardWriter{w}.ffn_backward(list, w.model().ffn_hidden_size, w.has_narrow_ffn(variant), w.tp() > 1);
  }
  // Inputs and output of the activation, and the inputs of the GEMMs.
  [[nodiscard]] double kept(const detail::ActivationCount& count) const override {
    const Transformer& model = count.model();
    const Adapters& adapters = count.layout().layer.adapters;
    const double wide = count.tokens() * as_double(model.ffn_hidden_size) / count.tp() * count.element();
    const bool fp8 = count.layout().layer.precision.fp8.ffn_linears;
    return count.streams() + count.hidden() +
           count.linear_input(count.hidden(), fp8, adapters.ffn_up, model.gated_ffn ? 2 : 1) +
           (model.hidden_dropout > 0 ? count.norm_mask() : 0) +
           count.activation_inputs((model.gated_ffn ? 2 : 1) * wide) +
           count.linear_input(wide, fp8, adapters.ffn_down);
  }
};
constexpr FeedForward kFeedForward;

}  // namespace

std::int64_t ffn_parameters(const Transformer& model, std::int64_t hidden_size,
                            std::int64_t ffn_hidden_size) {
  const std::int64_t matrices_in = model.gated_ffn ? 2 : 1;
  std::int64_t n = (matrices_in + 1) * hidden_size * ffn_hidden_size;
  if (model.ffn_bias) n += matrices_in * ffn_hidden_size + hidden_size;
  return n;
}

const LayerModule& feed_forward() { return kFeedForward; }

}  // namespace stepcast
