// Choices that a request leaves open: planned_layout() runs the layout search of `plan`, and
// take_largest_batch() searches for the largest micro-batch in memory.
#include "stepcast/api/detail/open_layout.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/workload/memory.h"

namespace stepcast {

std::string detail::in_short_flags(std::string flags) {
  // Flags of Megatron-LM (first) with their shorter form in `predict` (second).
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"--tensor-model-parallel-size", "--tp"},
      {"--pipeline-model-parallel-size", "--pp"},
      {"--context-parallel-size", "--cp"},
      {"--expert-model-parallel-size", "--ep"},
      {"--expert-tensor-parallel-size", "--etp"},
      {"--num-virtual-stages-per-pipeline-rank", "--vp"},
      {"--micro-batch-size", "--mbs"},
      {"--global-batch-size", "--gbs"},
      {"--data-parallel-sharding-strategy optim_grads_params --use-megatron-fsdp", "--sharding zero3"},
      {"--data-parallel-sharding-strategy optim_grads --use-megatron-fsdp", "--sharding zero2"}};
  for (const auto& [name, name_here] : kShort)
    if (const std::size_t at = flags.find(name); at != std::string::npos)
      flags.replace(at, name.size(), name_here);
  return flags;
}

std::optional<LayoutChoice> detail::planned_layout(const Job& asked, const ResolvedJob& usual,
                                                   const Platform& platform,
                                                   const StepAssumptions& assumptions,
                                                   const StepModel* steps) {
  PlanRequest request{.job = asked, .n_gpus = usual.layout.world_size(), .restrictions = {}};
  // One thread, because the caller may already run on one of many threads.
  request.threads = 1;
  request.assumptions = assumptions;
  request.refines = true;
  request.steps = steps;
  const Result<LayoutPlan> plan = plan_layouts(request, platform);
  if (!plan || plan->ranking.layouts.empty()) return std::nullopt;
  const ChosenLayout chosen = chosen_layout(*plan);
  LayoutChoice choice{chosen.refinement != nullptr
                          ? chosen.refinement->settings
                          : complete_settings(chosen.point, chosen.layout, plan->prototypes),
                      {},
                      {},
                      chosen.memory};
  const JobSettings left = settings_beyond(asked, choice.settings);
  Job job = asked;
  job.settings = over(asked.settings, left);
  if (left.pipeline_layout) job.settings.virtual_stages.reset();  // the string contains them
  Result<ResolvedJob> resolved = resolve(job);
  if (!resolved) return std::nullopt;
  choice.job = std::move(*resolved);
  for (const std::string& note : plan->notes)
    if (note.starts_with("global batch not given")) choice.job.notes.push_back(note);
  choice.flags = in_short_flags(megatron_flags_of(left));
  return choice;
}

}  // namespace stepcast

namespace stepcast::detail {
namespace {

constexpr std::int64_t kMostSequences = 65'536;  // search limit, far above real batches

// GiB with one decimal.
std::string gib(Bytes bytes) { return fmt::format("{:.1f}", bytes.value() / kGiB); }

// The memory of the fullest stage by use, for error messages.
std::string parts_of(const MemoryForecast& memory) {
  const StageMemory& m = memory.stages[memory.worst_stage];
  return fmt::format(
      "weights {}, gradients {}, optimizer {}, activations {}, working {}, buffers and reserve {}",
      gib(m.weights), gib(m.gradients), gib(m.optimizer), gib(m.activations), gib(m.working),
      gib(m.communication + m.context + m.reserve));
}

// All divisors of `whole`, ascending. Empty for 0. O(sqrt(whole)).
std::vector<std::int64_t> divisors_of(std::int64_t whole) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t i = 1; i <= whole / i; ++i) {
    if (whole % i != 0) continue;
    small.push_back(i);
    if (i != whole / i) large.push_back(whole / i);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

}  // namespace

Status take_largest_batch(LargestBatch wanted, const JobSettings& said, Bytes memory, ResolvedJob& job) {
  if (wanted == LargestBatch::none) return Ok{};
  if (wanted == LargestBatch::global && said.micro_batch_sequences)
    return Error{"--gbs max with a micro-batch: memory does not limit the number of micro-batches"}.advice(
        "leave out --mbs, or give --gbs as a number");
  const std::int64_t ranks = job.layout.degrees.data * std::max<std::int64_t>(1, job.layout.degrees.pipeline);
  // The given global batch, which the micro-batch must divide; 0: none, any micro-batch is allowed.
  const std::int64_t batch = wanted == LargestBatch::micro ? said.global_batch_sequences.value_or(0) : 0;
  const std::int64_t most = batch > 0 ? batch / job.layout.degrees.data : kMostSequences;
  const auto with = [&](std::int64_t sequences) {
    Layout layout = job.layout;
    layout.batch.micro_batch_sequences = sequences;
    layout.batch.global_batch_sequences = batch > 0 ? batch : sequences * ranks;
    return layout;
  };
  std::int64_t best = 0;
  std::optional<MemoryForecast> of_best, of_next;
  std::int64_t next = 0;  // smallest number of sequences that was tried and does not fit; 0: none yet
  // Whether this micro-batch fits; records it in `best` or `next`. Nothing if the schedule does not allow the
  // number of micro-batches.
  const auto fits = [&](std::int64_t sequences) -> std::optional<bool> {
    Result<MemoryForecast> found = memory_forecast(job.model, with(sequences), memory);
    if (!found) return std::nullopt;
    const bool does = found->verdict != MemoryVerdict::does_not_fit;
    (does ? best : next) = sequences;
    (does ? of_best : of_next) = std::move(found).value();
    return does;
  };
  if (batch > 0) {
    // Memory need not grow with the micro-batch, because fewer micro-batches may be in flight. So all
    // divisors are tried in turn.
    for (const std::int64_t sequences : divisors_of(batch % job.layout.degrees.data == 0 ? most : 0))
      if (!fits(sequences).value_or(true)) break;
  } else {
    // The number of micro-batches is fixed, so memory grows with the micro-batch. Doubling, then binary search.
    for (std::int64_t more = 1; next == 0 && best < most; more = std::min(most, 2 * more))
      if (!fits(more)) break;
    while (next > best + 1)
      if (!fits(best + (next - best) / 2)) break;
  }
  // The note says why there is no larger one.
  std::string why =
      batch > 0 ? fmt::format("larger ones do not divide {} sequences", batch) : "the largest that is tried";
  if (next > 0)
    why = fmt::format("{} take{} {} GiB on stage {}, {} too much ({})", next, next == 1 ? "s" : "",
                      gib(of_next->peak()), of_next->worst_stage, gib(Bytes{-of_next->margin().value()}),
                      parts_of(*of_next));
  if (best == 0)
    return Error{"no micro-batch fits"}.found(why).advice("more GPUs, sharding or recomputation");
  job.layout = with(best);
  job.notes.push_back(fmt::format("largest micro-batch that fits: {} ({} of {} GiB); {}", best,
                                  gib(of_best->peak()), gib(memory), why));
  return Ok{};
}

}  // namespace stepcast::detail
