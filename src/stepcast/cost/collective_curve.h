// The time of one collective on one group of ranks as a function of the message size.
//
// Three representations of one curve:
//   SigmoidForm   the published form with eight parameters, unchanged
//   StartupForm   start-up and transfer combined smoothly at every size, without steps; also eight parameters
//   TimeCurve     a table over the logarithm of the size, with its interval; forecasts read this one
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

// The factor of nccl-tests between algorithm and bus bandwidth: bus bandwidth = factor * message size / time,
// the traffic that each link carries. 1 for send/receive and broadcasts.
[[nodiscard]] double bus_factor(CollectiveOp op, std::uint32_t n_ranks);
// Number of steps of a ring algorithm; in each step a rank sends one share (message / ranks).
[[nodiscard]] double ring_steps(CollectiveOp op, std::uint32_t n_ranks);

// The three-region sigmoid as published (Lin et al., TPDS 2024; the exponent follows their code, which
// differs from their printed equation). Below m1 the time is constant, between m1 and m2 it is factor * m /
// B(m) with
//     log10 B = A / (1 + exp(-k (log2 m - x0))) + b,
// above m2 it is t_s + factor * m / BWmax. The time is discontinuous at both boundaries.
struct SigmoidForm {
  double log2_m1 = 0, log2_m2 = 0;     // region boundaries, log2 bytes
  double max_bandwidth_GBps = 0;       // bus bandwidth above m2
  double startup_us = 0;               // t_s
  double A = 0, x0 = 0, k = 0, b = 0;  // of log10 B in GB/s
  double factor = 1;                   // bus_factor() of the group that it was fitted on

  [[nodiscard]] Microseconds time(Bytes message) const;
  // The form as a record of a platform file, and back. Error: another form or a missing parameter.
  [[nodiscard]] CurveForm record() const;
  [[nodiscard]] static Result<SigmoidForm> from(const CurveForm& record, double factor);
};

// A smooth form. Start-up time s and transfer time w combine as (s^q + w^q)^(1/q). w = factor * m / B(m),
// where the bandwidth rises to its limit in two smooth steps:
//     ln B = ln Bmax - d1 / (1 + exp(k (x - x1))) - d2 / (1 + exp(k (x - x2))),   x = log2 m.
// Limits: m -> 0 gives s, m -> infinity gives factor * m / Bmax. Both terms exist at every size, so the time
// is continuous. Where k d is large, the bandwidth may rise faster than the size; time_curve() never lets a
// time fall.
struct StartupForm {
  double ln_startup_us = 0;      // logarithm of the start-up time in us
  double ln_max_GBps = 0;        // logarithm of the bus bandwidth limit in GB/s
  double d1 = 0, x1 = 0, k = 1;  // depth in ln, place in log2 bytes and slope of the first step
  double ln_q = 0;               // logarithm of the exponent q
  double d2 = 0, x2 = 0;         // depth and place of the second step
  double factor = 1;

  // Logarithm of the time in us at 2^log2_bytes bytes.
  [[nodiscard]] double ln_time_us(double log2_bytes) const;
  [[nodiscard]] Microseconds time(Bytes message) const {
    return Microseconds{std::exp(ln_time_us(std::log2(message.value())))};
  }
  [[nodiscard]] Microseconds startup() const { return Microseconds{std::exp(ln_startup_us)}; }
  [[nodiscard]] BytesPerSecond max_bus_bandwidth() const {
    return BytesPerSecond{std::exp(ln_max_GBps) * 1e9};
  }
  // The form as a record of a platform file, and back. Errors: another form, a missing parameter, or a t_s,
  // BWmax or q that is not positive.
  [[nodiscard]] CurveForm record() const;
  [[nodiscard]] static Result<StartupForm> from(const CurveForm& record, double factor);
};

// ln(time) and its p10 to p90 band at every quarter octave from 1 B to 1 TiB; linear in between in log-log.
class TimeCurve {
 public:
  static constexpr double kStep = 0.25;        // octaves
  static constexpr std::size_t kPoints = 161;  // 2^0 ... 2^40 bytes
  using Table = std::array<double, kPoints>;
  // Size of a table point, as log2 of bytes.
  [[nodiscard]] static constexpr double log2_bytes(std::size_t point) {
    return kStep * static_cast<double>(point);
  }

  // Tables of ln(us). A point of `low` above `time`, or of `high` below it, is moved onto `time`.
  TimeCurve(const Table& time, const Table& low, const Table& high);

  // Time with band, O(1). Sizes outside the table take the value of its end.
  [[nodiscard]] Estimate at(Bytes message) const;
  [[nodiscard]] double ln_time_us(double log2_bytes) const;

  [[nodiscard]] const Table& ln_time() const { return time_; }
  [[nodiscard]] const Table& ln_low() const { return low_; }
  [[nodiscard]] const Table& ln_high() const { return high_; }

  // Measured range of sizes in log2 bytes. at() gives the weaker of `source` and `outside_source` beyond it.
  double supported_from = 0, supported_to = kStep * static_cast<double>(kPoints - 1);
  EstimateSource source = EstimateSource::fitted;
  EstimateSource outside_source = EstimateSource::fitted;

 private:
  Table time_{}, low_{}, high_{};
};

// Changes `values` to the nearest non-decreasing sequence (least squares, equal weights), O(n).
void make_non_decreasing(std::span<double> values);

// Monotone cubic interpolation through (x, y), without overshoot (Fritsch-Carlson).
class MonotoneCubic {
 public:
  MonotoneCubic(std::vector<double> x, std::vector<double> y);  // x strictly increasing, at least one point
  [[nodiscard]] double at(double x) const;                      // beyond the ends: the value of the end

 private:
  std::vector<double> x_, y_, slope_;
};

// The table of a record: its knots where it has them, its form outside of them or where there are none. The
// residual quantiles give the band, which widens with every octave beyond the measured sizes. Errors: knots
// that are not positive and increasing, or neither knots nor a usable form.
[[nodiscard]] Result<TimeCurve> time_curve(const CollectiveCurve& record);

// The same from parts, for curves that are not in a file. Needs knots, a form, or both.
struct CurveParts {
  std::vector<double> log2_knots, ln_time_us;  // may be empty if there is a form
  const StartupForm* form = nullptr;           // may be missing if there are knots
  std::span<const ResidualQuantiles> residuals;
  double measured_from = 0, measured_to = 0;  // log2 bytes
};
[[nodiscard]] TimeCurve time_curve(const CurveParts& parts);

}  // namespace stepcast
