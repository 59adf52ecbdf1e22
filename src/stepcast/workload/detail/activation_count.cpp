#include "stepcast/workload/detail/activation_count.h"

#include <algorithm>
#include <variant>

#include "stepcast/operation/operation.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/experts.h"
#include "stepcast/workload/modules/feed_forward.h"
#include "stepcast/workload/network.h"

namespace stepcast::detail {
namespace {

constexpr double kFp32 = 4;  // bytes

// Elements per sample that one of `tensor` ranks keeps. The input of a column split is whole on each rank.
// The input of a row split, the tensors between a column and a row split, and the logits are split; tensors
// outside of such pairs are whole.
double kept_by_rank(const NetworkPart& part, double tensor) {
  const auto* product = std::get_if<GemmShape>(&part.shape);
  const bool weights = product != nullptr && (part.parameters > 0 || part.shared_weights);
  const bool cut = std::holds_alternative<AttentionShape>(part.shape) ||
                   std::holds_alternative<CrossEntropyShape>(part.shape) ||
                   part.split == (weights ? NetworkPart::Split::row : NetworkPart::Split::column);
  return cut ? part.kept / tensor : part.kept;
}

}  // namespace

double ActivationCount::attention_core() const {
  if (attention_is_fused(model_, layout_.layer))
    return tokens_ * as_double(model_.n_heads) / tp_ * 4;  // log-sum-exp per query and head
  const double scores = as_double(layout_.batch.micro_batch_sequences * model_.n_heads) / tp_ *
                        as_double(layout_.batch.seq_len_tokens) * as_double(layout_.batch.seq_len_tokens) /
                        as_double(layout_.degrees.context);
  // Relative positions add a second score tensor of twice the size.
  const double relative = model_.position == PositionEncoding::relative ? 2 * element_ : 0;
  const bool dropout = model_.attention_dropout > 0;
  // Framework operations compute the softmax in fp32 and keep it. Its cast multiplies the values; with
  // dropout the dropped result takes that role.
  const bool in_fp32 = !layout_.layer.fused.softmax && element_ < kFp32;
  const double softmax = in_fp32 ? kFp32 + (dropout ? 0 : element_) : element_;
  return scores * (softmax + relative + (dropout ? 1 + element_ : 0));
}

// Attention modules also count a parallel state mixer.
double ActivationCount::attention() const {
  if (model_.attends()) return attention_of(model_).kept(*this);
  return is_recurrent(model_.mixer) ? state_mixer().kept(*this) : 0;
}

double ActivationCount::ffn(bool of_experts) const {
  if (!model_.has_ffn) return 0;
  return (of_experts ? experts() : feed_forward()).kept(*this);
}

double ActivationCount::recomputed(const RecomputedModules& modules, bool experts) const {
  double bytes = 0;
  const bool attends = model_.attends();
  if (modules.core_attention && attends && !attention_is_fused(model_, layout_.layer))
    bytes += attention_core();
  // The results of the norms are recomputed; their inputs stay.
  if (modules.norms && model_.mixer != Mixer::none) {
    bytes +=
        linear_input(hidden(), layout_.layer.precision.fp8.attention_linears, layout_.layer.adapters.qkv);
  }
  if (modules.norms && model_.has_ffn)
    bytes += linear_input(hidden(), layout_.layer.precision.fp8.ffn_linears,
                          layout_.layer.adapters.ffn_up && !experts);
  if (modules.latent_projections && attends && attention_of(model_).traits().expands_latents)
    bytes += queries_keys_values();
  if (!experts) return bytes + (modules.ffn && model_.has_ffn ? ffn(false) - hidden() : 0);
  if (modules.experts) return bytes + ffn(true) - hidden();
  const ExpertBytes kept = expert_bytes(*this);
  // The result of the activation, which is the input of the second GEMM.
  if (modules.expert_activation)
    bytes += linear_input(kept.wide, layout_.layer.precision.fp8.ffn_linears, false);
  return modules.shared_experts ? bytes + kept.shared : bytes;
}

double ActivationCount::offloaded(const OffloadedModules& modules, const Recomputation& recompute,
                                  bool experts) const {
  if (modules == OffloadedModules{} || recompute.kind == Recompute::selective_ops) return 0;
  const bool selects = recompute.kind == Recompute::selective;
  const RecomputedModules again = selects ? recompute.modules : RecomputedModules{.core_attention = false};
  const auto& fp8 = layout_.layer.precision.fp8;
  double bytes = 0;
  if (model_.mixer == Mixer::attention) {
    const bool projects_again = again.latent_projections && attention_of(model_).traits().expands_latents;
    if (modules.attention_norm) bytes += hidden();
    if (modules.qkv && !again.norms)
      bytes += linear_input(hidden(), fp8.attention_linears, layout_.layer.adapters.qkv);
    if (modules.core_attention)
      bytes += (projects_again ? 0 : queries_keys_values()) + (again.core_attention ? 0 : attention_core());
    if (modules.attention_projection) bytes += attention_output();
  }
  if (modules.ffn_norm && model_.has_ffn) bytes += hidden();
  if (!experts || again.experts) return bytes;
  const ExpertBytes kept = expert_bytes(*this);
  if (modules.expert_inputs) bytes += linear_input(kept.received, fp8.ffn_linears, false);
  if (modules.expert_activation) bytes += activation_inputs((model_.gated_ffn ? 2 : 1) * kept.wide);
  return bytes;
}

double ActivationCount::kept_results(const Recomputation& recompute) const {
  const double up = (model_.gated_ffn ? 2 : 1) * tokens_ * as_double(model_.ffn_hidden_size) / tp_ * element_;
  const std::pair<bool LayerResults::*, double> sizes[] = {
      {&LayerResults::qkv, queries_keys_values()},
      {&LayerResults::attention, attention_output() + attention_core()},
      {&LayerResults::attention_output, hidden()},
      {&LayerResults::ffn_up, up},
      {&LayerResults::ffn_down, hidden()}};
  double bytes = 0;
  for (const auto& [result, size] : sizes)
    if (recompute.kept.*result && !(recompute.kept_by_host.*result)) bytes += size;
  return bytes;
}

double ActivationCount::kept_products(bool experts) const {
  if (model_.mixer != Mixer::attention || !model_.has_ffn) return 0.5 * (attention() + ffn(experts));
  const bool has_qkv = attention_of(model_).traits().has_qkv;
  // Queries, keys, values, output: the first of every two.
  const double per_head = tokens_ * element_ / tp_;
  const double queries = per_head * as_double(model_.n_heads * model_.qk_head_dim());
  const double values = per_head * as_double(model_.kv_heads() * model_.value_head_dim());
  const double attention_products = has_qkv ? queries + values : 0.5 * (queries_keys_values() + hidden());
  // Gate, up and down likewise. The backward pass does not need the result of the last GEMM, which is added
  // to the residual; compiled code does not keep it either (partitioner of torch.compile).
  const double down = model_.gated_ffn && !layout_.layer.fused.compiled ? hidden() : 0;
  if (experts) {
    // Router, token all-to-alls and grouped GEMMs are not among the operators with kept results.
    const double shared = as_double(model_.moe->n_shared_experts * model_.moe->shared_ffn_hidden_size);
    return attention_products + (shared > 0 ? per_head * shared + down : 0);
  }
  const double up = tokens_ * as_double(model_.ffn_hidden_size) / tp_ * element_;
  if (!has_qkv) return attention_products + 0.5 * ((model_.gated_ffn ? 2 : 1) * up + hidden());
  return attention_products + up + down;
}

double KeptActivations::of(std::int64_t layer, std::int64_t in_chunk) const {
  const std::int64_t offloaded = layout_.layer.activation_offload_layers;
  if (layout_.layer.activation_offload && (offloaded == 0 || in_chunk < offloaded)) return 0;
  if (is_recomputed(layout_, in_chunk)) return recomputed_;
  const OfLayer& one = of_layer(layer);
  return one.kept - one.offloaded;
}

KeptActivations::OfLayer KeptActivations::count_layer(const ActivationCount& count, bool experts) const {
  const double whole = count.attention() + count.ffn(experts);
  const double all = kept(count, experts, whole);
  return {whole, all,
          std::min(all, count.offloaded(layout_.layer.offloaded, layout_.layer.recompute, experts))};
}

void KeptActivations::count_kinds() {
  if (model_.network) {
    const double samples = as_double(layout_.batch.micro_batch_sequences) * count_.element();
    const double tensor = as_double(layout_.degrees.tensor);
    for (const NetworkBlock& block : model_.network->kinds) {
      double kept = 0;
      for (const NetworkPart& part : block.parts) kept += kept_by_rank(part, tensor);
      of_kinds_.push_back({kept * samples, kept * samples, 0});
    }
    return;
  }
  for (std::size_t k = 0; k < model_.layer_kinds.size(); ++k) {
    const Transformer one = layer_model(model_, k);
    const ActivationCount count = count_.of(one);
    of_kinds_.push_back(count_layer(count, one.moe.has_value()));
  }
}

double KeptActivations::kept(const ActivationCount& count, bool experts, double whole) const {
  if (layout_.layer.recompute.kind == Recompute::selective_ops)
    return std::min(whole, count.hidden() + count.attention_output() + count.attention_core() +
                               count.kept_products(experts));
  if (layout_.layer.recompute.kind != Recompute::selective) return whole;
  return whole - count.recomputed(layout_.layer.recompute.modules, experts);
}

}  // namespace stepcast::detail
