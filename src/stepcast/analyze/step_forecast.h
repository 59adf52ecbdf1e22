// The Forecast of a described training step.
//
//   StepModel steps{platform};
//   STEPCAST_ASSIGN(const Forecast f, step_forecast(model, layout, platform, steps));
#pragma once

#include <optional>
#include <span>

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/coverage.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/stage_pools.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/memory.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct StepForecastInput {
  const Transformer& model;
  const Layout& layout;
  const Platform& platform;
  const PredictedStep& step;  // of the three
  StepPricer& prices;         // as the step was priced with
};

struct StepForecastOptions {
  bool explained = false;  // also the operations of every kind of layer
  // Where stages lie on several pools of GPUs; the first is that of `platform` and `steps`.
  std::span<const StagePool> pools{};
  std::optional<double> peak_tflops_per_gpu{};  // of all pools, the mean
  double work_share =
      1;  // of the step's samples over those that `layout` says: replicas of other pools have fewer or more
  ForecastOptions forecast{};
};

// All ranks run from 0 to the end of the step. Where a pipeline comes to a steady state only some rounds of it are
// simulated, the others are added: the forecast of all (predict_step() and the other step_forecast()) but for rounding.
// With `path_steps` all are. Errors: those of predict_step and memory_forecast.
[[nodiscard]] Result<Forecast> step_forecast(const Transformer& model, const Layout& layout,
                                             const Platform& platform, StepModel& steps,
                                             const StepForecastOptions& options = {});
// Of a step with all of its micro-batches.
[[nodiscard]] Result<Forecast> step_forecast(const StepForecastInput& input,
                                             const StepForecastOptions& options = {});

// The choices that a person compares layouts by, by name.
[[nodiscard]] ForecastCoverage forecast_coverage(const Coverage& coverage);
[[nodiscard]] std::vector<Setting> settings_of(const Layout& layout);
[[nodiscard]] ForecastMemory memory_of(const MemoryForecast& memory);

}  // namespace stepcast
