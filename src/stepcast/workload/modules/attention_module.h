// A kind of attention as a module: its parameters, its forward and backward work, the tensors kept for the
// backward pass, its cache of keys and values, and the models and layouts that support it.
//
//   const AttentionModule& attention = attention_of(model);   // by model.attention; default: multi-head
//   attention.parameters(model);                              // of one layer
//   attention.forward(writer, list, variant);
//
// To add a kind: a file in this folder and a line in attention_modules.def. Multi-head attention is the base
// class; a kind overrides the functions in which it differs. Modules have no state. Sizes come from
// Transformer::attention, in the order of Traits::sizes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "stepcast/base/result.h"
#include "stepcast/workload/modules/layer_module.h"
#include "stepcast/workload/step_work.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// A size of a kind of attention: its key in model descriptions and its range.
struct AttentionSize {
  std::string_view key;
  std::int64_t smallest = 0, largest = 0;
  bool required = true;  // model descriptions must state it; otherwise 0 if missing
};

// Cache of an inference engine, per token and layer, on one tensor-parallel rank.
struct CachedKeys {
  double elements = 0;    // of keys and values
  double head_width = 0;  // width of the key and value of one head, for the arithmetic
};

// Receives the weight matrices of a layer for matrix optimizers.
class MatrixSink {
 public:
  virtual void add_matrix(std::int64_t rows, std::int64_t columns, std::int64_t copies) = 0;

 protected:
  ~MatrixSink() = default;
};

// Base class of all kinds of attention, implementing multi-head attention.
class AttentionModule : public LayerModule {
 public:
  // Constant properties of a kind.
  struct Traits {
    // Presets have its sizes in the section NAME_attention, which errors also name. Empty: multi-head
    // attention.
    std::string_view name = {};
    std::span<const AttentionSize> sizes = {};
    bool sets_head_dim = false;  // Transformer::head_dim and n_kv_heads are ignored
    bool has_qkv = true;         // one GEMM gives queries, keys and values, and may have an adapter
    bool expands_latents =
        false;  // recomputation can keep latent vectors instead of queries, keys and values
    // Context parallelism by all-gather of keys or all-to-all of heads is supported.
    bool splits_context_by_heads = true;
    bool indexes_every_layer = false;  // all layers have the indexer, regardless of their kinds
    bool compresses_keys = false;      // keys of the indexer are compressed like those of attention
    // The FFN of a model with attention sinks clamps its inputs, as in GPT-OSS.
    bool clamps_with_sinks = true;
    bool is_measured = true;  // its kernels were measured: descriptions of such models need no note
  };
  explicit constexpr AttentionModule(const Traits& traits) : traits_(traits) {}

  [[nodiscard]] constexpr const Traits& traits() const { return traits_; }

  // ------------------------------------------------------------------------------------------ description
  // Elements of a query or key of one head.
  [[nodiscard]] virtual std::int64_t query_head_dim(const Transformer& model) const;
  // Elements of a value of one head.
  [[nodiscard]] virtual std::int64_t value_head_dim(const Transformer& model) const;
  // Key-value heads that the attention kernels see.
  [[nodiscard]] virtual std::int64_t key_value_heads(const Transformer& model) const;
  // Width of the latent vector from which an indexer computes its queries; 0: from the input of the layer.
  [[nodiscard]] virtual std::int64_t query_rank(const Transformer& model) const;
  // Tokens that a query attends to; 0: all previous ones.
  [[nodiscard]] virtual std::int64_t seen_keys(const Transformer& model, std::int64_t key_length,
                                               std::int64_t window_tokens) const;
  // Elements per micro-batch on one rank that rotary encoding rotates.
  [[nodiscard]] virtual double rotated_elements(const detail::LayerWriter& writer) const;

  // ------------------------------------------------------------------------------------------- parameters
  void add_parameters(const Transformer& model, ParameterCount& count) const final;
  // Parameters of one layer, with its indexer and without sinks.
  [[nodiscard]] virtual std::int64_t parameters(const Transformer& model) const;
  // Parameters of the indexer of one layer.
  [[nodiscard]] virtual std::int64_t indexer_parameters(const Transformer& model,
                                                        const SparseIndexer& index) const;
  // Upper bounds in floating point: summed widths of key and value of a head, and of latent vectors.
  [[nodiscard]] virtual std::pair<double, double> parameter_bounds(const Transformer& model) const;
  // Adds the matrices before the heads, as split over `tp` ranks.
  virtual void weight_matrices(const Transformer& model, std::int64_t tp, std::int64_t copies,
                               MatrixSink& matrices) const;

  // ------------------------------------------------------------------------------------------------- work
  void forward(const detail::LayerWriter& writer, WorkList& list,
               const detail::LayerVariant& variant) const final;
  void backward(const detail::LayerWriter& writer, WorkList& list,
                const detail::LayerVariant& variant) const final;
  // The work that selective recomputation repeats: queries, keys and values from latent vectors
  // (expands_latents).
  virtual void expand(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  // Recomputes unfused scores and softmax.
  static void recompute_core(const detail::LayerWriter& writer, WorkList& list);

  // ----------------------------------------------------------------------------------------------- memory
  [[nodiscard]] double kept(const detail::ActivationCount& count) const final;
  // The part of kept() other than queries, keys, values and their result.
  [[nodiscard]] virtual double kept_inputs(const detail::ActivationCount& count) const;
  // Cache on one of `tp` ranks.
  [[nodiscard]] virtual CachedKeys cache(const Transformer& model, std::int64_t tp) const;

  // ----------------------------------------------------------------------------------------------- checks
  using LayerModule::check;
  [[nodiscard]] Status check(const Transformer& model) const override;

 protected:
  ~AttentionModule() = default;
  // Parameters of the output projection, and of gates.
  [[nodiscard]] std::int64_t output_parameters(const Transformer& model) const;
  // The GEMMs from the input of the layer to queries, keys and values, and their gradients.
  virtual void project(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  virtual void project_gradients(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  // The output projection, and its gradients.
  virtual void add_output(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  virtual void output_gradients(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  // Error at "NAME_attention.KEY" for a value outside of its range.
  [[nodiscard]] Status check_size(const Transformer& model, const AttentionSize& size,
                                  std::int64_t value) const;

 private:
  Traits traits_;
};

struct MultiHeadAttention final : AttentionModule {
  constexpr MultiHeadAttention() : AttentionModule(Traits{}) {}
};
inline constexpr MultiHeadAttention kMultiHeadAttention;

// All kinds except multi-head attention.
[[nodiscard]] std::span<const AttentionModule* const> attention_modules();
// The kind of attention of a model.
[[nodiscard]] inline const AttentionModule& attention_of(const Transformer& model) {
  return model.attention ? *model.attention.module : kMultiHeadAttention;
}
// The variant of the kind `name` with sizes by key; other sizes are 0. Empty for an unknown name; unknown
// keys are ignored.
//
//   model.attention = attention_named("latent", {{"kv_lora_rank", 512}, {"v_head_dim", 128}});
[[nodiscard]] AttentionVariant attention_named(
    std::string_view name, std::initializer_list<std::pair<std::string_view, std::int64_t>> sizes);

}  // namespace stepcast
