#include "stepcast/plan/layout_rules.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {
namespace {

using Kind = LayoutVerdict::Kind;

// Verdicts of points that cannot run, and of duplicates.
LayoutVerdict refused(std::string reason, std::string example = {}, std::string cure = {}) {
  return {Kind::refused, std::move(reason), std::move(example), std::move(cure)};
}
LayoutVerdict same(std::string reason) { return {Kind::same, std::move(reason), {}, {}}; }

// Splits an Error of the form "problem; advice" into reason and cure.
LayoutVerdict refused_by(const Error& error) {
  std::string message = error.message();
  if (const std::size_t colon = message.find(": "); colon < 40)
    message.erase(0, colon + 2);  // the field name; the sentence repeats it
  const std::size_t advice = message.find("; ");
  if (advice == std::string::npos) return refused(std::move(message));
  return refused(message.substr(0, advice), {}, message.substr(advice + 2));
}

// Micro-batches of one step per data-parallel rank.
std::int64_t micro_batches(const LayoutPoint& point, const LayoutPrototypes& prototypes) {
  return prototypes.global_batch() / (std::int64_t{point.micro_batch} * point.data);
}

// The multiples of `step` around `wanted`, as text: "96 or 128".
std::string nearest_multiples(std::int64_t step, std::int64_t wanted) {
  const std::int64_t below = wanted / step * step;
  return below == 0 ? std::to_string(step) : fmt::format("{} or {}", below, below + step);
}

}  // namespace

LayoutVerdict check_degrees(LayoutPoint& point, const LayoutSpace& space,
                            const LayoutPrototypes& prototypes) {
  const std::int64_t replica = std::int64_t{point.tensor} * point.pipeline * point.context;
  if (space.n_gpus % replica != 0) {
    LayoutVerdict verdict =
        refused(fmt::format("{} GPUs are not divisible by tensor x pipeline x context", space.n_gpus),
                fmt::format("{} x {} x {} = {}", point.tensor, point.pipeline, point.context, replica),
                fmt::format("--gpus {}", nearest_multiples(replica, space.n_gpus)));
    verdict.is_of_degrees = true;
    return verdict;
  }
  point.data = static_cast<std::int32_t>(space.n_gpus / replica);
  if (point.expert_tensor == point.tensor &&
      std::ranges::find(space.expert_tensor, 0) != space.expert_tensor.end()) {
    return same("duplicate: --etp equal to --tp");
  }
  Layout layout = prototypes.layout(point);
  // Only the degrees are under test here: neutral values for everything else.
  layout.layer.sequence_parallel = false;
  layout.batch.micro_batch_sequences = 1;
  layout.batch.global_batch_sequences = point.data;
  if (const Status status = check(layout, prototypes.model(), space.n_gpus); !status.ok())
    return refused_by(status.error());
  return {};
}

LayoutVerdict check_batch(const LayoutPoint& point, const LayoutPrototypes& prototypes) {
  const std::int64_t step = std::int64_t{point.micro_batch} * point.data, batch = prototypes.global_batch();
  if (batch % step != 0) {
    return refused(
        fmt::format("{} sequences per step are not divisible by micro-batch x data parallel", batch),
        fmt::format("{} x {} = {}", point.micro_batch, point.data, step),
        fmt::format("--gbs {}", nearest_multiples(step, batch)));
  }
  // Without gradient accumulation every rank processes its sequences in one pass.
  if (batch > step && point.pipeline == 1 && !adds_up_gradients(prototypes.software())) {
    return refused(fmt::format("{} before its first release with gradient accumulation",
                               to_string(prototypes.framework())),
                   fmt::format("{} sequences on {} data-parallel ranks", batch, point.data),
                   fmt::format("--gbs {}", step));
  }
  // Limit that keeps schedules small enough to evaluate.
  constexpr std::int64_t kMost = 8192;
  if (batch / step > kMost) {
    return refused(fmt::format("more than {} micro-batches per step", kMost),
                   fmt::format("{} with micro-batch {} on {} data-parallel ranks", batch / step,
                               point.micro_batch, point.data),
                   "a larger --mbs");
  }
  return {};
}

LayoutVerdict check_stages(const LayoutPoint& point, const LayoutPrototypes& prototypes) {
  if (point.schedule == PipelineSchedule::one_f_one_b && point.virtual_stages == 1) return {};
  // Chunks and other schedules have no effect without pipeline stages.
  if (point.pipeline == 1) return same("a pipeline schedule without a pipeline");
  const std::int64_t batches = micro_batches(point, prototypes);
  if (point.schedule == PipelineSchedule::dual_pipe && (point.pipeline % 2 != 0 || batches % 2 != 0)) {
    return refused(
        "DualPipe feeds half of the micro-batches from each end: stages and micro-batches must be even",
        fmt::format("{} micro-batches, {} stages", batches, point.pipeline));
  }
  if (point.virtual_stages == 1) return {};
  const std::int64_t layers = prototypes.model().n_layers;
  if (!divides_into_chunks(layers, point.pipeline, point.virtual_stages)) {
    return refused(fmt::format("{} layers, with or without embedding and output as layers, do not divide "
                               "into pipeline x virtual stages",
                               layers),
                   fmt::format("{} x {} = {}", point.pipeline, point.virtual_stages,
                               std::int64_t{point.pipeline} * point.virtual_stages),
                   "fewer virtual stages, or uneven ones (--pipeline-model-parallel-layout)");
  }
  if (point.schedule == PipelineSchedule::interleaved && batches % point.pipeline != 0) {
    return refused("interleaving needs micro-batches in multiples of the pipeline stages",
                   fmt::format("{} micro-batches, {} stages", batches, point.pipeline),
                   fmt::format("--gbs {}", nearest_multiples(
                                               std::int64_t{point.micro_batch} * point.data * point.pipeline,
                                               prototypes.global_batch())));
  }
  return {};
}

LayoutVerdict check_layers(const LayoutPoint& point, const LayoutSpace& space,
                           const LayoutPrototypes& prototypes) {
  if (point.sequence_parallel) {
    if (point.tensor == 1) {
      if (space.sequence_parallel.size() > 1) return same("sequence parallelism without tensor parallelism");
    } else if (prototypes.seq_len() / point.context % point.tensor != 0) {
      return refused("sequence parallelism: tokens of a rank are not divisible by tensor parallel",
                     fmt::format("{} tokens, {}", prototypes.seq_len() / point.context, point.tensor));
    }
  } else if (prototypes.model().moe && point.tensor > 1 &&
             rule_of(prototypes.framework()).search.has_megatron_flags) {
    return refused("Megatron-LM needs sequence parallelism for tensor parallelism of a model with experts",
                   {}, "--sequence-parallel");
  }
  if (point.recompute == Recompute::selective) {
    // Selective recomputation repeats only the attention core. Fused attention already recomputes it, so nothing remains.
    const LayerChoices& layer = prototypes.layout(point).layer;
    RecomputedModules core;
    const bool has_none =
        std::ranges::find(space.recomputations, Recompute::none) != space.recomputations.end();
    if (has_none && layer.recompute.modules == core && attention_is_fused(prototypes.model(), layer))
      return same("selective recomputation with fused attention: nothing to recompute");
  }
  return {};
}

LayoutVerdict check_sharding(const LayoutPoint& point, const LayoutSpace& space,
                             const LayoutPrototypes& prototypes) {
  const DataSharding& sharding = point.sharding;
  // Experts with a smaller tensor-parallel degree are replicated over several tensor-parallel ranks, which can share them.
  const std::int64_t expert_tensor = point.expert_tensor == 0 ? point.tensor : point.expert_tensor;
  const std::int64_t ranks = std::int64_t{point.data} * point.context;
  const bool shares_experts = prototypes.model().moe && ranks * point.tensor > expert_tensor * point.expert;
  if (ranks == 1 && !shares_experts) {
    if (sharding == space.shardings.front() && sharding.nodes == 0) return {};
    // FSDP keeps extra copies of weights and gradients even on one rank.
    if (sharding.kind == Sharding::zero3) return refused("sharded weights without data-parallel ranks");
    return same("sharding without data-parallel ranks");
  }
  if (sharding.kind == Sharding::none) return {};
  if (point.pipeline > 1 && sharding.kind == Sharding::zero2) {
    return refused("ZeRO-2 with a pipeline: gradients are not sharded before the last micro-batch", {},
                   "--sharding zero1");
  }
  const Framework framework = prototypes.framework();
  if (point.pipeline > 1 && sharding.kind == Sharding::zero3 &&
      !rule_of(framework).sharding.shards_weights()) {
    return refused(fmt::format("sharded weights with a pipeline: not supported by {}", to_string(framework)),
                   {}, "--sharding zero1");
  }
  if (sharding.nodes == 0) return {};
  // Hybrid sharding needs several groups of several ranks each.
  if (prototypes.shard_group(point) < 0) {
    return refused(
        "hybrid sharding: the ranks of N nodes must be some, not all, of the data-parallel ranks, and divide "
        "them",
        fmt::format("{}, data x context {}", to_string(sharding), point.data * point.context),
        "--sharding zero3");
  }
  return {};
}

}  // namespace stepcast
