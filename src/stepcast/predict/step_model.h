// Forecasts the time of one training step from a model, a layout and a platform.
//
//   const StepModel steps{platform};
//   STEPCAST_ASSIGN(const StepPrediction p, steps.predict(model, layout));
//   p.step.time, p.tokens_per_second(), p.shares.bubble_us, ...
//   const StepModel faster = steps.with(assumptions);
//
// A StepModel has value semantics: results depend only on its platform, assumptions and links, not on earlier
// calls. It is thread-safe. Copies and models returned by with() share their caches: the operations of every
// distinct layer are priced once and remembered for several assumptions. The pipeline is evaluated by the
// recurrences of step_schedule.h.
#pragma once

#include <cstdint>
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

// The caches of a StepModel, borrowed by one thread. Searches use it for a sequence of similar layouts,
// reports to price single operations and transfers. The destructor returns the caches to the models that
// share them. Layouts passed here must be complete (with_software_choices()). `step` is an output; its memory
// is reused.
class StepWorker {
 public:
  StepWorker(StepWorker&&) noexcept;
  StepWorker& operator=(StepWorker&&) = delete;
  ~StepWorker();

  // Fills the work of a step and the placement of its ranks, without prices. Errors: a layout that does not
  // fit the model or the platform.
  [[nodiscard]] Status begin(const Transformer& model, const Layout& layout, PricedStep& step);
  // Prices the step that begin() prepared.
  [[nodiscard]] Status finish(const Transformer& model, const Layout& layout, PricedStep& step);
  // Prices `layout` faster, reusing `step`. `step` must be finished for a layout that differs only in how
  // data-parallel ranks shard weights and gradients, with the same accumulation of gradients. Only these
  // transfers are priced again, unless transfers share network links.
  [[nodiscard]] Status share_differently(const Transformer& model, const Layout& layout, PricedStep& step);
  // Evaluates the time lines of finished steps (ScheduleEvaluator::evaluate()).
  [[nodiscard]] ScheduleEvaluator& evaluator();
  // Prices single operations and transfers under the assumptions of the model.
  [[nodiscard]] StepPricer& pricer();

 private:
  friend class StepModel;
  struct Impl;
  struct Shared;
  explicit StepWorker(std::shared_ptr<Shared> of, std::unique_ptr<Impl> impl);
  std::shared_ptr<Shared> of_;
  std::unique_ptr<Impl> impl_;
};

// Forecasts steps on one platform, see above.
class StepModel {
 public:
  // `platform` must outlive the model and its copies. `links`: set if the platform is one of several pools of
  // GPUs of a job; nullopt: it has all GPUs of the job.
  explicit StepModel(const Platform& platform, const StepAssumptions& assumptions = {},
                     const std::optional<PoolLinks>& links = {});
  // The same platform with other assumptions, or as a pool with other links.
  [[nodiscard]] StepModel with(const StepAssumptions& assumptions) const;
  [[nodiscard]] StepModel with(const PoolLinks& links) const;

  // Errors: a layout that does not fit the model or the platform.
  [[nodiscard]] Result<StepPrediction> predict(const Transformer& model, const Layout& layout) const;
  // The prediction for a step that price() returned for this layout.
  [[nodiscard]] StepPrediction predict(const PricedStep& step, const Layout& layout) const;
  // The priced work, placement and schedule of the step, for reports and programs.
  [[nodiscard]] Result<PricedStep> price(const Transformer& model, const Layout& layout) const;
  // The stage that determines the step time (StepTimes::critical_stage).
  [[nodiscard]] std::uint32_t critical_stage(const PricedStep& step) const;

  [[nodiscard]] const Platform& platform() const;
  [[nodiscard]] const StepAssumptions& assumptions() const { return assumptions_; }
  // Borrows caches for the calling thread.
  [[nodiscard]] StepWorker worker() const;
  // A worker with a pricer() in the state in which `step` was priced.
  [[nodiscard]] StepWorker worker(const PricedStep& step) const;

 private:
  std::shared_ptr<StepWorker::Shared> shared_;
  StepAssumptions assumptions_;
  std::optional<PoolLinks> links_;
};

// Fills in everything that the layout leaves to the software: the attention kernel, chosen by framework, date
// and device.
[[nodiscard]] Layout with_software_choices(Layout layout, const Device& device);

}  // namespace stepcast
