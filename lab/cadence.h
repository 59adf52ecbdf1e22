// How often a recorded job began a step, beside the period that a prediction answers.
#pragma once

#include <cstdint>
#include <optional>

#include "stepcast/base/result.h"
#include "stepcast/sources/trace_set.h"

namespace stepcast {

// Of the longest row of ordinary steps that follow each other.
struct Cadence {
  std::int64_t steps = 0;
  double recorded_us = 0;  // (last start - first start) / (steps - 1)
  double spread = 0;       // standard deviation of the times between starts over their mean
};

// Nothing where fewer than four ordinary steps follow each other. Of the first rank.
[[nodiscard]] std::optional<Cadence> recorded_cadence(const TraceSet& set);

// What `predict --trace` answers without a change: the period of the typical step. Errors: those of rebuild_program() and
// recorded_base().
[[nodiscard]] Result<double> answered_period_us(const TraceSet& set);

}  // namespace stepcast
