// Errors of predictions against measurements: one set of metrics for all suites, so that scores can be compared.
//
// ape = |predicted - measured| / measured, in percent; bias = mean of (predicted - measured) / measured, in
// percent.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace stepcast {

// One prediction and its measurement, in the unit of its test.
struct ScoredRow {
  std::string row;  // "rank 3 step 10"
  double measured = 0;
  double predicted = 0;
  std::optional<double> p10, p90;  // interval of the prediction, if it has one
  std::string shares;              // composition of the predicted time: "gemm 0.612 attention 0.103 ..."
};
// The row with forecast and interval multiplied by `factor`.
[[nodiscard]] ScoredRow scaled(ScoredRow row, double factor);

// Relative errors of some rows. A row with a measurement of 0 or less has no relative error and is not counted.
struct Metrics {
  std::uint64_t n = 0;
  double mape = 0;
  double median_ape = 0;
  double gmae = 0;  // exp(mean ln(ape + 4e-4)), the published geometric mean, on fractions
  double p80_ape = 0;
  double p90_ape = 0;
  double max_ape = 0;
  double min_ape = 0, sd_ape = 0;  // smallest, and standard deviation from the mean, of these rows
  double bias = 0;
  // Over the rows with an interval: share with the measurement inside it, and the median of (p90 - p10) / predicted.
  std::optional<double> interval_coverage;
  std::optional<double> interval_width_median;
  // Interval score of an 80 % interval (Gneiting and Raftery 2007), percent of the prediction: the mean of (p90 - p10) plus
  // ten times the distance of the measurement outside of it. The second is that score over the score of the best constant
  // width for these rows; 1 to 1.3 is typical, as better known rows have narrower intervals.
  std::optional<double> interval_score, interval_score_of_best;
};

// Quantiles interpolate linearly between neighbours.
[[nodiscard]] Metrics score(std::span<const ScoredRow> rows);

// The mean over sets, so that sets with many rows do not weigh more. `n` is the sum, `max_ape` the largest and `min_ape` the
// smallest. Sets without rows are left out.
[[nodiscard]] Metrics mean_over_sets(std::span<const Metrics> sets);

}  // namespace stepcast
