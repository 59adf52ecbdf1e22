// Suggestions for a recorded step, for `replay` and `predict --trace`.
//
//   forecast.what_to_change = what_to_change(given_words(), {session, kept, forecast});
//
// Suggestions are about causes in the step: late ranks, exposed transfers, a host that delays the GPUs. Each
// one is removed by a what-if of the same engine, and the command in the suggestion prints the expected
// saving. At most about five are computed, and none if the step has no such part.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stepcast/api/stepcast.h"

namespace stepcast::cli {

struct RecordedAnswer {
  const Session& session;
  const KeptStep& step;
  const Forecast& forecast;    // where the step's time goes
  std::string_view awaited{};  // the operator that GPUs wait for longest; empty: unknown
};

// `words`: the command line of `predict` after the program name, for the step without changes.
[[nodiscard]] std::optional<ForecastAdvice> what_to_change(std::span<const std::string> words,
                                                           const RecordedAnswer& answer);

}  // namespace stepcast::cli
