#include "stepcast/workload/layout.h"

#include <algorithm>

#include "stepcast/base/names.h"
#include "stepcast/workload/framework_rule.h"

// Names and derived values of layouts.

namespace stepcast {

double kept_imbalance(const LayerChoices& layer) {
  if (!layer.expert_capacity_factor) return layer.expert_imbalance;
  const double capacity = *layer.expert_capacity_factor;
  return layer.expert_pads_to_capacity ? capacity : std::min(layer.expert_imbalance, capacity);
}

std::string_view to_string(Sharding sharding) {
  return name_of<Sharding::zero3>(sharding, {"none", "zero1", "zero2", "zero3"}, "?");
}

std::string_view to_string(PipelineSchedule schedule) {
  return name_of<PipelineSchedule::v_min>(
      schedule, {"1f1b", "interleaved", "gpipe", "zero_bubble_h1", "dual_pipe", "zb_v", "v_half", "v_min"},
      "?");
}

std::string_view to_string(ContextParallelKind kind) {
  return name_of<ContextParallelKind::all_gather>(kind, {"ring", "all_to_all", "all_gather"}, "?");
}

std::string_view to_string(Recompute recompute) {
  return name_of<Recompute::full>(recompute, {"none", "selective", "selective_ops", "full"}, "?");
}

std::string_view to_string(AttentionMethod method) {
  return name_of<AttentionMethod::flash>(method, {"unfused", "flash"}, "?");
}

std::string_view to_string(Prefetch prefetch) {
  return name_of<Prefetch::pre>(prefetch, {"none", "post", "pre"}, "?");
}

std::string_view to_string(Fp8Scaling scaling) {
  return name_of<Fp8Scaling::mxfp8>(scaling, {"delayed", "dynamic", "rowwise", "blockwise", "mxfp8"}, "?");
}

std::string_view to_string(TokenDispatcher dispatcher) {
  return name_of<TokenDispatcher::hybridep>(dispatcher, {"all_to_all", "all_gather", "deepep", "hybridep"},
                                            "?");
}

std::string_view to_string(FrozenWeights kind) {
  return name_of<FrozenWeights::nf4_double>(kind, {"16bit", "int8", "nf4", "nf4-double"}, "?");
}

FrozenWeightBytes bytes_of(FrozenWeights kind) {
  // Bytes of scales per weight: fp32 per 64 weights; one byte per 64, and fp32 per 256 of those (Dettmers et
  // al. 2023).
  constexpr double kScale = 4.0 / 64, kNarrowScale = (1 + 4.0 / 256) / 64;
  switch (kind) {
    case FrozenWeights::as_computed: break;
    case FrozenWeights::int8: return {1, 1, 0};
    case FrozenWeights::nf4: return {0.5 + kScale, 0.5 + kScale, 0};
    // Scales are first converted to fp32 with their mean added; then the kernel of the weights reads them.
    case FrozenWeights::nf4_double: return {0.5 + kNarrowScale, 0.5 + kNarrowScale + 2 * kScale, 2 * kScale};
  }
  return {};
}

Precision precision_for(DType compute) {
  Precision precision;
  precision.compute = compute;
  switch (compute) {
    case DType::fp16:
      precision.other = precision.gradients = precision.reduction = DType::fp16;
      precision.loss_scaling = true;
      break;
    case DType::fp32:
    case DType::tf32:
      precision.other = DType::fp32;
      precision.master_weights = false;
      break;
    default: break;
  }
  return precision;
}

std::int64_t Layout::world_size() const {
  return degrees.tensor * degrees.context * degrees.data * degrees.pipeline;
}

std::int64_t Layout::micro_batches() const {
  return batch.global_batch_sequences / (batch.micro_batch_sequences * degrees.data);
}

std::int64_t Layout::expert_data_parallel() const {
  return degrees.tensor * degrees.context * degrees.data / (expert_tensor_degree() * degrees.expert);
}

std::int64_t Layout::shard_group() const {
  if (sharding.kind == Sharding::none) return 1;
  return sharding.shard_group_size > 0 ? sharding.shard_group_size : degrees.data * degrees.context;
}

bool Layout::accumulates_gradients() const { return sharding.kind != Sharding::zero3 && micro_batches() > 1; }

LayerKey layer_key(const Layout& layout) {
  return {.tensor = layout.degrees.tensor,
          .context = layout.degrees.context,
          .expert = layout.degrees.expert,
          .expert_tensor = layout.expert_tensor_degree(),
          .pipeline = layout.layer.operator_launches ? layout.degrees.pipeline : 0,
          .micro_batch_sequences = layout.batch.micro_batch_sequences,
          .seq_len_tokens = layout.batch.seq_len_tokens,
          .accumulates_gradients = layout.accumulates_gradients(),
          .framework = layout.software.framework,
          .choices = layout.layer};
}

std::int64_t padded_vocab_size(const Transformer& model, const Layout& layout) {
  std::int64_t per_rank = layout.software.vocab_divisible_by;
  if (per_rank == 0) per_rank = rule_of(layout).sizes.vocabulary_multiple;
  const std::int64_t step = per_rank * layout.degrees.tensor;
  return (model.vocab_size + step - 1) / step * step;
}

std::vector<StageChunk> stage_chunks(const Transformer& model, const Layout& layout) {
  const std::int64_t stages = layout.degrees.pipeline, n_chunks = stages * layout.degrees.virtual_stages;
  const std::vector<std::int64_t>& said = layout.pipeline.layers_per_stage;
  const std::int64_t even = model.n_layers / n_chunks;
  std::vector<StageChunk> chunks;
  chunks.reserve(static_cast<std::size_t>(n_chunks));
  std::int64_t first = 0;
  for (std::int64_t v = 0; v < layout.degrees.virtual_stages; ++v) {
    const bool back = v > 0 && is_v_shaped(layout.pipeline.schedule);
    for (std::int64_t s = 0; s < stages; ++s) {
      const std::int64_t n = said.empty() ? even : said[chunks.size()];
      chunks.push_back({back ? stages - 1 - s : s, v, first, n});
      first += n;
    }
  }
  return chunks;
}

std::vector<std::int64_t> layers_counting_embedding_and_output(std::int64_t n_layers, std::int64_t n_chunks) {
  const bool ends_hold_no_layer = n_chunks == n_layers + 2;
  if (n_chunks < 1 || (n_layers < n_chunks && !ends_hold_no_layer)) return {};
  if (n_chunks == 1) return {n_layers};
  const std::int64_t units = n_layers + 2;
  std::vector<std::int64_t> layers(static_cast<std::size_t>(n_chunks), units / n_chunks);
  for (std::int64_t i = 0; i < units % n_chunks; ++i) ++layers[static_cast<std::size_t>(i)];
  --layers.front();
  --layers.back();
  // Chunks at the ends may consist of only the embedding or the output.
  const bool is_short =
      std::ranges::any_of(layers, [](std::int64_t n) { return n < 0; }) ||
      std::any_of(layers.begin() + 1, layers.end() - 1, [](std::int64_t n) { return n < 1; });
  if (is_short) return {};
  return layers;
}

std::string_view unmeasured_kind(bool has_experts, Framework framework, Sharding sharding,
                                 std::int64_t expert_parallel, PipelineSchedule schedule) {
  if (!has_experts) return {};
  // The published runs with sharded expert weights are those of PyTorch's FSDP with expert parallelism.
  const bool is_torch = rule_of(framework).sharding.published_with_experts;
  if (sharding == Sharding::zero3 && (expert_parallel == 1 || !is_torch))
    return is_torch ? "sharded experts without expert parallelism" : "experts with sharded weights";
  if (splits_backward(schedule) && schedule != PipelineSchedule::dual_pipe)
    return "a zero-bubble schedule with experts";
  return {};
}

bool is_recomputed(const Layout& layout, std::int64_t layer) {
  if (layout.layer.recompute.kind != Recompute::full) return false;
  if (layout.layer.recompute.layers_per_stage && layer >= *layout.layer.recompute.layers_per_stage)
    return false;
  const std::int64_t every = layout.layer.recompute.every_n_layers;
  return every == 1 || (layer + 1) % every == 0;  // the test for 1 avoids a division in the common case
}

}  // namespace stepcast
