// The time of one training step from a description: model, layout, platform.
//
//   StepModel steps{platform};
//   STEPCAST_ASSIGN(const StepPrediction p, steps.predict(model, layout));
//   p.step.time, p.tokens_per_second(), p.shares.bubble_us, ...
//
// The operations of every distinct layer are priced once and remembered; the pipeline is evaluated by the
// recurrences of step_schedule.h. One StepModel per thread.
#pragma once

#include <memory>
#include <optional>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/network_sharing.h"
#include "stepcast/predict/priced_step.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/predict/step_prediction.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

class StepModel {
 public:
  // `platform` must outlive the model.
  explicit StepModel(const Platform& platform, const StepAssumptions& assumptions = {});
  StepModel(StepModel&&) noexcept;
  StepModel& operator=(StepModel&&) noexcept;
  ~StepModel();

  // Errors: a layout that does not fit the model or the platform.
  [[nodiscard]] Result<StepPrediction> predict(const Transformer& model, const Layout& layout);
  // The same of a step that price() gave for this layout.
  [[nodiscard]] StepPrediction predict(const PricedStep& step, const Layout& layout);
  // The parts of it, for reports and for programs.
  [[nodiscard]] Result<PricedStep> price(const Transformer& model, const Layout& layout);

  // For searches, which ask for layouts that differ in little, one after the other. Layouts here are complete
  // (with_software_choices()), and `step` is used again for its memory.
  //
  // What a step computes and where its ranks lie, without a price.
  [[nodiscard]] Status begin(const Transformer& model, const Layout& layout, PricedStep& step);
  // The prices of what was begun.
  [[nodiscard]] Status finish(const Transformer& model, const Layout& layout, PricedStep& step);
  // `step` was finished for a layout that differs from this one in what data-parallel ranks share, and accumulates
  // gradients as this one does: only what they exchange is priced anew.
  [[nodiscard]] Status share_differently(const Transformer& model, const Layout& layout, PricedStep& step);
  // Its time line; good until the next call.
  [[nodiscard]] const StepTimes& times(const PricedStep& step);
  // The time lines of schedules of finished steps (ScheduleEvaluator::evaluate()).
  [[nodiscard]] ScheduleEvaluator& evaluator();

  [[nodiscard]] StepPricer& pricer();
  // From now on; what was priced is forgotten where it depends on them.
  void set_assumptions(const StepAssumptions& assumptions);
  // From now on the platform is one of several pools of GPUs of a job; nothing: it holds all of them.
  void set_pool_links(const std::optional<PoolLinks>& links);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The layout with everything filled in that it leaves to the software: attention kernel by framework, date
// and device.
[[nodiscard]] Layout with_software_choices(Layout layout, const Device& device);

}  // namespace stepcast
