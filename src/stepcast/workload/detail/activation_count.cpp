#include "stepcast/workload/detail/activation_count.h"

namespace stepcast::detail {

double ActivationCount::attention_core() const {
  if (attention_is_fused(model_, layout_.layer)) {
    return tokens_ * as_double(model_.n_heads) / tp_ * 4;  // log-sum-exp of every query and head
  }
  const double scores = as_double(layout_.batch.micro_batch_sequences * model_.n_heads) / tp_ *
                        as_double(layout_.batch.seq_len_tokens) * as_double(layout_.batch.seq_len_tokens) /
                        as_double(layout_.degrees.context);
  // Scores of distances are twice as many and are added up.
  const double relative = model_.position == PositionEncoding::relative ? 2 * element_ : 0;
  return scores * (element_ + relative + (model_.attention_dropout > 0 ? 1 + element_ : 0));
}

double ActivationCount::ffn(bool experts) const {
  const Adapters& adapters = layout_.layer.adapters;
  const double dropout = model_.hidden_dropout > 0 ? norm_mask() : 0;
  const double matrices = model_.gated_ffn ? 3 : 2;  // inputs and output of the activation
  if (!experts) {
    const double wide = tokens_ * as_double(model_.ffn_hidden_size) / tp_ * element_;
    const bool fp8 = layout_.layer.precision.fp8.ffn_linears;
    return hidden() + linear_input(hidden(), fp8, adapters.ffn_up) + dropout +
           activation_inputs((matrices - 1) * wide) + linear_input(wide, fp8, adapters.ffn_down);
  }
  const MixtureOfExperts& moe = *model_.moe;
  const double visits = tokens_ / tp_ * as_double(moe.experts_per_token) * imbalance_;
  double bytes = 2 * hidden() + dropout;
  // Tokens as they were received, inputs of the activation, its result. What was sent is not kept: its place is.
  const bool fp8 = layout_.layer.precision.fp8.ffn_linears;
  const double wide = visits * as_double(moe.expert_ffn_hidden_size) * element_;
  bytes += linear_input(visits * as_double(model_.hidden_size) * element_, fp8, false);
  bytes += activation_inputs((matrices - 1) * wide) + linear_input(wide, fp8, false);
  bytes += matrices * tokens_ * as_double(moe.n_shared_experts * moe.shared_ffn_hidden_size) / tp_ * element_;
  return bytes;
}

double ActivationCount::recomputed(const RecomputedModules& modules, bool experts) const {
  double bytes = 0;
  if (modules.core_attention && !attention_is_fused(model_, layout_.layer)) {
    bytes += attention_core();
  }
  // Results of the norms; their inputs stay.
  if (modules.norms) {
    bytes +=
        linear_input(hidden(), layout_.layer.precision.fp8.attention_linears, layout_.layer.adapters.qkv) +
        linear_input(hidden(), layout_.layer.precision.fp8.ffn_linears, layout_.layer.adapters.ffn_up);
  }
  if (modules.latent_projections && model_.latent_attention) bytes += queries_keys_values();
  if (!experts) return bytes + (modules.ffn ? ffn(false) - hidden() : 0);
  const MixtureOfExperts& moe = *model_.moe;
  const double visits = tokens_ / tp_ * as_double(moe.experts_per_token) * imbalance_;
  const double wide = visits * as_double(moe.expert_ffn_hidden_size) * element_;
  if (modules.experts) return bytes + ffn(true) - hidden();
  // Its result, the input of the second product.
  if (modules.expert_activation) bytes += linear_input(wide, layout_.layer.precision.fp8.ffn_linears, false);
  if (modules.shared_experts) {
    bytes += (model_.gated_ffn ? 3 : 2) * tokens_ *
             as_double(moe.n_shared_experts * moe.shared_ffn_hidden_size) / tp_ * element_;
  }
  return bytes;
}

double ActivationCount::kept_products(bool experts) const {
  const double up = tokens_ * as_double(model_.ffn_hidden_size) / tp_ * element_;
  if (experts || model_.latent_attention) {
    return 0.5 * (queries_keys_values() + hidden() + (experts ? ffn(true) : (model_.gated_ffn ? 2 : 1) * up) +
                  hidden());
  }
  // Queries, keys, values, output; gate, up, down: the first of every two.
  const double per_head = tokens_ * element_ / tp_;
  const double queries = per_head * as_double(model_.n_heads * model_.qk_head_dim());
  const double values = per_head * as_double(model_.kv_heads() * model_.value_head_dim());
  // The backward pass needs no result of the last product, which is added to what goes around the layer: compiled code
  // does not keep it, either (partitioner of torch.compile).
  const double down = model_.gated_ffn && !layout_.layer.fused.compiled ? hidden() : 0;
  return queries + values + up + down;
}

double KeptActivations::of(std::int64_t layer, std::int64_t in_chunk) const {
  const std::int64_t offloaded = layout_.layer.activation_offload_layers;
  if (layout_.layer.activation_offload && (offloaded == 0 || in_chunk < offloaded)) return 0;
  if (is_recomputed(layout_, in_chunk)) return recomputed_;
  return kept_[model_.has_experts(layer)];
}

double KeptActivations::kept(bool experts) const {
  if (layout_.layer.recompute.kind == Recompute::selective_ops) {
    return count_.hidden() + count_.attention_output() + count_.attention_core() +
           count_.kept_products(experts);
  }
  if (layout_.layer.recompute.kind != Recompute::selective) return whole_[experts];
  return whole_[experts] - count_.recomputed(layout_.layer.recompute.modules, experts);
}

}  // namespace stepcast::detail
