// Builds a Forecast: one function for steps that were predicted, replayed or measured.
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

struct ForecastOptions {
  std::size_t collectives = 256;  // to list, those with most waiting and transfer; 0 is all
  std::size_t path_names = 50;    // longest contributors of the critical path; 0 is all
  bool path_steps = false;        // list every step of the path
  // No other class than AnalysedStep::critical, no collectives and no path: for rows of many forecasts.
  bool only_critical = false;
};

// `asked` holds what only the caller knows: what was asked, coverage, memory, work per step (throughput),
// notes. Whatever follows from the times is filled in. `step` is the step time with its band; without it the longest window,
// as `measured`.
[[nodiscard]] Forecast make_forecast(const AnalysisInput& input, std::optional<Estimate> step, Forecast asked,
                                     const ForecastOptions& options = {});

// The same of an analysis, with rounds that it leaves out, which take so long together.
struct AnalysedStep {
  const StepAnalysis& analysis;
  std::optional<Estimate> step{};
  // The class whose parts explain the step, where it is known; otherwise the last to end, of several the busiest.
  std::optional<RankClassId> critical{};
  double rounds = 0, left_out_us = 0;
};
[[nodiscard]] Forecast make_forecast(const AnalysedStep& step, Forecast asked,
                                     const ForecastOptions& options = {});

// What training costs at the expected step of `forecast`, into forecast.training; nothing if nothing was asked. An
// error: samples (or tokens) are asked for and a step's are not known, two amounts at once; those of forecast_run(), which
// needs `job`.
[[nodiscard]] Status add_training(Forecast& forecast, const TrainingBudget& budget,
                                  const RunJob* job = nullptr);

// What the nodes draw (cost/node_power.h), into forecast.power, of the critical class of ranks; nothing for a device that
// states no power limit. Before add_training(), whose energy follows from it. `limit_W`: of each GPU, which the times already
// are under. `shares`: of a described step, as `plan` has them; null: the forecast's own breakdown.
void add_power(Forecast& forecast, const Platform& platform, std::optional<double> limit_W = {},
               const StepShares* shares = nullptr);

}  // namespace stepcast
