#include "stepcast/workload/memory.h"

#include <algorithm>

#include "stepcast/base/names.h"
#include "stepcast/base/number.h"
#include "stepcast/base/units.h"
#include "stepcast/workload/detail/activation_count.h"
#include "stepcast/workload/detail/narrow_types.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/network.h"
#include "stepcast/workload/optimizer_work.h"
#include "stepcast/workload/pipeline_schedule.h"

// Memory of pipeline stages: states by sharding, activations per chunk and schedule, and working memory of
// the largest layer or the loss.

namespace stepcast {
namespace {

using detail::ActivationCount;
using detail::KeptActivations;

// CUDA context, kernels and library handles of one process. Assumed.
constexpr double kContextBytes = 0.6 * kGiB;
// Buffers of NCCL per communicator. Assumed.
constexpr double kCommunicatorBytes = 0.15 * kGiB;
// Share of allocated memory that the caching allocator cannot reuse. Assumed.
constexpr double kFragmentation = 0.03;
// Additional fragmentation of TorchTitan's pipelines, as a share of activations and working memory: those of
// several micro-batches are freed in another order than they were allocated. Near the smallest of six
// measured peaks of reserved memory (8 to 23 % above the counted total). Other frameworks were not measured;
// runs of Megatron fit without room for this fragmentation (they use expandable segments).
constexpr double kHolesOfPipelines = 0.09;
// Share of a layer's activations that gradients of its tensors take during its backward. Assumed.
constexpr double kBackwardWorkingShare = 0.25;
// Layers with activations on the device despite offloading: the running one, one being copied out and one
// being copied back.
constexpr double kOffloadedLayersHere = 3;
// Above this share of the memory a run may fail: allocator retries, transient peaks.
constexpr double kTightShare = 0.92;

// Bytes per layer parameter in addition to its 16-bit weight (negative: fewer). Transformer Engine keeps
// narrow copies of the weights over the micro-batches of a step, one in the orientation of the forward GEMM
// and one for the gradients. Weights that are kept only in the narrow type (--fp8-param-gather) have both
// orientations and no 16-bit copy. The same holds for frozen weights, which are never updated in 16 bits;
// they keep one orientation where the other can be derived from it, which block scales along one axis
// prevent. With larger estimates, MLPerf's runs on eight GPUs would not fit.
double bytes_of_narrow_copies(const Precision& precision, bool frozen) {
  if (!detail::is_narrow(precision.compute)) return 0;
  const bool is_fp4 = precision.compute == DType::fp4;
  const double narrow = is_fp4 ? 0.5 : 1;
  constexpr double kSixteenBit = 2;
  if (frozen) {
    const bool along_one_axis = is_fp4 || precision.fp8.scaling == Fp8Scaling::mxfp8;
    return (along_one_axis ? 2 : 1) * narrow - kSixteenBit;
  }
  return 2 * narrow - (precision.fp8.gather_weights ? kSixteenBit : 0);
}

}  // namespace

std::string_view to_string(MemoryVerdict verdict) {
  return name_of<MemoryVerdict::does_not_fit>(verdict, {"fits", "tight", "does not fit"});
}

Bytes layer_activations(const Transformer& model, const Layout& layout, std::int64_t layer) {
  const ActivationCount count{model, layout, kept_imbalance(layout.layer)};
  return Bytes{KeptActivations{count, model, layout}.whole(layer)};
}

Result<MemoryForecast> memory_forecast(const Transformer& model, const Layout& layout, Bytes available) {
  STEPCAST_ASSIGN(const StepWork work, step_work(model, layout));
  return memory_forecast(work, model, layout, available);
}

namespace {

// Parameters of a stage under fully sharded data parallelism: all, trained, and the largest units.
struct FsdpParameters {
  double all = 0, trained = 0, largest_layer = 0, largest_trained_layer = 0, outside_layers = 0;
  double largest_chunk = 0;  // of trained parameters
};

// Memory of fully sharded data parallelism in addition to the shards.
struct FsdpBuffers {
  double all_through = 0;           // bytes of gathered weights and gather buffers, over the whole step
  double of_a_layer = 0;            // bytes during the backward of a layer
  double unreduced_parameters = 0;  // parameters with unreduced gradients, whole and in the reduction type
};

FsdpBuffers fsdp_buffers(const StepWork& work, const Layout& layout, const FsdpParameters& parameters,
                         double weight) {
  FsdpBuffers buffers;
  // Layers may be gathered in 8 bits and stay in that type.
  const Precision& precision = layout.layer.precision;
  const double gathered = detail::is_narrow(precision.compute) && precision.fp8.gather_weights ? 1 : weight;
  const WeightGathers gathers = rule_of(layout).memory.gathers;
  const bool fsdp2 = gathers == WeightGathers::fsdp2;
  const double reduced = element_size(precision.reduction).value();
  // The gradient of a layer, and two copies in the reduction type: one being sent, one being filled.
  buffers.of_a_layer = parameters.largest_trained_layer * (weight + (fsdp2 ? 2 * reduced : 0));
  // Two layers are gathered at a time. The root of the model is gathered once, with everything outside of
  // layers: embedding, last norm, vocabulary layer (`_lazy_init` of fully_shard; FSDP 1 does the same;
  // DeepSpeed frees weights after use).
  const double root = gathers != WeightGathers::freed ? parameters.outside_layers * weight : 0;
  const double layers = 2 * parameters.largest_layer * gathered;
  // FSDP 2 gathers into buffers of a separate stream and copies the result to its place; the allocator does
  // not reuse memory across streams.
  const double staging = fsdp2 ? std::max(root, layers) : 0;
  if (work.stages == 1) {
    buffers.all_through = root + (fsdp2 ? layers / 2 : layers) + staging;
    return buffers;
  }
  // With a pipeline, everything is gathered once, and the gradients of a chunk are reduced after its last
  // micro-batch. With one round of micro-batches, a chunk is finished before the previous one starts its
  // backward.
  buffers.all_through =
      (parameters.all - parameters.outside_layers) * gathered + parameters.outside_layers * weight + staging;
  const bool one_round = work.virtual_stages > 1 && work.micro_batches <= work.stages;
  buffers.unreduced_parameters = one_round ? parameters.largest_chunk : parameters.trained;
  return buffers;
}

// Logits, their copies and gradients at the memory peak of the loss. With full recomputation, 16-bit logits
// reuse the memory of the dropped activations of a layer; the later fp32 tensors are too large for the rest
// of that memory.
double loss_working(const ActivationCount& count, const Layout& layout, double vocab) {
  const double logits = count.logits(vocab);
  const double bytes = logits * loss_bytes_per_logit(layout.software, layout.layer.fused,
                                                     layout.degrees.tensor > 1, count.element());
  const double left = layout.layer.recompute.kind == Recompute::full ? count.forward_leaves() : 0;
  return bytes + std::max(0.0, left - logits * count.element()) + count.gathered_head_input();
}

// PyTorch's pipelining receives each micro-batch of a step into a separate buffer, for activations and
// gradients, and keeps results until their backward, on the last stage until the end of the step
// (`PipelineStage`).
double pipeline_buffers(const ActivationCount& count, const StepWork& work, const Transformer& model,
                        const Layout& layout, std::uint32_t stage, std::uint32_t held, bool has_head) {
  if (!rule_of(layout).memory.torch_pipelining || work.stages == 1) return 0;
  const double micro_batches = work.micro_batches;
  const double to_come = std::max(0.0, micro_batches - held);  // those in progress are kept activations
  double bytes = stage > 0 ? to_come * count.hidden() : 0;
  if (!has_head) return bytes + (micro_batches + held) * count.hidden();
  bytes += (micro_batches - 1) * count.logits(as_double(padded_vocab_size(model, layout))) * count.element();
  return bytes;
}

// Counts the activations of all chunks where the busiest rank has `imbalance` times the mean load of experts.
class ChunkCounter {
 public:
  ChunkCounter(const StepWork& work, const Transformer& model, const Layout& layout, double imbalance)
      : work_(work),
        model_(model),
        layout_(layout),
        count_{model, layout, imbalance},
        kept_{count_, model, layout},
        count_without_{model, layout, 0},
        chunks_(stage_chunks(model, layout)) {
    if (model.moe) kept_without_.emplace(count_without_, model, layout);
  }

  void count(std::vector<ChunkActivations>& of_chunks) const {
    of_chunks.clear();
    of_chunks.reserve(chunks_.size());
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      // A search calls this for every chunk of every layout, and most chunks have the same layers as the
      // previous one.
      const bool again = c > 0 && work_.chunks[c] == work_.chunks[c - 1];
      of_chunks.push_back(again ? of_chunks.back() : kept_by(c));
      of_chunks.back().as_before = again;
    }
  }

 private:
  // Activations of chunk `c`, with the layers of further predictions on the last one.
  [[nodiscard]] ChunkActivations kept_by(std::size_t c) const {
    ChunkActivations kept;
    const auto keep = [&](std::int64_t layer, std::int64_t in_chunk) {
      const double bytes = kept_.of(layer, in_chunk);
      kept.bytes += bytes;
      const double offloaded = kept_.offloaded(layer, in_chunk);
      kept.offloaded += offloaded;
      kept.offloaded_layer = std::max(kept.offloaded_layer, offloaded);
      if (kept_without_) kept.dispatched += bytes - kept_without_->of(layer, in_chunk);
    };
    for (std::int64_t i = 0; i < chunks_[c].n_layers; ++i) {
      const std::int64_t layer = chunks_[c].first_layer + i;
      keep(layer, i);
      kept.one_layer = std::max(kept.one_layer, kept_.whole(layer));
    }
    const std::int64_t further = work_.chunks[c].has_head ? model_.n_multi_token_prediction_layers : 0;
    for (std::int64_t i = 0; i < further; ++i)
      for (const std::int64_t like : layers_of_further_prediction(model_))
        keep(like, chunks_[c].n_layers + i);
    if (work_.chunks[c].has_embedding && model_.hidden_dropout > 0) kept.bytes += count_.norm_mask();
    if (work_.chunks[c].has_embedding && model_.tower && !layout_.layer.frozen_base)
      kept.bytes += (recomputes_tower(layout_) ? model_.tower->inputs() : model_.tower->kept()) *
                    count_.element() * as_double(model_.tower->images * layout_.batch.micro_batch_sequences);
    return kept;
  }

  const StepWork& work_;
  const Transformer& model_;
  const Layout& layout_;
  const ActivationCount count_;
  const KeptActivations kept_;
  const ActivationCount count_without_;          // without tokens at experts
  std::optional<KeptActivations> kept_without_;  // none without experts, since no token is dispatched
  const std::vector<StageChunk> chunks_;
};

// The memory of all stages, from the activations of their chunks.
class StageMemories {
 public:
  StageMemories(const StepWork& work, const Transformer& model, const Layout& layout,
                const PipelineShape& shape, double imbalance, std::span<const ChunkActivations> kept_by_chunk)
      : work_(work),
        model_(model),
        layout_(layout),
        precision_(layout.layer.precision),
        shape_(shape),
        count_{model, layout, imbalance},
        shards_(optimizer_shards(layout)),
        parts_(mirrored() ? 2 : as_double(layout.degrees.virtual_stages)),
        weight_(sixteen_bit() ? 2 : 4),
        master_(sixteen_bit() && precision_.master_weights ? element_size(precision_.master).value() : 0),
        kept_by_chunk_(kept_by_chunk) {}

  [[nodiscard]] std::vector<StageMemory> all() const {
    std::vector<StageMemory> stages;
    stages.reserve(work_.stages);
    Held held;
    for (std::uint32_t s = 0; s < work_.stages; ++s) {
      if (!holds_as_before(s)) held = held_by(s);
      stages.push_back(of(s, held));
    }
    return stages;
  }

 private:
  // Expert parameters that FSDP gathers: none where a rank has them alone and in the compute type, since they
  // stay in place.
  [[nodiscard]] double travelling(double expert_parameters) const {
    return shards_.expert > 1 || held() > weight_ ? expert_parameters : 0;
  }
  // Bytes per parameter of the sharded copy that FSDP keeps, and of its gradient.
  [[nodiscard]] double held() const { return master_ > 0 ? master_ : weight_; }

  // Sums and maxima over the chunks of a stage.
  struct Sums {
    TrainedParameters trained;
    double all_dense = 0, all_expert = 0;
    double largest_trained_layer = 0, in_layers = 0;
    // Maxima of the parameters that FSDP gathers and reduces.
    double travelling_layer = 0, travelling_chunk = 0;
    double trained_travelling_layer = 0;
    double one_layer = 0, offloaded_layer = 0;
    double dequantised = 0;  // bytes of the largest frozen weight
    bool has_head = false;
  };

  // DualPipe: a rank processes half of the micro-batches of its stage and half of those of its mirror stage.
  [[nodiscard]] bool mirrored() const { return layout_.pipeline.schedule == PipelineSchedule::dual_pipe; }
  // GEMM operands have at most 16 bits.
  [[nodiscard]] bool sixteen_bit() const {
    return precision_.compute != DType::fp32 && precision_.compute != DType::tf32;
  }

  // Calls `function` with the index of each chunk that a rank of `stage` has.
  template <class Function>
  void for_chunks(std::uint32_t stage, Function function) const {
    if (!mirrored()) {
      for (std::uint32_t i = 0; i < work_.virtual_stages; ++i)
        function(std::size_t{chunk_of_stage(layout_.pipeline.schedule, work_.stages, stage, i)});
      return;
    }
    const std::uint32_t mirror = work_.stages - 1 - stage;
    function(std::size_t{std::min(stage, mirror)});
    if (mirror != stage) function(std::size_t{std::max(stage, mirror)});
  }

  // Whether every chunk of the stage equals that of the previous stage.
  [[nodiscard]] bool holds_as_before(std::uint32_t stage) const {
    bool as_before = stage > 0 && !mirrored() && !is_v_shaped(layout_.pipeline.schedule);
    if (as_before) for_chunks(stage, [&](std::size_t c) { as_before &= kept_by_chunk_[c].as_before; });
    return as_before;
  }

  // Adds chunk `c` to the sums.
  void add(std::size_t c, Sums& sums) const {
    const ChunkWork& chunk = work_.chunks[c];
    sums.all_dense += chunk.dense_parameters;
    sums.all_expert += chunk.expert_parameters;
    sums.travelling_chunk = std::max(
        sums.travelling_chunk, chunk.trained_dense_parameters + travelling(chunk.trained_expert_parameters));
    sums.trained.dense += chunk.trained_dense_parameters;
    sums.trained.expert += chunk.trained_expert_parameters;
    add_weight_matrices(model_, layout_, work_, chunk, sums.trained);
    sums.has_head = sums.has_head || chunk.has_head;
    for (const ChunkWork::Run& run : chunk.runs) {
      const LayerWork& layer = *work_.layer_kinds[run.kind];
      const double parameters = layer.dense_parameters + layer.expert_parameters;
      sums.largest_trained_layer = std::max(sums.largest_trained_layer,
                                            layer.trained_dense_parameters + layer.trained_expert_parameters);
      sums.travelling_layer =
          std::max(sums.travelling_layer, layer.dense_parameters + travelling(layer.expert_parameters));
      sums.trained_travelling_layer =
          std::max(sums.trained_travelling_layer,
                   layer.trained_dense_parameters + travelling(layer.trained_expert_parameters));
      sums.dequantised = std::max(sums.dequantised, layer.dequantised_bytes);
      sums.in_layers += parameters * run.count;
    }
    sums.one_layer = std::max(sums.one_layer, kept_by_chunk_[c].one_layer);
    sums.offloaded_layer = std::max(sums.offloaded_layer, kept_by_chunk_[c].offloaded_layer);
  }

  // Working memory in bytes: during one layer, and over the whole step.
  struct Working {
    double of_a_layer = 0, all_through = 0;
  };

  // The memory of a stage that does not depend on the micro-batches in progress.
  struct Held {
    StageMemory memory;
    Working working;
    double of_the_loss = 0, offloaded_layer = 0;
    bool has_head = false;
  };

  // Fills weights, gradients and optimizer states by kind of sharding, with the buffers that sharding needs.
  void set_states(const Sums& sums, StageMemory& m, Working& working) const {
    const bool sharded = layout_.sharding.kind != Sharding::none;
    const double trained = sums.trained.dense + sums.trained.expert;
    const auto share = [&](double per_parameter) {  // of trained parameters
      return per_parameter * (sums.trained.dense / shards_.dense + sums.trained.expert / shards_.expert);
    };
    const double states = layout_.optimizer.cpu_offload ? 0 : 1;
    const double gradient = element_size(precision_.gradients).value();
    const double all = sums.all_dense + sums.all_expert;
    if (layout_.sharding.kind == Sharding::zero3) {
      // zero3: one sharded copy, cast while it is gathered; gradients have its type.
      const double frozen = sums.all_dense / shards_.dense + sums.all_expert / shards_.expert - share(1);
      m.weights = Bytes{share(held()) + frozen * weight_};
      const FsdpBuffers fsdp = fsdp_buffers(work_, layout_,
                                            {.all = sums.all_dense + travelling(sums.all_expert),
                                             .trained = sums.trained.dense + travelling(sums.trained.expert),
                                             .largest_layer = sums.travelling_layer,
                                             .largest_trained_layer = sums.trained_travelling_layer,
                                             .outside_layers = all - sums.in_layers,
                                             .largest_chunk = sums.travelling_chunk},
                                            weight_);
      const double whole = element_size(precision_.reduction).value();
      m.gradients = Bytes{share(held()) + fsdp.unreduced_parameters * whole};
      working.all_through += fsdp.all_through;
      working.of_a_layer += fsdp.of_a_layer;
    } else {
      const double master_bytes = sharded ? share(master_) : master_ * trained;
      const double narrow_copies = bytes_of_narrow_copies(precision_, layout_.layer.frozen_base);
      m.weights = Bytes{weight_ * all + narrow_copies * sums.in_layers + states * master_bytes};
      const bool cut = layout_.sharding.kind == Sharding::zero2;
      m.gradients = Bytes{cut ? share(gradient) : gradient * trained};
      if (cut) working.of_a_layer += sums.largest_trained_layer * gradient;
    }
    if (layout_.layer.reference_model && !layout_.layer.frozen_base)
      m.weights += Bytes{weight_ * (layout_.sharding.kind == Sharding::zero3 ? share(1) : all)};
    m.optimizer = Bytes{states * optimizer_state_bytes(layout_, sums.trained)};
  }

  [[nodiscard]] Held held_by(std::uint32_t stage) const {
    Sums sums;
    for_chunks(stage, [&](std::size_t c) { add(c, sums); });
    Held held;
    StageMemory& m = held.memory;
    set_states(sums, m, held.working);
    // During the backward of a layer, its recomputed activations and the gradients of its tensors are in
    // memory.
    const bool recomputed = layout_.layer.recompute.kind == Recompute::full;
    held.working.of_a_layer += count_.gathered_in_backward() + sums.dequantised +
                               (recomputed ? sums.one_layer : kBackwardWorkingShare * sums.one_layer);
    // Layers that predict further tokens keep separate logits until the backward pass.
    const double losses = as_double(1 + model_.n_multi_token_prediction_layers);
    held.has_head = sums.has_head;
    if (sums.has_head)
      held.of_the_loss =
          losses * loss_working(count_, layout_, as_double(padded_vocab_size(model_, layout_)));
    held.working.all_through += workspace_bytes(layout_.software.framework);
    const Degrees& degrees = layout_.degrees;
    const double groups = 1 + (degrees.tensor > 1 ? 1 : 0) + (degrees.pipeline > 1 ? 2 : 0) +
                          (degrees.context > 1 ? 1 : 0) + (degrees.expert > 1 ? 1 : 0);
    m.communication = Bytes{layout_.world_size() > 1 ? groups * kCommunicatorBytes : 0};
    m.context = Bytes{kContextBytes};
    held.offloaded_layer = sums.offloaded_layer;
    return held;
  }

  // The stage at its peak: adds the activations of the micro-batches in progress.
  [[nodiscard]] StageMemory of(std::uint32_t s, const Held& by) const {
    StageMemory m = by.memory;
    const std::uint32_t held = peak_activations_held(shape_, s);
    m.micro_batches_held = held;
    // Micro-batches per chunk: with interleaving, groups of `stages` micro-batches for one chunk after the
    // other; in a V about equal numbers for both.
    const std::uint32_t stages = work_.stages, round = stages * work_.virtual_stages;
    const std::uint32_t whole_rounds = held / round, in_round = held % round;
    const bool even = mirrored() || is_v_shaped(layout_.pipeline.schedule);
    std::uint32_t before = 0;
    double offloaded = 0;
    for_chunks(s, [&](std::size_t c) {
      const double micro_batches =
          even ? held / parts_
               : whole_rounds * stages + std::min(stages, std::max(in_round, before) - before);
      before += stages;
      m.activations += Bytes{kept_by_chunk_[c].bytes * micro_batches};
      m.dispatched += Bytes{kept_by_chunk_[c].dispatched * micro_batches};
      offloaded += kept_by_chunk_[c].offloaded * micro_batches;
    });
    m.activations += Bytes{std::min(offloaded, kOffloadedLayersHere * by.offloaded_layer)};
    const double buffers = pipeline_buffers(count_, work_, model_, layout_, s, held, by.has_head);
    m.working = Bytes{by.working.all_through + buffers + std::max(by.working.of_a_layer, by.of_the_loss)};
    m.reserve = Bytes{kFragmentation * m.allocated().value()};
    if (work_.stages > 1 && rule_of(layout_).memory.torch_pipelining)
      m.reserve += Bytes{kHolesOfPipelines * (m.activations + m.working).value()};
    return m;
  }

  const StepWork& work_;
  const Transformer& model_;
  const Layout& layout_;
  const Precision& precision_;
  const PipelineShape& shape_;
  const ActivationCount count_;
  const OptimizerShards shards_;
  const double parts_;            // chunks, or stages, that share the micro-batches in progress equally
  const double weight_, master_;  // bytes
  std::span<const ChunkActivations> kept_by_chunk_;
};

// The shape without one_more_forward: a forward pass that overlaps a backward pass uses the layers that the
// latter frees, so two micro-batches need the memory of one plus one layer.
PipelineShape shape_of(const StepWork& work, const Layout& layout) {
  return {layout.pipeline.schedule, work.stages, work.virtual_stages, work.micro_batches};
}

std::vector<StageMemory> stages_of(const StepWork& work, const Transformer& model, const Layout& layout,
                                   double imbalance, std::span<const ChunkActivations> kept) {
  const PipelineShape shape = shape_of(work, layout);
  return StageMemories{work, model, layout, shape, imbalance, kept}.all();
}

// None if tokens can be dropped or experts are not spread. Else the memory if all tokens of an
// expert-parallel group go to one rank, and the largest imbalance that fits.
std::optional<DroplessMemory> dropless_memory(const StepWork& work, const Transformer& model,
                                              const Layout& layout, const MemoryForecast& forecast) {
  if (!model.moe || layout.degrees.expert == 1 || layout.layer.expert_capacity_factor) return std::nullopt;
  const MixtureOfExperts& moe = *model.moe;
  const double ranks = as_double(layout.degrees.expert), top_k = as_double(moe.experts_per_token);
  const double local = as_double(moe.n_experts) / ranks;
  DroplessMemory dropless;
  dropless.worst_imbalance = std::max(1.0, ranks * std::min(local, top_k) / top_k);
  const double here = layout.layer.expert_imbalance, worst = dropless.worst_imbalance;
  std::vector<ChunkActivations> kept;
  ChunkCounter{work, model, layout, worst}.count(kept);
  const std::vector<StageMemory> stages = stages_of(work, model, layout, worst, kept);
  dropless.fits_to_imbalance = worst;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    dropless.totals.push_back(stages[s].total());
    const Bytes now = forecast.stages[s].total(), then = stages[s].total();
    if (then <= forecast.available || worst <= here) continue;
    // Memory is linear in the number of tokens.
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
  std::vector<ChunkActivations> kept;
  STEPCAST_TRY(count_activations(work, model, layout, kept));
  MemoryForecast forecast = even_memory_forecast(work, model, layout, available, kept);
  forecast.dropless = dropless_memory(work, model, layout, forecast);
  return forecast;
}

Status count_activations(const StepWork& work, const Transformer& model, const Layout& layout,
                         std::vector<ChunkActivations>& kept) {
  STEPCAST_TRY(check(shape_of(work, layout)));
  ChunkCounter{work, model, layout, kept_imbalance(layout.layer)}.count(kept);
  return Ok{};
}

MemoryForecast even_memory_forecast(const StepWork& work, const Transformer& model, const Layout& layout,
                                    Bytes available, std::span<const ChunkActivations> kept) {
  MemoryForecast forecast;
  forecast.available = available;
  forecast.stages = stages_of(work, model, layout, kept_imbalance(layout.layer), kept);
  for (std::uint32_t s = 0; s < work.stages; ++s)
    if (forecast.stages[s].total() > forecast.peak()) forecast.worst_stage = s;
  forecast.verdict = forecast.verdict_of(forecast.peak());
  return forecast;
}

}  // namespace stepcast
