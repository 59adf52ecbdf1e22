// The rows of a sweep as one answer: what came of its points, and a page with a table of them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/report/document.h"
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

}  // namespace stepcast
