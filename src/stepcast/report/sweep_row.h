// What came of one point of a sweep, as a JSON object on one line. The keys of a mode are always the same, null where
// nothing is known, so that programs that read tables (DuckDB, pandas) find their columns; docs/sweeps.md lists them.
#pragma once

#include <cstdint>
#include <string>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/rollout/rl_forecast.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

[[nodiscard]] std::string sweep_row(const SweepPoint& point, const Forecast& forecast);
// Of a step of post-training: `layout` says the split, and how it is trained.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const RlForecast& forecast);
// Of the layout that the plan chose; `budget` says what a training costs with it. The plan must have priced one.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const LayoutPlan& plan,
                                    const TrainingBudget& budget);
// Of a point that cannot be run: why, in one sentence.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const Error& error);
[[nodiscard]] std::string sweep_row_schema();

// How far a sweep is.
struct SweepStatus {
  std::string spec;  // its hash
  std::uint64_t n_points = 0, n_done = 0, n_failed = 0, n_does_not_fit = 0;
};
[[nodiscard]] std::string sweep_status_json(const SweepStatus& status);
[[nodiscard]] std::string sweep_status_schema();

}  // namespace stepcast
