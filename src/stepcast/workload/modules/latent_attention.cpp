// Multi-head latent attention (DeepSeek-V2): keys and values are expanded from one low-rank vector, and
// queries too unless q_lora_rank is 0. Each latent vector has an RMS norm. The rotated part of a key is
// shared by all heads.
#include <cstdint>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/indexer.h"
#include "stepcast/workload/modules/parameters.h"

namespace stepcast {

const AttentionModule& latent_attention();

namespace {

using detail::Edge;
using detail::LayerWriter;
using detail::Linear;
using detail::share;

constexpr std::int64_t kMostLatent = 100'000'000;
constexpr AttentionSize kLatentSizes[] = {
    {"q_lora_rank", 0, kMostLatent, false},  // 0: queries come from one matrix
    {"kv_lora_rank", 1, kMostLatent},
    {"qk_nope_head_dim", 1, kMostLatent},  // part of a head without rotation
    {"qk_rope_head_dim", 0, kMostLatent},
    {"v_head_dim", 1, kMostLatent},
};

// In the order of kLatentSizes.
struct LatentSizes {
  std::int64_t q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
  [[nodiscard]] std::int64_t query_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
};
LatentSizes latent_sizes(const Transformer& model) {
  const auto& s = model.attention.sizes;
  return {s[0], s[1], s[2], s[3], s[4]};
}

// The GEMM for the output gates.
Linear latent_gate(const LayerWriter& w, bool fp8) {
  return {.name = "output_gate",
          .input_gradient = "output_gate_input_gradient",
          .weight_gradient = "output_gate_weight_gradient",
          .tokens = w.tokens(),
          .n = w.heads() * w.model().gates_of_head(),
          .k = w.model().hidden_size,
          .fp8 = fp8};
}

// The module; sizes are in kLatentSizes.
class LatentAttention final : public AttentionModule {
 public:
  constexpr LatentAttention()
      : AttentionModule({.name = "latent",
                         .sizes = kLatentSizes,
                         .sets_head_dim = true,
                         .has_qkv = false,
                         .expands_latents = true,
                         .splits_context_by_heads = false,
                         .indexes_every_layer = true}) {}

  [[nodiscard]] std::int64_t query_head_dim(const Transformer& model) const override {
    return latent_sizes(model).query_head_dim();
  }
  [[nodiscard]] std::int64_t value_head_dim(const Transformer& model) const override {
    return latent_sizes(model).v_head_dim;
  }
  [[nodiscard]] std::int64_t key_value_heads(const Transformer& model) const override {
    return model.n_heads;
  }
  [[nodiscard]] std::int64_t query_rank(const Transformer& model) const override {
    return latent_sizes(model).q_lora_rank;
  }
  [[nodiscard]] double rotated_elements(const LayerWriter& w) const override {
    return static_cast<double>(w.tokens() * (w.heads() + 1) * latent_sizes(w.model()).qk_rope_head_dim);
  }

  [[nodiscard]] std::int64_t parameters(const Transformer& model) const override {
    const LatentSizes latent = latent_sizes(model);
    const std::int64_t queries = model.n_heads * latent.query_head_dim();
    std::int64_t n = output_parameters(model);
    if (latent.q_lora_rank > 0)
      n += latent.q_lora_rank * (model.hidden_size + queries) + norm_parameters(model, latent.q_lora_rank);
    else
      n += model.hidden_size * queries;
    n += model.hidden_size * (latent.kv_lora_rank + latent.qk_rope_head_dim);
    n += norm_parameters(model, latent.kv_lora_rank);
    n += latent.kv_lora_rank * model.n_heads * (latent.qk_nope_head_dim + latent.v_head_dim);
    return n + Indexer::parameters(model);
  }
  // Queries, one key with a layer norm, and a weight per head.
  [[nodiscard]] std::int64_t indexer_parameters(const Transformer& model,
                                                const SparseIndexer& index) const override {
    const std::int64_t h = model.hidden_size, rank = latent_sizes(model).q_lora_rank;
    const std::int64_t queries =
        (rank > 0 ? rank : h) * index.n_heads * index.head_dim + (rank > 0 ? 0 : 2 * h);
    return queries + h * (index.head_dim + index.n_heads) + 2 * index.head_dim;
  }
  [[nodiscard]] std::pair<double, double> parameter_bounds(const Transformer& model) const override {
    const LatentSizes latent = latent_sizes(model);
    return {as_double(latent.query_head_dim() + latent.v_head_dim),
            as_double(latent.q_lora_rank + latent.kv_lora_rank)};
  }
  void weight_matrices(const Transformer& model, std::int64_t tp, std::int64_t copies,
                       MatrixSink& matrices) const override {
    const LatentSizes latent = latent_sizes(model);
    const std::int64_t h = model.hidden_size, heads = share(model.n_heads, tp);
    if (latent.q_lora_rank > 0) matrices.add_matrix(latent.q_lora_rank, h, copies);
    matrices.add_matrix(heads * latent.query_head_dim(), latent.q_lora_rank > 0 ? latent.q_lora_rank : h,
                        copies);
    matrices.add_matrix(latent.kv_lora_rank + latent.qk_rope_head_dim, h, copies);
    matrices.add_matrix(heads * (latent.qk_nope_head_dim + latent.v_head_dim), latent.kv_lora_rank, copies);
  }

  // From the latent vectors to queries, keys and values.
  void expand(const LayerWriter& w, WorkList& list, bool fp8) const override {
    const LatentSizes latent = latent_sizes(w.model());
    const std::int64_t t = w.tokens(),
                       queries = w.heads() * (latent.qk_nope_head_dim + latent.qk_rope_head_dim);
    if (latent.q_lora_rank > 0) {
      list.push_back({"query_norm", norm({NormKind::rms_norm, t, latent.q_lora_rank}, w.dtype())});
      w.add_linear(list, {"query_up", {}, {}, {}, t, queries, latent.q_lora_rank, false, fp8});
    }
    list.push_back({"key_value_norm", norm({NormKind::rms_norm, t, latent.kv_lora_rank}, w.dtype())});
    w.add_linear(list, {"key_value_up",
                        {},
                        {},
                        {},
                        t,
                        w.heads() * (latent.qk_nope_head_dim + latent.v_head_dim),
                        latent.kv_lora_rank,
                        false,
                        fp8});
    // Rotated and plain parts of heads are concatenated.
    w.add_elementwise(list, "assemble_heads", ElementwiseFunction::other,
                      static_cast<double>(t * queries * 2), 1, 1);
  }

  // The latent vector, from which each head computes its keys and values; every rank stores it completely.
  [[nodiscard]] CachedKeys cache(const Transformer& model, std::int64_t /*tp*/) const override {
    const LatentSizes latent = latent_sizes(model);
    return {as_double(latent.kv_lora_rank + latent.qk_rope_head_dim),
            as_double(2 * latent.kv_lora_rank + latent.qk_rope_head_dim)};
  }

  using AttentionModule::check;
  [[nodiscard]] Status check(const Transformer& model) const override {
    STEPCAST_TRY(AttentionModule::check(model));
    if (model.qkv_bias || model.qk_norm) {
      return Error::at(model.name, model.qkv_bias ? "qkv_bias" : "qk_norm")
          .found("true together with latent attention")
          .expected("false: the latent projections have neither");
    }
    return Ok{};
  }

 protected:
  void project(const LayerWriter& w, WorkList& list, bool fp8) const override {
    const LatentSizes latent = latent_sizes(w.model());
    if (latent.q_lora_rank > 0) {
      w.add_linear(
          list,
          {"query_down", {}, {}, {}, w.tokens(), latent.q_lora_rank, w.model().hidden_size, false, fp8});
    } else {
      const std::int64_t queries = w.heads() * (latent.qk_nope_head_dim + latent.qk_rope_head_dim);
      w.add_linear(list, {"query", {}, {}, {}, w.tokens(), queries, w.model().hidden_size, false, fp8});
    }
    w.add_linear(list, {"key_value_down",
                        {},
                        {},
                        {},
                        w.tokens(),
                        latent.kv_lora_rank + latent.qk_rope_head_dim,
                        w.model().hidden_size,
                        false,
                        fp8});
    expand(w, list, fp8);
    if (w.model().attention_output_gate) w.add_linear(list, latent_gate(w, fp8));
  }

  void project_gradients(const LayerWriter& w, WorkList& list, bool fp8) const override {
    const LatentSizes latent = latent_sizes(w.model());
    const std::int64_t queries = w.heads() * (latent.qk_nope_head_dim + latent.qk_rope_head_dim);
    const auto gradients = [&](std::int64_t n, std::int64_t k, Edge edge) {
      w.add_linear_gradients(
          list, {{}, "latent_input_gradient", "latent_weight_gradient", {}, w.tokens(), n, k, false, fp8},
          edge);
    };
    if (w.model().attention_output_gate) w.add_linear_gradients(list, latent_gate(w, fp8), Edge::none);
    w.add_elementwise(list, "split_heads_gradient", ElementwiseFunction::other,
                      static_cast<double>(w.tokens() * queries * 2), 1, 1);
    gradients(w.heads() * (latent.qk_nope_head_dim + latent.v_head_dim), latent.kv_lora_rank, Edge::none);
    list.push_back({"key_value_norm_gradient", norm({NormKind::rms_norm, w.tokens(), latent.kv_lora_rank},
                                                    w.dtype(), Direction::backward)});
    gradients(latent.kv_lora_rank + latent.qk_rope_head_dim, w.model().hidden_size, Edge::none);
    if (latent.q_lora_rank > 0) {
      gradients(queries, latent.q_lora_rank, Edge::none);
      list.push_back({"query_norm_gradient", norm({NormKind::rms_norm, w.tokens(), latent.q_lora_rank},
                                                  w.dtype(), Direction::backward)});
      gradients(latent.q_lora_rank, w.model().hidden_size, Edge::column);
    } else {
      gradients(queries, w.model().hidden_size, Edge::column);
    }
  }
};
constexpr LatentAttention kLatentAttention;

}  // namespace

const AttentionModule& latent_attention() { return kLatentAttention; }

}  // namespace stepcast
