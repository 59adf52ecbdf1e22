// Rows of the tests that predict recorded steps: names, bands and sets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/rebuild/recorded_program.h"

#include "lab/metrics.h"
#include "lab/suite.h"

namespace stepcast {

inline constexpr double kUsPerMs = 1e3;

// "rank 3 step 12".
[[nodiscard]] std::string row_name(const RecordedStepFacts& facts);

// Mean of the values, and half-width of the 80 % band of a further value; no half-width for a single value.
struct Spread {
  double mean = 0;
  std::optional<double> half_width;
};
[[nodiscard]] Spread spread_of(std::span<const double> values);

// A row with the band of `spread` around the prediction, if it has one.
[[nodiscard]] ScoredRow row_of(std::string name, double measured_us, double predicted_us,
                               const Spread& spread = {});

// Weighted mean of two predictions of one time. Weights are the inverse squares of their mean squared errors on values seen
// so far; equal without any.
class TwoWays {
 public:
  void seen(double measured, double first, double second);
  [[nodiscard]] double together(double first, double second) const;

 private:
  double first_squares_ = 0, second_squares_ = 0;
};

// Rows of all tests of recorded steps. Tests are in the order of their first row; `step_time` always exists.
class StepScores {
 public:
  // The test with this name; a new one of times in ms if there is none.
  [[nodiscard]] TestScore& test(std::string_view name);
  void add(std::string_view name, const std::string& set, ScoredRow row, std::uint64_t n_fit = 0,
           const std::string& group = {});
  // Accumulates a number over the rows of a set: the maximum, or the sum.
  void keep(std::string_view name, const std::string& set, std::string_view extra, double value,
            ExtraMetric::Over over);
  [[nodiscard]] std::vector<TestScore> finish() &&;

 private:
  std::vector<TestScore> tests_{{.test = "step_time", .protocol = "recorded", .unit = "ms"}};
};

}  // namespace stepcast
