// What came of one point of a sweep, as a JSON object on one line. The keys of a mode are always the same, null where
// nothing is known, so that programs that read tables (DuckDB, pandas) find their columns; docs/sweeps.md lists them.
#pragma once

#include <string>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

[[nodiscard]] std::string sweep_row(const SweepPoint& point, const Forecast& forecast);
// Of the layout that the plan chose; `budget` says what a training costs with it. The plan must have priced one.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const LayoutPlan& plan,
                                    const TrainingBudget& budget);
// Of a point that cannot be run: why, in one sentence.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const Error& error);

}  // namespace stepcast
