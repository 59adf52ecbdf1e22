// The time of one training step from a description: model, layout, platform.
//
//   const StepModel steps{platform};
//   STEPCAST_ASSIGN(const StepPrediction p, steps.predict(model, layout));
//   p.step.time, p.tokens_per_second(), p.shares.bubble_us, ...
//   const StepModel faster = steps.with(assumptions);
//
// A StepModel is a value: its answers depend on its platform, assumptions and links alone, never on what was asked before.
// Any number of threads may ask it at once. Copies, and models that with() returns, share what they have priced: the
// operations of every distinct layer are priced once and remembered, for several assumptions. The pipeline is evaluated by
// the recurrences of step_schedule.h.
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

// The parts of a StepModel that one thread uses at a time: for searches, which ask for layouts that differ in little, one
// after the other, and for reports, which price single operations and transfers. It goes back to the models that share it
// with what it has priced. Layouts here are complete (with_software_choices()), and `step` is used again for its memory.
class StepWorker {
 public:
  StepWorker(StepWorker&&) noexcept;
  StepWorker& operator=(StepWorker&&) = delete;
  ~StepWorker();

  // What a step computes and where its ranks lie, without a price. Errors: a layout that does not fit the model or the
  // platform.
  [[nodiscard]] Status begin(const Transformer& model, const Layout& layout, PricedStep& step);
  // The prices of what was begun.
  [[nodiscard]] Status finish(const Transformer& model, const Layout& layout, PricedStep& step);
  // `step` was finished for a layout that differs from this one in what data-parallel ranks share, and accumulates
  // gradients as this one does: only what they exchange is priced anew.
  [[nodiscard]] Status share_differently(const Transformer& model, const Layout& layout, PricedStep& step);
  // The time lines of schedules of finished steps (ScheduleEvaluator::evaluate()).
  [[nodiscard]] ScheduleEvaluator& evaluator();
  [[nodiscard]] StepPricer& pricer();

 private:
  friend class StepModel;
  struct Impl;
  struct Shared;
  explicit StepWorker(std::shared_ptr<Shared> of, std::unique_ptr<Impl> impl);
  std::shared_ptr<Shared> of_;
  std::unique_ptr<Impl> impl_;
};

class StepModel {
 public:
  // `platform` must outlive the model and its copies. `links`: the platform is one of several pools of GPUs of a job;
  // nothing: it holds all of them.
  explicit StepModel(const Platform& platform, const StepAssumptions& assumptions = {},
                     const std::optional<PoolLinks>& links = {});
  // The same platform under other assumptions, or as a pool with other links.
  [[nodiscard]] StepModel with(const StepAssumptions& assumptions) const;
  [[nodiscard]] StepModel with(const PoolLinks& links) const;

  // Errors: a layout that does not fit the model or the platform.
  [[nodiscard]] Result<StepPrediction> predict(const Transformer& model, const Layout& layout) const;
  // The same of a step that price() gave for this layout.
  [[nodiscard]] StepPrediction predict(const PricedStep& step, const Layout& layout) const;
  // The parts of it, for reports and for programs.
  [[nodiscard]] Result<PricedStep> price(const Transformer& model, const Layout& layout) const;
  // The stage that decides how long the step takes.
  [[nodiscard]] std::uint32_t critical_stage(const PricedStep& step) const;

  [[nodiscard]] const Platform& platform() const;
  [[nodiscard]] const StepAssumptions& assumptions() const { return assumptions_; }
  [[nodiscard]] StepWorker worker() const;
  // Its pricer() prices as `step` was priced.
  [[nodiscard]] StepWorker worker(const PricedStep& step) const;

 private:
  std::shared_ptr<StepWorker::Shared> shared_;
  StepAssumptions assumptions_;
  std::optional<PoolLinks> links_;
};

// The layout with everything filled in that it leaves to the software: attention kernel by framework, date
// and device.
[[nodiscard]] Layout with_software_choices(Layout layout, const Device& device);

}  // namespace stepcast
