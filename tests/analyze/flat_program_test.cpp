#include "stepcast/analyze/flat_program.h"

#include <vector>

#include <gtest/gtest.h>

#include "stepcast/analyze/binding.h"
#include "stepcast/analyze/task_times.h"

#include "tests/support/fails_with.h"
#include "tests/support/random_program.h"
#include "tests/support/sketch.h"

namespace stepcast::flat_program_test {
namespace {

using fixtures::BlockSketch;
using fixtures::ProgramSketch;

TEST(FlatProgram, NumbersInstancesThrough) {
  ProgramSketch sketch;
  BlockSketch pair{"pair", 1};
  pair.work(0, 1);
  pair.work(0, 2);
  const BlockId block = sketch.block(pair);
  const RankClassId c = sketch.ranks(1, 1, {block, block, block, block});
  const FlatProgram flat{sketch.program};

  ASSERT_EQ(flat.task_count(c), 8U);  // 2 tasks x 4 instances
  const TaskRef sixth = flat.ref(c, 5);
  EXPECT_EQ(sixth.instance, InstanceId{2});
  EXPECT_EQ(sixth.task, TaskId{1});
  for (std::size_t t = 0; t < flat.task_count(c); ++t) EXPECT_EQ(flat.flat(flat.ref(c, t)), t);
  EXPECT_EQ(flat.previous_on_lane(c, 0), kNoTask);
  EXPECT_EQ(flat.previous_on_lane(c, 6), 5U);  // across instances
  EXPECT_EQ(flat.duration_us(c, 7, Costs{sketch.program}), 2);
}

TEST(FlatProgram, FollowsAPortToTheTaskThatWroteItsSlot) {
  // first: task 0 on stream 0, written to slot 0 with a delay of 3. second: its task on stream 1 reads slot 0
  // with a delay of 4.
  ProgramSketch sketch;
  BlockSketch first{"first", 2};
  const TaskId writer = first.work(0, 10);
  first.out(BlockSketch::end(writer), 3);
  BlockSketch second{"second", 2};
  const InPortId in = second.in();
  const TaskId reader = second.work(1, 1);
  second.edge(BlockSketch::arrival(in), reader, 4);
  const BlockId b0 = sketch.block(first);
  const BlockId b1 = sketch.block(second);
  RankClass rank_class;
  rank_class.name = "rank";
  rank_class.lanes = fixtures::streams(2);
  rank_class.slot_count = 1;
  const RankClassId c = sketch.program.add_rank_class(std::move(rank_class));
  sketch.program.add_instance(
      c, {.block = b1, .lanes = {}, .in_slots = {0}});  // before anybody wrote: the rank's start
  sketch.program.add_instance(c, {.block = b0, .lanes = {}, .in_slots = {}, .out_slots = {0}});
  sketch.program.add_instance(c, {.block = b1, .lanes = {}, .in_slots = {0}});
  const FlatProgram flat{sketch.program};
  const Costs costs{sketch.program};

  std::vector<FlatSource> before, after;
  flat.for_each_source(c, 0, costs, [&](const FlatSource& s) { before.push_back(s); });
  flat.for_each_source(c, 2, costs, [&](const FlatSource& s) { after.push_back(s); });
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].task, kNoTask);
  EXPECT_EQ(before[0].delay_us, 4);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].task, 1U);
  EXPECT_TRUE(after[0].from_end);
  EXPECT_EQ(after[0].delay_us, 7);  // 3 of the out-port + 4 of the edge
}

// The binding constraint of every task explains its start, in whatever Program: lanes, edges, ports.
TEST(Binding, ExplainsEveryStartOfRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Program program = fixtures::random_program(seed);
    const std::vector<double> starts = fixtures::random_offsets(seed, program.rank_classes().size());
    const Timeline timeline = fixtures::simulated(program, {.start_offset_us = starts});
    const FlatProgram flat{program};
    const Costs costs{program};
    const TaskTimes times = TaskTimes::simulated(flat, timeline);
    for (std::size_t c = 0; c < flat.class_count(); ++c) {
      const RankClassId id{c};
      for (std::size_t t = 0; t < flat.task_count(id); ++t) {
        const Binding binding = binding_of(flat, times, costs, id, t, starts[c]);
        ASSERT_NEAR(times.at(id, t).start_us, binding.arrival_us, 1e-6)
            << "seed " << seed << " class " << c << " task " << t;
      }
    }
  }
}

TEST(TaskTimes, RefusesMeasuredTimesOfAnotherProgram) {
  ProgramSketch sketch;
  BlockSketch one{"one", 1};
  one.work(0, 1);
  sketch.ranks(1, 1, {sketch.block(one)});
  const FlatProgram flat{sketch.program};
  EXPECT_THAT(TaskTimes::measured(flat, std::vector<std::vector<Interval>>{}),
              test::FailsWith("measured times of 0 rank classes for a program of 1"));
  EXPECT_THAT(TaskTimes::measured(flat, std::vector<std::vector<Interval>>{{{0, 1}, {1, 2}}}),
              test::FailsWith("2 measured times for the 1 tasks"));
  EXPECT_TRUE(TaskTimes::measured(flat, std::vector<std::vector<Interval>>{{{0, 1}}}).ok());
}

}  // namespace
}  // namespace stepcast::flat_program_test
