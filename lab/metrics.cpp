#include "lab/metrics.h"

#include <algorithm>
#include <cmath>

#include "stepcast/base/statistics.h"

namespace stepcast {

ScoredRow scaled(ScoredRow row, double factor) {
  row.predicted *= factor;
  if (row.p10) *row.p10 *= factor;
  if (row.p90) *row.p90 *= factor;
  return row;
}

namespace {

// Interval score of a measurement, all three relative to the prediction. The penalty is 2 / 0.2 for each unit outside of an
// 80 % interval.
double interval_score(double low, double high, double measured) {
  constexpr double kPenalty = 10;
  return high - low + kPenalty * (std::max(low - measured, 0.0) + std::max(measured - high, 0.0));
}

// The mean interval score with one interval for all rows: from the 10th to the 90th percentile of the measured values.
double score_of_one_interval(const std::vector<double>& measured) {
  const double low = quantile(measured, 0.1), high = quantile(measured, 0.9);
  double sum = 0;
  for (const double m : measured) sum += interval_score(low, high, m);
  return sum / static_cast<double>(measured.size());
}

}  // namespace

Metrics score(std::span<const ScoredRow> rows) {
  Metrics metrics;
  std::vector<double> apes, widths, measured;
  double scores = 0;
  double sum_ln = 0;
  double sum_bias = 0;
  std::uint64_t inside = 0;
  for (const ScoredRow& row : rows) {
    if (!(row.measured > 0)) continue;
    const double error = (row.predicted - row.measured) / row.measured;
    apes.push_back(100 * std::abs(error));
    sum_bias += 100 * error;
    sum_ln += std::log(std::abs(error) + 4e-4);
    if (row.p10 && row.p90 && row.predicted > 0) {
      widths.push_back(100 * (*row.p90 - *row.p10) / row.predicted);
      if (*row.p10 <= row.measured && row.measured <= *row.p90) ++inside;
      measured.push_back(row.measured / row.predicted);
      scores += interval_score(*row.p10 / row.predicted, *row.p90 / row.predicted, measured.back());
    }
  }
  metrics.n = apes.size();
  if (apes.empty()) return metrics;
  const auto n = static_cast<double>(apes.size());
  for (const double ape : apes) metrics.mape += ape / n;
  metrics.median_ape = quantile(apes, 0.5);
  metrics.p80_ape = quantile(apes, 0.8);
  metrics.p90_ape = quantile(apes, 0.9);
  metrics.max_ape = *std::ranges::max_element(apes);
  metrics.min_ape = *std::ranges::min_element(apes);
  double squares = 0;
  for (const double ape : apes) squares += (ape - metrics.mape) * (ape - metrics.mape);
  metrics.sd_ape = std::sqrt(squares / n);
  metrics.gmae = 100 * std::exp(sum_ln / n);
  metrics.bias = sum_bias / n;
  if (!widths.empty()) {
    metrics.interval_coverage = 100 * static_cast<double>(inside) / static_cast<double>(widths.size());
    metrics.interval_score = 100 * scores / static_cast<double>(widths.size());
    metrics.interval_width_median = quantile(std::move(widths), 0.5);
    const double best = 100 * score_of_one_interval(measured);
    if (best > 0) metrics.interval_score_of_best = *metrics.interval_score / best;
  }
  return metrics;
}

Metrics mean_over_sets(std::span<const Metrics> sets) {
  Metrics mean;
  double count = 0, with_intervals = 0, with_best = 0, coverage = 0, width = 0, interval = 0, of_best = 0;
  constexpr double Metrics::*kMeans[] = {&Metrics::mape,    &Metrics::median_ape, &Metrics::gmae,
                                         &Metrics::p80_ape, &Metrics::p90_ape,    &Metrics::sd_ape,
                                         &Metrics::bias};
  for (const Metrics& set : sets) {
    if (set.n == 0) continue;
    ++count;
    mean.n += set.n;
    for (double Metrics::*member : kMeans) mean.*member += set.*member;
    mean.max_ape = std::max(mean.max_ape, set.max_ape);
    mean.min_ape = count == 1 ? set.min_ape : std::min(mean.min_ape, set.min_ape);
    if (set.interval_coverage && set.interval_width_median) {
      ++with_intervals;
      coverage += *set.interval_coverage;
      width += *set.interval_width_median;
      interval += set.interval_score.value_or(0);
    }
    if (set.interval_score_of_best) {
      ++with_best;
      of_best += *set.interval_score_of_best;
    }
  }
  if (count == 0) return mean;
  for (double Metrics::*member : kMeans) mean.*member /= count;
  if (with_intervals > 0) {
    mean.interval_coverage = coverage / with_intervals;
    mean.interval_width_median = width / with_intervals;
    mean.interval_score = interval / with_intervals;
  }
  if (with_best > 0) mean.interval_score_of_best = of_best / with_best;
  return mean;
}

}  // namespace stepcast
