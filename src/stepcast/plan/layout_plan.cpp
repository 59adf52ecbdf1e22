#include "stepcast/plan/layout_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/number.h"
#include "stepcast/base/units.h"
#include "stepcast/describe/ignored_settings.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/why_slower.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/workload/framework_behavior.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/network.h"

namespace stepcast {
namespace {

// Default tokens of a step if the user gives no batch.
constexpr std::int64_t kUsualBatchTokens = std::int64_t{1} << 22;
// Default sequences of a step of T5 1.1 (Raffel et al. 2020); default images per GPU and most images per step in training
// scripts of ResNet and ViT.
constexpr std::int64_t kUsualPairs = 2048, kUsualImages = 256, kMostImages = 32'768;

// A list of the search and a flag of a single layout disagree. Neither may silently win.
Error contradiction(std::string_view list, std::string_view flag) {
  return Error{fmt::format("{} and {} contradict each other", list, flag)}.advice("leave one of the two out");
}

// Restricts a list to a given value. `is` tests whether a value of the list equals the given one.
template <class Value, class Is>
Status restrict_to(std::optional<std::vector<Value>>& list, Value said, std::string_view list_flag,
                   std::string_view said_flag, const Is& is) {
  if (!list) list = std::vector<Value>{said};
  return std::ranges::all_of(*list, is) ? Status{Ok{}} : contradiction(list_flag, said_flag);
}

// The same for an optional setting; nothing to do if it is not set.
template <class Value, class Said>
Status restrict_to(std::optional<std::vector<Value>>& list, const std::optional<Said>& said,
                   std::string_view list_flag, std::string_view said_flag) {
  if (!said) return Ok{};
  const auto value = static_cast<Value>(*said);
  return restrict_to(list, value, list_flag, said_flag, [&](Value v) { return v == value; });
}

// The sharding set by flags of a single layout, and the flag.
struct SaidSharding {
  Sharding kind = Sharding::none;
  std::string_view flag;
};

// The first flag in order of precedence; empty: none given.
std::optional<SaidSharding> said_sharding(const JobSettings& s) {
  if (s.sharding) return SaidSharding{*s.sharding, "--data-parallel-sharding-strategy"};
  if (s.fully_sharded.value_or(false)) return SaidSharding{Sharding::zero3, "--use-megatron-fsdp"};
  if (s.zero_stage && *s.zero_stage >= 0 && *s.zero_stage <= 3)
    return SaidSharding{static_cast<Sharding>(*s.zero_stage), "--zero-stage"};
  if (s.distributed_optimizer)
    return SaidSharding{*s.distributed_optimizer ? Sharding::zero1 : Sharding::none,
                        "--use-distributed-optimizer"};
  return std::nullopt;
}

// The recomputation set by flags of a single layout, and the flag.
struct SaidRecompute {
  Recompute kind = Recompute::none;
  std::string_view flag;
};

std::optional<SaidRecompute> said_recompute(const JobSettings& s) {
  if (s.recompute) return SaidRecompute{*s.recompute, "--recompute-granularity"};
  if (s.checkpoint_layers.value_or(false)) return SaidRecompute{Recompute::full, "--checkpoint-activations"};
  if (s.recompute_by_block) return SaidRecompute{Recompute::full, "--recompute-method"};
  if (s.recompute_modules) return SaidRecompute{Recompute::selective, "--recompute-modules"};
  if (s.recompute_attention.value_or(false))
    return SaidRecompute{Recompute::selective, "--recompute-activations"};
  return std::nullopt;
}

// Error: a setting fixes the placement of layers or the data-parallel degree, which the search determines.
Status check_settings(const JobSettings& s) {
  const auto refuse = [](std::string_view flag) {
    return Error{fmt::format("{} fixes the placement of layers, which the search chooses", flag)}.advice(
        "leave it out, or ask `stepcast predict`");
  };
  if (s.pipeline_layout) return refuse("--pipeline-model-parallel-layout");
  if (s.layers_per_virtual_stage) return refuse("--num-layers-per-virtual-pipeline-stage");
  if (s.first_stage_layers) return refuse("--decoder-first-pipeline-num-layers");
  if (s.last_stage_layers) return refuse("--decoder-last-pipeline-num-layers");
  if (s.data)
    return Error{"--data-parallel-size follows from the GPUs and the other degrees"}.advice("leave it out");
  return Ok{};
}

// Prefers the most specific reason; degrees that do not multiply to the number of GPUs are the last resort.
const LayoutRejection* telling(const SearchedLayouts& found) {
  const auto of_others =
      std::ranges::find_if(found.rejections, [](const LayoutRejection& r) { return !r.is_of_degrees; });
  // Duplicates are named only if they outnumber the most frequent invalid layouts.
  const LayoutRejection* first = of_others == found.rejections.end() ? nullptr : &*of_others;
  if (!found.same.empty() && (first == nullptr || found.same.front().count > first->count))
    first = &found.same.front();
  if (first == nullptr && !found.rejections.empty()) first = &found.rejections.front();
  return first;
}

// Chooses the fastest refinement that is faster than the chosen layout and has flags. It needs headroom and a measured kind if
// the chosen layout has them.
void choose_refinement(LayoutPlan& plan) {
  if (plan.ranking.layouts.empty()) return;
  const RankedLayout& chosen = plan.ranking.layouts[plan.ranking.chosen];
  const bool may_be_tight = chosen.memory.verdict == MemoryVerdict::tight;
  std::optional<std::size_t> fastest_tight;
  for (std::size_t i = 0; i < plan.refined.size(); ++i) {
    const RefinedLayout& refined = plan.refined[i];
    // The list ascends in time, so no later one is faster.
    if (refined.step.step.time >= chosen.step.step.time) break;
    const RankedLayout& of = plan.ranking.layouts[refined.of];
    if (!has_flags(of, plan.prototypes) || (!of.unmeasured.empty() && chosen.unmeasured.empty())) continue;
    if (refined.memory.verdict != MemoryVerdict::tight) {
      plan.chosen_refinement = i;
      break;
    }
    // Low headroom is acceptable only if the chosen layout has low headroom, too.
    if (!fastest_tight) fastest_tight = i;
  }
  if (!plan.chosen_refinement && may_be_tight) plan.chosen_refinement = fastest_tight;
  if (plan.chosen_refinement) plan.ranking.chosen = plan.refined[*plan.chosen_refinement].of;
}

// If a 16-bit layout was chosen although narrower GEMM types were searched, notes why these are slower.
Status note_slow_type(const StepModel& steps, LayoutPlan& plan) {
  if (plan.ranking.layouts.empty()) return Ok{};
  const ChosenLayout chosen = chosen_layout(plan);
  for (const DType type : plan.space.dtypes) {
    const bool is_narrow = type == DType::fp8 || type == DType::fp4;
    if (!is_narrow || chosen.point.dtype == DType::fp8 || chosen.point.dtype == DType::fp4) continue;
    LayoutPoint point = chosen.point;
    point.dtype = type;
    Layout narrow = chosen.layout;
    // Same layout, other GEMM types: only the types differ in the comparison.
    narrow.layer.precision = plan.prototypes.layout(point).layer.precision;
    STEPCAST_ASSIGN(const StepPrediction step, steps.predict(plan.prototypes.model(), narrow));
    if (auto why = why_slower(step, type, chosen.step, chosen.point.dtype))
      plan.notes.push_back(std::move(*why));
  }
  return Ok{};
}

// Default images per GPU, as in training scripts of NVIDIA and torchvision; halved until they fit the memory.
std::int64_t images_of_gpu(const Transformer& model, const Layout& layout, Bytes memory,
                           std::int64_t n_gpus) {
  std::int64_t images = std::clamp<std::int64_t>(kMostImages / n_gpus, 1, kUsualImages);
  for (; images > 1; images /= 2) {
    Layout with = layout;
    with.degrees = {};
    with.batch.micro_batch_sequences = with.batch.global_batch_sequences = images;
    const Result<MemoryForecast> found = memory_forecast(model, with, memory);
    if (found.ok() && found->verdict != MemoryVerdict::does_not_fit) break;
  }
  return images;
}

// Distribution of measured over forecast for searched layouts of this model.
PromisePrior prior_of(const LayoutPlan& plan) {
  return promise_prior(plan.prototypes.model().moe.has_value(), LayoutOrigin::searched);
}

// If nothing fits: the plan with optimizer states and step on the CPU, unless the user decided this. Empty if it does not
// help.
std::optional<LayoutPlan> with_optimizer_on_host(const PlanRequest& request, const Platform& platform,
                                                 const LayoutPrototypes& prototypes) {
  if (request.job.settings.optimizer_offload || !rule_of(prototypes.framework()).search.has_megatron_flags)
    return std::nullopt;
  PlanRequest on_host = request;
  on_host.job.settings.optimizer_offload = true;
  Result<LayoutPlan> plan = plan_layouts(on_host, platform);
  if (!plan.ok() || plan->found.priced.empty()) return std::nullopt;
  plan->notes.emplace_back(
      "No layout fits with the optimizer on the GPUs. Its states and its step are on the CPU "
      "(--optimizer-cpu-offload), at an assumed host-memory bandwidth.");
  return std::move(*plan);
}

}  // namespace

UsualBatch usual_batch(const Transformer& model, const Layout& layout, Bytes memory, std::int64_t n_gpus,
                       const std::vector<std::int64_t>& micro_batches) {
  const std::int64_t gpus = std::max<std::int64_t>(1, n_gpus);
  if (takes_images(model.network.get())) {
    std::int64_t of_gpu = images_of_gpu(model, layout, memory, gpus);
    if (!micro_batches.empty() && micro_batches.front() > 0) of_gpu = micro_batches.front();
    return {gpus * of_gpu,
            fmt::format("global batch not given: {} images, {} per GPU", gpus * of_gpu, of_gpu)};
  }
  // Rounds to the nearest multiple of `unit`, at least one.
  const auto nearest = [](std::int64_t batch, std::int64_t unit) {
    return std::max<std::int64_t>(1, (batch + unit / 2) / unit) * unit;
  };
  const std::int64_t seq_len = std::max<std::int64_t>(1, layout.batch.seq_len_tokens);
  std::int64_t batch = nearest(model.network ? kUsualPairs : kUsualBatchTokens / seq_len, gpus);
  const auto divides = [&](std::int64_t one) { return one > 0 && batch % one == 0; };
  if (!micro_batches.empty() && micro_batches.front() > 0 && std::ranges::none_of(micro_batches, divides))
    batch = nearest(batch, gpus * micro_batches.front());
  std::string note = fmt::format("global batch not given: {} sequences", batch);
  if (!model.network) note += fmt::format(", {:.1f}M tokens", as_double(batch * seq_len) * 1e-6);
  return {batch, std::move(note)};
}

Result<LayoutRestrictions> restricted(const JobSettings& flags, LayoutRestrictions list) {
  STEPCAST_TRY(restrict_to(list.tensor, flags.tensor, "--tp", "--tensor-model-parallel-size"));
  STEPCAST_TRY(restrict_to(list.pipeline, flags.pipeline, "--pp", "--pipeline-model-parallel-size"));
  STEPCAST_TRY(restrict_to(list.context, flags.context, "--cp", "--context-parallel-size"));
  STEPCAST_TRY(restrict_to(list.expert, flags.expert, "--ep", "--expert-model-parallel-size"));
  STEPCAST_TRY(
      restrict_to(list.expert_tensor, flags.expert_tensor, "--etp", "--expert-tensor-parallel-size"));
  STEPCAST_TRY(restrict_to(list.micro_batch, flags.micro_batch_sequences, "--mbs", "--micro-batch-size"));
  STEPCAST_TRY(restrict_to(list.virtual_stages, flags.virtual_stages, "--vp",
                           "--num-virtual-stages-per-pipeline-rank"));
  STEPCAST_TRY(restrict_to(list.sequence_parallel, flags.sequence_parallel, "--sp", "--sequence-parallel"));
  if (const auto said = said_recompute(flags))
    STEPCAST_TRY(restrict_to(list.recomputations, std::optional{said->kind}, "--recompute", said->flag));
  if (const auto said = said_sharding(flags)) {
    STEPCAST_TRY(restrict_to(list.shardings, DataSharding{said->kind, 0}, "--sharding", said->flag,
                             [&](const DataSharding& one) { return one.kind == said->kind; }));
  }
  if (flags.fp8.value_or(false))
    STEPCAST_TRY(restrict_to(list.dtypes, std::optional{DType::fp8}, "--dtype", "--fp8-format"));
  if (flags.fp4.value_or(false))
    STEPCAST_TRY(restrict_to(list.dtypes, std::optional{DType::fp4}, "--dtype", "--fp4-format"));
  return list;
}

Result<LayoutPlan> plan_layouts(const PlanRequest& request, const Platform& platform) {
  StepAssumptions assumptions = request.assumptions;
  if (request.power_limit_W) STEPCAST_TRY(apply_power_limit(platform, *request.power_limit_W, assumptions));
  STEPCAST_TRY(check_settings(request.job.settings));
  if (request.n_gpus < 1)
    return Error::at("", "--gpus").found(fmt::format("{}", request.n_gpus)).expected("1 or more");
  Job job = request.job;
  job.n_gpus.reset();
  STEPCAST_ASSIGN(const LayoutRestrictions restrictions, restricted(job.settings, request.restrictions));

  // The job resolved on one GPU: model, sequence length, types.
  STEPCAST_ASSIGN(
      const LayoutPrototypes plain,
      LayoutPrototypes::of(
          job, {{job.settings.dtype.value_or(DType::bf16)}, {DataSharding{}}, {Recompute::none}, {false}},
          platform.node.gpus_per_node));
  // A model that comes with the job was read from a launch script; its flags were not typed by the user.
  if (!job.transformer) STEPCAST_TRY(refuse_flags_of_experts(job.settings, plain.model()));
  // Fused token permutation has no cost and frees memory, so the search includes layouts that fit only with it.
  if (plain.model().moe && rule_of(plain.framework()).layers.counts_operators &&
      !job.settings.fuse_permutation)
    job.settings.fuse_permutation = true;
  std::vector<std::string> notes = plain.notes();
  if (!job.settings.global_batch_sequences) {
    UsualBatch batch =
        usual_batch(plain.model(), plain.layout({}), platform.device.memory_size, request.n_gpus,
                    restrictions.micro_batch.value_or(std::vector<std::int64_t>{}));
    job.settings.global_batch_sequences = batch.sequences;
    std::erase_if(notes, [](const std::string& note) { return note.starts_with("global batch"); });
    notes.push_back(std::move(batch.note));
  }
  if (!plain.model().network) job.settings.seq_len_tokens = plain.seq_len();
  STEPCAST_ASSIGN(LayoutSpace space, layout_space(plain.model(), platform.device,
                                                  {.n_gpus = request.n_gpus,
                                                   .gpus_per_node = platform.node.gpus_per_node,
                                                   .global_batch = *job.settings.global_batch_sequences,
                                                   .seq_len = plain.seq_len(),
                                                   .framework = plain.framework(),
                                                   .dtype = job.settings.dtype.value_or(DType::bf16),
                                                   .adds_up_gradients = adds_up_gradients(plain.software())},
                                                  restrictions));
  // Resolve one prototype for every combination of types, sharding, recomputation and sequence parallelism.
  std::vector<bool> sequence_parallel = space.sequence_parallel;
  STEPCAST_ASSIGN(
      LayoutPrototypes prototypes,
      LayoutPrototypes::of(
          job, {space.dtypes, space.shardings, space.recomputations, std::move(sequence_parallel)},
          platform.node.gpus_per_node));
  // A user may give more memory than the device has, to see what would fit; a note says so.
  const Bytes memory = request.memory_bytes ? Bytes{*request.memory_bytes} : platform.device.memory_size;
  if (memory > platform.device.memory_size) {
    notes.push_back(fmt::format("{:.1f} GiB of memory as given, but {} has {:.1f}: layouts may not fit",
                                memory.value() / kGiB, platform.device.name,
                                platform.device.memory_size.value() / kGiB));
  }
  LayoutPlan plan{std::move(prototypes), std::move(space), {}, {}, {}, {}, memory,
                  std::move(notes),      assumptions};
  const StepModel steps =
      request.steps != nullptr ? request.steps->with(assumptions) : StepModel{platform, assumptions};
  // Price all layouts, then rank them and refine the best ones.
  STEPCAST_ASSIGN(plan.found, search_layouts(plan.space, plan.prototypes, platform,
                                             {memory, request.threads, assumptions, &steps}));
  if (plan.found.priced.empty() && plan.found.n_too_large > 0 && request.refines) {
    if (std::optional<LayoutPlan> on_host = with_optimizer_on_host(request, platform, plan.prototypes))
      return std::move(*on_host);
  }
  STEPCAST_ASSIGN(plan.ranking, rank_layouts(plan.found.priced, plan.prototypes, steps, memory, request.top));
  if (request.objective == PlanObjective::memory)
    plan.ranking.chosen = with_most_memory(plan.ranking.layouts);
  // With jitter the steadiest of the tied layouts is chosen instead of the fastest.
  if (request.jitter.any()) {
    STEPCAST_ASSIGN(plan.jittered, jitter_layouts(plan.ranking, plan.prototypes, steps, request.jitter));
    plan.ranking.chosen = steadiest(plan.ranking, plan.jittered);
  }
  if (request.refines) {
    // Full recomputation fixed by a list counts as a setting of the user.
    if (std::ranges::find(plan.space.recomputations, Recompute::selective) ==
            plan.space.recomputations.end() &&
        plan.space.recomputations.back() == Recompute::full)
      job.settings.recompute = Recompute::full;  // by a list, too
    STEPCAST_ASSIGN(RefinedLayouts refined,
                    refine_layouts(plan.ranking, plan.found.priced, plan.prototypes, platform,
                                   {memory, request.threads, assumptions, job.settings,
                                    plan.space.recomputations, &steps}));
    plan.refined = std::move(refined.faster);
    plan.n_refined = refined.n_tried;
    const bool wants_room = request.objective == PlanObjective::memory;
    if (!wants_room && !request.jitter.any()) choose_refinement(plan);
  }
  STEPCAST_TRY(note_slow_type(steps, plan));
  return plan;
}

ChosenLayout listed_layout(const LayoutPlan& plan, std::size_t index) {
  const RankedLayout& ranked = plan.ranking.layouts[index];
  return {index,
          nullptr,
          ranked.point,
          ranked.layout,
          ranked.step,
          ranked.memory,
          promised(ranked.step.step, prior_of(plan))};
}

ChosenLayout chosen_layout(const LayoutPlan& plan) {
  const std::size_t of = plan.ranking.chosen;
  if (!plan.chosen_refinement) return listed_layout(plan, of);
  const RefinedLayout& refined = plan.refined[*plan.chosen_refinement];
  LayoutPoint point = plan.ranking.layouts[of].point;
  // Refinement may change recomputation, so the point is updated for display.
  point.recompute = refined.layout.layer.recompute.kind;
  return {of,
          &refined,
          point,
          refined.layout,
          refined.step,
          refined.memory,
          promised(refined.step.step, prior_of(plan))};
}

std::optional<std::string> megatron_text(const ChosenLayout& chosen, const LayoutPrototypes& prototypes) {
  const auto of_lists = megatron_text(chosen.point, chosen.layout, prototypes);
  return of_lists && chosen.refinement ? megatron_flags_of(chosen.refinement->settings) : of_lists;
}

std::vector<PricedLayout> pareto_of(const std::vector<PricedLayout>& priced) {
  // Layouts ascend in time: one is Pareto-optimal if it needs less memory than all before it.
  std::vector<PricedLayout> front;
  for (const PricedLayout& layout : priced)
    if (front.empty() || layout.peak_bytes < front.back().peak_bytes) front.push_back(layout);
  return front;
}

Error why_none(const LayoutPlan& plan) {
  const SearchedLayouts& found = plan.found;
  Error error{fmt::format("none of the {} layouts runs on {} GPU{}", found.n_layouts(), plan.space.n_gpus,
                          plan.space.n_gpus == 1 ? "" : "s")};
  if (found.n_too_large > 0) {
    const LayoutRejection& first = found.too_large.front();
    return std::move(error)
        .found(fmt::format("{} that do not fit {:.1f} GiB; nearest: {}", found.n_too_large,
                           plan.memory.value() / kGiB, first.example))
        .advice("use more GPUs, a larger device, or longer lists of degrees, sharding and recomputation");
  }
  const LayoutRejection* first = telling(found);
  if (first == nullptr) return error;
  return std::move(error)
      .found(fmt::format("{}{}", first->reason, first->example.empty() ? "" : " (" + first->example + ")"))
      .advice("change the restrictions or the number of GPUs");
}

}  // namespace stepcast
