#include "stepcast/program/block.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::block_test {
namespace {

using literals::operator""_us;
using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A thread and two streams.
BlockBuilder three_lanes() {
  BlockBuilder b{"forward"};
  b.add_lane({LaneKind::cpu_thread, "main"});
  b.add_lane({LaneKind::gpu_stream, "compute"});
  b.add_lane({LaneKind::gpu_stream, "copy"});
  return b;
}
constexpr LaneId kMain{0}, kCompute{1}, kCopy{2};

std::string error_of(BlockBuilder&& b) {
  Result<Block> block = std::move(b).finish();
  return block.ok() ? "no error" : block.error().message();
}

TEST(BlockBuilder, KeepsTheNumbersOfABlockAddedInOrder) {
  BlockBuilder b = three_lanes();
  const TaskId launch = b.add_task(kMain, {.kind = TaskKind::cpu_call}, 4_us);
  const TaskId kernel = b.add_task(kCompute, {.kind = TaskKind::kernel}, 50_us);
  const TaskId join = b.add_task(kCompute, {.kind = TaskKind::collective}, 7_us);
  b.add_edge(b.start_of(launch), kernel, 2_us, {.origin = EdgeOrigin::launch});
  b.add_edge(b.end_of(launch), join, 0_us, {});
  b.add_edge(b.end_of(kernel), join, 1_us, {.origin = EdgeOrigin::stream_order, .inferred = true});
  b.add_out_port("done", b.end_of(join), 3_us);
  Result<Block> block = std::move(b).finish();
  ASSERT_TRUE(block.ok()) << block.error().message();

  EXPECT_EQ(block->name(), "forward");
  EXPECT_EQ(block->task_count(), 3u);
  EXPECT_EQ(block->edge_count(), 3u);
  EXPECT_EQ(block->lane_of(launch), kMain);
  EXPECT_EQ(block->lane_of(join), kCompute);
  EXPECT_THAT(block->collective_tasks(), ElementsAre(join));
  EXPECT_THAT(block->first_edge(), ElementsAre(0u, 0u, 1u, 3u));
  EXPECT_THAT(block->sources(), ElementsAre(0u, 1u, 3u));  // start of 0, end of 0, end of 1
  EXPECT_THAT(block->delay_us(), ElementsAre(2, 0, 1));
  EXPECT_THAT(block->duration_us(), ElementsAre(4, 50, 7));
  EXPECT_EQ(block->edge_infos()[2].origin, EdgeOrigin::stream_order);
  EXPECT_TRUE(block->edge_infos()[2].inferred);
  EXPECT_EQ(block->out_ports()[0].source, Moment::end_of(join));
  EXPECT_GT(block->memory_bytes(), sizeof(Block));
}

// Added: copy waits for kernel, which is added after it; kernel waits for launch, added last. Lowest added
// first among the ready: nothing but launch (2) is ready at first, then kernel (1), then copy (0).
TEST(BlockBuilder, SortsTasksTopologically) {
  BlockBuilder b = three_lanes();
  const InPortId port = b.add_in_port("batch");
  const TaskId copy = b.add_task(kCopy, {.kind = TaskKind::memcpy}, 1_us);
  const TaskId kernel = b.add_task(kCompute, {.kind = TaskKind::kernel}, 2_us);
  const TaskId launch = b.add_task(kMain, {.kind = TaskKind::cpu_call}, 3_us);
  b.add_edge(b.end_of(kernel), copy, 0_us, {});
  b.add_edge(b.start_of(launch), kernel, 5_us, {});
  b.add_edge(b.arrival_at(port), kernel, 6_us, {});
  b.add_out_port("copied", b.end_of(copy));
  b.add_out_port("batch", b.arrival_at(port));
  auto finished = std::move(b).finish_with_map();
  ASSERT_TRUE(finished.ok()) << finished.error().message();
  EXPECT_THAT(finished->new_id, ElementsAre(TaskId{2}, TaskId{1}, TaskId{0}));
  const Block& block = finished->block;
  EXPECT_THAT(block.duration_us(), ElementsAre(3, 2, 1));
  EXPECT_THAT(block.first_edge(), ElementsAre(0u, 0u, 2u, 3u));
  EXPECT_THAT(block.sources(),
              ElementsAre(0u, 6u, 3u));  // start of launch, in-port 0 = 2 * 3 + 0, end of kernel
  EXPECT_EQ(block.out_ports()[0].source, Moment::end_of(TaskId{2}));
  EXPECT_EQ(block.out_ports()[1].source.code(), 6u);
}

// 0 and 3 wait for 4; 1 and 2 are free: 1, 2, then 4 frees 0 and 3, where 0 was added first.
TEST(BlockBuilder, SortIsStable) {
  BlockBuilder b{"block"};
  for (int l = 0; l < 5; ++l) b.add_lane({LaneKind::gpu_stream, "stream " + std::to_string(l)});
  for (int l = 0; l < 5; ++l) b.add_task(LaneId{l}, {}, 1_us);
  b.add_edge(b.end_of(TaskId{4}), TaskId{0}, 0_us, {});
  b.add_edge(b.end_of(TaskId{4}), TaskId{3}, 0_us, {});
  auto finished = std::move(b).finish_with_map();
  ASSERT_TRUE(finished.ok());
  EXPECT_THAT(finished->new_id, ElementsAre(TaskId{3}, TaskId{0}, TaskId{1}, TaskId{4}, TaskId{2}));
}

TEST(BlockBuilder, EmptyBlock) {
  Result<Block> block = BlockBuilder{"nothing"}.finish();
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(block->task_count(), 0u);
  EXPECT_THAT(block->first_edge(), ElementsAre(0u));
}

TEST(BlockBuilder, SetDurationReplaces) {
  BlockBuilder b = three_lanes();
  const TaskId t = b.add_task(kMain, {}, 4_us);
  b.set_duration(t, 9_us);
  EXPECT_EQ(b.task_count(), 1u);
  Result<Block> block = std::move(b).finish();
  ASSERT_TRUE(block.ok());
  EXPECT_THAT(block->duration_us(), ElementsAre(9));
}

TEST(BlockBuilderErrors, Cycle) {
  BlockBuilder b = three_lanes();
  const TaskId a = b.add_task(kMain, {.kind = TaskKind::cpu_call}, 1_us);
  const TaskId k = b.add_task(kCompute, {.kind = TaskKind::kernel}, 1_us);
  const TaskId c = b.add_task(kCopy, {.kind = TaskKind::memcpy}, 1_us);
  b.add_task(kMain, {}, 1_us);  // behind the cycle, not in it
  b.add_edge(b.end_of(a), k, 0_us, {});
  b.add_edge(b.end_of(k), c, 0_us, {});
  b.add_edge(b.start_of(c), a, 0_us, {});
  EXPECT_EQ(error_of(std::move(b)),
            "block \"forward\": tasks wait for each other in a circle: task 0 (cpu_call on lane \"main\"), "
            "which waits for task 2 (memcpy on lane \"copy\"), which waits for task 1 (kernel on lane "
            "\"compute\"), which waits for task 0 (cpu_call on lane \"main\")");
}

// 1 waits for 2 by an edge, 3 for 0; the order of the lanes 0, 1 and 2, 3 closes the circle.
TEST(BlockBuilderErrors, CycleThroughLanes) {
  BlockBuilder b = three_lanes();
  const TaskId a0 = b.add_task(kMain, {}, 1_us), a1 = b.add_task(kMain, {}, 1_us);
  const TaskId b0 = b.add_task(kCompute, {}, 1_us), b1 = b.add_task(kCompute, {}, 1_us);
  b.add_edge(b.end_of(b1), a0, 0_us, {});
  b.add_edge(b.end_of(a1), b0, 0_us, {});
  EXPECT_EQ(
      error_of(std::move(b)),
      "block \"forward\": tasks wait for each other in a circle: task 0 (kernel on lane \"main\"), which "
      "waits for task 3 (kernel on lane \"compute\"), which waits for task 2 (kernel on lane \"compute\"), "
      "which waits for task 1 (kernel on lane \"main\"), which waits for task 0 (kernel on lane \"main\")");
}

TEST(BlockBuilderErrors, LongCyclesAreShortened) {
  BlockBuilder b{"ring"};
  constexpr int kTasks = 100;
  for (int l = 0; l < kTasks; ++l) b.add_task(b.add_lane({LaneKind::gpu_stream, "s"}), {}, 1_us);
  for (int l = 0; l < kTasks; ++l) b.add_edge(b.end_of(TaskId{l}), TaskId{(l + 1) % kTasks}, 0_us, {});
  const std::string error = error_of(std::move(b));
  EXPECT_THAT(error, ::testing::HasSubstr("... (90 more)"));
  EXPECT_LT(error.size(), 1000u);
}

TEST(BlockBuilderErrors, EdgeAgainstTheOrderOfItsLane) {
  BlockBuilder b = three_lanes();
  const TaskId first = b.add_task(kMain, {.kind = TaskKind::cpu_segment}, 1_us);
  const TaskId second = b.add_task(kMain, {.kind = TaskKind::cpu_call}, 1_us);
  b.add_edge(b.start_of(second), first, 0_us, {});
  EXPECT_EQ(error_of(std::move(b)),
            "block \"forward\", edge 0 into task 0 (cpu_segment on lane \"main\"): runs against the order of "
            "its lane, found a wait for task 1 (cpu_call on lane \"main\"), which was added later, expected "
            "the tasks of a lane added in the order in which they run");
}

TEST(BlockBuilderErrors, TaskThatWaitsForItself) {
  BlockBuilder b = three_lanes();
  const TaskId t = b.add_task(kMain, {}, 1_us);
  b.add_edge(b.start_of(t), t, 0_us, {});
  EXPECT_EQ(
      error_of(std::move(b)),
      "block \"forward\", edge 0 into task 0 (kernel on lane \"main\"): makes the task wait for itself");
}

TEST(BlockBuilderErrors, Durations) {
  for (const auto& [duration, text] : {std::pair{-1.0, "-1 us"}, {kNan, "nan us"}, {kInfinity, "inf us"}}) {
    BlockBuilder b = three_lanes();
    b.add_task(kCompute, {}, 1_us);
    b.add_task(kCompute, {}, Microseconds{duration});
    EXPECT_EQ(
        error_of(std::move(b)),
        std::string{"block \"forward\", task 1 (kernel on lane \"compute\"): invalid duration, found "} +
            text + ", expected a finite time that is not negative");
  }
}

TEST(BlockBuilderErrors, Delays) {
  for (const auto& [delay, text] : {std::pair{-0.5, "-0.5 us"}, {kNan, "nan us"}, {kInfinity, "inf us"}}) {
    BlockBuilder b = three_lanes();
    const TaskId a = b.add_task(kMain, {}, 1_us), k = b.add_task(kCompute, {}, 1_us);
    b.add_edge(b.end_of(a), k, 1_us, {});
    b.add_edge(b.end_of(a), k, Microseconds{delay}, {});
    EXPECT_EQ(
        error_of(std::move(b)),
        std::string{
            "block \"forward\", edge 1 into task 1 (kernel on lane \"compute\"): invalid delay, found "} +
            text + ", expected a finite time that is not negative");

    BlockBuilder p = three_lanes();
    p.add_out_port("done", p.end_of(p.add_task(kMain, {}, 1_us)), Microseconds{delay});
    EXPECT_EQ(error_of(std::move(p)),
              std::string{"block \"forward\", out-port \"done\": invalid delay, found "} + text +
                  ", expected a finite time that is not negative");
  }
}

TEST(BlockBuilderErrors, Unknown) {
  const TaskId nobody{7};
  {
    BlockBuilder b = three_lanes();
    b.add_task(LaneId{3}, {}, 1_us);
    EXPECT_EQ(error_of(std::move(b)),
              "block \"forward\", task 0 (kernel on lane \"?\"): runs on an unknown lane, found lane 3, "
              "expected one of 3");
  }
  {
    BlockBuilder b = three_lanes();
    b.add_edge(b.end_of(b.add_task(kMain, {}, 1_us)), nobody, 1_us, {});
    EXPECT_EQ(error_of(std::move(b)),
              "block \"forward\", edge 0 into task 7: leads to an unknown task, expected one of 1");
  }
  {
    BlockBuilder b = three_lanes();
    b.add_edge(b.end_of(nobody), b.add_task(kMain, {}, 1_us), 1_us, {});
    EXPECT_EQ(error_of(std::move(b)),
              "block \"forward\", edge 0 into task 0 (kernel on lane \"main\"): waits for an unknown task, "
              "found task 7, expected one of 1");
  }
  {
    BlockBuilder b = three_lanes();
    b.add_edge(b.arrival_at(InPortId{2}), b.add_task(kMain, {}, 1_us), 1_us, {});
    EXPECT_EQ(error_of(std::move(b)),
              "block \"forward\", edge 0 into task 0 (kernel on lane \"main\"): waits for an unknown "
              "in-port, found in-port 2, expected one of 0");
  }
  {
    BlockBuilder b = three_lanes();
    b.add_out_port("done", Moment{});
    EXPECT_EQ(error_of(std::move(b)),
              "block \"forward\", out-port \"done\": waits for a moment that was never set");
  }
  {
    BlockBuilder b = three_lanes();
    b.set_duration(nobody, 1_us);
    EXPECT_EQ(error_of(std::move(b)),
              "block \"forward\": set_duration was given an unknown task, found task 7");
  }
}

TEST(BlockBuilderErrors, SharesOfTheSource) {
  {
    BlockBuilder b = three_lanes();
    const TaskId a = b.add_task(kMain, {}, 1_us), k = b.add_task(kCompute, {}, 1_us);
    b.add_edge(b.start_of(a), k, 1_us, {.share_of_source = -0.5F});
    EXPECT_EQ(error_of(std::move(b)),
              "block \"forward\", edge 0 into task 1 (kernel on lane \"compute\"): invalid share of the "
              "source's duration, found -0.5, expected a finite number that is not negative");
  }
  {
    BlockBuilder b = three_lanes();
    const InPortId port = b.add_in_port("batch");
    b.add_edge(b.arrival_at(port), b.add_task(kMain, {}, 1_us), 1_us, {.share_of_source = 0.5F});
    EXPECT_EQ(error_of(std::move(b)),
              "block \"forward\", edge 0 into task 0 (kernel on lane \"main\"): its delay is a share of a "
              "task's duration, but it leaves an in-port");
  }
}

TEST(BlockBuilderErrors, TooManyLanes) {
  BlockBuilder b{"wide"};
  for (int l = 0; l < 65536; ++l) b.add_lane({});
  EXPECT_EQ(error_of(std::move(b)), "block \"wide\": too many lanes, found 65536, expected at most 65535");
}

TEST(Names, OfKindsAndOrigins) {
  EXPECT_EQ(to_string(TaskKind::cpu_segment), "cpu_segment");
  EXPECT_EQ(to_string(TaskKind::sync_return), "sync_return");
  EXPECT_EQ(to_string(TaskKind::collective), "collective");
  for (int origin = 0; origin < kEdgeOriginCount; ++origin) {
    EXPECT_NE(to_string(static_cast<EdgeOrigin>(origin)), "unknown");
  }
  EXPECT_EQ(to_string(EdgeOrigin::device_busy), "device_busy");
}

// The kernel is added before what it waits for, so the tasks are renumbered: copy 0, kernel 1, other copy 2.
TEST(BlockBuilder, RenumbersOverlaps) {
  BlockBuilder b = three_lanes();
  const TaskId kernel = b.add_task(kCompute, {.kind = TaskKind::kernel}, 50_us);
  const TaskId copy = b.add_task(kCopy, {.kind = TaskKind::kernel}, 10_us);
  const TaskId other = b.add_task(kCopy, {.kind = TaskKind::kernel}, 10_us);
  b.add_edge(b.start_of(copy), kernel, 0_us, {});
  b.add_overlap(kernel, other);
  b.add_overlap(kernel, copy);
  const Result<BlockBuilder::Finished> finished = std::move(b).finish_with_map();
  ASSERT_TRUE(finished.ok()) << finished.error().message();
  EXPECT_THAT(finished->new_id, ElementsAre(TaskId{1}, TaskId{0}, TaskId{2}));
  EXPECT_THAT(finished->block.overlaps(),
              ElementsAre(Overlap{TaskId{1}, TaskId{0}}, Overlap{TaskId{1}, TaskId{2}}));
}

TEST(BlockBuilder, RefusesOverlapsOfUnknownTasks) {
  BlockBuilder b = three_lanes();
  const TaskId kernel = b.add_task(kCompute, {.kind = TaskKind::kernel}, 50_us);
  b.add_overlap(kernel, TaskId{7});
  EXPECT_EQ(error_of(std::move(b)),
            "block \"forward\": an overlap of an unknown task, found task 7, expected one of 1");
}

}  // namespace
}  // namespace stepcast::block_test
