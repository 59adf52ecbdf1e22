// The cadence of a recorded job (time between starts of steps), and the period that a prediction returns.
#pragma once

#include <cstdint>
#include <optional>

#include "stepcast/base/result.h"
#include "stepcast/sources/trace_set.h"

namespace stepcast {

// Cadence of the longest sequence of consecutive ordinary steps.
struct Cadence {
  std::int64_t steps = 0;
  double recorded_us = 0;  // (last start - first start) / (steps - 1)
  double spread = 0;       // standard deviation of the times between starts over their mean
};

// Cadence of the first rank; nullopt if there are fewer than four consecutive ordinary steps.
[[nodiscard]] std::optional<Cadence> recorded_cadence(const TraceSet& set);

// The period of the typical step, as `predict --trace` returns it without a change. Errors: those of rebuild_program() and
// recorded_base().
[[nodiscard]] Result<double> answered_period_us(const TraceSet& set);

}  // namespace stepcast
