// The rows of a sweep as one answer: what came of its points, and a page with a table of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/fields.h"
#include "stepcast/base/result.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/report/document.h"
#include "stepcast/rollout/rl_forecast.h"
#include "stepcast/sweep/sweep_folder.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

// What came of the points that have a row.
struct SweepOutcome {
  std::size_t n = 0, n_failed = 0, n_too_large = 0;
  std::map<std::string, std::size_t> errors;  // of the points that cannot be run: how many say it
  std::string fastest;                        // point that fits, its settings in words; or nothing
  double fastest_ms = 0;

  // Lines for people.
  [[nodiscard]] std::string text() const;
};

// Of all points, or of those that `counts` takes. Errors: a row that is no JSON.
[[nodiscard]] Result<SweepOutcome> sweep_outcome(const SweepSpec& spec, const SweepRows& rows,
                                                 const std::function<bool(const SweepPoint&)>& counts = {});

// So many rows a browser filters and sorts at once; the fastest ones are taken.
inline constexpr std::size_t kMostSweepRowsOfPage = 10'000;

// A page: the fastest point, then a row for each point with the settings in which points differ. Errors: as above.
[[nodiscard]] Result<ReportDocument> sweep_document(const SweepSpec& spec, const SweepRows& rows);

// What came of one point of a sweep, as a JSON object on one line. The keys of a mode are always the same, null where
// nothing is known, so that programs that read tables (DuckDB, pandas) find their columns; docs/sweeps.md lists them.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const Forecast& forecast);
// Of a step of post-training: `layout` says the split, and how it is trained.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const RlForecast& forecast);
// Of the layout that the plan chose; `training`: with it, where one is asked for. The plan must have priced one.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const LayoutPlan& plan,
                                    const std::optional<TrainingOption>& training);
// Of a point that cannot be run: why, in one sentence.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const Error& error);
[[nodiscard]] std::string sweep_row_schema();

// How far a sweep is.
struct SweepStatus {
  STEPCAST_FIELDS(SweepStatus);
  STEPCAST_FIELD(std::string, spec, "hash of the points of the sweep");
  STEPCAST_FIELD(std::uint64_t, n_points, "number of points");
  STEPCAST_FIELD(std::uint64_t, n_done, "number of points with a row");
  STEPCAST_FIELD(std::uint64_t, n_failed, "number of points that cannot run");
  STEPCAST_FIELD(std::uint64_t, n_does_not_fit, "number of points that do not fit in memory");
};
[[nodiscard]] std::string sweep_status_json(const SweepStatus& answer);
[[nodiscard]] std::string sweep_status_schema();

}  // namespace stepcast
