#include "stepcast/analyze/culprits.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/analyze/breakdown.h"
#include "stepcast/analyze/operator_times.h"
#include "stepcast/operation/operation.h"
#include "stepcast/simulate/engine.h"

#include "tests/analyze/hand_made.h"

namespace stepcast::culprits_test {
namespace {

constexpr double kTiny = 1e-6;

double of(const CulpritTimes& times, Culprit culprit) { return times[static_cast<std::size_t>(culprit)]; }
double sum(const CulpritTimes& times) {
  double all = 0;
  for (const double us : times) all += us;
  return all;
}

struct Simulated {
  explicit Simulated(const Program& program, std::vector<double> starts = {})
      : flat(program),
        costs(program),
        times(TaskTimes::simulated(flat, simulate(program, costs, starts))),
        rank_start_us(starts.empty() ? std::vector<double>(flat.class_count(), 0.0) : std::move(starts)),
        windows(whole_windows(flat, times, rank_start_us)) {}
  static Timeline simulate(const Program& program, const Costs& costs, const std::vector<double>& starts) {
    const Result<Plan> plan = Plan::compile(program);
    EXPECT_TRUE(plan.ok());
    Result<Timeline> timeline = plan->simulate(costs, {.start_offset_us = starts});
    EXPECT_TRUE(timeline.ok());
    return std::move(*timeline);
  }
  [[nodiscard]] StepCulprits culprits(double tie_us) const {
    return find_culprits({flat, times, costs, windows, rank_start_us, tie_us});
  }
  FlatProgram flat;
  Costs costs;
  TaskTimes times;
  std::vector<double> rank_start_us;
  std::vector<Interval> windows;
};

// Rank 0 waits 3-10 in the collective, of which 3-10 its gemm (1-11) hides all. Rank 1 waits for nobody: 0-10 for
// its CPU, then 8 of transfer.
TEST(Culprits, AWaitBehindComputationIsWaitingButHoldsNobodyBack) {
  const fixtures::TwoRanks two;
  const StepCulprits c = Simulated{two.program}.culprits(8);
  ASSERT_EQ(c.ranks.size(), 2U);
  EXPECT_NEAR(of(c.ranks[0].own_us, Culprit::gpu), 10, kTiny);     // 1-11
  EXPECT_NEAR(of(c.ranks[0].own_us, Culprit::network), 7, kTiny);  // 11-18
  EXPECT_NEAR(of(c.ranks[0].own_us, Culprit::host), 1, kTiny);     // 0-1
  EXPECT_NEAR(sum(c.ranks[0].through_others_us), 0, kTiny);
  EXPECT_NEAR(c.ranks[0].waited_us, 7, kTiny);
  EXPECT_NEAR(of(c.ranks[1].own_us, Culprit::host), 10, kTiny);
  EXPECT_EQ(c.collectives, 1U);
  EXPECT_EQ(c.ties, 1U);  // 3 and 10: within 8 us
  EXPECT_EQ(c.worst(), nullptr);
  EXPECT_EQ(c.ranks[1].came_last, 0U);
}

// Two ranks, times in units of `unit` us; rank 1 starts 2 later. Before the collective rank 0 has nothing to do but
// launch, rank 1 computes.
//
//   rank 0  cpu |L 0-1|                       rank 1   cpu  starts 2 |L 2-3|
//           gpu |launch 1, waits 1-13|              gpu        |copy 3-5|lookup 5-13|
//                                    transfer 13-14
//
// The lookup of rank 1 has 4 x the bytes of that of rank 0, whose lookup runs after the collective (14-16).
// With two ranks the median of 1 and 4 is 2.5: 1 - 2.5 / 4 = 0.375 of its 8 are data skew.
struct Skewed {
  static constexpr double kUnit = 100;
  Program program;
  Skewed() {
    const auto us = [](double units) { return Microseconds{units * kUnit}; };
    const StackId lookup_op = program.stacks.push(StackId{}, program.names.intern("fbgemm::lookup"));
    const StackId launch_op = program.stacks.push(StackId{}, program.names.intern("aten::linear"));
    std::vector<CollectiveMember> members;
    for (const bool second : {false, true}) {
      BlockBuilder b{second ? "rank 1" : "rank 0"};
      const LaneId cpu = b.add_lane({LaneKind::cpu_thread, "main thread"});
      const LaneId gpu = b.add_lane({LaneKind::gpu_stream, "stream 7", 7});
      const TaskId launch = b.add_task(
          cpu,
          {.kind = TaskKind::cpu_call, .name = program.names.intern("cudaLaunchKernel"), .stack = launch_op},
          us(1));
      const WorkId work =
          program.works.intern(Operation{ElementwiseShape{.elements = second ? 4096 : 1024}, DType::fp32});
      const auto lookup = [&] {
        return b.add_task(gpu,
                          {.kind = TaskKind::kernel,
                           .kernel_class = KernelClass::embedding,
                           .name = program.names.intern("lookup"),
                           .stack = lookup_op,
                           .work = work},
                          us(second ? 8 : 2));
      };
      if (second) {
        const TaskId copy = b.add_task(gpu,
                                       {.kind = TaskKind::memcpy,
                                        .kernel_class = KernelClass::memory,
                                        .name = program.names.intern("Memcpy HtoD (Pageable -> Device)")},
                                       us(2));
        b.add_edge(Moment::end_of(launch), copy, us(0), {.origin = EdgeOrigin::launch});
        static_cast<void>(lookup());
      }
      const TaskId meet = b.add_task(gpu,
                                     {.kind = TaskKind::collective,
                                      .kernel_class = KernelClass::communication,
                                      .name = program.names.intern("all_to_all")},
                                     us(1));
      b.add_edge(Moment::end_of(launch), meet, us(0), {.origin = EdgeOrigin::launch});
      if (!second) static_cast<void>(lookup());
      Result<Block> block = std::move(b).finish();
      EXPECT_TRUE(block.ok()) << block.error().message();
      RankClass rank;
      rank.name = second ? "rank 1" : "rank 0";
      rank.lanes.assign(block->lanes().begin(), block->lanes().end());
      const RankClassId c = program.add_rank_class(std::move(rank));
      const InstanceId i = program.add_instance(c, {.block = program.add_block(std::move(block).value())});
      members.push_back({c, i, meet});
    }
    Collective collective;
    collective.op = CollectiveOp::all_to_all;
    collective.members = members;
    program.add_collective(std::move(collective));
  }
};

TEST(Culprits, WaitingCountsForWhatHeldTheLastRank) {
  const Skewed skewed;
  const StepCulprits c = Simulated{skewed.program, {0, 2 * Skewed::kUnit}}.culprits(8);
  constexpr double u = Skewed::kUnit;
  const RankCulprits& waits = c.ranks[0];
  EXPECT_NEAR(waits.step_us, 16 * u, kTiny);
  EXPECT_NEAR(of(waits.through_others_us, Culprit::late_start), 1 * u, kTiny);  // 1-2
  EXPECT_NEAR(of(waits.through_others_us, Culprit::host), 1 * u, kTiny);        // 2-3
  EXPECT_NEAR(of(waits.through_others_us, Culprit::pcie), 2 * u, kTiny);        // 3-5
  EXPECT_NEAR(of(waits.through_others_us, Culprit::data_skew), 3 * u, kTiny);   // 0.375 of 5-13
  EXPECT_NEAR(of(waits.through_others_us, Culprit::gpu), 5 * u, kTiny);
  EXPECT_NEAR(of(waits.own_us, Culprit::host), 1 * u, kTiny);     // 0-1
  EXPECT_NEAR(of(waits.own_us, Culprit::network), 1 * u, kTiny);  // 13-14
  EXPECT_NEAR(of(waits.own_us, Culprit::gpu), 2 * u, kTiny);      // 14-16
  EXPECT_NEAR(sum(waits.own_us) + sum(waits.through_others_us), waits.step_us, kTiny);
  const RankCulprits& last = c.ranks[1];
  EXPECT_EQ(last.came_last, 1U);
  EXPECT_EQ(c.worst(), &last);
  EXPECT_EQ(c.ties, 0U);
  EXPECT_NEAR(last.caused_wait_us, 12 * u, kTiny);
  EXPECT_NEAR(of(last.caused_by_us, Culprit::data_skew), 3 * u, kTiny);
  EXPECT_NEAR(sum(last.own_us), last.step_us, kTiny);
  EXPECT_NEAR(c.step_us(), 14 * u, kTiny);  // (16 + 12) / 2
  EXPECT_NEAR(c.all_waiting_us(), 12 * u, kTiny);
}

// Rank 2 caused most; what was waited for in ties could be rank 0's.
TEST(Culprits, NobodyIsNamedWhereTiesCouldMakeItAnother) {
  StepCulprits c;
  c.ranks = {
      {.waited_us = 10, .caused_wait_us = 30}, {.waited_us = 50}, {.waited_us = 20, .caused_wait_us = 40}};
  EXPECT_EQ(c.worst(), nullptr);  // 80 waited, 10 of them in ties: 30 + 10
  c.ranks[1].waited_us = 49;
  EXPECT_EQ(c.worst(), &c.ranks[2]);
}

TEST(OperatorTimes, NamesTheSlowestRankAndItsWork) {
  const Skewed skewed;
  const Simulated s{skewed.program};
  const std::vector<OperatorTimes> all = operator_times(s.flat, s.times, s.windows);
  const std::vector<OperatorComparison> compared = compare_operators(all, 1);
  ASSERT_EQ(compared.size(), 1U);
  const OperatorComparison& lookup = compared.front();  // 2 and 8: median 5
  EXPECT_EQ(lookup.op, "fbgemm::lookup");
  EXPECT_TRUE(lookup.on_gpu);
  EXPECT_EQ(lookup.slowest, 1U);
  EXPECT_NEAR(lookup.median_us, 5 * Skewed::kUnit, kTiny);
  EXPECT_NEAR(lookup.excess_us(), 3 * Skewed::kUnit, kTiny);
  EXPECT_NEAR(lookup.work_ratio, 4 / 2.5, kTiny);
  EXPECT_TRUE(compare_operators({}, 0).empty());
}

// The GPU is idle 0-6 for the gemm's launch: the launch call 0-4, 2 until it starts, both of aten::linear. From 20
// on the copy ends and the element-wise kernel waits 1 for the event: another stream, not the CPU.
TEST(AwaitedOperators, AreWhatTheLaunchingThreadDoesWhileTheGpuIsIdle) {
  const fixtures::OneRank one;
  const Simulated s{one.program};
  const std::vector<AwaitedOperator> awaited =
      awaited_operators(s.flat, s.times, s.costs, s.windows, s.rank_start_us);
  ASSERT_EQ(awaited.size(), 1U);
  EXPECT_EQ(awaited[0].op, "aten::linear");
  EXPECT_NEAR(awaited[0].gpu_idle_us, 6, kTiny);
  EXPECT_EQ(awaited[0].gaps, 1U);
}

// The parts are those of the break-down, to the microsecond.
TEST(Culprits, OwnPartsAreThoseOfTheBreakdown) {
  const fixtures::OneRank one;
  const Simulated s{one.program};
  const StepCulprits c = s.culprits(8);
  const RankBreakdown b = break_down(s.flat, s.times, s.costs, s.windows, s.rank_start_us).front();
  EXPECT_NEAR(of(c.ranks[0].own_us, Culprit::gpu), b.computation_us + b.idle.of(IdleCause::other_stream),
              kTiny);
  EXPECT_NEAR(of(c.ranks[0].own_us, Culprit::pcie), b.exposed_memcpy_us, kTiny);
  EXPECT_NEAR(of(c.ranks[0].own_us, Culprit::host), b.idle.of(IdleCause::cpu), kTiny);
  EXPECT_NEAR(of(c.ranks[0].own_us, Culprit::rest), b.idle.of(IdleCause::rest), kTiny);
}

}  // namespace
}  // namespace stepcast::culprits_test
