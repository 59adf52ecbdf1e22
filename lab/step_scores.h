// Rows of the tests that predict recorded steps: their names, bands and sets.
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

// Two predictions of one time, each counting by how far it was off where the answer is known: the mean weighted by the
// squared inverse of their mean squared errors. Alike where nothing was seen.
class TwoWays {
 public:
  void seen(double measured, double first, double second);
  [[nodiscard]] double together(double first, double second) const;

 private:
  double first_squares_ = 0, second_squares_ = 0;
};

// Rows of all tests of recorded steps, in the order in which tests first get one; `step_time` is always there.
class StepScores {
 public:
  // One of times in ms where there is none of this name.
  [[nodiscard]] TestScore& test(std::string_view name);
  void add(std::string_view name, const std::string& set, ScoredRow row, std::uint64_t n_fit = 0,
           const std::string& group = {});
  // Keeps a number over the rows of a set: the largest, or the sum.
  void keep(std::string_view name, const std::string& set, std::string_view extra, double value,
            ExtraMetric::Over over);
  [[nodiscard]] std::vector<TestScore> finish() &&;

 private:
  std::vector<TestScore> tests_{{.test = "step_time", .protocol = "recorded", .unit = "ms"}};
};

}  // namespace stepcast
