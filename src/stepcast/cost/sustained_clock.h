// How much slower matrix work runs in a training step, at the clock that the power limit sustains, than in a
// benchmark of short kernels: the platform record "sustained_clock".
#pragma once

#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"

namespace stepcast {

// Name and `kind` of the record.
inline constexpr std::string_view kSustainedClockKind = "sustained_clock";

struct SustainedClock {
  // On the time of kernels that were measured in bursts shorter than `full_below`. It fades with the
  // logarithm of their time and is gone at `none_above`: records of long kernels hold the fall of the clock
  // already.
  double time_factor = 1;
  Microseconds full_below, none_above;
  // On the time of all kernels: this device, limited in power, against the one that was measured.
  double power_factor = 1;

  // On the time of a kernel that takes `time` in a benchmark.
  [[nodiscard]] double factor(Microseconds time) const;

  // Keys: time_factor, full_below_us, none_above_us, power_factor (1 if it is missing).
  // Errors: a factor below 1, `none_above_us` not above `full_below_us`.
  [[nodiscard]] static Result<SustainedClock> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
};

}  // namespace stepcast
