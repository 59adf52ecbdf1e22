// Grouped keys of a width of their own that neighbouring layers share: a layer whose LayerKind shares_keys_values attends to the
// keys and values of the layer below it and makes queries alone. A key and its value have `key_head_dim` elements, as a query
// has.
#include <algorithm>
#include <cstdint>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/activation_count.h"
#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/indexer.h"
#include "stepcast/workload/modules/parameters.h"

namespace stepcast {

const AttentionModule& paired_attention();

namespace {

using detail::Edge;
using detail::LayerWriter;
using detail::Linear;
using detail::share;

constexpr AttentionSize kPairedSizes[] = {{"key_head_dim", 1, 100'000}, {"key_heads", 1, 100'000}};

std::int64_t paired_width(const Transformer& model) { return model.attention.sizes[0]; }
std::int64_t paired_heads(const Transformer& model) { return model.attention.sizes[1]; }

Linear paired_queries(const LayerWriter& w, bool fp8) {
  return {.name = "query",
          .input_gradient = "query_input_gradient",
          .weight_gradient = "query_weight_gradient",
          .tokens = w.tokens(),
          .n = w.heads() * paired_width(w.model()),
          .k = w.model().hidden_size,
          .fp8 = fp8,
          .input_of_kernel = true,
          .parts = w.parts_of_gathered()};
}
Linear paired_keys(const LayerWriter& w, bool fp8) {
  return {.name = "key_value",
          .input_gradient = "key_value_input_gradient",
          .weight_gradient = "key_value_weight_gradient",
          .tokens = w.tokens(),
          .n = 2 * share(paired_heads(w.model()), w.tp()) * paired_width(w.model()),
          .k = w.model().hidden_size,
          .fp8 = fp8};
}

class PairedAttention final : public AttentionModule {
 public:
  constexpr PairedAttention()
      : AttentionModule({.name = "paired", .sizes = kPairedSizes, .sets_head_dim = true, .has_qkv = false}) {}

  [[nodiscard]] std::int64_t query_head_dim(const Transformer& model) const override {
    return paired_width(model);
  }
  [[nodiscard]] std::int64_t value_head_dim(const Transformer& model) const override {
    return paired_width(model);
  }
  [[nodiscard]] std::int64_t key_value_heads(const Transformer& model) const override {
    return paired_heads(model);
  }
  [[nodiscard]] double rotated_elements(const LayerWriter& w) const override {
    const std::int64_t keys = w.model().shares_keys_values ? 0 : share(paired_heads(w.model()), w.tp());
    return as_double(w.tokens() * (w.heads() + keys) * paired_width(w.model()));
  }

  [[nodiscard]] std::int64_t parameters(const Transformer& model) const override {
    const std::int64_t keys = model.shares_keys_values ? 0 : 2 * paired_heads(model);
    return output_parameters(model) + model.hidden_size * (model.n_heads + keys) * paired_width(model) +
           Indexer::parameters(model);
  }
  [[nodiscard]] std::pair<double, double> parameter_bounds(const Transformer& model) const override {
    return {as_double(paired_width(model)), 0};
  }
  void weight_matrices(const Transformer& model, std::int64_t tp, std::int64_t copies,
                       MatrixSink& matrices) const override {
    matrices.add_matrix(share(model.n_heads, tp) * paired_width(model), model.hidden_size, copies);
    if (!model.shares_keys_values)
      matrices.add_matrix(share(paired_heads(model), tp) * paired_width(model), model.hidden_size,
                          2 * copies);
  }

  // Keys and values of the layer below are kept there.
  [[nodiscard]] double kept_inputs(const detail::ActivationCount& count) const override {
    if (!count.model().shares_keys_values) return 0;
    return -2 * count.tokens() * count.element() / count.tp() *
           as_double(paired_heads(count.model()) * paired_width(count.model()));
  }
  [[nodiscard]] CachedKeys cache(const Transformer& model, std::int64_t tp) const override {
    const double width = as_double(2 * paired_width(model));
    return {model.shares_keys_values ? 0 : as_double(share(paired_heads(model), tp)) * width, width};
  }

  using AttentionModule::check;
  [[nodiscard]] Status check(const Transformer& model) const override {
    STEPCAST_TRY(AttentionModule::check(model));
    if (model.n_heads % paired_heads(model) == 0) return Ok{};
    return Error::at(model.name, "paired_attention.key_heads", "n_heads is not divisible by it");
  }
  [[nodiscard]] Status check(const Layout& layout, const Transformer& model) const override {
    if (paired_heads(model) % layout.degrees.tensor == 0) return Ok{};
    return layout_error("tensor_parallel", "it does not divide the key heads");
  }

 protected:
  void project(const LayerWriter& w, WorkList& list, bool fp8) const override {
    w.add_linear(list, paired_queries(w, fp8));
    if (!w.model().shares_keys_values) w.add_linear(list, paired_keys(w, fp8));
  }
  void project_gradients(const LayerWriter& w, WorkList& list, bool fp8) const override {
    if (!w.model().shares_keys_values) w.add_linear_gradients(list, paired_keys(w, fp8), Edge::none);
    w.add_linear_gradients(list, paired_queries(w, fp8), Edge::column);
  }
};
constexpr PairedAttention kPairedAttention;

}  // namespace

const AttentionModule& paired_attention() { return kPairedAttention; }

}  // namespace stepcast
