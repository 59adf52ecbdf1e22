#include "stepcast/predict/step_model.h"

#include <algorithm>
#include <utility>

#include "stepcast/predict/step_transfers.h"
#include "stepcast/workload/framework_habits.h"

namespace stepcast {
namespace {

bool is_hopper_or_newer(const Device& device) {
  return same_name(device.architecture, "hopper") || same_name(device.architecture, "blackwell");
}

// Moves the weight gradients, for which the next stage does not wait, into a list of their own.
void hold_back_weight_gradients(LayerWork& layer, WorkList& held_back) {
  const auto first = std::stable_partition(layer.backward.begin(), layer.backward.end(),
                                           [](const WorkItem& item) { return !item.weight_gradient; });
  held_back.assign(first, layer.backward.end());
  layer.backward.erase(first, layer.backward.end());
}

// What the chunks of the schedule compute; their transfers come later.
void fill_units(PricedStep& step) {
  StepSchedule& schedule = step.schedule;
  schedule.chunks.clear();
  for (const ChunkWork& chunk : step.work.chunks) {
    ScheduleChunk priced;
    if (chunk.has_embedding) {
      priced.units.push_back({step.embedding_forward.time_us, step.embedding_backward.time_us, 0, 0, 0});
    }
    for (const ChunkWork::Run& run : chunk.runs) {
      const PricedStep::Layer& layer = step.layers[run.kind];
      priced.units.insert(
          priced.units.end(), run.count,
          {layer.forward.time_us, layer.backward.time_us, layer.weight_gradient.time_us, 0, 0});
    }
    if (chunk.has_head) {
      priced.units.push_back({step.head_forward.time_us, step.head_backward.time_us, 0, 0, 0});
    }
    schedule.chunks.push_back(std::move(priced));
  }
}

}  // namespace

Layout with_software_choices(Layout layout, const Device& device) {
  AttentionKernel& kernel = layout.layer.attention_kernel;
  if (kernel == AttentionKernel::any)
    kernel = usual_attention_kernel(layout.software, is_hopper_or_newer(device));
  return layout;
}

struct StepModel::Impl {
  Impl(const Platform& platform, const StepAssumptions& assumptions) : pricer(platform, assumptions) {}

  // Fills a new `step`: it is large, and a search asks for thousands.
  Status price(const Transformer& model, const Layout& layout, PricedStep& step);

  StepPricer pricer;
  ScheduleEvaluator evaluator;
};

// `layout` with its software's choices.
Status StepModel::Impl::price(const Transformer& model, const Layout& layout, PricedStep& step) {
  STEPCAST_ASSIGN(step.work, step_work(model, layout));
  STEPCAST_ASSIGN(step.placement, place(layout, pricer.platform().node.gpus_per_node));
  const StepAssumptions& assume = pricer.assumptions();
  step.compiled = layout.layer.fused.compiled;
  step.launch_us = step.compiled ? assume.compiled_host_launch_us : assume.host_launch_us;
  const auto priced = [&](const WorkList& list) -> Result<PricedList> {
    STEPCAST_ASSIGN(PricedList result, pricer.price(list, step.placement));
    wait_for_launches(result, step.launch_us);
    return result;
  };
  const bool holds_back = layout.pipeline.schedule == PipelineSchedule::zero_bubble_h1;
  step.layers.reserve(step.work.layer_kinds.size());
  for (LayerWork& work : step.work.layer_kinds) {
    PricedStep::Layer& layer = step.layers.emplace_back();
    if (holds_back) hold_back_weight_gradients(work, layer.held_back);
    STEPCAST_ASSIGN(layer.forward, priced(work.forward));
    STEPCAST_ASSIGN(layer.backward, priced(work.backward));
    STEPCAST_ASSIGN(layer.weight_gradient, priced(layer.held_back));
  }
  STEPCAST_ASSIGN(step.embedding_forward, priced(step.work.embedding_forward));
  STEPCAST_ASSIGN(step.embedding_backward, priced(step.work.embedding_backward));
  STEPCAST_ASSIGN(step.head_forward, priced(step.work.head_forward));
  STEPCAST_ASSIGN(step.head_backward, priced(step.work.head_backward));

  StepSchedule& schedule = step.schedule;
  schedule.shape = {layout.pipeline.schedule, step.work.stages, step.work.virtual_stages,
                    step.work.micro_batches};
  STEPCAST_TRY(check(schedule.shape));
  schedule.fixed_us = assume.step_fixed_us;
  schedule.optimizer_waits_for_all = layout.optimizer.gradient_clip;
  fill_units(step);
  return price_transfers(model, layout, pricer, step);
}

StepModel::StepModel(const Platform& platform, const StepAssumptions& assumptions)
    : impl_(std::make_unique<Impl>(platform, assumptions)) {}
StepModel::StepModel(StepModel&&) noexcept = default;
StepModel& StepModel::operator=(StepModel&&) noexcept = default;
StepModel::~StepModel() = default;

StepPricer& StepModel::pricer() { return impl_->pricer; }

void StepModel::set_assumptions(const StepAssumptions& assumptions) {
  impl_->pricer.set_assumptions(assumptions);
}

Result<PricedStep> StepModel::price(const Transformer& model, const Layout& layout) {
  PricedStep step;
  STEPCAST_TRY(impl_->price(model, with_software_choices(layout, impl_->pricer.platform().device), step));
  return step;
}

Result<StepPrediction> StepModel::predict(const Transformer& model, const Layout& layout) {
  PricedStep step;
  STEPCAST_TRY(impl_->price(model, with_software_choices(layout, impl_->pricer.platform().device), step));
  return step_prediction(step, impl_->evaluator.evaluate(step.schedule), layout, impl_->pricer);
}

StepPrediction StepModel::predict(const PricedStep& step, const Layout& layout) {
  return step_prediction(step, impl_->evaluator.evaluate(step.schedule), layout, impl_->pricer);
}

}  // namespace stepcast
