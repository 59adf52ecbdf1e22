#include "stepcast/report/replay_verdict.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

// Two ranks of 10 ms: they compute 3, idle 4 for the CPU, wait 2 for each other and communicate 1.
ReplayAnalysis two_ranks() {
  ReplayAnalysis a;
  for (const int rank : {0, 1}) {
    ForecastClass c;
    c.window_ms = 10;
    c.computation_ms = 3;
    c.exposed_comm_ms = 1;
    c.idle_ms = {{"cpu", 4}, {"other_rank", 2}};
    a.simulated.classes.push_back(c);
    RecordedStepFacts facts;
    facts.rank = rank;
    a.facts.push_back(facts);
  }
  // Last: rank 1 by 300 us, rank 0 by 100 us, rank 1 by 50 us, which is a tie.
  const auto collective = [](std::uint32_t last, double by_us) {
    ForecastCollective c;
    c.came_last = last;
    c.total_wait_us = by_us;
    c.members = {{.rank_class = last, .arrival_us = 1000 + by_us},
                 {.rank_class = 1 - last, .arrival_us = 1000}};
    return c;
  };
  a.simulated.collectives = {collective(1, 300), collective(0, 100), collective(1, 50)};
  return a;
}

// 300 of 450 us of waiting are rank 1's.
TEST(ReplayVerdict, NamesWhatHoldsTheStepBackAndWhoComesLast) {
  EXPECT_EQ(replay_verdict(two_ranks()),
            "host-bound: GPUs compute 30.0 % of the step, idle 40.0 % (4.000 ms) for the CPU; rank 1 comes "
            "last in 1 "
            "of 3 collectives and causes 66.7 % of the waiting for other ranks (0.300 ms)");
}

TEST(ReplayVerdict, AStepThatMostlyComputesIsGpuBound) {
  ReplayAnalysis a = two_ranks();
  for (ForecastClass& c : a.simulated.classes) c.computation_ms = 5;
  a.simulated.collectives.clear();
  EXPECT_EQ(replay_verdict(a),
            "GPU-bound: GPUs compute 50.0 % of the step, idle 40.0 % (4.000 ms) for the CPU");
}

TEST(ReplayVerdict, TiesHaveNoLast) {
  const std::vector<Straggling> ranks = straggling(two_ranks());
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].came_last, 1U);
  EXPECT_EQ(ranks[1].came_last, 1U);
  EXPECT_DOUBLE_EQ(ranks[1].caused_wait_us, 300);
}

}  // namespace
}  // namespace stepcast
