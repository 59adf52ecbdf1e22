// Rows of the tests that predict recorded steps: their names, bands and sets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/trace/recorded_program.h"

#include "lab/metrics.h"
#include "lab/suite.h"

namespace stepcast {

inline constexpr double kUsPerMs = 1e3;

// "rank 3 step 12".
[[nodiscard]] std::string row_name(const RecordedStepFacts& facts);

// Mean of the values and the half-width of the band that a further one lies in with 80 %; none of a single value,
// which says nothing of how far apart they are.
struct Spread {
  double mean = 0;
  std::optional<double> half_width;
};
[[nodiscard]] Spread spread_of(std::span<const double> values);

// A row with the band of `spread` around what was predicted, where it has one.
[[nodiscard]] ScoredRow row_of(std::string name, double measured_us, double predicted_us,
                               const Spread& spread = {});

// Rows of all tests of recorded steps, in the order in which tests first get one; `step_time` is always there.
class StepScores {
 public:
  [[nodiscard]] TestScore& test(std::string_view name);
  void add(std::string_view name, const std::string& set, ScoredRow row, std::uint64_t n_fit = 0,
           const std::string& group = {});
  [[nodiscard]] std::vector<TestScore> finish() &&;

 private:
  std::vector<TestScore> tests_{1, TestScore{.test = "step_time",
                                             .protocol = "recorded",
                                             .unit = "ms",
                                             .relative = true,
                                             .sets = {},
                                             .overall = {},
                                             .pooled = {},
                                             .extras = {},
                                             .groups = {}}};
};

}  // namespace stepcast
