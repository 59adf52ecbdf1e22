// Attention of DeepSeek-V4: queries come from a low-rank vector, one vector per token is key and value of all
// heads, and the output projection goes through low-rank vectors of groups of heads. In addition to a window,
// layers attend to compressed keys (LayerKind::compressed_tokens). Every rank of a stage has the whole
// attention: tensor and context parallelism are not supported.
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/activation_count.h"
#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/indexer.h"
#include "stepcast/workload/modules/parameters.h"

namespace stepcast {

const AttentionModule& low_rank_attention();

namespace {

using detail::Edge;
using detail::LayerWriter;
using detail::Linear;
using detail::share;

constexpr std::int64_t kMostLowRank = 1'000'000;
constexpr AttentionSize kLowRankSizes[] = {
    {"q_rank", 1, kMostLowRank},
    {"output_rank", 1, kMostLowRank},  // of one group
    {"output_groups", 1, kMostLowRank},
};

// In the order of kLowRankSizes.
struct LowRankSizes {
  std::int64_t q_rank, output_rank, output_groups;
};
LowRankSizes low_rank_sizes(const Transformer& model) {
  const auto& s = model.attention.sizes;
  return {s[0], s[1], s[2]};
}

// Parameters that compress every `compressed_tokens` tokens to a key of `width`: GEMMs for content and
// weights, position biases, and a norm.
std::int64_t compressor_parameters(const Transformer& model, std::int64_t width) {
  const std::int64_t columns = (model.sparse_indexer ? 2 : 1) * width;
  return columns * (2 * model.hidden_size + model.compressed_tokens) + width;
}

// Writes GEMMs and norms, or their gradients.
class LowRankList {
 public:
  LowRankList(const LayerWriter& w, WorkList& list, Direction direction, bool fp8)
      : w_(w), list_(list), direction_(direction), fp8_(fp8) {}

  // From the input of the layer to queries, keys and values.
  void inputs() {
    const std::int64_t t = w_.tokens(), h = w_.model().hidden_size, head = w_.model().qk_head_dim();
    const std::int64_t rank = low_rank_sizes(w_.model()).q_rank, every = w_.model().compressed_tokens;
    product("query_down", t, rank, h);
    rms_norm("query_norm", t, rank);
    product("query_up", t, w_.heads() * head, rank);
    rms_norm("query_head_norm", t * w_.heads(), head);
    product("key_value", t, head, h);
    rms_norm("key_value_norm", t, head);
    if (every == 0) return;
    // GEMMs for the content and the weights of tokens, and their weighted mean.
    const std::int64_t columns = (w_.model().sparse_indexer ? 2 : 1) * head;
    product("compressed_keys", t, 2 * columns, h);
    w_.add_elementwise(list_, "weigh_keys", ElementwiseFunction::other, as_double(t * columns), 2,
                       direction_ == Direction::forward ? 1 / as_double(every) : 2, direction_);
    rms_norm("compressed_key_norm", share(t, every), head);
  }

  // From the result of the heads to the result of the layer.
  void output() {
    const LowRankSizes low = low_rank_sizes(w_.model());
    const std::int64_t t = w_.tokens(), groups = low.output_groups,
                       queries = w_.heads() * w_.model().qk_head_dim();
    const bool forward = direction_ == Direction::forward;
    if (forward) product("output_down", t * groups, low.output_rank, queries / groups);
    product("attention_output", t, w_.model().hidden_size, groups * low.output_rank,
            ItemRole::attention_output);
    if (!forward) product("output_down", t * groups, low.output_rank, queries / groups);
  }

 private:
  // A GEMM with weights, or its gradients.
  void product(std::string_view name, std::int64_t tokens, std::int64_t n, std::int64_t k,
               ItemRole role = ItemRole::other) {
    const Linear linear{.name = name,
                        .input_gradient = "low_rank_input_gradient",
                        .weight_gradient = "low_rank_weight_gradient",
                        .tokens = tokens,
                        .n = n,
                        .k = k,
                        .fp8 = fp8_,
                        .role = role};
    direction_ == Direction::forward ? w_.add_linear(list_, linear)
                                     : w_.add_linear_gradients(list_, linear, Edge::none);
  }
  void rms_norm(std::string_view name, std::int64_t rows, std::int64_t width) {
    list_.push_back({name, norm({NormKind::rms_norm, rows, width}, w_.dtype(), direction_)});
  }

  const LayerWriter& w_;
  WorkList& list_;
  Direction direction_;
  bool fp8_;
};

// The module; sizes are in kLowRankSizes.
class LowRankAttention final : public AttentionModule {
 public:
  constexpr LowRankAttention()
      : AttentionModule({.name = "low_rank",
                         .sizes = kLowRankSizes,
                         .compresses_keys = true,
                         .clamps_with_sinks = false,
                         .is_measured = false}) {}

  [[nodiscard]] std::int64_t query_rank(const Transformer& model) const override {
    return low_rank_sizes(model).q_rank;
  }
  // In addition to the window: the selected compressed keys, or on average half of all compressed keys.
  [[nodiscard]] std::int64_t seen_keys(const Transformer& model, std::int64_t key_length,
                                       std::int64_t window_tokens) const override {
    const std::int64_t seen = AttentionModule::seen_keys(model, key_length, window_tokens);
    if (model.compressed_tokens == 0) return seen;
    const std::int64_t compressed = key_length / model.compressed_tokens;
    return window_tokens + (model.sparse_indexer ? std::min(seen, compressed) : compressed / 2);
  }

  [[nodiscard]] std::int64_t parameters(const Transformer& model) const override {
    const LowRankSizes low = low_rank_sizes(model);
    const std::int64_t h = model.hidden_size, head = model.qk_head_dim(), queries = model.n_heads * head;
    std::int64_t n = low.q_rank * (h + 1 + queries) + (h + 1) * head;
    n += low.output_rank * (queries + low.output_groups * h);
    if (model.compressed_tokens > 0) n += compressor_parameters(model, head);
    return n + Indexer::parameters(model);
  }
  // Queries, compressed keys, and a weight per head.
  [[nodiscard]] std::int64_t indexer_parameters(const Transformer& model,
                                                const SparseIndexer& index) const override {
    return low_rank_sizes(model).q_rank * index.n_heads * index.head_dim + model.hidden_size * index.n_heads +
           compressor_parameters(model, index.head_dim);
  }
  [[nodiscard]] std::pair<double, double> parameter_bounds(const Transformer& model) const override {
    const LowRankSizes low = low_rank_sizes(model);
    return {AttentionModule::parameter_bounds(model).first,
            as_double(low.q_rank + low.output_groups * low.output_rank)};
  }

  // Latent vectors before the queries and after the heads, and the inputs of compressed keys.
  [[nodiscard]] double kept_inputs(const detail::ActivationCount& count) const override {
    const Transformer& model = count.model();
    const LowRankSizes low = low_rank_sizes(model);
    const std::int64_t products = model.compressed_tokens == 0 ? 0 : model.sparse_indexer ? 4 : 2;
    return count.tokens() * count.element() *
           as_double(low.q_rank + low.output_groups * low.output_rank + products * model.qk_head_dim());
  }

  [[nodiscard]] Status check(const Transformer& model) const override {
    for (std::size_t i = 0; i < std::size(kLowRankSizes); ++i) {
      AttentionSize size = kLowRankSizes[i];
      if (size.key == "output_groups") size.largest = model.n_heads;
      STEPCAST_TRY(check_size(model, size, model.attention.sizes[i]));
    }
    const std::int64_t groups = low_rank_sizes(model).output_groups;
    if (model.n_heads % groups != 0) {
      return Error::at(model.name, "low_rank_attention.output_groups")
          .found(fmt::format("{} for {} heads", groups, model.n_heads))
          .expected("a divisor of the heads");
    }
    for (const LayerKind& kind : model.layer_kinds) {
      STEPCAST_TRY(check_sizes(
          model, "layer_kinds.",
          {{"compressed_tokens", kind.compressed_tokens, kind.chooses_keys ? 1 : 0, kMostLowRank}}));
    }
    return Ok{};
  }
  [[nodiscard]] Status check(const Layout& layout, const Transformer& /*model*/) const override {
    const std::int64_t tp = layout.degrees.tensor, degree = std::max(tp, layout.degrees.context);
    if (degree == 1) return Ok{};
    const std::string_view what = tp > 1 ? "tensor_parallel" : "context_parallel";
    return layout_error(what,
                        fmt::format("attention to compressed keys is not modelled with {} {}", what, degree))
        .advice(fmt::format("nearest that works: {} 1; use expert or pipeline parallelism", what));
  }

 protected:
  void project(const LayerWriter& w, WorkList& list, bool fp8) const override {
    LowRankList{w, list, Direction::forward, fp8}.inputs();
  }
  void project_gradients(const LayerWriter& w, WorkList& list, bool fp8) const override {
    LowRankList{w, list, Direction::backward, fp8}.inputs();
  }
  void add_output(const LayerWriter& w, WorkList& list, bool fp8) const override {
    LowRankList{w, list, Direction::forward, fp8}.output();
  }
  void output_gradients(const LayerWriter& w, WorkList& list, bool fp8) const override {
    LowRankList{w, list, Direction::backward, fp8}.output();
  }
};
constexpr LowRankAttention kLowRankAttention;

}  // namespace

const AttentionModule& low_rank_attention() { return kLowRankAttention; }

}  // namespace stepcast
