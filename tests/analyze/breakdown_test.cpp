#include "stepcast/analyze/breakdown.h"

#include <vector>

#include <gtest/gtest.h>

#include "stepcast/analyze/detail/interval_set.h"

#include "tests/analyze/hand_made.h"
#include "tests/support/random_program.h"
#include "tests/support/sketch.h"

namespace stepcast::breakdown_test {
namespace {

std::vector<RankBreakdown> whole_breakdown(const Program& program, std::vector<double> starts) {
  const Timeline timeline = fixtures::simulated(program, {.start_offset_us = starts});
  const FlatProgram flat{program};
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  return break_down(flat, times, Costs{program}, whole_windows(flat, times, starts), starts);
}

double parts_of(const RankBreakdown& rank) {
  return rank.computation_us + rank.exposed_comm_us + rank.exposed_memcpy_us + rank.idle.total_us();
}

TEST(Breakdown, OfOneRankByHand) {
  const fixtures::OneRank hand;
  const RankBreakdown rank = whole_breakdown(hand.program, {0}).front();
  EXPECT_DOUBLE_EQ(rank.window.length_us(), 33);
  EXPECT_DOUBLE_EQ(rank.computation_us, 15);    // gemm 10 + element-wise 5
  EXPECT_DOUBLE_EQ(rank.exposed_memcpy_us, 4);  // 16-20: the gemm is over
  EXPECT_DOUBLE_EQ(rank.exposed_comm_us, 0);
  // 0-6: the gemm is not launched; 26-33: nothing is left to launch, and the step is not over
  EXPECT_DOUBLE_EQ(rank.idle.of(IdleCause::cpu), 6 + 7);
  EXPECT_DOUBLE_EQ(rank.idle.of(IdleCause::other_stream), 1);  // 20-21: the event
  EXPECT_DOUBLE_EQ(rank.idle.of(IdleCause::rest), 0);
  EXPECT_DOUBLE_EQ(parts_of(rank), 33);
  EXPECT_DOUBLE_EQ(rank.gpu_active_us, 19);
  EXPECT_DOUBLE_EQ(rank.kernels_us[static_cast<std::size_t>(KernelClass::gemm)], 10);
  EXPECT_DOUBLE_EQ(rank.kernels_us[static_cast<std::size_t>(KernelClass::elementwise)], 5);

  ASSERT_EQ(rank.streams.size(), 2U);
  const StreamBreakdown& compute = rank.streams[0];
  EXPECT_EQ(compute.name, "stream 7");
  EXPECT_DOUBLE_EQ(compute.idle.of(IdleCause::cpu), 6);
  EXPECT_DOUBLE_EQ(compute.idle.of(IdleCause::other_stream), 5);  // 16-21
  EXPECT_DOUBLE_EQ(compute.idle.of(IdleCause::rest), 7);
  const StreamBreakdown& copies = rank.streams[1];
  EXPECT_DOUBLE_EQ(copies.memcpy_us, 10);
  EXPECT_DOUBLE_EQ(copies.exposed_memcpy_us, 4);
  EXPECT_DOUBLE_EQ(copies.idle.of(IdleCause::cpu), 10);
  EXPECT_DOUBLE_EQ(copies.idle.of(IdleCause::rest), 13);

  ASSERT_EQ(rank.threads.size(), 1U);
  const ThreadBreakdown& thread = rank.threads[0];
  EXPECT_DOUBLE_EQ(thread.busy_us, 14);                  // 4 + 4 + 2 + 1 + 3
  EXPECT_DOUBLE_EQ(thread.idle.of(IdleCause::gpu), 19);  // 11-30
  ASSERT_EQ(thread.busy_by_op.size(), 3U);
  EXPECT_EQ(thread.busy_by_op[0].name, "aten::linear");  // L1 below aten::mm and L2; the step itself is no op
  EXPECT_DOUBLE_EQ(thread.busy_by_op[0].time_us, 8);
  EXPECT_EQ(thread.busy_by_op[1].name, "");  // the synchronisation
  EXPECT_DOUBLE_EQ(thread.busy_by_op[1].time_us, 4);
  EXPECT_EQ(thread.busy_by_op[2].name, "aten::relu");
}

TEST(Breakdown, CutsAtTheWindow) {
  const fixtures::OneRank hand;
  const Timeline timeline = fixtures::simulated(hand.program);
  const FlatProgram flat{hand.program};
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  const std::vector<Interval> window{{8, 18}};
  const std::vector<double> starts{0};
  const RankBreakdown rank = break_down(flat, times, Costs{hand.program}, window, starts).front();
  EXPECT_DOUBLE_EQ(rank.computation_us, 8);     // gemm 8-16
  EXPECT_DOUBLE_EQ(rank.exposed_memcpy_us, 2);  // copy 16-18
  EXPECT_DOUBLE_EQ(rank.idle.total_us(), 0);
  EXPECT_DOUBLE_EQ(rank.threads[0].busy_us, 3);  // L3 and E, 8-11
  EXPECT_DOUBLE_EQ(rank.threads[0].idle.of(IdleCause::gpu), 7);
}

TEST(Breakdown, TellsTransferFromWaitingForAnotherRank) {
  const fixtures::TwoRanks hand;
  const std::vector<RankBreakdown> ranks = whole_breakdown(hand.program, {0, 0});
  // Rank 0: gemm 1-11; waits 3-10, all of it under the gemm; transfer 10-18, of which 11-18 is exposed.
  EXPECT_DOUBLE_EQ(ranks[0].computation_us, 10);
  EXPECT_DOUBLE_EQ(ranks[0].transfer_us, 8);
  EXPECT_DOUBLE_EQ(ranks[0].exposed_comm_us, 7);
  EXPECT_DOUBLE_EQ(ranks[0].overlap_us, 1);
  EXPECT_DOUBLE_EQ(ranks[0].collective_wait_us, 7);
  EXPECT_DOUBLE_EQ(ranks[0].idle.of(IdleCause::other_rank), 0);
  EXPECT_DOUBLE_EQ(ranks[0].idle.of(IdleCause::cpu), 1);
  EXPECT_DOUBLE_EQ(parts_of(ranks[0]), 18);
  // Its communication stream waits the whole 3-10, whatever the other stream does.
  EXPECT_DOUBLE_EQ(ranks[0].streams[1].idle.of(IdleCause::other_rank), 7);
  // Rank 1 came last.
  EXPECT_DOUBLE_EQ(ranks[1].exposed_comm_us, 8);
  EXPECT_DOUBLE_EQ(ranks[1].idle.of(IdleCause::cpu), 10);
  EXPECT_DOUBLE_EQ(parts_of(ranks[1]), 18);
}

TEST(Breakdown, OfAMeasuredCollectiveTakesTheShortestStayAsTransfer) {
  const fixtures::TwoRanks hand;
  const FlatProgram flat{hand.program};
  // Clocks disagree by half a microsecond: rank 0 is in it 3-18.5 (15.5), rank 1 10.2-18 (7.8).
  const std::vector<std::vector<Interval>> recorded{{{0, 2}, {1, 11}, {3, 18.5}}, {{0, 9}, {10.2, 18}}};
  const Result<TaskTimes> times = TaskTimes::measured(flat, recorded);
  ASSERT_TRUE(times.ok());
  const std::vector<Interval> windows{{0, 20}, {0, 20}};
  const std::vector<double> starts{0, 0};
  const std::vector<RankBreakdown> ranks = break_down(flat, *times, Costs{hand.program}, windows, starts);
  EXPECT_NEAR(ranks[0].collective_wait_us, 15.5 - 7.8, 1e-9);
  EXPECT_NEAR(ranks[0].transfer_us, 7.8, 1e-9);
  EXPECT_NEAR(ranks[1].collective_wait_us, 0, 1e-9);
  EXPECT_NEAR(parts_of(ranks[0]), 20, 1e-9);
}

// Whatever the Program, the parts of a rank, of a stream and of a thread sum to the window.
TEST(Breakdown, ConservesTheWindowOfRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    const Program program = fixtures::random_program(seed);
    const std::vector<double> starts = fixtures::random_offsets(seed, program.rank_classes().size());
    const Timeline timeline = fixtures::simulated(program, {.start_offset_us = starts});
    const FlatProgram flat{program};
    const TaskTimes times = TaskTimes::simulated(flat, timeline);
    std::vector<Interval> windows = whole_windows(flat, times, starts);
    if (seed % 2 == 0) {  // a window that cuts tasks
      for (Interval& w : windows) w = {w.start_us + 0.2 * w.length_us(), w.end_us - 0.3 * w.length_us()};
    }
    for (const RankBreakdown& rank : break_down(flat, times, Costs{program}, windows, starts)) {
      const double window = rank.window.length_us();
      ASSERT_NEAR(parts_of(rank), window, 1e-6 + 1e-9 * window) << "seed " << seed;
      for (const StreamBreakdown& s : rank.streams) {
        ASSERT_NEAR(s.computation_us + s.transfer_us + s.memcpy_us + s.idle.total_us(), window, 1e-6)
            << "seed " << seed;
      }
      for (const ThreadBreakdown& t : rank.threads) {
        ASSERT_NEAR(t.busy_us + t.idle.total_us(), window, 1e-6) << "seed " << seed;
      }
    }
  }
}

TEST(IntervalSet, MergesSubtractsAndMeasures) {
  const detail::IntervalSet set{{{5, 7}, {0, 2}, {1, 3}, {7, 8}, {4, 4}}};  // 0-3, 5-8
  ASSERT_EQ(set.intervals().size(), 2U);
  EXPECT_DOUBLE_EQ(set.total_us(), 6);
  EXPECT_DOUBLE_EQ(set.covered_us({2, 6}), 2);  // 2-3 and 5-6
  EXPECT_DOUBLE_EQ(set.covered_us({3, 5}), 0);
  const detail::IntervalSet rest = set.minus(detail::IntervalSet{{{1, 2}, {6, 10}}});  // 0-1, 2-3, 5-6
  EXPECT_DOUBLE_EQ(rest.total_us(), 3);
  ASSERT_EQ(rest.intervals().size(), 3U);
  EXPECT_DOUBLE_EQ(rest.intervals()[1].start_us, 2);
}

}  // namespace
}  // namespace stepcast::breakdown_test
