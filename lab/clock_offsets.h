// Ranks on clocks that are apart: the time stamps of whole ranks are moved at random, and what a replay says of who the others
// wait for is held against what it says of the ranks as recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/analyze/culprits.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/replay.h"
#include "stepcast/sources/trace_set.h"

namespace stepcast {

// Who and what holds the simulated step back.
[[nodiscard]] Result<StepCulprits> culprits_of(const Replay& replayed);

// Draws of one largest offset.
struct ClockDraws {
  std::int64_t most_us = 0;  // every rank's clock is ahead by 0 to this, whole microseconds
  std::size_t draws = 0;
  std::uint32_t collectives = 0;  // as recorded
  std::uint32_t most_other = 0;   // the number of a draw that is farthest from it; the same where all agree
  std::size_t named_right =
      0;  // the rank that is named as recorded, its share of the waiting within kShareWithin
  std::size_t said_not_known = 0;  // no rank is named
  double largest_share_error = 0;  // of the waiting, where the rank is right
};
inline constexpr double kShareWithin = 0.03;

// The last step that all ranks have, for each of the largest offsets. Nothing where no rank is named as recorded: then there is
// nothing that clocks could change. Errors: those of replay().
[[nodiscard]] Result<std::vector<ClockDraws>> draw_clock_offsets(const TraceSet& set, std::size_t draws,
                                                                 unsigned threads);

}  // namespace stepcast
