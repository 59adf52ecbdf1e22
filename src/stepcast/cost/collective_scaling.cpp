#include "stepcast/cost/collective_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "stepcast/cost/detail/curve_tables.h"

// Scaling of collective curves over ranks and nodes. All tables are in ln(us) over log2(bytes).

namespace stepcast {
namespace {

using detail::bandwidth_share;
using detail::finished;
using detail::Tables;
using detail::tables_of;

constexpr std::size_t kCurvePoints = TimeCurve::kPoints;
constexpr auto kLastPoint = static_cast<double>(kCurvePoints - 1);

// Half-widths of the bands of scaled curves in ln. From predictions of 8 ranks from 2 and 4
// (docs/collectives.md).
constexpr double kBandPerRankDoubling = 0.06;
// Share of the disagreement of the two models that widens the band.
constexpr double kBandOfDisagreement = 0.5;
// With only one measured count, the share of start-up in small messages is guessed as half.
constexpr double kGuessedStartupShare = 0.5;
constexpr double kBandOfGuess = 0.20;
// Lower limits of an extrapolated line, as shares of the time of the nearest measured count, for more and for
// fewer ranks. Assumed.
constexpr double kLeastOfMoreRanks = 0.9;
constexpr double kLeastOfFewerRanks = 0.3;
// Relative growth of the start-up per doubling of nodes. The Azure logs give 34.7 us on 2 nodes and 53 us on
// 4; there is no other evidence for 0.5.
constexpr double kStartupPerNodeDoubling = 0.5;
constexpr double kBandPerNodeDoubling = 0.12;
// Lower limit of the start-up on fewer nodes, as a share of the measured one. Assumed.
constexpr double kLeastStartupShare = 0.3;

// Running median over two octaves to each side, within [from, to] (log2 bytes); constant beyond.
TimeCurve::Table smoothed(const TimeCurve::Table& values, double from, double to) {
  const auto first =
      static_cast<std::size_t>(std::clamp(std::ceil(from / TimeCurve::kStep - 1e-9), 0.0, kLastPoint));
  const auto last = std::max(
      first, static_cast<std::size_t>(std::clamp(std::floor(to / TimeCurve::kStep + 1e-9), 0.0, kLastPoint)));
  constexpr std::size_t kReach = 8;
  TimeCurve::Table result{};
  std::array<double, 2 * kReach + 1> window{};
  for (std::size_t i = first; i <= last; ++i) {
    const std::size_t a = i - std::min(i - first, kReach), b = std::min(last, i + kReach);
    const auto n = static_cast<std::ptrdiff_t>(b - a + 1);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(a), n, window.begin());
    std::nth_element(window.begin(), window.begin() + n / 2, window.begin() + n);
    result[i] = window[static_cast<std::size_t>(n / 2)];
  }
  for (std::size_t i = 0; i < first; ++i) result[i] = result[first];
  for (std::size_t i = last + 1; i < kCurvePoints; ++i) result[i] = result[last];
  return result;
}

// The share of start-up in the time of `base`, by size of the message on n ranks, with equal shares: t =
// start-up + steps x s. Solved from two measured counts; without an `other` count it is guessed from
// `fraction`, the share of the final bandwidth that the base reaches at a size.
TimeCurve::Table startup_shares(CollectiveOp op, const RankCurve& base, const RankCurve* other, double n,
                                const TimeCurve::Table& fraction) {
  const double shift_base = std::log2(n / base.n_ranks);
  TimeCurve::Table shares{};
  if (other == nullptr) {
    for (std::size_t i = 0; i < kCurvePoints; ++i) {
      const double x = TimeCurve::log2_bytes(i);
      const double at = std::clamp((x - shift_base) / TimeCurve::kStep, 0.0, kLastPoint);
      shares[i] = kGuessedStartupShare * (1 - fraction[static_cast<std::size_t>(at)]);
    }
    return shares;
  }
  const double shift_other = std::log2(n / other->n_ranks);
  const double steps_base = ring_steps(op, base.n_ranks), steps_other = ring_steps(op, other->n_ranks);
  for (std::size_t i = 0; i < kCurvePoints; ++i) {
    const double x = TimeCurve::log2_bytes(i);
    const double t_base = std::exp(base.curve->ln_time_us(x - shift_base));
    const double t_other = std::exp(other->curve->ln_time_us(x - shift_other));
    const double step = std::clamp((t_base - t_other) / (steps_base - steps_other), 0.0, t_base / steps_base);
    shares[i] = 1 - steps_base * step / t_base;
  }
  const double from =
      std::max(base.curve->supported_from + shift_base, other->curve->supported_from + shift_other);
  const double to = std::min(base.curve->supported_to + shift_base, other->curve->supported_to + shift_other);
  return smoothed(shares, std::min(from, to), to);
}

// Interpolation between two measured counts: bus bandwidth at equal messages is linear in the logarithm of
// the ranks.
TimeCurve between_ranks(CollectiveOp op, const RankCurve& fewer, const RankCurve& more,
                        std::uint32_t n_ranks) {
  const double n = n_ranks;
  const double share =
      std::log2(n / fewer.n_ranks) / std::log2(static_cast<double>(more.n_ranks) / fewer.n_ranks);
  const double of_fewer = (1 - share) * std::log(bus_factor(op, n_ranks) / bus_factor(op, fewer.n_ranks));
  const double of_more = share * std::log(bus_factor(op, n_ranks) / bus_factor(op, more.n_ranks));
  const double doublings = std::min(std::log2(n / fewer.n_ranks), std::log2(more.n_ranks / n));
  const double band = kBandPerRankDoubling * doublings;
  Tables t;
  for (std::size_t i = 0; i < kCurvePoints; ++i) {
    const auto mean = [&](double a, double b) { return (1 - share) * a + share * b + of_fewer + of_more; };
    t.time[i] = mean(fewer.curve->ln_time()[i], more.curve->ln_time()[i]);
    t.low[i] = mean(fewer.curve->ln_low()[i], more.curve->ln_low()[i]) - band;
    t.high[i] = mean(fewer.curve->ln_high()[i], more.curve->ln_high()[i]) + band;
  }
  return finished(t, share < 0.5 ? *fewer.curve : *more.curve, EstimateSource::fitted);
}

}  // namespace

TimeCurve scale_ranks(CollectiveOp op, std::span<const RankCurve> measured, std::uint32_t n_ranks) {
  // The two counts nearest to the target; the nearer one is the base.
  std::vector<RankCurve> nearest(measured.begin(), measured.end());
  const auto distance = [&](const RankCurve& c) {
    return std::abs(std::log2(static_cast<double>(c.n_ranks) / n_ranks));
  };
  std::ranges::stable_sort(nearest,
                           [&](const RankCurve& a, const RankCurve& b) { return distance(a) < distance(b); });
  const RankCurve base = nearest.front();
  if (base.n_ranks == n_ranks) return *base.curve;
  const auto more = std::ranges::find_if(measured, [&](const RankCurve& c) { return c.n_ranks > n_ranks; });
  if (more != measured.begin() && more != measured.end())
    return between_ranks(op, *(more - 1), *more, n_ranks);
  const bool has_other = nearest.size() > 1;
  const RankCurve other = has_other ? nearest[1] : base;

  const double n = n_ranks, n_base = base.n_ranks, n_other = other.n_ranks;
  const double steps = ring_steps(op, n_ranks), steps_base = ring_steps(op, base.n_ranks);
  const double shift_base = std::log2(n / n_base);
  const TimeCurve::Table fraction = bandwidth_share(*base.curve);
  // Model 1: equal shares.
  const TimeCurve::Table startup_share = startup_shares(op, base, has_other ? &other : nullptr, n, fraction);

  Tables t = tables_of(*base.curve);
  const double doublings = std::abs(std::log2(n / n_base));
  const double factor_ratio = bus_factor(op, n_ranks) / bus_factor(op, base.n_ranks);
  for (std::size_t i = 0; i < kCurvePoints; ++i) {
    const double x = TimeCurve::log2_bytes(i);
    const double u = startup_share[i];
    const double by_shares =
        base.curve->ln_time_us(x - shift_base) + std::log(u + (1 - u) * steps / steps_base);
    // Model 2: equal messages. Small messages: linear in the ranks. Large messages: bus bandwidth of the
    // base.
    const double ln_base = base.curve->ln_time()[i];
    double small = ln_base;
    if (has_other) {
      const double t_base = std::exp(ln_base), t_other = std::exp(other.curve->ln_time()[i]);
      const double linear = t_base + (n - n_base) / (n_base - n_other) * (t_base - t_other);
      const bool grows = n > n_base;
      small = std::log(std::max(linear, (grows ? kLeastOfMoreRanks : kLeastOfFewerRanks) * t_base));
    } else {
      small = ln_base + std::log(1 + kGuessedStartupShare * (steps / steps_base - 1));
    }
    const double large = ln_base + std::log(factor_ratio);
    const double by_message = (1 - fraction[i]) * small + fraction[i] * large;
    t.time[i] = 0.5 * (by_shares + by_message);
    const double band = kBandPerRankDoubling * doublings +
                        kBandOfDisagreement * std::abs(by_shares - by_message) +
                        (has_other ? 0 : kBandOfGuess * (1 - fraction[i]));
    t.low[i] = t.time[i] + base.curve->ln_low()[i] - ln_base - band;
    t.high[i] = t.time[i] + base.curve->ln_high()[i] - ln_base + band;
  }
  return finished(t, *base.curve, has_other ? EstimateSource::fitted : EstimateSource::analytic);
}

TimeCurve scale_nodes(CollectiveOp op, const TimeCurve& measured, std::uint32_t from_nodes,
                      std::uint32_t n_nodes, std::uint32_t ranks_per_node) {
  if (from_nodes == n_nodes) return measured;
  const double doublings = std::log2(static_cast<double>(n_nodes) / from_nodes);
  const double startup = std::log(std::max(1 + kStartupPerNodeDoubling * doublings, kLeastStartupShare));
  const double transfer =
      std::log(bus_factor(op, n_nodes * ranks_per_node) / bus_factor(op, from_nodes * ranks_per_node));
  const TimeCurve::Table fraction = bandwidth_share(measured);
  Tables t = tables_of(measured);
  for (std::size_t i = 0; i < kCurvePoints; ++i) {
    const double move = (1 - fraction[i]) * startup + fraction[i] * transfer;
    const double band = kBandPerNodeDoubling * std::abs(doublings);
    t.time[i] += move;
    t.low[i] += move - band;
    t.high[i] += move + band;
  }
  return finished(t, measured, EstimateSource::analytic);
}

TimeCurve grow_as_nccl(CollectiveOp op, const TimeCurve& measured, const NcclFabric& fabric,
                       RanksOnNodes from, RanksOnNodes to) {
  const bool is_pair =
      op == CollectiveOp::send || op == CollectiveOp::receive || op == CollectiveOp::send_receive;
  if (is_pair) return measured;
  const double band = kBandPerRankDoubling * std::log2(static_cast<double>(to.n_ranks) / from.n_ranks);
  Tables t = tables_of(measured);
  for (std::size_t i = 0; i < kCurvePoints; ++i) {
    const double bytes = std::exp2(TimeCurve::log2_bytes(i));
    const auto estimated = [&](RanksOnNodes g) {
      return nccl_estimate(fabric, op, g.n_ranks, g.n_nodes, bytes).time_us;
    };
    const double growth = std::log(estimated(to) / estimated(from));
    t.time[i] += growth;
    t.low[i] += growth - band;
    t.high[i] += growth + band;
  }
  return finished(t, measured, EstimateSource::analytic);
}

}  // namespace stepcast
