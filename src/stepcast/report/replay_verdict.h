// What holds a replayed step back, in one sentence, and who lets the others wait.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/analyze/replay_analysis.h"

namespace stepcast {

// Arrivals at a collective that are this close are a tie: nobody came last.
inline constexpr double kTieUs = 50;

struct Straggling {
  std::int32_t rank = 0;
  std::uint64_t came_last = 0;  // collectives, ties left out
  double caused_wait_us = 0;    // waiting of the others in them
};
// [rank class], from the simulated collectives.
[[nodiscard]] std::vector<Straggling> straggling(const ReplayAnalysis& analysis);

// "host-bound: GPUs compute 35.0 % of the step, idle 40.0 % (4.000 ms) for the CPU; rank 3 comes last in 5 of 8
// collectives and causes 60.0 % of the waiting for other ranks (1.200 ms)". Shares are means over ranks. GPU-bound is a step
// of which GPUs compute at least half.
[[nodiscard]] std::string replay_verdict(const ReplayAnalysis& analysis);

}  // namespace stepcast
