// Memory of the tensors of a layer, the vocabulary layer and the loss on one rank, in bytes per micro-batch:
// kept tensors for the backward pass, and temporary ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/narrow_types.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/state_mixer.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// Sizes of one layer on one rank, in bytes per micro-batch.
class ActivationCount {
 public:
  // `imbalance`: visits of the busiest rank over the mean of all ranks.
  ActivationCount(const Transformer& model, const Layout& layout, double imbalance)
      : model_(model),
        imbalance_(imbalance),
        layout_(layout),
        element_(element_size(is_narrow(layout.layer.precision.compute) ? layout.layer.precision.other
                                                                        : layout.layer.precision.compute)
                     .value()),
        tp_(as_double(layout.degrees.tensor)),
        tokens_(as_double(layout.batch.micro_batch_sequences) * as_double(layout.batch.seq_len_tokens) /
                as_double(layout.degrees.context)),
        norm_tokens_(layout.layer.sequence_parallel ? tokens_ / tp_ : tokens_) {}

  // The same sizes for another model, such as one kind of layer.
  [[nodiscard]] ActivationCount of(const Transformer& model) const { return {model, layout_, imbalance_}; }
  [[nodiscard]] const Transformer& model() const { return model_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] double element() const { return element_; }  // bytes of an element of activations
  [[nodiscard]] double tokens() const { return tokens_; }    // tokens of a micro-batch on this rank
  [[nodiscard]] double tp() const { return tp_; }
  [[nodiscard]] double imbalance() const { return imbalance_; }
  // A tensor of the model width where sequence parallelism splits the tokens.
  [[nodiscard]] double hidden() const { return norm_tokens_ * as_double(model_.hidden_size) * element_; }
  [[nodiscard]] double layer_input() const { return as_double(model_.residual_streams) * hidden(); }
  // Dropout mask of such a tensor, one byte per element.
  [[nodiscard]] double norm_mask() const { return norm_tokens_ * as_double(model_.hidden_size); }
  [[nodiscard]] double queries_keys_values() const {
    const double seen = model_.cross_tokens == 0
                            ? tokens_
                            : as_double(layout_.batch.micro_batch_sequences * model_.cross_tokens);
    return element_ / tp_ *
           (tokens_ * as_double(model_.n_heads) * as_double(model_.qk_head_dim()) +
            seen * as_double(attention_of(model_).key_value_heads(model_)) *
                as_double(model_.qk_head_dim() + model_.value_head_dim()));
  }
  [[nodiscard]] double attention_output() const {
    return tokens_ * element_ / tp_ * as_double(model_.n_heads * model_.value_head_dim());
  }
  // Softmax, with dropout also its mask and its output. Fused: only the log-sum-exp.
  [[nodiscard]] double attention_core() const;
  // Kept input of a linear layer of `bytes` bytes, which the weight gradient needs. With fp8 it is one byte
  // per element, except in TorchAO, which keeps the uncast input (`Float8Linear`). Frozen weights without an
  // adapter need no input. With dropout each adapter has a copy of its input, with a mask of one byte per
  // element; PEFT has one adapter per projection (`projections`).
  [[nodiscard]] double linear_input(double bytes, bool fp8_linear, bool adapter,
                                    double projections = 1) const {
    const Adapters& adapters = layout_.layer.adapters;
    const bool adapted = adapter && adapters.rank > 0;
    if (layout_.layer.frozen_base && !adapted) return 0;
    if (layout_.layer.frozen_base && adapters.dropout)
      return (rule_of(layout_).layers.adapts_each_projection ? projections : 1) * bytes * (1 + 1 / element_);
    const bool narrow = fp8_linear && is_narrow(layout_.layer.precision.compute) &&
                        rule_of(layout_).fp8.linears != Fp8Linears::torch_ao;
    return narrow ? bytes / element_ : bytes;
  }
  // Kept input of an activation function.
  [[nodiscard]] double activation_inputs(double bytes) const {
    return layout_.layer.narrow_activation_inputs ? bytes / element_ : bytes;
  }
  // Kept tensors of the mixer; 0 without a mixer.
  [[nodiscard]] double attention() const;
  // Results of the projection, the convolution, the scan and the norm after it.
  [[nodiscard]] double state_results() const {
    return is_recurrent(model_.mixer) ? tokens_ * element_ / tp_ * as_double(state_parts(model_).kept) : 0;
  }
  // Residual streams that each part of a layer mixes; 0 for one stream, where the input of the part is
  // enough.
  [[nodiscard]] double streams() const {
    return model_.residual_streams > 1 ? as_double(model_.residual_streams) * hidden() : 0;
  }
  // Kept tensors of a feed-forward layer or of experts.
  [[nodiscard]] double ffn(bool experts) const;
  // Bytes that selective recomputation of `modules` does not keep.
  [[nodiscard]] double recomputed(const RecomputedModules& modules, bool experts) const;
  // Bytes offloaded to the host. Recomputed tensors are neither kept nor offloaded.
  [[nodiscard]] double offloaded(const OffloadedModules& modules, const Recomputation& recompute,
                                 bool experts) const;
  // Bytes that full recomputation keeps on the device nevertheless, without the input of a layer.
  [[nodiscard]] double kept_results(const Recomputation& recompute) const;
  // GEMM results that per-operator selective recomputation keeps: those of every second GEMM (TorchTitan).
  [[nodiscard]] double kept_products(bool experts) const;
  // Temporary memory of the forward pass of a dense layer: its input gathered from the tensor-parallel ranks
  // and its result before it is scattered (unless these transfers overlap GEMMs), and the wide tensors of the
  // FFN.
  [[nodiscard]] double forward_leaves() const {
    return (layout_.layer.overlap.tensor_parallel ? 0 : 2 * whole_hidden()) +
           (model_.gated_ffn ? 3 : 2) * tokens_ * as_double(model_.ffn_hidden_size) / tp_ * element_;
  }
  // A tensor of the model width where the tokens are not split.
  [[nodiscard]] double whole_hidden() const { return tokens_ * as_double(model_.hidden_size) * element_; }
  // Whole tensors during the backward of a part of a layer, where sequence parallelism splits the kept ones:
  // its input and output gradient, gathered again, and the input gradient before it is scattered. Transfers
  // that overlap GEMMs do not need the last one.
  [[nodiscard]] double gathered_in_backward() const {
    if (tp_ <= 1 || !layout_.layer.sequence_parallel) return 0;
    return (layout_.layer.overlap.tensor_parallel ? 2 : 3) * whole_hidden();
  }
  // The gathered input of the vocabulary layer, kept for the gradient of its weights.
  [[nodiscard]] double gathered_head_input() const {
    return tp_ > 1 && layout_.layer.sequence_parallel && !layout_.layer.frozen_base ? whole_hidden() : 0;
  }
  // Elements (not bytes) of the logits on this rank.
  [[nodiscard]] double logits(double vocab) const { return tokens_ * vocab / tp_; }

 private:
  const Transformer& model_;
  double imbalance_;
  const Layout& layout_;
  double element_, tp_, tokens_, norm_tokens_;
};

// Kept activations of all layers; equal layers are counted once.
class KeptActivations {
 public:
  KeptActivations(const ActivationCount& count, const Transformer& model, const Layout& layout)
      : count_(count), model_(model), layout_(layout) {
    if (!model.layer_kinds.empty() || model.network) count_kinds();
    for (const bool experts : {false, true}) {
      if ((experts && !model.moe) || !model.layer_kinds.empty()) continue;
      of_experts_[experts] = count_layer(count, experts);
    }
  }
  // Bytes of a layer without recomputation.
  [[nodiscard]] double whole(std::int64_t layer) const { return of_layer(layer).whole; }
  // Bytes from forward to backward, for a layer with index `in_chunk` in its chunk; without offloaded
  // modules.
  [[nodiscard]] double of(std::int64_t layer, std::int64_t in_chunk) const;
  // Bytes of a layer that modules offload to the host.
  [[nodiscard]] double offloaded(std::int64_t layer, std::int64_t in_chunk) const {
    return is_recomputed(layout_, in_chunk) ? 0 : of_layer(layer).offloaded;
  }

 private:
  struct OfLayer {
    double whole = 0, kept = 0, offloaded = 0;  // offloaded: part of kept
  };
  [[nodiscard]] OfLayer count_layer(const ActivationCount& count, bool experts) const;
  [[nodiscard]] double kept(const ActivationCount& count, bool experts, double whole) const;
  [[nodiscard]] const OfLayer& of_layer(std::int64_t layer) const {
    return of_kinds_.empty() ? of_experts_[model_.has_experts(layer)] : of_kinds_[model_.kind(layer)];
  }
  void count_kinds();

  const ActivationCount& count_;
  const Transformer& model_;
  const Layout& layout_;
  std::array<OfLayer, 2> of_experts_{};  // [has experts]
  std::vector<OfLayer> of_kinds_;        // by kind, for models with kinds
  // Bytes of a fully recomputed layer.
  double recomputed_ =
      (layout_.layer.recompute.kept_by_host.input ? 0 : count_.layer_input()) /
          static_cast<double>(std::max<std::int64_t>(1, layout_.layer.recompute.chunk_layers)) +
      count_.kept_results(layout_.layer.recompute);
};

}  // namespace stepcast::detail
