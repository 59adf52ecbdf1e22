#include "stepcast/analyze/body_profiles.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/program/task_bodies.h"

namespace stepcast::body_profiles_test {
namespace {

struct Step {
  Program program;
  TaskBodies bodies;
};

std::vector<Lane> lanes() {
  return {{LaneKind::gpu_stream, "computation"},
          {LaneKind::gpu_stream, "transfers"},
          {LaneKind::gpu_stream, "send"},
          {LaneKind::cpu_thread, "launches"}};
}

// A gemm of 10 us, a transfer of 6 behind it, beside which an element-wise kernel of 4 runs; both are waited for. The host
// launches for 5. 16 us:
//
//   computation  |==gemm 10==|=4=|..|
//   transfers                |~~6~~~|
//   launches     |-5-|
void add_pass(Program& program, BlockBuilder& block, std::span<const LaneId> on) {
  const auto task = [&](TaskKind kind, KernelClass kernel_class, const char* name) {
    return TaskInfo{.kind = kind, .kernel_class = kernel_class, .name = program.names.intern(name)};
  };
  const TaskId gemm =
      block.add_task(on[0], task(TaskKind::kernel, KernelClass::gemm, "gemm"), Microseconds{10});
  const TaskId transfer =
      block.add_task(on[1], task(TaskKind::kernel, KernelClass::communication, "transfer"), Microseconds{6});
  const TaskId add =
      block.add_task(on[0], task(TaskKind::kernel, KernelClass::elementwise, "add"), Microseconds{4});
  const TaskId launch =
      block.add_task(on[3], task(TaskKind::cpu_segment, KernelClass::none, "launches"), Microseconds{5});
  const TaskId done = block.add_task(on[0], task(TaskKind::wait, KernelClass::none, "done"), Microseconds{});
  block.add_edge(Moment::end_of(gemm), transfer, Microseconds{}, {});
  block.add_edge(Moment::start_of(gemm), launch, Microseconds{}, {});
  block.add_edge(Moment::end_of(transfer), done, Microseconds{}, {});
  block.add_edge(Moment::end_of(launch), done, Microseconds{}, {.origin = EdgeOrigin::launch});
  static_cast<void>(add);
}

// Three passes; behind each a send of 12 us, which runs beside the next one.
Step step(bool as_bodies) {
  Step made;
  Program& program = made.program;
  if (as_bodies) {
    BlockBuilder body{"pass"};
    std::vector<LaneId> on;
    for (Lane& lane : lanes()) on.push_back(body.add_lane(std::move(lane)));
    add_pass(program, body, on);
    made.bodies.add(program.names, std::move(std::move(body).finish()).value(), lanes());
  }
  BlockBuilder block{"pass and send"};
  std::vector<LaneId> on;
  for (Lane& lane : lanes()) on.push_back(block.add_lane(std::move(lane)));
  if (as_bodies)
    block.add_task(on[0], made.bodies.task(0), Microseconds{16});
  else
    add_pass(program, block, on);
  const TaskId last{std::size_t{block.task_count()} - 1};
  const TaskId send = block.add_task(on[2],
                                     {.kind = TaskKind::kernel,
                                      .kernel_class = KernelClass::communication,
                                      .name = program.names.intern("send")},
                                     Microseconds{12});
  block.add_edge(Moment::end_of(last), send, Microseconds{}, {});
  const BlockId id = program.add_block(std::move(std::move(block).finish()).value());
  const RankClassId rank = program.add_rank_class({.name = "rank", .lanes = lanes()});
  for (int i = 0; i < 3; ++i) program.add_instance(rank, {.block = id});
  if (as_bodies) made.bodies.finish(program);
  return made;
}

Timeline simulated(const Program& program) {
  return std::move(std::move(Plan::compile(program)).value().simulate(Costs{program})).value();
}

RankBreakdown broken_down(const Program& program, const BodyProfiles* bodies) {
  const FlatProgram flat{program, bodies};
  const Timeline timeline = simulated(program);
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  const std::vector<double> starts{0};
  return break_down(flat, times, Costs{program}, whole_windows(flat, times, starts), starts).front();
}

TEST(BodyProfiles, OfOnePassByHand) {
  Step made = step(true);
  Costs costs{made.bodies.program()};
  Timeline timeline = simulated(made.bodies.program());
  const PricedBodies priced{std::move(made.bodies), std::move(costs), std::move(timeline)};
  const BodyProfiles profiles{priced};
  const BodyProfile& pass = profiles[0];
  EXPECT_DOUBLE_EQ(pass.length_us(), 16);
  EXPECT_DOUBLE_EQ(pass.parts.computation_us, 14);
  EXPECT_DOUBLE_EQ(pass.parts.transfer_us, 6);
  EXPECT_DOUBLE_EQ(pass.parts.exposed_comm_us, 2);
  EXPECT_DOUBLE_EQ(pass.parts.idle.total_us(), 0);
  ASSERT_EQ(pass.pieces.size(), 3U);
  EXPECT_DOUBLE_EQ(pass.pieces[0].end_us, 10);
  EXPECT_TRUE(pass.pieces[1].computes);
  EXPECT_EQ(pass.pieces[1].transfers.size(), 1U);
  EXPECT_DOUBLE_EQ(pass.pieces[1].end_us, 14);
  EXPECT_FALSE(pass.pieces[2].computes);
  EXPECT_EQ(pass.lanes[1].before, IdleCause::other_stream);  // the gemm
  EXPECT_DOUBLE_EQ(pass.lanes[1].busy.start_us, 10);
  EXPECT_EQ(pass.lanes[2].tasks, 0U);
  EXPECT_DOUBLE_EQ(pass.path.time.end_us, 16);
  std::vector<Interval> busy{{90, 100}};
  pass.add_computation({100, 116}, busy);
  ASSERT_EQ(busy.size(), 1U);
  EXPECT_DOUBLE_EQ(busy[0].end_us, 114);
}

// A send runs beside the first 12 us of the next pass.
TEST(BodyProfiles, StandForTheirTasks) {
  const RankBreakdown tasks = broken_down(step(false).program, nullptr);
  Step made = step(true);
  Costs costs{made.bodies.program()};
  Timeline timeline = simulated(made.bodies.program());
  const PricedBodies priced{std::move(made.bodies), std::move(costs), std::move(timeline)};
  const BodyProfiles profiles{priced};
  const RankBreakdown bodies = broken_down(made.program, &profiles);
  EXPECT_DOUBLE_EQ(tasks.window.end_us, 3 * 16 + 12);
  EXPECT_DOUBLE_EQ(bodies.window.end_us, tasks.window.end_us);
  EXPECT_DOUBLE_EQ(bodies.computation_us, 3 * 14);
  EXPECT_DOUBLE_EQ(bodies.exposed_comm_us, 3 * 2 + 12);
  EXPECT_DOUBLE_EQ(bodies.transfer_us, tasks.transfer_us);
  EXPECT_DOUBLE_EQ(bodies.exposed_comm_us, tasks.exposed_comm_us);
  EXPECT_EQ(bodies.class_us, tasks.class_us);
  EXPECT_EQ(bodies.idle.by_cause_us, tasks.idle.by_cause_us);
  ASSERT_EQ(bodies.streams.size(), tasks.streams.size());
  for (std::size_t s = 0; s < tasks.streams.size(); ++s) {
    EXPECT_EQ(bodies.streams[s].tasks, tasks.streams[s].tasks) << tasks.streams[s].name;
    EXPECT_DOUBLE_EQ(bodies.streams[s].transfer_us, tasks.streams[s].transfer_us);
    EXPECT_DOUBLE_EQ(bodies.streams[s].exposed_comm_us, tasks.streams[s].exposed_comm_us);
    EXPECT_EQ(bodies.streams[s].idle.by_cause_us, tasks.streams[s].idle.by_cause_us) << tasks.streams[s].name;
  }
  EXPECT_DOUBLE_EQ(bodies.threads[0].busy_us, 15);
  EXPECT_EQ(bodies.threads[0].idle.by_cause_us, tasks.threads[0].idle.by_cause_us);
}

}  // namespace
}  // namespace stepcast::body_profiles_test
