#include "stepcast/report/plan_answer.h"

#include <algorithm>

#include <fmt/format.h>

#include "stepcast/base/number.h"
#include "stepcast/base/stop.h"
#include "stepcast/base/units.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/layout_ranking.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/report/detail/plan_fields.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/workload/network.h"

namespace stepcast {
namespace {

// Conversions into the units of the answer.
double ms_of(Microseconds time) { return time.value() * 1e-3; }
double gibibytes(Bytes bytes) { return bytes.value() / kGiB; }

// The answers for a priced layout, for a prediction with its memory, and for a ranked layout with its flags.
// `memory` is that of the device.
LayoutAnswer answer_of(const PricedLayout& l, Bytes memory) {
  return {l.point, l.step_us * 1e-3, l.peak_bytes / kGiB, (memory.value() - l.peak_bytes) / kGiB};
}

RankedLayoutAnswer answer_of(const LayoutPoint& point, const StepPrediction& step,
                             const MemoryForecast& memory) {
  const StepShares& s = step.shares;
  // The divisor is bounded, so that a step without length gives 0 % everywhere.
  const double percent = 100 / std::max(1e-9, s.total_us());
  return {.point = point,
          .step_ms = ms_of(step.step.time),
          .p10_ms = ms_of(step.step.p10),
          .p90_ms = ms_of(step.step.p90),
          .tokens_per_s_per_gpu = step.tokens_per_second() / static_cast<double>(step.n_gpus),
          .mfu = step.model_flops_utilization(),
          .percent = {.computation = s.computation_us() * percent,
                      .communication = s.exposed_communication_us() * percent,
                      .bubble = s.bubble_us * percent,
                      .rest = (s.host_us + s.optimizer_us + s.fixed_us) * percent},
          .peak_GiB = gibibytes(memory.peak()),
          .margin_GiB = gibibytes(memory.margin()),
          .worst_stage = memory.worst_stage,
          .memory_verdict = memory.verdict,
          .source = step.step.source};
}

RankedLayoutAnswer answer_of(const RankedLayout& l, const LayoutPrototypes& prototypes) {
  RankedLayoutAnswer out = answer_of(l.point, l.step, l.memory);
  out.behind_ms = l.behind_us * 1e-3;
  out.uncertain_ms = l.uncertain_us * 1e-3;
  out.alike = l.alike;
  out.rank = l.rank + 1;
  if (!l.unmeasured.empty()) out.unmeasured = l.unmeasured;
  out.megatron_flags = megatron_text(l.point, l.layout, prototypes);
  out.torchtitan_toml = torchtitan_text(l.layout, prototypes.model());
  out.deepspeed_json = deepspeed_text(l.layout);
  return out;
}

// Why the plan chose this layout and not the fastest one; empty if no reason needs to be given.
std::string reason_of(const LayoutPlan& plan, const RankedLayoutAnswer& first,
                      const RankedLayoutAnswer& chosen) {
  if (!plan.jittered.empty()) return "least sensitive to variation of GPU speed";
  // The fastest layout was chosen. A reason is only given if others are tied with it.
  if (plan.ranking.chosen == 0) {
    return plan.ranking.n_alike > 1 ? "fastest; no tied layout is simpler with as much headroom" : "";
  }
  const bool is_usual = first.unmeasured && !chosen.unmeasured;
  const bool is_safer =
      first.memory_verdict == MemoryVerdict::tight && chosen.memory_verdict != MemoryVerdict::tight;
  return fmt::format("{:.1f} % slower than #1, {}", 100 * chosen.behind_ms / first.step_ms,
                     is_usual                               ? "but of a measured kind"
                     : is_safer                             ? "but with enough headroom"
                     : chosen.margin_GiB > first.margin_GiB ? "but simpler or with more headroom"
                                                            : "but simpler");
}

// The recommended layout, with its refinement if that was chosen.
ChosenLayoutAnswer chosen_of(const LayoutPlan& plan, const std::vector<RankedLayoutAnswer>& layouts) {
  const ChosenLayout chosen = chosen_layout(plan);
  ChosenLayoutAnswer out;
  out.of = chosen.of;
  out.layout = layouts[chosen.of];
  out.worst_stage = chosen.memory.stages[chosen.memory.worst_stage];
  out.promised_ms = ms_of(chosen.promise.time);
  out.promised_p10_ms = ms_of(chosen.promise.p10);
  out.promised_p90_ms = ms_of(chosen.promise.p90);
  out.promised_tokens_per_s_per_gpu =
      chosen.step.tokens_per_step / out.promised_ms * 1e3 / static_cast<double>(chosen.step.n_gpus);
  if (chosen.refinement == nullptr) {
    out.reason = reason_of(plan, layouts.front(), out.layout);
    return out;
  }
  out.changes = chosen.refinement->changes;
  out.layout = answer_of(chosen.point, chosen.step, chosen.memory);
  out.layout.rank = layouts[chosen.of].rank;
  // A refinement changes the numbers and flags, but neither the rank nor the kind of the layout.
  out.layout.unmeasured = layouts[chosen.of].unmeasured;
  out.layout.behind_ms = std::max(0.0, out.layout.step_ms - layouts.front().step_ms);
  out.layout.megatron_flags = megatron_text(chosen, plan.prototypes);
  out.reason = fmt::format("fastest refined layout{}",
                           out.layout.memory_verdict == MemoryVerdict::tight ? "" : " with enough headroom");
  return out;
}

// A refined layout, with the step time of the layout before.
RefinedLayoutAnswer answer_of(const RefinedLayout& r, const LayoutRanking& ranking) {
  return {.of = r.of,
          .step_ms = ms_of(r.step.step.time),
          .p10_ms = ms_of(r.step.step.p10),
          .p90_ms = ms_of(r.step.step.p90),
          .peak_GiB = gibibytes(r.memory.peak()),
          .changes = r.changes,
          .layers_per_stage = r.layout.pipeline.layers_per_stage,
          .megatron_flags = megatron_flags_of(r.settings),
          .before_ms = ranking.layouts[r.of].step_ms()};
}

PlanAlternativeAnswer answer_of(const PlanAlternative& other) {
  const double ms = other.step_us * 1e-3, sequences = as_double(other.global_batch);
  PlanAlternativeAnswer out{.n_gpus = other.n_gpus,
                            .global_batch_sequences = other.global_batch,
                            .step_ms = ms,
                            .ms_per_sequence = ms / sequences,
                            .gpu_s_per_sequence = as_double(other.n_gpus) * ms * 1e-3 / sequences,
                            .layout = other.layout};
  if (!other.flags.empty()) out.megatron_flags = other.flags;
  if (!other.command.empty()) out.command = other.command;
  return out;
}

// The current layout: its step time, or why it cannot run on this machine.
RunningLayoutAnswer answer_of(const LayoutNow& now, Bytes memory) {
  RunningLayoutAnswer out;
  out.point = now.point;
  if (now.why_not.empty())
    out.step_ms = now.step_us * 1e-3;
  else
    out.why_no_time = now.why_not;
  // Each entry says which choices differ from the current layout.
  for (const NearbyLayout& n : now.nearby)
    out.nearby.push_back({n.changes, difference(now.point, n.layout.point), answer_of(n.layout, memory)});
  return out;
}

}  // namespace

PlanAnswer plan_answer(const LayoutPlan& plan, const PlanSubject& subject) {
  const SearchedLayouts& found = plan.found;
  // All counts refer to the whole space; lists contain only what documents show.
  PlanAnswer out{.model = plan.prototypes.model().name,
                 .platform = subject.platform,
                 .gpu = subject.gpu,
                 .n_gpus = plan.space.n_gpus,
                 .global_batch_sequences = plan.prototypes.global_batch(),
                 .seq_len_tokens = plan.prototypes.seq_len(),
                 .memory_GiB = gibibytes(plan.memory),
                 .space = plan.space.lines(),
                 .n = {.all = plan.space.size(),
                       .cannot_run = found.n_rejected,
                       .same = found.n_same,
                       .too_large = found.n_too_large,
                       .priced = found.priced.size()},
                 .rejections = found.rejections,
                 .same = found.same,
                 .too_large = found.too_large,
                 .n_alike = plan.ranking.n_alike,
                 .n_refined = plan.n_refined,
                 .gpu_limit = subject.gpu_limit,
                 .notes = plan.notes,
                 .jittered = plan.jittered,
                 .framework = plan.prototypes.framework(),
                 .sample = sample_name(plan.prototypes.model().network.get()),
                 .top = subject.top,
                 .why = subject.why,
                 .more_alike = plan.ranking.more_alike};
  for (const RankedLayout& l : plan.ranking.layouts) out.layouts.push_back(answer_of(l, plan.prototypes));
  out.chosen = chosen_of(plan, out.layouts);
  for (const RefinedLayout& r : plan.refined) out.refined.push_back(answer_of(r, plan.ranking));
  for (const PlanAlternative& other : subject.alternatives) out.alternatives.push_back(answer_of(other));
  if (subject.now) out.now = answer_of(*subject.now, plan.memory);
  for (const PricedLayout& l : pareto_of(found.priced)) out.pareto.push_back(answer_of(l, plan.memory));
  return out;
}

// The JSON of the other two answers. Optional values that are missing have no key.
void fields(auto& a, Is<TrainingAnswer> auto& t) {
  a("train_tokens", t.goal.tokens);
  a("within_days", if_any(t.goal.within_days));
  a("price_per_gpu_hour", if_any(t.goal.price_per_gpu_hour));
  a("currency", given_if(!t.goal.currency.empty(), t.goal.currency), "currency of the prices");
  a("carbon_g_per_kWh", if_any(t.goal.carbon_g_per_kWh));
  a("power_budget_W", if_any(t.goal.power_budget_W));
  a("options",
    Each{t.plan.options, [&](auto& one, const TrainingOption& o) { fields(one, o, t.plan, false); }});
}

// One entry per job. `curve` has one point per number of GPUs that was tried for the job.
void fields(auto& a, Is<JobPool> auto& pool) {
  a("platform", pool.platform);
  a("n_gpus", pool.n_gpus, "number of GPUs of the pool");
  a("n_used", pool.n_used, "number of GPUs allocated to jobs");
  a("n_gpus_in_time", if_any(pool.pool_in_time),
    "number of GPUs of the smallest pool that meets every deadline");
  a("currency", given_if(!pool.currency.empty(), pool.currency), "currency of the prices");
  a("jobs", Each{pool.jobs, [&](auto& one, const PooledJob& job) {
                   one("name", job.job.name);
                   one("model", job.job.model);
                   one("tokens", job.job.tokens);
                   one("weight", job.job.weight);
                   one("deadline_days", if_any(job.job.deadline_days));
                   one("chosen", if_any(job.chosen), "index into curve; absent: the job does not run");
                   one("slack_days", if_any(job.slack_days()), "days before the deadline; negative: late");
                   one("n_gpus_in_time", if_any(job.gpus_in_time),
                       "smallest number of GPUs that meets the deadline");
                   one("curve", Each{job.curve, [&](auto& point, const TrainingOption& o) {
                                       const bool runs = o.why_not.empty();
                                       point("n_gpus", o.n_gpus);
                                       point("why_not", given_if(!runs, o.why_not));
                                       point("layout", given_if(runs, o.layout));
                                       point("megatron_flags", given_if(runs, o.flags));
                                       point("step_time_ms", given_if(runs, o.step_ms), "expected");
                                       point("forecast_step_time_ms", given_if(runs, o.forecast_ms));
                                       point("days", given_if(runs, o.days));
                                       point("days_p90", given_if(runs, o.days_p90));
                                       point("gpu_hours", given_if(runs, o.gpu_hours));
                                       point("price", if_any(runs ? job.price(o) : std::nullopt),
                                             "price with the penalty for being late");
                                       point("in_time", given_if(runs, o.meets));
                                     }});
                 }});
}

STEPCAST_ANSWER(plan, PlanAnswer, "stepcast.plan/1", "stepcast plan --json")
STEPCAST_ANSWER(training, TrainingAnswer, "stepcast.training_plan/1", "stepcast plan --train-tokens --json")
STEPCAST_ANSWER(jobs, JobPool, "stepcast.job_plan/1", "stepcast plan --jobs FILE --json")

std::string plan_jsonl(const LayoutPlan& plan) {
  std::string text;
  for (const PricedLayout& layout : plan.found.priced)
    text += answer_json(answer_of(layout, plan.memory), JsonWriter::Layout::compact) + "\n";
  return text;
}

Result<std::string> plan_csv(const LayoutPlan& plan, const Platform& platform) {
  StepModel steps{platform, plan.assumptions};
  std::string text =
      "tensor,pipeline,virtual_stages,schedule,context,data,expert,expert_tensor,micro_batch_sequences,"
      "sharding,recompute,sequence_parallel,dtype,step_time_ms,peak_memory_GiB,step_time_p10_ms,"
      "step_time_p90_ms,mfu,megatron_flags\n";
  // The time of a full evaluation per layout adds up, so a stop request is checked for each.
  for (std::size_t rank = 0; rank < plan.found.priced.size(); ++rank) {
    STEPCAST_TRY(not_stopped());
    const PricedLayout& l = plan.found.priced[rank];
    const LayoutPoint& p = l.point;
    STEPCAST_ASSIGN(const RankedLayout looked_at,
                    look_at(plan.found.priced, rank, plan.prototypes, steps, plan.memory));
    const RankedLayoutAnswer all = answer_of(looked_at, plan.prototypes);
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{:.4f},{:.3f},{:.4f},{:.4f},{},\"{}\"\n",
                        p.tensor, p.pipeline, p.virtual_stages, to_string(p.schedule), p.context, p.data,
                        p.expert, p.expert_tensor == 0 ? p.tensor : p.expert_tensor, p.micro_batch,
                        to_string(p.sharding), to_string(p.recompute), p.sequence_parallel,
                        to_string(p.dtype), l.step_us * 1e-3, l.peak_bytes / kGiB, all.p10_ms, all.p90_ms,
                        all.mfu ? fmt::format("{:.5f}", *all.mfu) : "", all.megatron_flags.value_or(""));
  }
  return text;
}

}  // namespace stepcast
