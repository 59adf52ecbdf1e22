// Makes the Forecast of a described training step.
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

// The job, the platform, and the model of its step time.
struct StepForecastInput {
  const Transformer& model;
  const Layout& layout;
  const Platform& platform;
  const StepModel& steps;
};

// What the forecast contains beyond the step.
struct StepForecastOptions {
  bool explained = false;  // also list the operations of each kind of layer
  // Given if pipeline stages run on several pools of GPUs. The first pool must be that of `platform` and
  // `steps`.
  std::span<const StagePool> pools{};
  std::optional<double> peak_tflops_per_gpu{};  // mean over all pools
  // The samples of the step as a fraction of those that `layout` gives, since replicas on other pools take
  // fewer or more.
  double work_share = 1;
  ForecastOptions forecast{};
  StepShares* shares = nullptr;  // if not null, receives where the step goes, as `plan` uses it
};

// A cache of short steps that were simulated and analysed: how a pipeline fills, repeats a round and drains.
// Steps that differ only in their number of micro-batches share an entry. Use one cache per StepModel; not
// thread-safe.
class ShortSteps {
 public:
  ShortSteps();
  ShortSteps(ShortSteps&&) noexcept;
  ShortSteps& operator=(ShortSteps&&) noexcept;
  ~ShortSteps();
  // The number of short steps in the cache.
  [[nodiscard]] std::size_t size() const;

 private:
  friend Result<Forecast> step_forecast(const StepForecastInput& input, ShortSteps& known,
                                        const StepForecastOptions& options);
  struct Known;
  struct Key;
  struct Impl;
  // The short step of `parts` with `micro_batches` micro-batches, from the cache or computed. Changes `parts`
  // temporarily and restores it before it returns.
  Result<std::shared_ptr<const Known>> of(PricedStep& parts, const Layout& layout, const StepModel& steps,
                                          std::uint32_t micro_batches, const AnalysisOptions& options);
  std::unique_ptr<Impl> impl_;
};

// The forecast of a described step. All ranks run from 0 to the end of the step. If the pipeline reaches a
// steady state, only some of its rounds are simulated and the others are added; the result equals that of the
// full simulation except for rounding. With `path_steps` everything is simulated. Errors: those of
// predict_step and memory_forecast.
[[nodiscard]] Result<Forecast> step_forecast(const Transformer& model, const Layout& layout,
                                             const Platform& platform, const StepModel& steps,
                                             const StepForecastOptions& options = {});
// The same with a cache of short steps, for many forecasts with one StepModel.
[[nodiscard]] Result<Forecast> step_forecast(const StepForecastInput& input, ShortSteps& known,
                                             const StepForecastOptions& options = {});
// The step time that step_forecast() would give, much faster. Errors: those of step_forecast(). Nothing if
// the step has more micro-batches than can be simulated in full, because step_forecast() might then fail.
[[nodiscard]] Result<std::optional<Estimate>> step_time(const StepForecastInput& input);
// The same for a step that predict_step() has simulated with all micro-batches.
[[nodiscard]] Result<Forecast> step_forecast(const StepForecastInput& input, const PredictedStep& step,
                                             const StepForecastOptions& options = {});

// Conversions of parts of a prediction into members of a Forecast. settings_of(): the choices by which users
// compare layouts.
[[nodiscard]] ForecastCoverage forecast_coverage(const Coverage& coverage);
[[nodiscard]] std::vector<ForecastItemList> explained_items(const std::vector<ExplainedList>& lists);
[[nodiscard]] std::vector<Setting> settings_of(const Layout& layout, const Transformer& model);
[[nodiscard]] ForecastMemory memory_of(const MemoryForecast& memory);

}  // namespace stepcast
