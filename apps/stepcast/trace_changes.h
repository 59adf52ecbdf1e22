// What to change of a recorded step: for `replay` and `predict --trace`, which say where its time goes.
//
//   forecast.what_to_change = what_to_change(given_words(), {session, kept, forecast});
//
// Named are causes that the step shows: late ranks, transfers that nothing computes beside, a host that the GPUs wait for. Each is
// taken away by a what-if of the same engine, whose command prints what the action promises: some five of them, and none where the
// step has no such part.
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
  const Forecast& forecast;    // where the time of the step goes
  std::string_view awaited{};  // the operator that GPUs wait for longest, where known
};

// `words`: the command line of `predict` behind the program that asks about the step without any change.
[[nodiscard]] std::optional<ForecastAdvice> what_to_change(std::span<const std::string> words,
                                                           const RecordedAnswer& answer);

}  // namespace stepcast::cli
