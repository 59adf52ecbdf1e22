#include "stepcast/api/detail/open_layout.h"

#include <string>
#include <utility>

#include "stepcast/describe/megatron_writer.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/layout_plan.h"

namespace stepcast {

std::string detail::in_short_flags(std::string flags) {
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
                                                   const StepAssumptions& assumptions, StepModels* models) {
  PlanRequest request{.job = asked, .n_gpus = usual.layout.world_size(), .restrictions = {}};
  request.threads = 1;
  request.assumptions = assumptions;
  request.refines = true;
  request.models = models;
  const Result<LayoutPlan> plan = plan_layouts(request, platform);
  if (!plan || plan->ranking.layouts.empty()) return std::nullopt;
  const ChosenLayout chosen = chosen_layout(*plan);
  LayoutChoice choice{chosen.refinement != nullptr
                          ? chosen.refinement->settings
                          : complete_settings(chosen.point, chosen.layout, plan->prototypes),
                      {},
                      {},
                      chosen.memory};
  // Without what was said, or is the same without being said.
  JobSettings left = choice.settings;
  left.seq_len_tokens.reset();
  if (asked.settings.global_batch_sequences) left.global_batch_sequences.reset();
  if (asked.settings.micro_batch_sequences) left.micro_batch_sequences.reset();
  if (asked.settings.dtype || left.dtype == DType::bf16) left.dtype.reset();
  Job job = asked;
  job.settings = over(asked.settings, left);
  Result<ResolvedJob> resolved = resolve(job);
  if (!resolved) return std::nullopt;
  choice.job = std::move(*resolved);
  for (const std::string& note : plan->notes)
    if (note.starts_with("global batch not given")) choice.job.notes.push_back(note);
  choice.flags = in_short_flags(megatron_flags_of(left));
  return choice;
}

}  // namespace stepcast
