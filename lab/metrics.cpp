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

Metrics score(std::span<const ScoredRow> rows) {
  Metrics metrics;
  std::vector<double> apes, widths;
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
  metrics.gmae = 100 * std::exp(sum_ln / n);
  metrics.bias = sum_bias / n;
  if (!widths.empty()) {
    metrics.interval_coverage = 100 * static_cast<double>(inside) / static_cast<double>(widths.size());
    metrics.interval_width_median = quantile(std::move(widths), 0.5);
  }
  return metrics;
}

Metrics mean_over_sets(std::span<const Metrics> sets) {
  Metrics mean;
  double count = 0;
  double with_intervals = 0;
  double coverage = 0;
  double width = 0;
  for (const Metrics& set : sets) {
    if (set.n == 0) continue;
    ++count;
    mean.n += set.n;
    mean.mape += set.mape;
    mean.median_ape += set.median_ape;
    mean.gmae += set.gmae;
    mean.p80_ape += set.p80_ape;
    mean.p90_ape += set.p90_ape;
    mean.max_ape = std::max(mean.max_ape, set.max_ape);
    mean.bias += set.bias;
    if (set.interval_coverage && set.interval_width_median) {
      ++with_intervals;
      coverage += *set.interval_coverage;
      width += *set.interval_width_median;
    }
  }
  if (count == 0) return mean;
  for (double* value : {&mean.mape, &mean.median_ape, &mean.gmae, &mean.p80_ape, &mean.p90_ape, &mean.bias})
    *value /= count;
  if (with_intervals > 0) {
    mean.interval_coverage = coverage / with_intervals;
    mean.interval_width_median = width / with_intervals;
  }
  return mean;
}

}  // namespace stepcast
