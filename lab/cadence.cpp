#include "lab/cadence.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/recorded_base.h"
#include "stepcast/sources/recorded_steps.h"
#include "stepcast/trace/trace_index.h"

namespace stepcast {
namespace {

constexpr std::size_t kLeastSteps = 4;

// Starts of the longest sequence of steps with consecutive numbers, in microseconds.
std::vector<double> starts_of_row(const TraceSet& set) {
  const std::vector<std::int64_t> ordinary = ordinary_steps(set);
  std::vector<double> longest, row;
  std::int64_t before = 0;
  for (const detail::RecordedStep& step : detail::find_steps(set.ranks.front())) {
    if (!std::ranges::binary_search(ordinary, step.number)) continue;
    if (!row.empty() && step.number != before + 1) row.clear();
    row.push_back(static_cast<double>(step.start.count()) * 1e-3);
    before = step.number;
    if (row.size() > longest.size()) longest = row;
  }
  return longest;
}

}  // namespace

std::optional<Cadence> recorded_cadence(const TraceSet& set) {
  const std::vector<double> starts = starts_of_row(set);
  if (starts.size() < kLeastSteps) return std::nullopt;
  std::vector<double> between;
  for (std::size_t i = 1; i < starts.size(); ++i) between.push_back(starts[i] - starts[i - 1]);
  const auto n = static_cast<double>(between.size());
  const double mean = (starts.back() - starts.front()) / n;
  double squares = 0;
  for (const double us : between) squares += (us - mean) * (us - mean) / n;
  return Cadence{static_cast<std::int64_t>(starts.size()), mean, mean > 0 ? std::sqrt(squares) / mean : 0};
}

Result<double> answered_period_us(const TraceSet& set) {
  STEPCAST_ASSIGN(const RecordedProgram recorded, rebuild_program(set.inputs()));
  STEPCAST_ASSIGN(const RecordedBase base, recorded_base(recorded));
  return base.answered_us;
}

}  // namespace stepcast
