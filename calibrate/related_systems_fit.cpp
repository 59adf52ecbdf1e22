#include "calibrate/related_systems_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "stepcast/base/statistics.h"
#include "stepcast/cost/nccl_choice.h"

#include "calibrate/moved_curve.h"

namespace stepcast {
namespace {

constexpr double kMostOfStartUp = 4 * 1024.0;  // bytes
constexpr double kLeastOfBandwidth = 256 * 1024.0 * 1024;
constexpr double kSmallSize = 16 * 1024.0, kLargeSize = 64 * 1024.0 * 1024;
constexpr double kSizesApart = 16;
// Switch points are right within about an octave: ratios are means over an octave on each side.
constexpr std::array<double, 5> kSmoothing = {-1, -0.5, 0, 0.5, 1};
// Quantiles of few machines underestimate the spread of new machines. Assumed.
constexpr double kWideningOfFewMachines = 1.15;
// Band if no machine is left after leaving one out, ln. Assumed.
constexpr double kBandOfNobody = 0.4;
constexpr double kStretchOctaves = 2;  // each side of a band's middle

// ln(us) of the median time of every size, by log2 of the bytes.
class Medians {
 public:
  explicit Medians(const CollectiveMeasurements& m) {
    std::map<double, std::vector<double>> by_size;
    for (const CollectiveSample& s : m.samples) by_size[s.message_bytes].push_back(s.time_us);
    for (auto& [bytes, times] : by_size) {
      x_.push_back(std::log2(bytes));
      y_.push_back(std::log(median(std::move(times))));
    }
  }
  [[nodiscard]] double clamped(double x) const { return std::clamp(x, x_.front(), x_.back()); }
  [[nodiscard]] double at(double x) const {
    const auto after = std::upper_bound(x_.begin(), x_.end(), x);
    if (after == x_.begin()) return y_.front();
    if (after == x_.end()) return y_.back();
    const auto i = static_cast<std::size_t>(after - x_.begin());
    const double share = (x - x_[i - 1]) / (x_[i] - x_[i - 1]);
    return y_[i - 1] + share * (y_[i] - y_[i - 1]);
  }

 private:
  std::vector<double> x_, y_;
};

RelatedShape::Table ratio_of(const MeasuredSystem& system, const CollectiveMeasurements& m) {
  const Medians measured{m};
  const NcclFabric fabric = nccl_fabric(system.device, system.node, m.n_ranks);
  const double log2_GBps = std::log2(fabric.link_GBps);
  RelatedShape::Table ratio{};
  for (std::size_t i = 0; i < ratio.size(); ++i) {
    for (const double apart : kSmoothing) {
      const double x = measured.clamped(RelatedShape::at(i) + log2_GBps + apart);
      const double estimated =
          std::log(nccl_estimate(fabric, m.collective, m.n_ranks, 1, std::exp2(x)).time_us);
      ratio[i] += (measured.at(x) - estimated) / static_cast<double>(kSmoothing.size());
    }
  }
  return ratio;
}

// The smallest time on the links for which NCCL selects NVLS.
std::optional<double> nvls_from(const MeasuredSystem& system, const CollectiveMeasurements& m) {
  const NcclFabric fabric = nccl_fabric(system.device, system.node, m.n_ranks);
  for (std::size_t i = 0; i < RelatedShape::kPoints; ++i) {
    const double bytes = std::exp2(RelatedShape::at(i)) * fabric.link_GBps;
    if (nccl_estimate(fabric, m.collective, m.n_ranks, 1, bytes).algorithm == NcclAlgorithm::nvls)
      return RelatedShape::at(i);
  }
  return std::nullopt;
}

using ShapeKey = std::tuple<std::string, LinkKind, CollectiveOp, std::uint32_t>;

template <class Accept>
RelatedSystems mean_shapes(std::span<const MeasuredSystem> systems, Accept accept) {
  std::map<ShapeKey, RelatedShape> shapes;
  for (const MeasuredSystem& system : systems) {
    if (!accept(system)) continue;
    for (const CollectiveMeasurements* m : system.curves) {
      if (!spans_start_up_to_bandwidth(*m)) continue;
      const ShapeKey key{system.device.architecture, system.node.intra.kind, m->collective, m->n_ranks};
      const auto [at, is_new] = shapes.try_emplace(key);
      RelatedShape& shape = at->second;
      if (is_new) {
        std::tie(shape.architecture, shape.links, shape.op, shape.n_ranks) = key;
        shape.n_machines = 0;
        shape.nvls_from = nvls_from(system, *m);  // equal for all systems of its family
      }
      const RelatedShape::Table ratio = ratio_of(system, *m);
      ++shape.n_machines;
      for (std::size_t i = 0; i < ratio.size(); ++i)
        shape.ln_ratio[i] += (ratio[i] - shape.ln_ratio[i]) / shape.n_machines;
    }
  }
  RelatedSystems result;
  for (auto& [key, shape] : shapes) result.shapes.push_back(std::move(shape));
  return result;
}

bool same_family(const MeasuredSystem& a, const MeasuredSystem& b) {
  return a.device.architecture == b.device.architecture && a.node.intra.kind == b.node.intra.kind;
}

// ln(measured / predicted)| by stretch of the time on the links.
class Misses {
 public:
  void add(double log2_ns, double ln_miss) {
    for (std::size_t i = 0; i < by_stretch_.size(); ++i) {
      const double from_middle = log2_ns - RelatedBand::kMiddles[i];
      const bool beyond = (i == 0 && from_middle < 0) || (i + 1 == by_stretch_.size() && from_middle > 0);
      if (beyond || std::abs(from_middle) <= kStretchOctaves) by_stretch_[i].push_back(std::abs(ln_miss));
    }
  }
  [[nodiscard]] RelatedBand band() const {
    RelatedBand band;
    for (std::size_t i = 0; i < by_stretch_.size(); ++i) {
      // The sign of the error of the next machine is unknown: the band is symmetric.
      const double width =
          by_stretch_[i].empty() ? kBandOfNobody : kWideningOfFewMachines * quantile(by_stretch_[i], 0.8);
      band.p10[i] = -width;
      band.p90[i] = width;
    }
    return band;
  }

 private:
  std::array<std::vector<double>, RelatedBand::kMiddles.size()> by_stretch_;
};

void add_misses(const CollectiveMeasurements& m, const TimeCurve& curve, double log2_ns_of_byte,
                Misses& misses) {
  for (const CollectiveSample& s : m.samples) {
    const double x = std::log2(s.message_bytes);
    misses.add(x + log2_ns_of_byte, std::log(s.time_us) - curve.ln_time_us(x));
  }
}

}  // namespace

bool spans_start_up_to_bandwidth(const CollectiveMeasurements& m) {
  if (m.n_nodes > 1 || m.n_ranks < 2) return false;
  const auto [least, most] = std::minmax_element(
      m.samples.begin(), m.samples.end(),
      [](const CollectiveSample& a, const CollectiveSample& b) { return a.message_bytes < b.message_bytes; });
  return least != m.samples.end() && least->message_bytes <= kMostOfStartUp &&
         most->message_bytes >= kLeastOfBandwidth;
}

std::vector<CollectiveSample> two_sizes(const CollectiveMeasurements& m) {
  const auto nearest = [&](double wanted) {
    double best = 0;
    for (const CollectiveSample& s : m.samples)
      if (best == 0 || std::abs(std::log(s.message_bytes / wanted)) < std::abs(std::log(best / wanted)))
        best = s.message_bytes;
    return best;
  };
  const double small = nearest(kSmallSize);
  const double large = nearest(std::max(kLargeSize, kSizesApart * small));
  std::vector<CollectiveSample> chosen;
  for (const CollectiveSample& s : m.samples)
    if (s.message_bytes == small || s.message_bytes == large) chosen.push_back(s);
  return chosen;
}

Result<RelatedSystems> fit_related_systems(std::span<const MeasuredSystem> systems) {
  RelatedSystems result = mean_shapes(systems, [](const MeasuredSystem&) { return true; });
  if (result.shapes.empty()) {
    return Error{"no machine was measured from start-up to full bandwidth on one node"}.expected(
        "curves from 4 KiB or less to 256 MiB or more");
  }
  Misses with, without, moved;
  for (const MeasuredSystem& left : systems) {
    const RelatedSystems relatives =
        mean_shapes(systems, [&](const MeasuredSystem& s) { return &s != &left; });
    const RelatedSystems strangers =
        mean_shapes(systems, [&](const MeasuredSystem& s) { return !same_family(s, left); });
    for (const CollectiveMeasurements* m : left.curves) {
      if (!spans_start_up_to_bandwidth(*m)) continue;
      const double log2_ns_of_byte = log2_link_ns(left.device, left.node, m->n_ranks, 0);
      const auto known = relatives.curve(left.device, left.node, m->collective, m->n_ranks);
      const auto unknown = strangers.curve(left.device, left.node, m->collective, m->n_ranks);
      if (known && relatives.has_family(left.device, left.node))
        add_misses(*m, *known, log2_ns_of_byte, with);
      if (unknown) {
        add_misses(*m, *unknown, log2_ns_of_byte, without);
        add_misses(*m, moved_curve(*unknown, two_sizes(*m), {}, 0), log2_ns_of_byte, moved);
      }
    }
  }
  result.with_family = with.band();
  result.without_family = without.band();
  result.moved = moved.band();
  return result;
}

}  // namespace stepcast
