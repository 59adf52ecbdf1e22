#include "stepcast/retrace/overlap_change.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/predict/replay.h"

#include "tests/support/fails_with.h"

namespace stepcast::overlap_change_test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

//   us       0         20         40      50      60
//   stream 7 |A        |B---------|       |C------|     C reads what T brought
//   stream 8           .|T----------------|             T sends what A wrote, 30 us
RecordedProgram overlapping(bool with_transfer = true) {
  RecordedProgram recorded;
  BlockBuilder block{"rank 0"};
  const LaneId compute = block.add_lane({LaneKind::gpu_stream, "stream 7", 7});
  const LaneId transfers = block.add_lane({LaneKind::gpu_stream, "stream 8", 8});
  const TaskInfo kernel{.kind = TaskKind::kernel, .kernel_class = KernelClass::gemm};
  const TaskInfo transfer{.kind = TaskKind::kernel,
                          .kernel_class = with_transfer ? KernelClass::communication : KernelClass::memory};
  const TaskId a = block.add_task(compute, kernel, Microseconds{20});
  const TaskId b = block.add_task(compute, kernel, Microseconds{20});
  const TaskId t = block.add_task(transfers, transfer, Microseconds{30});
  const TaskId c = block.add_task(compute, kernel, Microseconds{10});
  block.add_edge(BlockBuilder::end_of(a), t, Microseconds{}, {.origin = EdgeOrigin::event});
  block.add_edge(BlockBuilder::end_of(t), c, Microseconds{}, {.origin = EdgeOrigin::event});
  BlockBuilder::Finished finished = value_of(std::move(block).finish_with_map());
  recorded.measured.resize(1);
  recorded.measured[0].resize(4);
  const auto at = [&](TaskId task, double start, double end) {
    recorded.measured[0][finished.new_id[task.index()].index()] = {start, end};
  };
  at(a, 0, 20);
  at(b, 20, 40);
  at(t, 20.5, 50);
  at(c, 50, 60);
  RecordedStepFacts facts;
  facts.step_us = {0, 60};
  facts.gpu_window_end_us = 60;
  facts.step_end_task = finished.new_id[c.index()];
  recorded.facts.push_back(facts);
  recorded.start_offset_us = {0};
  recorded.files.resize(1);
  RankClass ranks;
  ranks.lanes = {{LaneKind::gpu_stream, "stream 7", 7}, {LaneKind::gpu_stream, "stream 8", 8}};
  const BlockId id = recorded.program.add_block(std::move(finished.block));
  recorded.program.add_instance(recorded.program.add_rank_class(std::move(ranks)), {.block = id});
  return recorded;
}

double step_us(const RecordedProgram& recorded) {
  return value_of(score_replay(recorded, Costs{recorded.program})).ranks[0].step.simulated_us;
}

TEST(OverlapChange, AsRecordedNothingChanges) {
  EXPECT_DOUBLE_EQ(step_us(value_of(with_overlap(overlapping(), OverlapChange::as_recorded))), 60);
}

// A 0-20, B 20-40, then T 40-70, then C 70-80.
TEST(OverlapChange, WithoutOverlapTransfersAndComputationTakeTurns) {
  EXPECT_DOUBLE_EQ(step_us(value_of(with_overlap(overlapping(), OverlapChange::none))), 80);
}

// C begins behind B at 40 and ends at 50, as the transfer does. One of 45 us ends at 65, and so does the step.
TEST(OverlapChange, PerfectOverlapLeavesTheLongerOfTheTwo) {
  const RecordedProgram perfect = value_of(with_overlap(overlapping(), OverlapChange::perfect));
  EXPECT_DOUBLE_EQ(step_us(perfect), 50);
  Costs slower{perfect.program};
  const BlockId id{std::size_t{0}};
  for (std::uint32_t t = 0; t < perfect.program.block(id).task_count(); ++t) {
    if (perfect.program.block(id).tasks()[t].kernel_class == KernelClass::communication)
      slower.duration_us(id)[t] = 45;
  }
  EXPECT_DOUBLE_EQ(value_of(score_replay(perfect, slower)).ranks[0].step.simulated_us, 65);
}

//   us       0     5           25    30         50
//   thread   |L1---|wait-------|L2---|                  waits for A before it launches B
//   stream 7       |A----------|     |B----------|
TEST(OverlapChange, OfTheHostLeavesNoWaitingForTheGpu) {
  RecordedProgram recorded;
  BlockBuilder block{"rank 0"};
  const LaneId thread = block.add_lane({LaneKind::cpu_thread, "main", 1});
  const LaneId stream = block.add_lane({LaneKind::gpu_stream, "stream 7", 7});
  const TaskInfo call{.kind = TaskKind::cpu_call};
  const TaskInfo kernel{.kind = TaskKind::kernel, .kernel_class = KernelClass::gemm};
  const TaskId first = block.add_task(thread, call, Microseconds{5});
  const TaskId returned = block.add_task(thread, {.kind = TaskKind::sync_return}, Microseconds{});
  const TaskId second = block.add_task(thread, call, Microseconds{5});
  const TaskId a = block.add_task(stream, kernel, Microseconds{20});
  const TaskId b = block.add_task(stream, kernel, Microseconds{20});
  block.add_edge(BlockBuilder::end_of(first), a, Microseconds{}, {.origin = EdgeOrigin::launch});
  block.add_edge(BlockBuilder::end_of(a), returned, Microseconds{}, {.origin = EdgeOrigin::synchronization});
  block.add_edge(BlockBuilder::end_of(second), b, Microseconds{}, {.origin = EdgeOrigin::launch});
  BlockBuilder::Finished finished = value_of(std::move(block).finish_with_map());
  recorded.measured = {std::vector<Interval>(5, Interval{0, 50})};
  RecordedStepFacts facts;
  facts.step_us = {0, 50};
  facts.gpu_window_end_us = 50;
  facts.step_end_task = finished.new_id[b.index()];
  recorded.facts.push_back(facts);
  recorded.start_offset_us = {0};
  recorded.files.resize(1);
  RankClass ranks;
  ranks.lanes = {{LaneKind::cpu_thread, "main", 1}, {LaneKind::gpu_stream, "stream 7", 7}};
  const BlockId id = recorded.program.add_block(std::move(finished.block));
  recorded.program.add_instance(recorded.program.add_rank_class(std::move(ranks)), {.block = id});
  EXPECT_DOUBLE_EQ(step_us(recorded), 50);
  // B is launched while A runs, and follows it at 25.
  EXPECT_DOUBLE_EQ(step_us(value_of(with_overlap(std::move(recorded), OverlapChange::host))), 45);
  EXPECT_THAT(with_overlap(overlapping(), OverlapChange::host), test::FailsWith("no CPU call waits"));
}

TEST(OverlapChange, NeedsTransfers) {
  EXPECT_THAT(with_overlap(overlapping(false), OverlapChange::none),
              test::FailsWith("no transfers with an overlap"));
}

}  // namespace
}  // namespace stepcast::overlap_change_test
