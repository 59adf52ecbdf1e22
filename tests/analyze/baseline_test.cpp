#include "stepcast/analyze/baseline.h"

#include <gtest/gtest.h>

#include "tests/analyze/hand_made.h"
#include "tests/support/sketch.h"

namespace stepcast::baseline_test {
namespace {

TEST(Baseline, IsTheLargestSumOfOneStream) {
  const fixtures::OneRank hand;
  const StreamBaseline baseline = stream_baseline(hand.program, Costs{hand.program});
  EXPECT_DOUBLE_EQ(baseline.time_us, 15);  // stream 7: gemm 10 + element-wise 5; the copy stream has 10
  EXPECT_EQ(baseline.lane, 1U);
}

TEST(Baseline, CountsACollectiveAsItsTransferAndEveryInstance) {
  const fixtures::TwoRanks hand;
  EXPECT_DOUBLE_EQ(stream_baseline(hand.program, Costs{hand.program}).time_us, 10);  // rank 0's gemm
  EXPECT_DOUBLE_EQ(stream_baseline(hand.program, Costs{hand.program}, RankClassId{1}).time_us, 8);

  fixtures::ProgramSketch sketch;
  fixtures::BlockSketch layer{"layer", 1};
  layer.work(0, 3);
  const BlockId block = sketch.block(layer);
  sketch.ranks(2, 1, {block, block, block, block, block});
  EXPECT_DOUBLE_EQ(stream_baseline(sketch.program, Costs{sketch.program}).time_us, 15);
}

TEST(Baseline, LeavesOutWorkOfTheStepBefore) {
  Program program;
  BlockBuilder b{"step"};
  const LaneId stream = b.add_lane({LaneKind::gpu_stream, "stream 7"});
  const InPortId start = b.add_in_port("start");
  const TaskId left_over = b.add_task(stream, {.kind = TaskKind::kernel}, Microseconds{100});
  b.add_task(stream, {.kind = TaskKind::kernel}, Microseconds{7});
  b.add_edge(BlockBuilder::arrival_at(start), left_over, Microseconds{1},
             {.origin = EdgeOrigin::recorded_offset});
  Result<Block> block = std::move(b).finish();
  ASSERT_TRUE(block.ok());
  RankClass rank;
  rank.name = "rank 0";
  rank.lanes.assign(block->lanes().begin(), block->lanes().end());
  rank.slot_count = 1;
  const RankClassId c = program.add_rank_class(std::move(rank));
  program.add_instance(c,
                       {.block = program.add_block(std::move(block).value()), .lanes = {}, .in_slots = {0}});
  EXPECT_DOUBLE_EQ(stream_baseline(program, Costs{program}).time_us, 7);
}

}  // namespace
}  // namespace stepcast::baseline_test
