#include "stepcast/workload/detail/layer_lists.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "stepcast/base/number.h"
#include "stepcast/workload/detail/end_writer.h"
#include "stepcast/workload/detail/expert_writer.h"
#include "stepcast/workload/detail/narrow_types.h"
#include "stepcast/workload/detail/network_writer.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/experts.h"
#include "stepcast/workload/modules/feed_forward.h"
#include "stepcast/workload/modules/indexer.h"

namespace stepcast::detail {
namespace {

// Host work of the attention of an eager layer with experts in addition to launches, in launches.
// docs/constants.md explains their choice.
constexpr double kHostOfAttention = 150, kHostOfAttentionGradient = 210;
// Host operators per micro-batch outside of layers: batch, loss, communication with other stages.
constexpr double kOperatorsOfMicroBatch = 115;

}  // namespace

LayerVariant LayerLists::variant(std::int64_t layer, std::int64_t in_chunk) const {
  LayerVariant v;
  v.kind = model_.kind(layer);
  v.experts = model_.has_experts(layer);
  v.recomputed = is_recomputed(layout_, in_chunk);
  v.holds_back_weight_gradients = splits_backward(layout_.pipeline.schedule);
  v.window_tokens = model_.window_tokens(layer);
  v.sixteen_bit = is_narrow(layout_.layer.precision.compute) &&
                  (layer < layout_.layer.precision.fp8.first_layers ||
                   layer >= model_.n_layers - layout_.layer.precision.fp8.last_layers);
  return v;
}

std::int64_t LayerLists::alike_from() const {
  const bool differ =
      !model_.layer_kinds.empty() || model_.network || model_.global_attention_every_n_layers > 0 ||
      (model_.moe && model_.moe->moe_every_n_layers != 1) ||
      (is_narrow(layout_.layer.precision.compute) &&
       layout_.layer.precision.fp8.first_layers + layout_.layer.precision.fp8.last_layers > 0);
  if (differ) return model_.n_layers;
  return model_.moe ? model_.moe->first_dense_layers : 0;
}

LayerLists::Captured LayerLists::captured(const LayerVariant& variant) const {
  const CudaGraphs& graphs = layout_.layer.cuda_graphs;
  return {graphs.attention || graphs.full_iteration,
          graphs.full_iteration || (variant.experts ? graphs.experts : graphs.ffn)};
}

void LayerLists::layer_forward(WorkList& forward, const LayerVariant& variant) const {
  const Captured in_graph = captured(variant);
  if (variant.experts) {
    const ExpertWriter experts{*this};
    const double share =
        experts.delays_weight_gradients() ? 1 - ExpertWriter::kCombineGradientBesideWeights : 1;
    if (experts.overlaps_exchanges())
      experts.overlap_exchange(forward, ExpertWriter::Exchange::combine_gradient, share, false);
  }
  mix(forward, variant, Direction::forward);
  capture(forward, 0, in_graph.attention);
  const std::size_t ffn_begin = forward.size();
  feed(forward, variant, Direction::forward);
  capture(forward, ffn_begin, in_graph.ffn);
}

void LayerLists::add_modules(WorkList& list, LayerPart::Slot slot, const LayerVariant& variant,
                             Direction direction) const {
  const auto add = [&](const LayerPart& part) {
    if (part.slot != slot || !part.applies(model_, variant.experts)) return;
    const LayerModule& module = part.module(model_);
    direction == Direction::forward ? module.forward(*this, list, variant)
                                    : module.backward(*this, list, variant);
  };
  const auto parts = layer_parts();
  direction == Direction::forward ? std::for_each(parts.begin(), parts.end(), add)
                                  : std::for_each(parts.rbegin(), parts.rend(), add);
}

void LayerLists::mix(WorkList& list, const LayerVariant& variant, Direction direction) const {
  if (model_.mixer == Mixer::none) return;
  const bool forward = direction == Direction::forward;
  const double elements = norm_tokens_ * static_cast<double>(model_.hidden_size);
  const bool norm_behind = model_.norms_per_layer > (model_.has_ffn ? 2 : 1);
  if (forward) {
    add_norm(list, "attention_norm", direction, norm_tokens_);
    add_modules(list, LayerPart::Slot::mixer, variant, direction);
    if (model_.attends_beside) add_elementwise(list, "add_mixers", ElementwiseFunction::add, elements, 2, 1);
    if (variant.experts) add_host_work(list, "attention_on_host", kHostOfAttention);
    if (norm_behind) add_norm(list, "post_attention_norm", direction, norm_tokens_);
    if (!model_.parallel_residual) residual(list, direction);
    return;
  }
  if (norm_behind) add_norm(list, "post_attention_norm_gradient", direction, norm_tokens_);
  add_modules(list, LayerPart::Slot::mixer, variant, direction);
  if (model_.attends_beside)
    add_elementwise(list, "add_mixer_gradients", ElementwiseFunction::add, elements, 2, 1,
                    Direction::backward);
  if (variant.experts) add_host_work(list, "attention_gradient_on_host", kHostOfAttentionGradient);
  add_norm(list, "attention_norm_gradient", direction, norm_tokens_);
  residual(list, direction);
}

void LayerLists::feed(WorkList& list, const LayerVariant& variant, Direction direction) const {
  if (!model_.has_ffn) return;
  const bool forward = direction == Direction::forward;
  const bool mixes = model_.mixer != Mixer::none;
  const bool norm_in_front = model_.norms_per_layer > (mixes ? 1 : 0);
  const bool norm_behind = model_.norms_per_layer > (mixes ? 3 : 1);
  // Norms around experts with a parallel dense part: before the experts, and after both (Gemma 4).
  const double between =
      variant.experts
          ? static_cast<double>(std::max<std::int64_t>(0, model_.norms_per_layer - 4)) * norm_tokens_
          : 0;
  if (forward) {
    if (norm_in_front) add_norm(list, "ffn_norm", direction, norm_tokens_);
    add_modules(list, LayerPart::Slot::feed, variant, direction);
    if (between > 0) add_norm(list, "expert_norms", direction, between);
    if (norm_behind) add_norm(list, "post_ffn_norm", direction, norm_tokens_);
    residual(list, direction);
    if (model_.vector_of_layer > 0) EndWriter{*this}.add_own_vector(list, direction);
    return;
  }
  if (model_.vector_of_layer > 0) EndWriter{*this}.add_own_vector(list, direction);
  if (between > 0) add_norm(list, "expert_norm_gradients", direction, between);
  if (norm_behind) add_norm(list, "post_ffn_norm_gradient", direction, norm_tokens_);
  add_modules(list, LayerPart::Slot::feed, variant, direction);
  if (norm_in_front) add_norm(list, "ffn_norm_gradient", direction, norm_tokens_);
  residual(list, direction);
}

// The work that is repeated before the gradients of a layer.
void LayerLists::recompute(WorkList& backward, const WorkList& forward, const LayerVariant& variant) const {
  if (variant.recomputed) {
    backward = forward;
    const LayerResults& kept = layout_.layer.recompute.kept;
    // A compiler drops the last GEMM: the backward pass needs its result only for a norm after it, or for
    // expert scores.
    const bool drops_last = rule_of(layout_).layers.one_program && model_.norms_per_layer <= 2;
    std::erase_if(backward, [&](const WorkItem& item) {
      switch (item.role) {
        case ItemRole::qkv: return kept.qkv;
        case ItemRole::attention: return kept.attention;
        case ItemRole::attention_output: return kept.attention_output;
        case ItemRole::ffn_up:
        case ItemRole::expert_up: return kept.ffn_up;
        case ItemRole::ffn_down: return kept.ffn_down || drops_last;
        case ItemRole::expert_down: return kept.ffn_down;
        default: return false;
      }
    });
  } else if (layout_.layer.recompute.kind == Recompute::selective) {
    recompute_modules(backward, variant);
  } else if (layout_.layer.recompute.kind == Recompute::selective_ops) {
    // Results of attention and of every second GEMM are kept. Repeated are norms, activation, the other
    // GEMMs, and all token operations between the router and the sum of expert results.
    bool keep = true;
    const WorkItem* weight = nullptr;  // dequantised for the next GEMM
    for (const WorkItem& item : forward) {
      if (item.role == ItemRole::dequantise) {
        weight = &item;
        continue;
      }
      const Operation* operation = item.operation();
      const bool of_experts = item.role == ItemRole::expert_up || item.role == ItemRole::expert_down;
      if (operation == nullptr) {
        if (std::get<Transfer>(item.what).group == GroupKind::expert) backward.push_back(item);
        continue;
      }
      if (std::holds_alternative<AttentionShape>(operation->shape)) continue;
      if (std::holds_alternative<GemmShape>(operation->shape) && !of_experts) {
        keep = !keep;
        if (!keep) {
          weight = nullptr;
          continue;
        }
      }
      if (weight != nullptr && std::holds_alternative<GemmShape>(operation->shape))
        backward.push_back(*std::exchange(weight, nullptr));
      backward.push_back(item);
    }
  }
  const Captured in_graph = captured(variant);
  capture(backward, 0, in_graph.attention && in_graph.ffn);
}

void LayerLists::layer_backward(WorkList& backward, const LayerVariant& variant) const {
  const Captured in_graph = captured(variant);
  const std::size_t ffn_gradient_begin = backward.size();
  feed(backward, variant, Direction::backward);
  capture(backward, ffn_gradient_begin, in_graph.ffn);
  const std::size_t attention_gradient_begin = backward.size();
  mix(backward, variant, Direction::backward);
  capture(backward, attention_gradient_begin, in_graph.attention);
}

// Each layer of a stage gets an equal part of this host work: the host runs ahead over all layers, so that
// long layers hide it.
void LayerLists::add_part_of_micro_batch(WorkList& list) const {
  if (!layout_.layer.operator_launches || layout_.layer.cuda_graphs.full_iteration) return;
  const double layers = as_double(model_.n_layers) / as_double(layout_.degrees.pipeline);
  list.push_back({"micro_batch_on_host", Operation{AmountShape{.kernel_class = KernelClass::none}, dtype_}});
  list.back().count = std::max<std::int64_t>(1, rounded(kOperatorsOfMicroBatch / layers));
}

// Parameters of a layer on this rank, all and trained.
void LayerLists::count_parameters(LayerWork& work, const LayerVariant& variant) const {
  std::int64_t example = 0;  // a layer of this kind
  while (example + 1 < model_.n_layers && model_.has_experts(example) != variant.experts) ++example;
  const ParameterCount count = layer_parameter_count(model_, example);
  const auto tp = static_cast<double>(tp_);
  const std::int64_t indexer = model_.mixer == Mixer::attention ? Indexer::parameters(model_) : 0;
  work.dense_parameters =
      static_cast<double>(count.attention - indexer + count.ffn + count.shared_experts) / tp +
      static_cast<double>(count.norms + count.router + indexer);
  work.expert_parameters =
      static_cast<double>(count.routed_experts) /
      static_cast<double>(layout_.degrees.expert * (variant.experts ? layout_.expert_tensor_degree() : 1));
  if (frozen_.stored > 0) {
    const double saved = 1 - frozen_.stored / element_bytes_;
    const double linears = static_cast<double>(count.attention - indexer + count.ffn + count.shared_experts);
    work.dense_parameters -= saved * (linears / tp + static_cast<double>(count.router + indexer));
    work.expert_parameters *= 1 - saved;
  }
  if (layout_.layer.frozen_base) {
    work.trained_dense_parameters = adapter_parameters(variant.experts);
  } else {
    work.trained_dense_parameters = work.dense_parameters + adapter_parameters(variant.experts);
    work.trained_expert_parameters = work.expert_parameters;
  }
  work.dense_parameters += adapter_parameters(variant.experts);
}

LayerWork LayerLists::layer(const LayerVariant& variant) const {
  if (model_.network) return network_layer(variant);
  if (!model_.layer_kinds.empty()) {
    const Transformer own = layer_model(model_, variant.kind);
    return LayerLists{own, layout_}.layer(variant);
  }
  LayerWork work;
  work.recomputed = variant.recomputed;
  // Enough for nearly every layer; lists are written for every new layout.
  work.forward.reserve(24);
  work.backward.reserve(variant.recomputed ? 56 : 32);
  layer_forward(work.forward, variant);
  WorkList& backward = work.backward;
  recompute(backward, work.forward, variant);
  layer_backward(backward, variant);
  add_part_of_micro_batch(work.forward);
  if (variant.holds_back_weight_gradients) {
    work.held_back = ExpertWriter::take_weight_gradients(backward, 0);
  } else if (variant.experts && ExpertWriter{*this}.delays_weight_gradients()) {
    // Delayed weight gradients go to the end, after the experts' gradients have been sent.
    std::size_t behind_experts = backward.size();
    while (behind_experts > 0 && !backward[behind_experts - 1].overlaps_remainder) --behind_experts;
    const WorkList weights = ExpertWriter::take_delayed_weight_gradients(backward, behind_experts);
    ExpertWriter{*this}.overlap_exchange(backward, ExpertWriter::Exchange::combine_gradient,
                                         ExpertWriter::kCombineGradientBesideWeights, false);
    backward.insert(backward.end(), weights.begin(), weights.end());
  }
  count_parameters(work, variant);
  for (const WorkItem& item : work.backward) {
    if (item.role != ItemRole::dequantise) continue;
    const double written = std::get<AmountShape>(item.operation()->shape).bytes_written;
    work.dequantised_bytes =
        std::max(work.dequantised_bytes, written * element_bytes_ / (element_bytes_ + frozen_.written));
  }
  return work;
}

void LayerLists::recompute_modules(WorkList& list, const LayerVariant& variant) const {
  const RecomputedModules& modules = layout_.layer.recompute.modules;
  if (modules.norms) {
    add_norm(list, "attention_norm", Direction::forward, norm_tokens_);
    if (model_.norms_per_layer > 1 && model_.has_ffn)
      add_norm(list, "ffn_norm", Direction::forward, norm_tokens_);
  }
  const bool attends = model_.attends();
  if (modules.latent_projections && attends)
    attention_of(model_).expand(*this, list, has_narrow_mixer(variant));
  if (modules.core_attention && attends) AttentionModule::recompute_core(*this, list);
  if (!variant.experts) {
    if (modules.ffn && model_.has_ffn) feed_forward().forward(*this, list, variant);
    return;
  }
  const MixtureOfExperts& moe = *model_.moe;
  if (modules.experts) return experts().forward(*this, list, variant);
  const ExpertWriter writer{*this};
  if (modules.expert_activation) writer.activation_forward(list);
  if (modules.shared_experts && moe.n_shared_experts > 0)
    writer.ffn_forward(list, moe.n_shared_experts * moe.shared_ffn_hidden_size, has_narrow_ffn(variant),
                       tp_ > 1);
}

LayerWork LayerLists::network_layer(const LayerVariant& variant) const {
  LayerWork work;
  NetworkWriter{*this}.network_block(model_.network->kinds[variant.kind], work);
  add_part_of_micro_batch(work.forward);
  capture(work.forward, 0, layout_.layer.cuda_graphs.full_iteration);
  capture(work.backward, 0, layout_.layer.cuda_graphs.full_iteration);
  work.trained_dense_parameters = work.dense_parameters;
  return work;
}

Bytes LayerLists::boundary() const {
  double bytes = static_cast<double>(tokens_ * model_.hidden_size * model_.residual_streams) * element_bytes_;
  // Sequence parallelism and scatter-gather send 1/tp of the tokens from every rank.
  if (layout_.layer.sequence_parallel || layout_.pipeline.p2p_scatter_gather)
    bytes /= static_cast<double>(tp_);
  return Bytes{bytes};
}

}  // namespace stepcast::detail
