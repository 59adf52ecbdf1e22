// The rows of a sweep: one row per point as JSON, a summary of all points, and a page with a table.
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

// A summary of the points that have a row.
struct SweepOutcome {
  std::size_t n = 0, n_failed = 0, n_too_large = 0;
  // The reasons why points cannot be run, with the number of points for each.
  std::map<std::string, std::size_t> errors;
  // The settings of the fastest point that fits; empty if none does.
  std::string fastest;
  double fastest_ms = 0;

  // The summary as lines of text.
  [[nodiscard]] std::string text() const;
};

// Summarises the rows of all points, or only of those for which `counts` returns true. Error: a row that is
// not JSON.
[[nodiscard]] Result<SweepOutcome> sweep_outcome(const SweepSpec& spec, const SweepRows& rows,
                                                 const std::function<bool(const SweepPoint&)>& counts = {});

// A browser can filter and sort this number of rows quickly. If there are more, the fastest ones are shown.
inline constexpr std::size_t kMostSweepRowsOfPage = 10'000;

// The page of a sweep: the fastest point, and a table with one row per point. Its columns are the settings
// that differ between points, and the results. Errors as for sweep_outcome().
[[nodiscard]] Result<ReportDocument> sweep_document(const SweepSpec& spec, const SweepRows& rows);

// The row of one point, as a JSON object on one line. The keys are the same for all points of a mode, with
// null for unknown values, so that programs for tables (DuckDB, pandas) find their columns. docs/sweeps.md
// lists the keys.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const Forecast& forecast);
// The row of a step of post-training. `layout` describes the split of the GPUs and the training layout.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const RlForecast& forecast);
// The row of a plan: the chosen layout. `training`: the training with this layout, if one was asked for. The
// plan must have priced at least one layout.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const LayoutPlan& plan,
                                    const std::optional<TrainingOption>& training);
// The row of a point that cannot be run, with the reason in one sentence.
[[nodiscard]] std::string sweep_row(const SweepPoint& point, const Error& error);
[[nodiscard]] std::string sweep_row_schema();

// The progress of a sweep.
struct SweepStatus {
  STEPCAST_FIELDS(SweepStatus);
  STEPCAST_FIELD(std::string, spec, "hash of the points of the sweep");
  STEPCAST_FIELD(std::uint64_t, n_points, "number of points");
  STEPCAST_FIELD(std::uint64_t, n_done, "number of points with a row");
  STEPCAST_FIELD(std::uint64_t, n_failed, "number of points that cannot run");
  STEPCAST_FIELD(std::uint64_t, n_does_not_fit, "number of points that do not fit in memory");
};
// The progress as JSON, stepcast.sweep_status/1, and its schema.
[[nodiscard]] std::string sweep_status_json(const SweepStatus& answer);
[[nodiscard]] std::string sweep_status_schema();

}  // namespace stepcast
