// The time of one collective on one group of ranks as a function of the message size.
//
// Three views of one curve:
//   SigmoidForm   the published form with eight parameters, exactly as published
//   StartupForm   ours: start-up and transfer together at every size, hence no steps; also eight parameters
//   TimeCurve     a table over the logarithm of the size, with its interval; what predictions read
//
//   STEPCAST_ASSIGN(const TimeCurve curve, time_curve(record));      // from a record of a platform file
//   Estimate t = curve.at(Bytes{1 << 20});
//
// Message sizes are the `size` of nccl-tests: all_reduce = buffer of one rank; all_gather = receive buffer;
// reduce_scatter, all_to_all = send buffer; send/receive = bytes that one rank sends.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// Bus bandwidth = factor * message size / time: what every link carries. The factors of nccl-tests.
[[nodiscard]] double bus_factor(CollectiveOp op, std::uint32_t n_ranks);
// How many times a rank sends one share (message / ranks) when the collective runs in a ring.
[[nodiscard]] double ring_steps(CollectiveOp op, std::uint32_t n_ranks);

// The three-region sigmoid as published (Lin et al., TPDS 2024; the exponent as their code has it, not as
// their equation prints it). Below m1 the time is constant, between m1 and m2 it is factor * m / B(m) with
//     log10 B = A / (1 + exp(-k (log2 m - x0))) + b,
// above m2 it is t_s + factor * m / BWmax. It steps at both boundaries.
struct SigmoidForm {
  double log2_m1 = 0, log2_m2 = 0;
  double max_bandwidth_GBps = 0;
  double startup_us = 0;
  double A = 0, x0 = 0, k = 0, b = 0;
  double factor = 1;  // bus_factor() of the group it was fitted on

  [[nodiscard]] Microseconds time(Bytes message) const;
  [[nodiscard]] CurveForm record() const;
  [[nodiscard]] static Result<SigmoidForm> from(const CurveForm& record, double factor);
};

// Ours. Start-up time s and transfer time w add up as (s^q + w^q)^(1/q); w = factor * m / B(m), where the
// bandwidth climbs to its limit in two smooth steps:
//     ln B = ln Bmax - d1 / (1 + exp(k (x - x1))) - d2 / (1 + exp(k (x - x2))),   x = log2 m.
// Limits: m -> 0 gives s, m -> infinity gives factor * m / Bmax. Both terms exist at every size, so nothing
// steps. Rising bandwidth may outrun the size where k d is large; time_curve() never lets a time fall.
struct StartupForm {
  double ln_startup_us = 0;
  double ln_max_GBps = 0;
  double d1 = 0, x1 = 0, k = 1;
  double ln_q = 0;
  double d2 = 0, x2 = 0;
  double factor = 1;

  [[nodiscard]] double ln_time_us(double log2_bytes) const;
  [[nodiscard]] Microseconds time(Bytes message) const {
    return Microseconds{std::exp(ln_time_us(std::log2(message.value())))};
  }
  [[nodiscard]] Microseconds startup() const { return Microseconds{std::exp(ln_startup_us)}; }
  [[nodiscard]] BytesPerSecond max_bus_bandwidth() const {
    return BytesPerSecond{std::exp(ln_max_GBps) * 1e9};
  }
  [[nodiscard]] CurveForm record() const;
  [[nodiscard]] static Result<StartupForm> from(const CurveForm& record, double factor);
};

// ln(time) and its p10-p90 band at every quarter octave from 1 B to 1 TiB; linear in between in log-log.
class TimeCurve {
 public:
  static constexpr double kStep = 0.25;        // octaves
  static constexpr std::size_t kPoints = 161;  // 2^0 ... 2^40 bytes
  using Table = std::array<double, kPoints>;
  [[nodiscard]] static constexpr double log2_bytes(std::size_t point) {
    return kStep * static_cast<double>(point);
  }

  // Tables of ln(us). A point of `low` above `time` or of `high` below it is moved onto it.
  TimeCurve(const Table& time, const Table& low, const Table& high);

  [[nodiscard]] Estimate at(Bytes message) const;
  [[nodiscard]] double ln_time_us(double log2_bytes) const;

  [[nodiscard]] const Table& ln_time() const { return time_; }
  [[nodiscard]] const Table& ln_low() const { return low_; }
  [[nodiscard]] const Table& ln_high() const { return high_; }

  // Where measurements support it (log2 bytes). at() says `outside_source` beyond.
  double supported_from = 0, supported_to = kStep * static_cast<double>(kPoints - 1);
  EstimateSource source = EstimateSource::fitted;
  EstimateSource outside_source = EstimateSource::fitted;

 private:
  Table time_{}, low_{}, high_{};
};

// Non-decreasing, as close as possible to what it was (least squares, all points weigh the same).
void make_non_decreasing(std::span<double> values);

// The values of a curve through (x, y) at any x inside: cubic between knots, without overshoot
// (Fritsch-Carlson).
class MonotoneCubic {
 public:
  MonotoneCubic(std::vector<double> x, std::vector<double> y);  // x strictly increasing, at least one point
  [[nodiscard]] double at(double x) const;                      // beyond the ends: the value of the end

 private:
  std::vector<double> x_, y_, slope_;
};

// The table of a record: knots where it has them, its form outside and where there are none, residual
// quantiles as the band, wider with every octave beyond the measured sizes.
[[nodiscard]] Result<TimeCurve> time_curve(const CollectiveCurve& record);

// The same from parts, for curves that are not in a file.
struct CurveParts {
  std::vector<double> log2_knots, ln_time_us;  // may be empty if there is a form
  const StartupForm* form = nullptr;           // may be missing if there are knots
  std::span<const ResidualQuantiles> residuals;
  double measured_from = 0, measured_to = 0;  // log2 bytes
};
[[nodiscard]] TimeCurve time_curve(const CurveParts& parts);

}  // namespace stepcast
