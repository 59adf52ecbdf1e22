// A kind of attention as a module: everything that depends on it, in one class. Its parameters, its work forward and backward,
// what it keeps for the backward pass, its cache of keys and values, and which models and layouts it can be part of.
//
//   const AttentionModule& attention = attention_of(model);   // multi-head attention, unless model.attention says otherwise
//   attention.parameters(model);                              // of one layer
//   attention.forward(writer, list, variant);
//
// A new kind is a file in this folder and a line in attention_modules.def. Multi-head attention is the base class: a kind
// overrides what it does differently. Modules have no state; sizes come from Transformer::attention, in the order of sizes().
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

// A size that a kind of attention has: its key in descriptions of models and its range.
struct AttentionSize {
  std::string_view key;
  std::int64_t smallest = 0, largest = 0;
  bool required = true;  // configs must name it; otherwise it may be missing, and is 0
};

// Per token and layer, of one of the tensor-parallel ranks of an engine that generates.
struct CachedKeys {
  double elements = 0;    // of keys and values
  double head_width = 0;  // what one head multiplies: the width of its key and of its value
};

// Takes the weight matrices of one layer for optimizers that work on whole matrices.
class MatrixSink {
 public:
  virtual void add_matrix(std::int64_t rows, std::int64_t columns, std::int64_t copies) = 0;

 protected:
  ~MatrixSink() = default;
};

class AttentionModule : public LayerModule {
 public:
  // What differs by a word and not by a computation.
  struct Traits {
    // Presets hold its sizes in the section NAME_attention, which errors name, too. Empty: multi-head attention.
    std::string_view name = {};
    std::span<const AttentionSize> sizes = {};
    bool sets_head_dim = false;  // Transformer::head_dim and n_kv_heads mean nothing
    bool has_qkv = true;         // queries, keys and values come from one product, which may have an adapter
    bool expands_latents =
        false;  // recomputation can keep narrow vectors in place of queries, keys and values
    bool splits_context_by_heads = true;  // frameworks gather keys or exchange heads in context parallelism
    bool indexes_every_layer = false;     // an indexer belongs to all layers, whatever their kinds say
    bool compresses_keys = false;         // keys of an indexer are compressed as its own are
    bool clamps_with_sinks = true;        // the FFN of a model with attention sinks clamps, as GPT-OSS does
    bool is_measured = true;              // its kernels were: a description of such a model needs no note
  };
  explicit constexpr AttentionModule(const Traits& traits) : traits_(traits) {}

  [[nodiscard]] constexpr const Traits& traits() const { return traits_; }

  // ------------------------------------------------------------------------------------------ description
  // Elements of a query or key of one head, and of its value.
  [[nodiscard]] virtual std::int64_t query_head_dim(const Transformer& model) const;
  [[nodiscard]] virtual std::int64_t value_head_dim(const Transformer& model) const;
  // Heads of keys and values that the attention kernels see.
  [[nodiscard]] virtual std::int64_t key_value_heads(const Transformer& model) const;
  // Width of the narrow vector that an indexer makes its queries of; 0: the input of the layer.
  [[nodiscard]] virtual std::int64_t query_rank(const Transformer& model) const;
  // Tokens that a query attends to; 0: all before it.
  [[nodiscard]] virtual std::int64_t seen_keys(const Transformer& model, std::int64_t key_length,
                                               std::int64_t window_tokens) const;
  // Elements of a micro-batch on one rank that rotary positions rotate.
  [[nodiscard]] virtual double rotated_elements(const detail::LayerWriter& writer) const;

  // ------------------------------------------------------------------------------------------- parameters
  void add_parameters(const Transformer& model, ParameterCount& count) const final;
  // Of one layer, with its indexer and without sinks.
  [[nodiscard]] virtual std::int64_t parameters(const Transformer& model) const;
  [[nodiscard]] virtual std::int64_t indexer_parameters(const Transformer& model,
                                                        const SparseIndexer& index) const;
  // Upper bounds that cannot overflow: the widths of key and value of a head, and of narrow vectors.
  [[nodiscard]] virtual std::pair<double, double> parameter_bounds(const Transformer& model) const;
  // Of the products in front of the heads, as optimizers see them on one of `tp` ranks.
  virtual void weight_matrices(const Transformer& model, std::int64_t tp, std::int64_t copies,
                               MatrixSink& matrices) const;

  // ------------------------------------------------------------------------------------------------- work
  void forward(const detail::LayerWriter& writer, WorkList& list,
               const detail::LayerVariant& variant) const final;
  void backward(const detail::LayerWriter& writer, WorkList& list,
                const detail::LayerVariant& variant) const final;
  // What selective recomputation runs again: queries, keys and values of narrow vectors (expands_latents), and scores that no
  // fused kernel computes.
  virtual void expand(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  static void recompute_core(const detail::LayerWriter& writer, WorkList& list);

  // ----------------------------------------------------------------------------------------------- memory
  [[nodiscard]] double kept(const detail::ActivationCount& count) const final;
  // Of these, what is kept besides queries, keys, values and their result.
  [[nodiscard]] virtual double kept_inputs(const detail::ActivationCount& count) const;
  [[nodiscard]] virtual CachedKeys cache(const Transformer& model, std::int64_t tp) const;

  // ----------------------------------------------------------------------------------------------- checks
  using LayerModule::check;
  [[nodiscard]] Status check(const Transformer& model) const override;

 protected:
  ~AttentionModule() = default;
  // Of the product behind the heads, and of gates.
  [[nodiscard]] std::int64_t output_parameters(const Transformer& model) const;
  // From the input of the layer to queries, keys and values, and back to its gradient.
  virtual void project(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  virtual void project_gradients(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  // From the result of the heads to that of the layer.
  virtual void add_output(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  virtual void output_gradients(const detail::LayerWriter& writer, WorkList& list, bool fp8) const;
  // "NAME_attention.KEY" of a value that is out of its range.
  [[nodiscard]] Status check_size(const Transformer& model, const AttentionSize& size,
                                  std::int64_t value) const;

 private:
  Traits traits_;
};

struct MultiHeadAttention final : AttentionModule {
  constexpr MultiHeadAttention() : AttentionModule(Traits{}) {}
};
inline constexpr MultiHeadAttention kMultiHeadAttention;

// All kinds but multi-head attention, and the one that a model has.
[[nodiscard]] std::span<const AttentionModule* const> attention_modules();
[[nodiscard]] inline const AttentionModule& attention_of(const Transformer& model) {
  return model.attention ? *model.attention.module : kMultiHeadAttention;
}
// Of one of attention_modules(): its name and values by its keys, the others 0.
//
//   model.attention = attention_named("latent", {{"kv_lora_rank", 512}, {"v_head_dim", 128}});
[[nodiscard]] AttentionVariant attention_named(
    std::string_view name, std::initializer_list<std::pair<std::string_view, std::int64_t>> sizes);

}  // namespace stepcast
