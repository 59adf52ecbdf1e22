#include "calibrate/detail/curve_points.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "stepcast/base/statistics.h"

namespace stepcast::detail {
namespace {

// The value of least mean relative error: the median with weights 1 / time. Slow stretches of a machine weigh
// less than what it can do.
double relative_median(std::vector<double> ln_times) {
  if (ln_times.empty()) return 0;
  std::ranges::sort(ln_times);
  double total = 0;
  for (const double v : ln_times) total += std::exp(ln_times.front() - v);
  double sum = 0;
  for (std::size_t i = 0; i < ln_times.size(); ++i) {
    sum += std::exp(ln_times.front() - ln_times[i]);
    if (std::abs(sum - total / 2) < 1e-9 * total && i + 1 < ln_times.size())
      return (ln_times[i] + ln_times[i + 1]) / 2;
    if (sum > total / 2) return ln_times[i];
  }
  return ln_times.back();
}

}  // namespace

std::vector<CurvePoint> join_samples(std::span<const CollectiveSample> samples, double bins_per_octave,
                                     std::span<const DType> dtypes) {
  std::map<std::pair<std::size_t, double>, std::vector<double>> by_size;
  for (const CollectiveSample& s : samples) {
    std::size_t dtype = 0;
    if (!dtypes.empty())
      dtype = static_cast<std::size_t>(std::ranges::find(dtypes, s.dtype) - dtypes.begin());
    by_size[{dtype, s.message_bytes}].push_back(std::log(s.time_us));
  }
  std::map<std::pair<std::size_t, long>, std::vector<CurvePoint>> bins;
  for (auto& [key, times] : by_size) {
    const double x = std::log2(key.second);
    const auto bin = static_cast<long>(std::floor(x * bins_per_octave + 1e-9));
    const auto n = static_cast<double>(times.size());
    bins[{key.first, bin}].push_back({x, median(std::move(times)), n, key.first});
  }
  std::vector<CurvePoint> points;
  for (const auto& [key, members] : bins) {
    CurvePoint joined{0, 0, 0, key.first};
    for (const CurvePoint& p : members) {
      joined.x += p.x / static_cast<double>(members.size());
      joined.weight += p.weight;
    }
    std::vector<double> moved;  // along a line that is a little flatter than the size
    for (const CurvePoint& p : members) moved.push_back(p.y - (p.x - joined.x) * std::numbers::ln2 * 0.9);
    joined.y = relative_median(std::move(moved));
    points.push_back(joined);
  }
  return points;
}

long octave_of(double log2_bytes) { return static_cast<long>(std::floor(log2_bytes + 1e-9)); }

}  // namespace stepcast::detail
