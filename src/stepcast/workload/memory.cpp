#include "stepcast/workload/memory.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "stepcast/base/units.h"
#include "stepcast/workload/detail/narrow_types.h"
#include "stepcast/workload/framework_habits.h"
#include "stepcast/workload/pipeline_schedule.h"

namespace stepcast {
namespace {

// CUDA context, kernels and library handles of one process. Assumed.
constexpr double kContextBytes = 0.6 * kGiB;
// Buffers of NCCL per communicator, and how many a rank has. Assumed.
constexpr double kCommunicatorBytes = 0.15 * kGiB;
// Share of what is allocated that the caching allocator cannot hand out again. Assumed.
constexpr double kFragmentation = 0.03;
// Share of a layer's activations that gradients of its tensors need while its backward runs. Assumed.
constexpr double kBackwardWorkingShare = 0.25;
// A forecast this close to the limit may fail: allocator retries, transient peaks.
constexpr double kTightShare = 0.92;

double number(std::int64_t value) { return static_cast<double>(value); }

// Sizes of one layer on one rank, in bytes of one micro-batch.
class ActivationCount {
 public:
  // `imbalance`: visits of the busiest rank over the mean of all.
  ActivationCount(const Transformer& model, const Layout& layout, double imbalance)
      : model_(model),
        imbalance_(imbalance),
        layout_(layout),
        element_(element_size(detail::is_narrow(layout.layer.precision.compute)
                                  ? layout.layer.precision.other
                                  : layout.layer.precision.compute)
                     .value()),
        tp_(number(layout.degrees.tensor)),
        tokens_(number(layout.batch.micro_batch_sequences) * number(layout.batch.seq_len_tokens) /
                number(layout.degrees.context)),
        norm_tokens_(layout.layer.sequence_parallel ? tokens_ / tp_ : tokens_) {}

  // A tensor of the width of the model where sequence parallelism spreads tokens.
  [[nodiscard]] double hidden() const { return norm_tokens_ * number(model_.hidden_size) * element_; }
  [[nodiscard]] double norm_mask() const { return norm_tokens_ * number(model_.hidden_size); }
  [[nodiscard]] double queries_keys_values() const {
    return tokens_ * element_ / tp_ *
           (number(model_.n_heads) * number(model_.qk_head_dim()) +
            number(std::max(model_.kv_heads(), model_.latent_attention ? model_.n_heads : 0)) *
                number(model_.qk_head_dim() + model_.value_head_dim()));
  }
  [[nodiscard]] double attention_output() const {
    return tokens_ * element_ / tp_ * number(model_.n_heads * model_.value_head_dim());
  }
  // Softmax, and with dropout its mask and its output.
  [[nodiscard]] double attention_core() const {
    if (attention_is_fused(model_, layout_.layer)) {
      return tokens_ * number(model_.n_heads) / tp_ * 4;  // log-sum-exp of every query and head
    }
    const double scores = number(layout_.batch.micro_batch_sequences * model_.n_heads) / tp_ *
                          number(layout_.batch.seq_len_tokens) * number(layout_.batch.seq_len_tokens) /
                          number(layout_.degrees.context);
    // Scores of distances are twice as many and are added up.
    const double relative = model_.position == PositionEncoding::relative ? 2 * element_ : 0;
    return scores * (element_ + relative + (model_.attention_dropout > 0 ? 1 + element_ : 0));
  }
  // What a linear layer keeps of its input: with fp8 one byte an element. TorchAO's keeps the input as it came and casts
  // it again (`Float8Linear`).
  [[nodiscard]] double linear_input(double bytes, bool fp8_linear) const {
    const bool narrow = fp8_linear && detail::is_narrow(layout_.layer.precision.compute) &&
                        layout_.software.framework != Framework::torchtitan;
    return narrow ? bytes / element_ : bytes;
  }
  // What an activation needs in the backward pass.
  [[nodiscard]] double activation_inputs(double bytes) const {
    return layout_.layer.narrow_activation_inputs ? bytes / element_ : bytes;
  }
  [[nodiscard]] double attention() const {
    return hidden() + linear_input(hidden(), layout_.layer.precision.fp8.attention_linears) +
           queries_keys_values() + attention_output() + attention_core() +
           (model_.hidden_dropout > 0 ? norm_mask() : 0);
  }
  [[nodiscard]] double ffn(bool experts) const {
    const double dropout = model_.hidden_dropout > 0 ? norm_mask() : 0;
    const double matrices = model_.gated_ffn ? 3 : 2;  // inputs and output of the activation
    if (!experts) {
      const double wide = tokens_ * number(model_.ffn_hidden_size) / tp_ * element_;
      const bool fp8 = layout_.layer.precision.fp8.ffn_linears;
      return hidden() + linear_input(hidden(), fp8) + dropout + activation_inputs((matrices - 1) * wide) +
             linear_input(wide, fp8);
    }
    const MixtureOfExperts& moe = *model_.moe;
    const double visits = tokens_ / tp_ * number(moe.experts_per_token) * imbalance_;
    double bytes = 2 * hidden() + dropout;
    // Tokens as they were received, inputs of the activation, its result. What was sent is not kept: its place is.
    const bool fp8 = layout_.layer.precision.fp8.ffn_linears;
    const double wide = visits * number(moe.expert_ffn_hidden_size) * element_;
    bytes += linear_input(visits * number(model_.hidden_size) * element_, fp8);
    bytes += activation_inputs((matrices - 1) * wide) + linear_input(wide, fp8);
    bytes += matrices * tokens_ * number(moe.n_shared_experts * moe.shared_ffn_hidden_size) / tp_ * element_;
    return bytes;
  }
  // What selective recomputation of `modules` does not keep.
  [[nodiscard]] double recomputed(const RecomputedModules& modules, bool experts) const {
    double bytes = 0;
    if (modules.core_attention && !attention_is_fused(model_, layout_.layer)) {
      bytes += attention_core();
    }
    // Results of the norms; their inputs stay.
    if (modules.norms) {
      bytes += linear_input(hidden(), layout_.layer.precision.fp8.attention_linears) +
               linear_input(hidden(), layout_.layer.precision.fp8.ffn_linears);
    }
    if (modules.latent_projections && model_.latent_attention) bytes += queries_keys_values();
    if (!experts) return bytes + (modules.ffn ? ffn(false) - hidden() : 0);
    const MixtureOfExperts& moe = *model_.moe;
    const double visits = tokens_ / tp_ * number(moe.experts_per_token) * imbalance_;
    const double wide = visits * number(moe.expert_ffn_hidden_size) * element_;
    if (modules.experts) return bytes + ffn(true) - hidden();
    // Its result, the input of the second product.
    if (modules.expert_activation) bytes += linear_input(wide, layout_.layer.precision.fp8.ffn_linears);
    if (modules.shared_experts) {
      bytes += (model_.gated_ffn ? 3 : 2) * tokens_ *
               number(moe.n_shared_experts * moe.shared_ffn_hidden_size) / tp_ * element_;
    }
    return bytes;
  }
  // Products of one layer, as kept by per-op selective recomputation: every second one.
  [[nodiscard]] double kept_products(bool experts) const {
    const double up =
        experts ? ffn(true)
                : tokens_ * number(model_.ffn_hidden_size) / tp_ * element_ * (model_.gated_ffn ? 2 : 1);
    return 0.5 * (queries_keys_values() + hidden() + up + hidden());
  }
  // Outputs of the loss: logits, their fp32 copy and its gradient.
  [[nodiscard]] double logits(double vocab) const {
    return tokens_ * vocab / tp_ *
           loss_bytes_per_logit(layout_.software, layout_.layer.fused.compiled, tp_ > 1, element_);
  }
  [[nodiscard]] double tokens() const { return tokens_; }

 private:
  const Transformer& model_;
  double imbalance_;
  const Layout& layout_;
  double element_, tp_, tokens_, norm_tokens_;
};

// Of a parameter inside a layer, beside its 16-bit weight: Transformer Engine keeps narrow copies of the weights over
// the micro-batches of a step, in the orientation of the forward product and in that of the gradients. Weights that are
// kept in the narrow type alone (--fp8-param-gather) have both orientations and no other copy.
double bytes_of_narrow_copies(const Precision& precision) {
  if (!detail::is_narrow(precision.compute)) return 0;
  const double narrow = precision.compute == DType::fp4 ? 0.5 : 1;
  constexpr double kSixteenBit = 2;
  return 2 * narrow - (precision.fp8.gather_weights ? kSixteenBit : 0);
}

// Activations of layers; those that are alike are counted once.
class KeptActivations {
 public:
  KeptActivations(const ActivationCount& count, const Transformer& model, const Layout& layout)
      : count_(count), model_(model), layout_(layout) {
    for (const bool experts : {false, true}) {
      if (experts && !model.moe) continue;
      whole_[experts] = count.attention() + count.ffn(experts);
      kept_[experts] = kept(experts);
    }
  }
  // Without recomputation.
  [[nodiscard]] double whole(std::int64_t layer) const { return whole_[model_.has_experts(layer)]; }
  // From forward to backward, by layer `in_chunk` of its chunk.
  [[nodiscard]] double of(std::int64_t layer, std::int64_t in_chunk) const {
    const std::int64_t offloaded = layout_.layer.activation_offload_layers;
    if (layout_.layer.activation_offload && (offloaded == 0 || in_chunk < offloaded)) return 0;
    if (is_recomputed(layout_, in_chunk)) return recomputed_;
    return kept_[model_.has_experts(layer)];
  }

 private:
  [[nodiscard]] double kept(bool experts) const {
    if (layout_.layer.recompute.kind == Recompute::selective_ops) {
      return count_.hidden() + count_.attention_output() + count_.attention_core() +
             count_.kept_products(experts);
    }
    if (layout_.layer.recompute.kind != Recompute::selective) return whole_[experts];
    return whole_[experts] - count_.recomputed(layout_.layer.recompute.modules, experts);
  }

  const ActivationCount& count_;
  const Transformer& model_;
  const Layout& layout_;
  std::array<double, 2> whole_{}, kept_{};  // [has experts]
  double recomputed_ =
      count_.hidden() / static_cast<double>(std::max<std::int64_t>(1, layout_.layer.recompute.chunk_layers));
};

}  // namespace

std::string_view to_string(MemoryVerdict verdict) {
  switch (verdict) {
    case MemoryVerdict::fits: return "fits";
    case MemoryVerdict::tight: return "tight";
    case MemoryVerdict::does_not_fit: return "does not fit";
  }
  return "fits";
}

Bytes layer_activations(const Transformer& model, const Layout& layout, std::int64_t layer) {
  const ActivationCount count{model, layout, kept_imbalance(layout.layer)};
  return Bytes{count.attention() + count.ffn(model.has_experts(layer))};
}

Result<MemoryForecast> memory_forecast(const Transformer& model, const Layout& layout, Bytes available) {
  STEPCAST_ASSIGN(const StepWork work, step_work(model, layout));
  return memory_forecast(work, model, layout, available);
}

namespace {

// All stages, where the busiest rank has `imbalance` times the mean.
std::vector<StageMemory> stages_of(const StepWork& work, const Transformer& model, const Layout& layout,
                                   const PipelineShape& shape, double imbalance) {
  const ActivationCount count{model, layout, imbalance};
  const KeptActivations kept{count, model, layout};
  // Without experts no token is dispatched, and a search asks this of every layer of every layout.
  const ActivationCount count_without{model, layout, 0};
  const KeptActivations without_tokens{count_without, model, layout};
  const bool has_experts = model.moe.has_value();
  const std::vector<StageChunk> chunks = stage_chunks(model, layout);
  const bool sixteen_bit =
      layout.layer.precision.compute != DType::fp32 && layout.layer.precision.compute != DType::tf32;
  const double weight = sixteen_bit ? 2 : 4;
  const double narrow_copies = bytes_of_narrow_copies(layout.layer.precision);
  const double master = sixteen_bit && layout.layer.precision.master_weights
                            ? element_size(layout.layer.precision.master).value()
                            : 0;
  const double moments = layout.optimizer.kind == OptimizerKind::sgd ? 0
                         : layout.optimizer.kind == OptimizerKind::momentum_sgd ||
                                 layout.optimizer.kind == OptimizerKind::adagrad
                             ? 1
                             : 2;
  const double moment = moments * element_size(layout.layer.precision.moments).value();
  const double gradient = element_size(layout.layer.precision.gradients).value();
  const bool sharded = layout.sharding.kind != Sharding::none;
  const double shards = sharded ? number(std::max<std::int64_t>(1, layout.shard_group())) : 1;
  const double expert_shards = sharded ? number(std::max<std::int64_t>(1, layout.expert_data_parallel())) : 1;

  std::vector<StageMemory> stages;
  stages.reserve(work.stages);
  for (std::uint32_t s = 0; s < work.stages; ++s) {
    double dense = 0, expert = 0, trained_dense = 0, trained_expert = 0, largest_layer = 0;
    double per_micro_batch = 0, dispatched = 0, one_layer = 0, in_layers = 0;
    bool has_head = false;
    // DualPipe: half of the micro-batches of its own stage, half of those of its mirror.
    const bool mirrored = layout.pipeline.schedule == PipelineSchedule::dual_pipe;
    const std::size_t step =
        mirrored ? std::max<std::size_t>(1, work.stages - 1 - 2 * std::min(s, work.stages - 1 - s))
                 : work.stages;
    for (std::size_t c = mirrored ? std::min(s, work.stages - 1 - s) : s; c < work.chunks.size(); c += step) {
      if (mirrored && c != s && c != work.stages - 1 - s) break;
      const ChunkWork& chunk = work.chunks[c];
      dense += chunk.dense_parameters;
      expert += chunk.expert_parameters;
      trained_dense += chunk.trained_dense_parameters;
      trained_expert += chunk.trained_expert_parameters;
      has_head = has_head || chunk.has_head;
      for (const ChunkWork::Run& run : chunk.runs) {
        const LayerWork& layer = *work.layer_kinds[run.kind];
        largest_layer = std::max(largest_layer, layer.dense_parameters + layer.expert_parameters);
        in_layers += (layer.dense_parameters + layer.expert_parameters) * run.count;
      }
      double of_chunk = 0;
      for (std::int64_t i = 0; i < chunks[c].n_layers; ++i) {
        const std::int64_t layer = chunks[c].first_layer + i;
        const double kept_bytes = kept.of(layer, i);
        of_chunk += kept_bytes;
        if (has_experts) dispatched += kept_bytes - without_tokens.of(layer, i);
        one_layer = std::max(one_layer, kept.whole(layer));
      }
      if (chunk.has_embedding && model.hidden_dropout > 0) of_chunk += count.norm_mask();
      per_micro_batch += of_chunk / (mirrored ? 2 : number(layout.degrees.virtual_stages));
    }
    StageMemory m;
    const auto share = [&](double per_parameter) {  // of what is trained
      return per_parameter * (trained_dense / shards + trained_expert / expert_shards);
    };
    const double frozen = dense / shards + expert / expert_shards - share(1);
    const double all = dense + expert, trained = trained_dense + trained_expert;
    const double states = layout.optimizer.cpu_offload ? 0 : 1;
    if (layout.sharding.kind == Sharding::zero3) {
      // FSDP keeps one sharded copy, in fp32, and casts it while it gathers.
      m.weights = Bytes{share(master > 0 ? master : weight) + frozen * weight};
      // With a pipeline they are reduced after the last micro-batch and whole until then, in the type they travel in
      // (FSDP2, `unsharded_accumulated_grad`).
      const double whole = element_size(layout.layer.precision.reduction).value();
      m.gradients = Bytes{work.stages > 1 ? trained * whole : share(sixteen_bit ? 4 : gradient)};
      // Two layers are gathered at a time, and one layer's whole gradient; with a pipeline all layers are.
      const double gathered = work.stages > 1 ? all : 2 * largest_layer;
      m.working += Bytes{gathered * weight + largest_layer * weight};
    } else {
      const double master_bytes = sharded ? share(master) : master * trained;
      m.weights = Bytes{weight * all + narrow_copies * in_layers + states * master_bytes};
      m.gradients = Bytes{layout.sharding.kind == Sharding::zero2 ? share(gradient) : gradient * trained};
      if (layout.sharding.kind == Sharding::zero2) m.working += Bytes{largest_layer * gradient};
    }
    m.optimizer = Bytes{states * (sharded ? share(moment) : moment * trained)};
    const std::uint32_t held = peak_activations_held(shape, s);
    m.micro_batches_held = held;
    m.activations = Bytes{per_micro_batch * held};
    m.dispatched = Bytes{dispatched / (mirrored ? 2 : number(layout.degrees.virtual_stages)) * held};
    // While a layer's backward runs, its recomputed activations and the gradients of its tensors are there.
    m.working +=
        Bytes{layout.layer.recompute.kind == Recompute::full ? one_layer : kBackwardWorkingShare * one_layer};
    if (has_head) {
      m.working = std::max(m.working, Bytes{count.logits(number(padded_vocab_size(model, layout)))});
    }
    const double groups = 1 + (layout.degrees.tensor > 1 ? 1 : 0) + (layout.degrees.pipeline > 1 ? 2 : 0) +
                          (layout.degrees.context > 1 ? 1 : 0) + (layout.degrees.expert > 1 ? 1 : 0);
    m.communication = Bytes{layout.world_size() > 1 ? groups * kCommunicatorBytes : 0};
    const Bytes allocated = m.weights + m.gradients + m.optimizer + m.activations + m.working;
    m.context = Bytes{kContextBytes};
    m.reserve = Bytes{kFragmentation * allocated.value()};
    stages.push_back(m);
  }
  return stages;
}

// What takes no token more than it was given: all of an expert-parallel group's could go to one rank.
std::optional<DroplessMemory> dropless_memory(const StepWork& work, const Transformer& model,
                                              const Layout& layout, const PipelineShape& shape,
                                              const MemoryForecast& forecast) {
  if (!model.moe || layout.degrees.expert == 1 || layout.layer.expert_capacity_factor) return std::nullopt;
  const MixtureOfExperts& moe = *model.moe;
  const double ranks = number(layout.degrees.expert), top_k = number(moe.experts_per_token);
  const double local = number(moe.n_experts) / ranks;
  DroplessMemory dropless;
  dropless.worst_imbalance = std::max(1.0, ranks * std::min(local, top_k) / top_k);
  const double here = layout.layer.expert_imbalance, worst = dropless.worst_imbalance;
  const std::vector<StageMemory> stages = stages_of(work, model, layout, shape, worst);
  dropless.fits_to_imbalance = worst;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    dropless.totals.push_back(stages[s].total());
    const Bytes now = forecast.stages[s].total(), then = stages[s].total();
    if (then <= forecast.available || worst <= here) continue;
    // Memory grows evenly with the tokens.
    const double slope = (then - now).value() / (worst - here);
    const double most = here + (forecast.available - now).value() / slope;
    dropless.fits_to_imbalance = std::min(dropless.fits_to_imbalance, most);
  }
  if (dropless.fits_to_imbalance < 1) dropless.fits_to_imbalance = 0;
  return dropless;
}

}  // namespace

MemoryVerdict MemoryForecast::verdict_of(Bytes total) const {
  const double used = total / available;
  return used > 1             ? MemoryVerdict::does_not_fit
         : used > kTightShare ? MemoryVerdict::tight
                              : MemoryVerdict::fits;
}

Result<MemoryForecast> memory_forecast(const StepWork& work, const Transformer& model, const Layout& layout,
                                       Bytes available) {
  const PipelineShape shape{layout.pipeline.schedule, work.stages, work.virtual_stages, work.micro_batches};
  STEPCAST_TRY(check(shape));
  MemoryForecast forecast;
  forecast.available = available;
  forecast.stages = stages_of(work, model, layout, shape, kept_imbalance(layout.layer));
  for (std::uint32_t s = 0; s < work.stages; ++s) {
    if (forecast.stages[s].total() > forecast.peak()) forecast.worst_stage = s;
  }
  forecast.verdict = forecast.verdict_of(forecast.peak());
  forecast.dropless = dropless_memory(work, model, layout, shape, forecast);
  return forecast;
}

}  // namespace stepcast
