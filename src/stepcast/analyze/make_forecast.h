// Builds a Forecast from a step that was predicted, replayed or measured.
//
//   STEPCAST_ASSIGN(const Plan plan, Plan::compile(program));
//   STEPCAST_ASSIGN(const Timeline timeline, plan.simulate(costs));
//   const FlatProgram flat{program};
//   const TaskTimes times = TaskTimes::simulated(flat, timeline);
//   Forecast f = make_forecast({.flat = flat, .costs = costs, .times = times, .windows = ...}, step, asked);
#pragma once

#include <cstddef>
#include <optional>

#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/step_analysis.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_prediction.h"
#include "stepcast/program/program.h"

namespace stepcast {

// What a forecast lists.
struct ForecastOptions {
  // The number of collectives to list, those with most waiting and transfer; 0: all.
  std::size_t collectives = 256;
  // The number of names to list on the critical path, the longest first; 0: all.
  std::size_t path_names = 50;
  bool path_steps = false;  // list every step of the path
  // Only the critical class (AnalysedStep::critical), no collectives and no path. For tables of many
  // forecasts.
  bool only_critical = false;
};

// Makes the forecast of an analysed program. `asked` contains what only the caller knows: what was asked,
// coverage, memory, work per step (throughput), notes. All that follows from the times is filled in. `step`:
// the step time with its interval; without it, the longest window is taken, as source `measured`.
[[nodiscard]] Forecast make_forecast(const AnalysisInput& input, std::optional<Estimate> step, Forecast asked,
                                     const ForecastOptions& options = {});

// The same for a finished analysis. The analysis leaves out `rounds` rounds of the pipeline,
// which take `left_out_us` microseconds in total.
struct AnalysedStep {
  const StepAnalysis& analysis;
  std::optional<Estimate> step{};
  // The class that explains the step time, if known. Otherwise the last to end; of several, the busiest.
  std::optional<RankClassId> critical{};
  double rounds = 0, left_out_us = 0;
};
[[nodiscard]] Forecast make_forecast(const AnalysedStep& step, Forecast asked,
                                     const ForecastOptions& options = {});

// Fills forecast.training with the cost of a training at the expected step. Does nothing if nothing was
// asked. Errors: samples or tokens are asked for but unknown for a step, two amounts at once, and the errors
// of forecast_run(), which needs `job`.
[[nodiscard]] Status add_training(Forecast& forecast, const TrainingBudget& budget,
                                  const RunJob* job = nullptr);

// Fills forecast.power with the power of the nodes (cost/node_power.h) from the critical class. Does nothing
// if the device states no power limit. Call it before add_training(), which derives the energy from it.
// `limit_W`: the limit of each GPU; the times must already include it. `shares`: the shares of a described
// step as `plan` has them; null: the breakdown of the forecast is used.
void add_power(Forecast& forecast, const Platform& platform, std::optional<double> limit_W = {},
               const StepShares* shares = nullptr);

}  // namespace stepcast
