// How far predictions are from measurements: one set of numbers for every suite, so that scores can be
// compared.
//
// ape = |predicted - measured| / measured, in percent; bias = mean of (predicted - measured) / measured, in
// percent.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace stepcast {

// One prediction beside its measurement, in the unit of its test.
struct ScoredRow {
  std::string row;  // "rank 3 step 10"
  double measured = 0;
  double predicted = 0;
  std::optional<double> p10, p90;  // interval of the prediction, where it has one
  std::string shares;              // where the predicted time goes: "gemm 0.612 attention 0.103 ..."
};
// With the forecast and its interval `factor` times as long.
[[nodiscard]] ScoredRow scaled(ScoredRow row, double factor);

// Relative errors of some rows. Rows whose measurement is not above 0 have no relative error and are not
// counted.
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
  // Of the rows with an interval: share whose measurement lies in it, and the median of (p90 - p10) /
  // predicted.
  std::optional<double> interval_coverage;
  std::optional<double> interval_width_median;
  // What intervals are worth, percent of the prediction: the mean of (p90 - p10) and of ten times how far outside of it
  // the measurement lies (the interval score of an 80 % interval, Gneiting and Raftery 2007); and that over the score of the
  // one width which would have been the best for these rows. 1 to 1.3: rows that are known better have narrower intervals.
  std::optional<double> interval_score, interval_score_of_best;
};

// Quantiles interpolate linearly between neighbours.
[[nodiscard]] Metrics score(std::span<const ScoredRow> rows);

// The mean over sets, which is what counts: a set with many rows is not worth more. `n` is the sum, `max_ape`
// the largest and `min_ape` the smallest. Sets without rows are left out.
[[nodiscard]] Metrics mean_over_sets(std::span<const Metrics> sets);

}  // namespace stepcast
