#include "stepcast/cost/detail/curve_tables.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace stepcast::detail {
namespace {

constexpr double kLn2 = std::numbers::ln2;
constexpr std::size_t kPoints = TimeCurve::kPoints;

}  // namespace

Tables tables_of(const TimeCurve& curve) { return {curve.ln_time(), curve.ln_low(), curve.ln_high()}; }

TimeCurve finished(Tables tables, const TimeCurve& like, EstimateSource source) {
  TimeCurve::Table before = tables.time;
  make_non_decreasing(tables.time);
  for (std::size_t i = 0; i < kPoints; ++i) {
    tables.low[i] += tables.time[i] - before[i];
    tables.high[i] += tables.time[i] - before[i];
  }
  TimeCurve result{tables.time, tables.low, tables.high};
  result.source = weaker(like.source, source);
  result.outside_source = weaker(like.outside_source, source);
  result.supported_from = like.supported_from;
  result.supported_to = like.supported_to;
  return result;
}

TimeCurve::Table bandwidth_share(const TimeCurve& curve) {
  TimeCurve::Table share{};
  // ln(bytes / us) at each point, then relative to the best one.
  double best = -1e300;
  for (std::size_t i = 0; i < kPoints; ++i) {
    share[i] = TimeCurve::log2_bytes(i) * kLn2 - curve.ln_time()[i];
    if (TimeCurve::log2_bytes(i) <= curve.supported_to + 1e-9) best = std::max(best, share[i]);
  }
  for (double& s : share) s = std::exp(std::min(s - best, 0.0));
  return share;
}

}  // namespace stepcast::detail
