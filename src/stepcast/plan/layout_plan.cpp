#include "stepcast/plan/layout_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/predict/step_model.h"

namespace stepcast {
namespace {

// A usual batch where nobody says one: four million tokens, and a sequence for every GPU.
constexpr std::int64_t kUsualBatchTokens = std::int64_t{1} << 22;

template <class Value, class Said>
void restrict_to(std::optional<std::vector<Value>>& list, const std::optional<Said>& said) {
  if (said && !list) list = std::vector<Value>{static_cast<Value>(*said)};
}

std::optional<Sharding> said_sharding(const JobSettings& s) {
  if (s.sharding) return s.sharding;
  if (s.fully_sharded.value_or(false)) return Sharding::zero3;
  if (s.zero_stage && *s.zero_stage >= 0 && *s.zero_stage <= 3) return static_cast<Sharding>(*s.zero_stage);
  if (s.distributed_optimizer) return *s.distributed_optimizer ? Sharding::zero1 : Sharding::none;
  return std::nullopt;
}

// What the job says by flags of one layout.
LayoutRestrictions restricted(const JobSettings& s, LayoutRestrictions list) {
  restrict_to(list.tensor, s.tensor);
  restrict_to(list.pipeline, s.pipeline);
  restrict_to(list.context, s.context);
  restrict_to(list.expert, s.expert);
  restrict_to(list.expert_tensor, s.expert_tensor);
  restrict_to(list.micro_batch, s.micro_batch_sequences);
  restrict_to(list.virtual_stages, s.virtual_stages);
  restrict_to(list.sequence_parallel, s.sequence_parallel);
  std::optional<Recompute> recompute = s.recompute;
  if (!recompute && s.recompute_by_block) recompute = Recompute::full;
  if (!recompute && s.recompute_modules) recompute = Recompute::selective;
  restrict_to(list.recomputations, recompute);
  if (const auto sharding = said_sharding(s); sharding && !list.shardings)
    list.shardings = std::vector{DataSharding{*sharding, 0}};
  if (!list.dtypes && s.fp8.value_or(false)) list.dtypes = std::vector{DType::fp8};
  if (!list.dtypes && s.fp4.value_or(false)) list.dtypes = std::vector{DType::fp4};
  return list;
}

// Settings that name one layout and leave a search nothing to do.
Status check_settings(const JobSettings& s) {
  const auto refuse = [](std::string_view flag) {
    return Error{fmt::format("{} says how layers are dealt out, which the search decides", flag)}.advice(
        "leave it out, or ask `stepcast predict`");
  };
  if (s.pipeline_layout) return refuse("--pipeline-model-parallel-layout");
  if (s.layers_per_virtual_stage) return refuse("--num-layers-per-virtual-pipeline-stage");
  if (s.first_stage_layers) return refuse("--decoder-first-pipeline-num-layers");
  if (s.last_stage_layers) return refuse("--decoder-last-pipeline-num-layers");
  if (s.data)
    return Error{"--data-parallel-size is what GPUs and the other degrees leave"}.advice("leave it out");
  return Ok{};
}

}  // namespace

Result<LayoutPlan> plan_layouts(const PlanRequest& request, const Platform& platform) {
  STEPCAST_TRY(check_settings(request.job.settings));
  if (request.n_gpus < 1) {
    return Error::at("", "--gpus").found(fmt::format("{}", request.n_gpus)).expected("1 or more");
  }
  Job job = request.job;
  job.n_gpus.reset();
  const LayoutRestrictions restrictions = restricted(job.settings, request.restrictions);

  // What the job comes to on one GPU: model, sequence length, types.
  STEPCAST_ASSIGN(
      const LayoutPrototypes plain,
      LayoutPrototypes::of(
          job, {{job.settings.dtype.value_or(DType::bf16)}, {DataSharding{}}, {Recompute::none}, {false}},
          platform.node.gpus_per_node));
  std::vector<std::string> notes = plain.notes();
  if (!job.settings.global_batch_sequences) {
    const std::int64_t batch = std::max(request.n_gpus, kUsualBatchTokens / plain.seq_len());
    job.settings.global_batch_sequences = batch;
    std::erase_if(notes, [](const std::string& note) { return note.starts_with("global batch"); });
    notes.push_back(fmt::format("global batch not given: {} sequences, {:.1f}M tokens", batch,
                                static_cast<double>(batch * plain.seq_len()) * 1e-6));
  }
  job.settings.seq_len_tokens = plain.seq_len();
  STEPCAST_ASSIGN(LayoutSpace space, layout_space(plain.model(), platform.device,
                                                  {.n_gpus = request.n_gpus,
                                                   .gpus_per_node = platform.node.gpus_per_node,
                                                   .global_batch = *job.settings.global_batch_sequences,
                                                   .seq_len = plain.seq_len(),
                                                   .framework = plain.framework(),
                                                   .dtype = job.settings.dtype.value_or(DType::bf16)},
                                                  restrictions));
  std::vector<bool> sequence_parallel = space.sequence_parallel;
  STEPCAST_ASSIGN(
      LayoutPrototypes prototypes,
      LayoutPrototypes::of(
          job, {space.dtypes, space.shardings, space.recomputations, std::move(sequence_parallel)},
          platform.node.gpus_per_node));
  const Bytes memory = request.memory_bytes ? Bytes{*request.memory_bytes} : platform.device.memory_size;
  LayoutPlan plan{std::move(prototypes), std::move(space), {}, {}, {}, {}, memory, std::move(notes)};
  STEPCAST_ASSIGN(plan.found, search_layouts(plan.space, plan.prototypes, platform,
                                             {memory, request.threads, request.assumptions}));
  StepModel steps{platform, request.assumptions};
  STEPCAST_ASSIGN(plan.ranking, rank_layouts(plan.found.priced, plan.prototypes, steps, memory, request.top));
  if (request.objective == PlanObjective::memory)
    plan.ranking.chosen = with_most_memory(plan.ranking.layouts);
  if (request.jitter.any()) {
    STEPCAST_ASSIGN(plan.jittered, jitter_layouts(plan.ranking, plan.prototypes, steps, request.jitter));
    plan.ranking.chosen = steadiest(plan.ranking, plan.jittered);
  }
  if (request.refines) {
    STEPCAST_ASSIGN(plan.refined, refine_layouts(plan.ranking, plan.prototypes, steps, memory));
  }
  return plan;
}

std::vector<PricedLayout> pareto_of(const std::vector<PricedLayout>& priced) {
  std::vector<PricedLayout> front;
  for (const PricedLayout& layout : priced) {
    if (front.empty() || layout.peak_bytes < front.back().peak_bytes) front.push_back(layout);
  }
  return front;
}

Error why_none(const LayoutPlan& plan) {
  const SearchedLayouts& found = plan.found;
  Error error{fmt::format("none of the {} layouts runs on {} GPU{}", found.n_layouts(), plan.space.n_gpus,
                          plan.space.n_gpus == 1 ? "" : "s")};
  const std::vector<LayoutRejection>& most = found.n_too_large > 0 ? found.too_large : found.rejections;
  if (most.empty()) return error;
  const LayoutRejection& first = most.front();
  if (found.n_too_large > 0) {
    return std::move(error)
        .found(fmt::format("{} that do not fit {:.1f} GiB; nearest: {}", found.n_too_large,
                           plan.memory.value() / kGiB, first.example))
        .advice("take more GPUs, a larger device, or wider lists of degrees, sharding and recomputation");
  }
  return std::move(error)
      .found(fmt::format("{}{}", first.reason, first.example.empty() ? "" : " (" + first.example + ")"))
      .advice(first.cure.empty() ? "change the restrictions or the number of GPUs"
                                 : "nearest: " + first.cure);
}

}  // namespace stepcast
