#include "stepcast/plan/plan_alternatives.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/number.h"
#include "stepcast/base/stop.h"

namespace stepcast {
namespace {

double expected_us(const LayoutPlan& plan) { return chosen_layout(plan).promise.time.value(); }

PlanAlternative alternative_of(const LayoutPlan& plan) {
  const ChosenLayout chosen = chosen_layout(plan);
  return {.n_gpus = plan.space.n_gpus,
          .global_batch = plan.prototypes.global_batch(),
          .step_us = chosen.promise.time.value(),
          .layout = to_string(chosen.point),
          .flags = megatron_text(chosen, plan.prototypes).value_or("")};
}

// The plan with another number of GPUs and batch; empty if no layout runs and fits.
std::optional<LayoutPlan> plan_with(PlanRequest request, std::int64_t n_gpus, std::int64_t global_batch,
                                    const Platform& platform) {
  request.n_gpus = n_gpus;
  request.job.settings.global_batch_sequences = global_batch;
  Result<LayoutPlan> plan = plan_layouts(request, platform);
  if (!plan || plan->ranking.layouts.empty()) return std::nullopt;
  return std::move(*plan);
}

// Lower bound of GPUs x expected step, in GPU-microseconds: the FLOPs of the model at the highest peak of a searched type. It
// depends on the batch, but not on the number of GPUs. 0: unknown peak.
double least_gpu_us(const LayoutPlan& plan, const Device& device) {
  const ChosenLayout chosen = chosen_layout(plan);
  double peak = chosen.step.peak ? chosen.step.peak->value() : 0;
  std::vector<DType> types = plan.space.dtypes;
  types.push_back(DType::bf16);  // attention next to narrower GEMMs; at least as fast as fp32
  for (const DType type : types)
    if (const auto of_type = device.peak(type)) peak = std::max(peak, of_type->value());
  if (peak <= 0) return 0;
  double factor = chosen.promise.time.value() / chosen.step.step.time.value();
  // A what-if or a fit can make kernels faster than the peak.
  const StepAssumptions& a = plan.assumptions;
  for (const double one : {a.gemm_factor, a.fp8_gemm_factor, a.unmeasured_kernels_factor, a.attention_factor,
                           a.expert_factor, a.weight_gradient_factor})
    factor *= std::min(1.0, one);
  return factor * chosen.step.model_flops / peak * 1e6;
}

}  // namespace

std::int64_t factor_for_stages(std::int64_t n_gpus, std::int64_t global_batch, std::int64_t gpus_per_node) {
  // The data-parallel degree divides GPUs and batch. So the product of the other degrees is a multiple of this factor.
  std::int64_t factor = n_gpus / std::gcd(n_gpus, global_batch);
  // Tensor- and context-parallel degrees have only prime factors of the node and 2.
  for (std::int64_t common = 0; (common = std::gcd(factor, 2 * gpus_per_node)) > 1;) factor /= common;
  return factor;
}

std::vector<std::int64_t> dividing_batches(std::int64_t n_gpus, std::int64_t global_batch,
                                           std::int64_t gpus_per_node) {
  const std::int64_t factor = factor_for_stages(n_gpus, global_batch, gpus_per_node);
  if (factor == 1) return {};
  const std::int64_t unit = std::gcd(n_gpus, global_batch) * factor;
  const std::int64_t below = global_batch / unit * unit;
  if (below == 0) return {unit};
  return {below, below + unit};
}

std::optional<std::string> note_of_batch(const LayoutSpace& space, std::int64_t global_batch,
                                         std::int64_t gpus_per_node) {
  const std::int64_t factor = factor_for_stages(space.n_gpus, global_batch, gpus_per_node);
  const auto uses_it = [&](std::int64_t degree) { return std::gcd(degree, factor) > 1; };
  if (factor == 1 || std::ranges::any_of(space.tensor, uses_it) ||
      std::ranges::any_of(space.context, uses_it))
    return std::nullopt;
  return fmt::format(
      "a batch of {} leaves a factor {} of {} GPUs to pipeline stages; --gbs {} does not, and --at-most also "
      "tries fewer GPUs",
      global_batch, factor, space.n_gpus,
      fmt::join(dividing_batches(space.n_gpus, global_batch, gpus_per_node), " or "));
}

std::vector<std::int64_t> smaller_gpu_counts(std::int64_t n_gpus, std::int64_t gpus_per_node) {
  std::vector<std::int64_t> counts;
  for (std::int64_t nodes = (n_gpus - 1) / gpus_per_node; nodes >= 1; --nodes)
    counts.push_back(nodes * gpus_per_node);
  for (std::int64_t n = std::min(n_gpus, gpus_per_node) - 1; n >= 1; --n) counts.push_back(n);
  return counts;
}

// The expected step cannot grow with the number of whole nodes. For M < N nodes, smaller_gpu_counts() of N contains M and all
// counts that M is compared with, and the plan on a count does not depend on M or N if the batch is given. The loop ends early
// only where a lower bound excludes all smaller counts, so it finds the minimum over all of them. Counts that do not divide the
// batch cost almost nothing, because the rules reject their layouts before any is priced.
Result<PlanAtMost> plan_at_most(const PlanRequest& request, const Platform& platform) {
  Result<LayoutPlan> on_all = plan_layouts(request, platform);
  const std::optional<std::int64_t> given = request.job.settings.global_batch_sequences;
  if (!on_all && !given) return on_all.error();
  const std::int64_t batch = on_all ? on_all->prototypes.global_batch() : *given;
  std::vector<PlanAlternative> alternatives;
  std::optional<LayoutPlan> best;
  if (on_all && !on_all->ranking.layouts.empty()) {
    alternatives.push_back(alternative_of(*on_all));
    best = *on_all;
  }
  for (const std::int64_t n : smaller_gpu_counts(request.n_gpus, platform.node.gpus_per_node)) {
    STEPCAST_TRY(not_stopped());
    if (best && as_double(n) * expected_us(*best) < least_gpu_us(*best, platform.device)) break;
    std::optional<LayoutPlan> plan = plan_with(request, n, batch, platform);
    if (plan && (!best || expected_us(*plan) <= expected_us(*best))) best = std::move(plan);
  }
  if (!best) return on_all ? Result<PlanAtMost>{PlanAtMost{std::move(*on_all), {}}} : on_all.error();
  if (best->space.n_gpus == request.n_gpus) {
    alternatives.clear();
  } else if (!given) {
    // The batch was given to the smaller plan, so only the plan on all GPUs has the note about its default.
    std::ranges::copy_if(on_all->notes, std::back_inserter(best->notes),
                         [](const std::string& note) { return note.starts_with("global batch not given"); });
  }
  for (const std::int64_t other : dividing_batches(request.n_gpus, batch, platform.node.gpus_per_node))
    if (const auto plan = plan_with(request, request.n_gpus, other, platform))
      alternatives.push_back(alternative_of(*plan));
  return PlanAtMost{std::move(*best), std::move(alternatives)};
}

}  // namespace stepcast
