// The Forecast of a described training step.
//
//   const StepModel steps{platform};
//   STEPCAST_ASSIGN(const Forecast f, step_forecast(model, layout, platform, steps));
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/analyze/step_analysis.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/coverage.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/stage_pools.h"
#include "stepcast/predict/step_explanation.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/step_prediction.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/memory.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct StepForecastInput {
  const Transformer& model;
  const Layout& layout;
  const Platform& platform;
  const StepModel& steps;
};

struct StepForecastOptions {
  bool explained = false;  // also the operations of every kind of layer
  // Where stages lie on several pools of GPUs; the first is that of `platform` and `steps`.
  std::span<const StagePool> pools{};
  std::optional<double> peak_tflops_per_gpu{};  // of all pools, the mean
  double work_share =
      1;  // of the step's samples over those that `layout` says: replicas of other pools have fewer or more
  ForecastOptions forecast{};
  StepShares* shares = nullptr;  // filled in: where the step goes, as `plan` has it
};

// Short steps that were simulated and analysed: how a pipeline fills, repeats a round and drains. Steps that differ in their
// number of micro-batches alone have them in common. One per StepModel.
class ShortSteps {
 public:
  ShortSteps();
  ShortSteps(ShortSteps&&) noexcept;
  ShortSteps& operator=(ShortSteps&&) noexcept;
  ~ShortSteps();
  // That are remembered.
  [[nodiscard]] std::size_t size() const;

 private:
  friend Result<Forecast> step_forecast(const StepForecastInput& input, ShortSteps& known,
                                        const StepForecastOptions& options);
  struct Known;
  struct Key;
  struct Impl;
  // `parts` are those of the whole step, and are so again when it returns.
  Result<std::shared_ptr<const Known>> of(PricedStep& parts, const Layout& layout, const StepModel& steps,
                                          std::uint32_t micro_batches, const AnalysisOptions& options);
  std::unique_ptr<Impl> impl_;
};

// All ranks run from 0 to the end of the step. Where a pipeline comes to a steady state only some rounds of it are
// simulated, the others are added: the forecast of all (the last step_forecast()) but for rounding. With `path_steps` all
// are. Errors: those of predict_step and memory_forecast.
[[nodiscard]] Result<Forecast> step_forecast(const Transformer& model, const Layout& layout,
                                             const Platform& platform, const StepModel& steps,
                                             const StepForecastOptions& options = {});
// The same, with what is known from other steps.
[[nodiscard]] Result<Forecast> step_forecast(const StepForecastInput& input, ShortSteps& known,
                                             const StepForecastOptions& options = {});
// What the forecast of `input` says that the step takes. Errors: those of step_forecast(); nothing where the step is one of
// those that may have more.
[[nodiscard]] Result<std::optional<Estimate>> step_time(const StepForecastInput& input);
// Of a step with all of its micro-batches, which predict_step() gave.
[[nodiscard]] Result<Forecast> step_forecast(const StepForecastInput& input, const PredictedStep& step,
                                             const StepForecastOptions& options = {});

// The choices that a person compares layouts by, by name.
[[nodiscard]] ForecastCoverage forecast_coverage(const Coverage& coverage);
[[nodiscard]] std::vector<ForecastItemList> explained_items(const std::vector<ExplainedList>& lists);
[[nodiscard]] std::vector<Setting> settings_of(const Layout& layout, const Transformer& model);
[[nodiscard]] ForecastMemory memory_of(const MemoryForecast& memory);

}  // namespace stepcast
