#include "stepcast/analyze/forecast.h"

#include <vector>

#include <gtest/gtest.h>

#include "stepcast/analyze/breakdown.h"
#include "stepcast/analyze/make_forecast.h"

#include "tests/analyze/hand_made.h"
#include "tests/support/random_program.h"
#include "tests/support/sketch.h"

namespace stepcast::forecast_test {
namespace {

Forecast whole_forecast(const Program& program, std::vector<double> starts,
                        const ForecastOptions& options = {}) {
  const Timeline timeline = fixtures::simulated(program, {.start_offset_us = starts});
  const FlatProgram flat{program};
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  const Costs costs{program};
  const std::vector<Interval> windows = whole_windows(flat, times, starts);
  return make_forecast(
      {.flat = flat, .costs = costs, .times = times, .windows = windows, .rank_start_us = starts},
      std::nullopt, {}, options);
}

// tests/analyze/breakdown_test.cpp works the same step out: gemm 6-16, element-wise 21-26, copy 10-20, end 33.
TEST(Forecast, OfOneRankByHand) {
  const fixtures::OneRank hand;
  const Forecast f = whole_forecast(hand.program, {0});
  EXPECT_DOUBLE_EQ(f.step_time_ms, 0.033);
  EXPECT_EQ(f.source, EstimateSource::measured);  // nobody gave an estimate
  EXPECT_EQ(f.n_gpus, 1U);
  ASSERT_EQ(f.classes.size(), 1U);
  const ForecastClass& c = f.critical();
  EXPECT_DOUBLE_EQ(c.window_ms, 0.033);
  EXPECT_DOUBLE_EQ(time_ms(c.computation_by_class_ms, "gemm"), 0.010);
  EXPECT_DOUBLE_EQ(time_ms(c.computation_by_class_ms, "elementwise"), 0.005);
  EXPECT_DOUBLE_EQ(c.exposed_memcpy_ms, 0.004);
  EXPECT_NEAR(time_ms(c.idle_ms, "cpu"), 0.013, 1e-12);
  EXPECT_NEAR(time_ms(c.idle_ms, "rest"), 0, 1e-12);
  const NamedTimes parts = c.parts();
  EXPECT_DOUBLE_EQ(time_ms(parts, "computation: gemm"), 0.010);
  EXPECT_DOUBLE_EQ(time_ms(parts, "idle: other_stream"), 0.001);
  EXPECT_NEAR(sum_ms(parts), 0.033, 1e-12);
  ASSERT_EQ(c.streams.size(), 2U);
  EXPECT_DOUBLE_EQ(time_ms(c.streams[0].parts_ms, "gemm"), 0.010);
  EXPECT_DOUBLE_EQ(time_ms(c.streams[0].parts_ms, "other"), 0.005);   // the element-wise kernel
  EXPECT_DOUBLE_EQ(time_ms(c.streams[1].parts_ms, "memory"), 0.010);  // the copy
  ASSERT_EQ(c.threads.size(), 1U);
  EXPECT_DOUBLE_EQ(time_ms(c.threads[0].busy_by_op_ms, "aten::linear"), 0.008);
  EXPECT_DOUBLE_EQ(f.critical_path.length_ms, 0.033);
  double path = 0;
  for (const ForecastShare& share : f.critical_path.by_class) path += share.time_ms;
  EXPECT_NEAR(path, 0.033, 1e-12);
  EXPECT_TRUE(f.collectives.empty());
}

TEST(Forecast, ListsCollectivesUnderStableKeys) {
  const fixtures::TwoRanks hand;
  const Forecast f = whole_forecast(hand.program, {0, 0}, {.path_steps = true});
  ASSERT_EQ(f.collectives.size(), 1U);
  EXPECT_EQ(f.n_collectives, 1U);
  const ForecastCollective& c = f.collectives[0];
  EXPECT_EQ(c.name, "all_reduce");
  EXPECT_EQ(c.ordinal, 0U);
  EXPECT_EQ(c.operation, "all_reduce");
  EXPECT_EQ(c.group, "unknown");
  EXPECT_EQ(c.message_bytes, 4096);
  EXPECT_EQ(c.came_last, 1U);
  EXPECT_DOUBLE_EQ(c.longest_wait_us, 7);  // rank 0 arrives at 3, rank 1 at 10
  EXPECT_DOUBLE_EQ(c.transfer_us, 8);
  ASSERT_EQ(c.members.size(), 2U);
  EXPECT_DOUBLE_EQ(c.members[0].exposed_us, 7);  // 11-18, the gemm ends at 11
  EXPECT_EQ(f.critical_path.steps.size(), f.critical_path.n_steps);
  // Both end at 18; rank 0 is busy 1-18 without the wait, rank 1 only 10-18.
  EXPECT_EQ(f.critical_class, 0U);
}

// Sender: work 0-10, sends 10-12. Receiver: its receive is posted at 0 and gets the data at 12 (it waits
// 0-10, transfers 10-12); own work 0-4, then work on what came 12-20.
//
//   0-4 computation, 4-10 idle: pipeline, 10-12 exposed transfer, 12-20 computation
TEST(Forecast, CallsWaitingForAnotherStagePipelineAndNotCommunication) {
  Program program;
  const GroupId group = program.add_group({.label = "pipeline"});
  const WorkId p2p = program.works.intern(CollectiveWork{
      .op = CollectiveOp::send_receive, .dtype = DType::bf16, .message = Bytes{8}, .group = group});
  const TaskInfo transfer{
      .kind = TaskKind::collective, .kernel_class = KernelClass::communication, .work = p2p};
  const TaskInfo gemm{.kind = TaskKind::kernel, .kernel_class = KernelClass::gemm};
  std::vector<CollectiveMember> members;
  for (const bool sender : {true, false}) {
    BlockBuilder b{sender ? "sender" : "receiver"};
    const LaneId compute = b.add_lane({LaneKind::gpu_stream, "compute"});
    const LaneId link = b.add_lane({LaneKind::gpu_stream, "link"});
    const TaskId first = b.add_task(compute, gemm, Microseconds{sender ? 10.0 : 4.0});
    const TaskId move = b.add_task(link, transfer, Microseconds{2});
    if (sender) {
      b.add_edge(Moment::end_of(first), move, Microseconds{}, {});
    } else {
      const TaskId second = b.add_task(compute, gemm, Microseconds{8});
      b.add_edge(Moment::end_of(move), second, Microseconds{}, {});
    }
    Result<BlockBuilder::Finished> block = std::move(b).finish_with_map();
    ASSERT_TRUE(block.ok()) << block.error().message();
    RankClass rank{.name = sender ? "stage 0" : "stage 1"};
    rank.lanes.assign(block->block.lanes().begin(), block->block.lanes().end());
    const RankClassId c = program.add_rank_class(std::move(rank));
    const TaskId task = block->new_id[move.index()];
    const InstanceId i = program.add_instance(c, {.block = program.add_block(std::move(block->block))});
    members.push_back({c, i, task});
  }
  program.add_collective({.kind = CollectiveKind::rooted_from,
                          .root = 0,
                          .op = CollectiveOp::send_receive,
                          .message_bytes = 8,
                          .members = members});
  const Forecast f = whole_forecast(program, {0, 0});
  const ForecastClass& receiver = f.classes[1];
  EXPECT_EQ(f.critical_class, 1U);
  EXPECT_DOUBLE_EQ(time_ms(receiver.computation_by_class_ms, "gemm"), 0.012);
  EXPECT_DOUBLE_EQ(time_ms(receiver.idle_ms, "pipeline"), 0.006);
  EXPECT_DOUBLE_EQ(time_ms(receiver.idle_ms, "other_rank"), 0);
  EXPECT_DOUBLE_EQ(time_ms(receiver.exposed_comm_by_group_ms, "pipeline"), 0.002);
  EXPECT_DOUBLE_EQ(receiver.window_ms, 0.020);
  EXPECT_EQ(f.collectives[0].name, "send_receive");
  EXPECT_EQ(f.collectives[0].group, "pipeline");
}

// Whatever the Program: parts sum to the window, classes and groups to their parts.
TEST(Forecast, ConservesTheWindowOfRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Program program = fixtures::random_program(seed);
    const std::vector<double> starts = fixtures::random_offsets(seed, program.rank_classes().size());
    const Forecast f = whole_forecast(program, starts);
    for (const ForecastClass& c : f.classes) {
      ASSERT_NEAR(sum_ms(c.parts()), c.window_ms, 1e-9 * (1 + c.window_ms)) << "seed " << seed;
      ASSERT_NEAR(sum_ms(c.computation_by_class_ms), c.computation_ms, 1e-9 * (1 + c.window_ms));
      ASSERT_NEAR(sum_ms(c.exposed_comm_by_group_ms), c.exposed_comm_ms, 1e-9 * (1 + c.window_ms));
      for (const ForecastStream& s : c.streams) {
        ASSERT_NEAR(sum_ms(s.parts_ms), c.window_ms, 1e-9 * (1 + c.window_ms)) << "seed " << seed;
      }
    }
  }
}

// Two ranks meet twice: 8 us of transfer with 7 of waiting, then 1 us without.
TEST(Forecast, KeepsTheCostliestCollectives) {
  Program program;
  std::vector<CollectiveMember> first, second;
  for (const double before : {0.0, 7.0}) {
    BlockBuilder b{"step"};
    const LaneId lane = b.add_lane({LaneKind::gpu_stream, "stream"});
    const TaskId work = b.add_task(lane, {.kind = TaskKind::kernel}, Microseconds{before});
    const TaskInfo transfer{.kind = TaskKind::collective, .kernel_class = KernelClass::communication};
    const TaskId one = b.add_task(lane, transfer, Microseconds{8});
    const TaskId two = b.add_task(lane, transfer, Microseconds{1});
    static_cast<void>(work);
    Result<Block> block = std::move(b).finish();
    ASSERT_TRUE(block.ok()) << block.error().message();
    RankClass rank{.name = "rank"};
    rank.lanes.assign(block->lanes().begin(), block->lanes().end());
    const RankClassId c = program.add_rank_class(std::move(rank));
    const InstanceId i = program.add_instance(c, {.block = program.add_block(std::move(block).value())});
    first.push_back({c, i, one});
    second.push_back({c, i, two});
  }
  program.add_collective({.op = CollectiveOp::all_reduce, .members = first});
  program.add_collective({.op = CollectiveOp::all_reduce, .members = second});
  const Forecast all = whole_forecast(program, {0, 0}, {.collectives = 0});
  ASSERT_EQ(all.collectives.size(), 2U);
  EXPECT_EQ(all.collectives[1].ordinal, 1U);
  const Forecast one = whole_forecast(program, {0, 0}, {.collectives = 1});
  EXPECT_EQ(one.n_collectives, 2U);
  ASSERT_EQ(one.collectives.size(), 1U);
  EXPECT_EQ(one.collectives[0].ordinal, 0U);
  EXPECT_DOUBLE_EQ(one.collectives[0].transfer_us, 8);
}

Forecast of_step(double step_ms, std::uint64_t gpus) {
  Forecast f;
  f.step_time_ms = step_ms;
  f.n_gpus = gpus;
  f.throughput.samples_per_step = 512;
  return f;
}

TEST(ForecastTraining, CountsStepsHoursAndPrice) {
  Forecast f = of_step(3600, 8);  // 3.6 s a step
  ASSERT_TRUE(add_training(f, {.samples = 512'000, .price_per_gpu_hour = 2, .power_per_gpu_W = 500}).ok());
  ASSERT_TRUE(f.training.has_value());
  EXPECT_DOUBLE_EQ(f.training->iterations, 1000);
  EXPECT_DOUBLE_EQ(f.training->time_s, 3600);
  EXPECT_DOUBLE_EQ(f.training->gpu_hours, 8);
  EXPECT_DOUBLE_EQ(*f.training->price, 16);
  EXPECT_DOUBLE_EQ(*f.training->energy_MWh, 0.004);  // 8 h x 500 W
}

TEST(ForecastTraining, HasTheCurrencyOfItsPrice) {
  Forecast f = of_step(3600, 8);
  ASSERT_TRUE(add_training(f, {.samples = 512'000, .price_per_gpu_hour = 2, .currency = "EUR"}).ok());
  EXPECT_EQ(f.training->currency, "EUR");
  ASSERT_TRUE(add_training(f, {.samples = 512'000, .price_per_gpu_hour = 2}).ok());
  EXPECT_FALSE(f.training->currency.has_value());
  ASSERT_TRUE(add_training(f, {.samples = 512'000, .currency = "EUR"}).ok());
  EXPECT_FALSE(f.training->currency.has_value());  // nothing has a price
}

TEST(ForecastTraining, NeedsToKnowWhatAStepTakes) {
  Forecast f = of_step(1, 1);
  EXPECT_EQ(add_training(f, {.tokens = 100}).error().message(),
            "tokens to train on are given, but not the number per step; give it with --tokens-per-step, or "
            "the number of steps with --train-iterations");
  EXPECT_EQ(
      add_training(f, {.samples = 1, .iterations = 1}).error().message(),
      "a training needs exactly one length, found 2 of samples, tokens and iterations, expected one of them");
  ASSERT_TRUE(add_training(f, {}).ok());
  EXPECT_FALSE(f.training.has_value());
  ASSERT_TRUE(add_training(f, {.iterations = 10}).ok());
  EXPECT_DOUBLE_EQ(f.training->iterations, 10);
  EXPECT_EQ(add_training(f, {.iterations = 10, .failures = "default"}).error().message(),
            "interruptions need a described step");
}

}  // namespace
}  // namespace stepcast::forecast_test
