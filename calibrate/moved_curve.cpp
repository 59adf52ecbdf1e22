#include "calibrate/moved_curve.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

// Knots of a record, log2 bytes: 47 knots from 256 B to 2 GiB.
constexpr double kFirstKnot = 8, kLastKnot = 31, kKnotStep = 0.5;
constexpr int kDigits = 6;

// Square root of the share of the best bus bandwidth up to 1 GiB, made non-decreasing.
TimeCurve::Table bandwidth_place(const TimeCurve& curve) {
  constexpr std::size_t kLast = 30 * static_cast<std::size_t>(1 / TimeCurve::kStep);
  TimeCurve::Table place{};
  double best = -1e300;
  for (std::size_t i = 0; i < place.size(); ++i) {
    place[i] = TimeCurve::log2_bytes(i) * std::numbers::ln2 - curve.ln_time()[i];
    if (i <= kLast) best = std::max(best, place[i]);
  }
  double so_far = 0;
  for (double& p : place) so_far = p = std::max(so_far, std::exp(0.5 * std::min(p - best, 0.0)));
  return place;
}

double table_at(const TimeCurve::Table& table, double log2_bytes) {
  const double position =
      std::clamp(log2_bytes / TimeCurve::kStep, 0.0, static_cast<double>(TimeCurve::kPoints - 1));
  const auto i = std::min(static_cast<std::size_t>(position), TimeCurve::kPoints - 2);
  const double share = position - static_cast<double>(i);
  return (1 - share) * table[i] + share * table[i + 1];
}

struct Anchor {
  double place, move;
};

double move_at(const std::vector<Anchor>& anchors, double place) {
  const auto after = std::ranges::find_if(anchors, [&](const Anchor& a) { return a.place > place; });
  if (after == anchors.begin()) return anchors.front().move;
  if (after == anchors.end()) return anchors.back().move;
  const Anchor& before = *(after - 1);
  const double share = (place - before.place) / (after->place - before.place);
  return before.move + share * (after->move - before.move);
}

std::map<double, double> ln_medians(std::span<const CollectiveSample> samples) {
  std::map<double, std::vector<double>> by_size;
  for (const CollectiveSample& s : samples)
    by_size[std::log2(s.message_bytes)].push_back(std::log(s.time_us));
  std::map<double, double> result;
  for (auto& [x, times] : by_size) result[x] = median(std::move(times));
  return result;
}

}  // namespace

TimeCurve moved_curve(const TimeCurve& expected, std::span<const CollectiveSample> samples,
                      const RelatedBand& band, double log2_ns_of_byte) {
  const TimeCurve::Table place = bandwidth_place(expected);
  const std::map<double, double> measured = ln_medians(samples);
  std::vector<Anchor> anchors;
  for (const auto& [x, ln_us] : measured)
    anchors.push_back({table_at(place, x), ln_us - expected.ln_time_us(x)});
  std::ranges::stable_sort(anchors, {}, &Anchor::place);
  TimeCurve::Table time{}, low{}, high{};
  for (std::size_t i = 0; i < time.size(); ++i) time[i] = expected.ln_time()[i] + move_at(anchors, place[i]);
  make_non_decreasing(time);
  for (std::size_t i = 0; i < time.size(); ++i) {
    const auto [p10, p90] = band.at(TimeCurve::log2_bytes(i) + log2_ns_of_byte);
    low[i] = time[i] + p10;
    high[i] = time[i] + p90;
  }
  TimeCurve moved{time, low, high};
  moved.supported_from = measured.begin()->first;
  moved.supported_to = measured.rbegin()->first;
  moved.source = EstimateSource::fitted;
  moved.outside_source = EstimateSource::analytic;
  return moved;
}

Result<CollectiveCurve> record_of_few_sizes(const CollectiveMeasurements& measurements,
                                            const RelatedSystems& related, const Device& device,
                                            const Node& node, const Provenance& provenance) {
  if (measurements.samples.empty() || measurements.n_nodes > 1) {
    return Error{fmt::format("{} cannot be moved", measurements.name())}
        .found(fmt::format("{} samples on {} nodes", measurements.samples.size(), measurements.n_nodes))
        .expected("sizes that were measured on one node");
  }
  const auto expected = related.curve(device, node, measurements.collective, measurements.n_ranks);
  if (!expected) {
    return Error{
        fmt::format("{} cannot be moved: no related system measured this collective", measurements.name())};
  }
  const double log2_ns_of_byte = log2_link_ns(device, node, measurements.n_ranks, 0);
  const TimeCurve curve = moved_curve(*expected, measurements.samples, related.moved, log2_ns_of_byte);

  CollectiveCurve record{.collective = measurements.collective,
                         .gpus_per_node = measurements.gpus_per_node,
                         .n_ranks = measurements.n_ranks};
  CurveFit& fit = record.fit.edit();
  for (double x = kFirstKnot; x <= kLastKnot; x += kKnotStep)
    fit.knots.push_back({std::round(std::exp2(x)), rounded(std::exp(curve.ln_time_us(x)), kDigits)});
  for (std::size_t i = 0; i < RelatedBand::kMiddles.size(); ++i) {
    const double middle = RelatedBand::kMiddles[i] - log2_ns_of_byte;
    if (middle < 1) continue;
    fit.residuals.push_back({.region = "all",
                             .message_bytes_min = std::round(std::exp2(middle - 1)),
                             .message_bytes_max = std::round(std::exp2(middle + 1)),
                             .log_p10 = related.moved.p10[i],
                             .log_p90 = related.moved.p90[i]});
  }
  fit.provenance = provenance;
  fit.provenance.source = FigureSource::fitted;
  fit.provenance.n_rows = measurements.samples.size();
  fit.provenance.range = {{"message_bytes_min", std::round(std::exp2(curve.supported_from))},
                          {"message_bytes_max", std::round(std::exp2(curve.supported_to))}};
  return record;
}

}  // namespace stepcast
