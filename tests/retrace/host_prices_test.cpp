#include "stepcast/retrace/host_prices.h"

#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/predict/replay.h"

#include "tests/support/trace_generator.h"

namespace stepcast::host_prices_test {
namespace {

using namespace literals;
using ::testing::ElementsAre;

// A thread of one rank, written down task by task.
class HostThread {
 public:
  explicit HostThread(RecordedProgram& recorded) : recorded_(recorded), block_("rank") {
    lane_ = block_.add_lane({LaneKind::cpu_thread, "main"});
  }
  void gap(double us) { add(OverheadType::t1, {}, us); }
  void call(const std::string& name, double us) { add(OverheadType::t4, name, us); }
  // The next tasks belong to another call of the operator.
  void enter(const std::string& op) { stack_ = recorded_.program.stacks.push(StackId{}, name(op)); }
  void enter_loader(const std::string& op) {
    stack_ = recorded_.program.stacks.push(StackId{}, name("enumerate(DataLoader)#_SingleProcess"));
    stack_ = recorded_.program.stacks.push(stack_, name(op));
  }
  void leave() { stack_ = StackId{}; }
  void add(OverheadType type, const std::string& op, double us) {
    block_.add_task(lane_,
                    {.kind = type == OverheadType::t4 ? TaskKind::cpu_call : TaskKind::cpu_segment,
                     .stack = stack_,
                     .work = recorded_.program.works.intern(
                         HostWork{.type = type, .op = op.empty() ? NameId{} : name(op)})},
                    Microseconds{us});
  }
  RankClassId finish() {
    Result<Block> block = std::move(block_).finish();
    if (!block.ok()) throw std::runtime_error(block.error().message());
    const BlockId id = recorded_.program.add_block(std::move(*block));
    RankClass ranks;
    ranks.lanes = {{LaneKind::cpu_thread, "main"}};
    const RankClassId c = recorded_.program.add_rank_class(std::move(ranks));
    recorded_.program.add_instance(c, {.block = id});
    return c;
  }

 private:
  NameId name(const std::string& text) { return recorded_.program.names.intern(text); }
  RecordedProgram& recorded_;
  BlockBuilder block_;
  LaneId lane_;
  StackId stack_{};
};

// gap 2 | mm: 3 + 1, launch 4, 5 | gap 6 | view: 7
RankClassId first_rank(RecordedProgram& recorded) {
  HostThread thread{recorded};
  thread.gap(2);
  thread.enter("aten::mm");
  thread.add(OverheadType::t2, "aten::mm", 3);
  thread.add(OverheadType::t2, "aten::mm", 1);
  thread.call("cudaLaunchKernel", 4);
  thread.add(OverheadType::t3, "aten::mm", 5);
  thread.leave();
  thread.gap(6);
  thread.enter("aten::view");
  thread.add(OverheadType::t5, "aten::view", 7);
  return thread.finish();
}

// The same calls back to back, other times: mm: 10, launch 10, 10 | view: 10
RankClassId second_rank(RecordedProgram& recorded) {
  HostThread thread{recorded};
  thread.enter("aten::mm");
  thread.add(OverheadType::t2, "aten::mm", 10);
  thread.call("cudaLaunchKernel", 10);
  thread.add(OverheadType::t3, "aten::mm", 10);
  thread.leave();
  thread.enter("aten::view");
  thread.add(OverheadType::t5, "aten::view", 10);
  return thread.finish();
}

std::vector<double> durations(const RecordedProgram& recorded, const Costs& costs, RankClassId c) {
  const std::span<const double> us =
      costs.duration_us(recorded.program.rank_class(c).instances.front().block);
  return {us.begin(), us.end()};
}

TEST(HostStretches, AreOneForEveryOverheadOfACall) {
  RecordedProgram recorded;
  const RankClassId c = first_rank(recorded);
  std::string text;
  for (const HostStretch& s : host_stretches(recorded.program, recorded.program.block_of(c, InstanceId{0}))) {
    text += std::string{to_string(s.type)} + ":" + std::to_string(s.tasks.size()) + " ";
  }
  // The gap and the call stand where they happened; what an operator's call holds where it ends.
  EXPECT_EQ(text, "T1:1 T4:1 T2:2 T3:1 T1:1 T5:1 ");
}

TEST(HostTimes, ArePutInPlaceOfTheRecordedOnes) {
  RecordedProgram recorded;
  const RankClassId first = first_rank(recorded);
  const RankClassId second = second_rank(recorded);
  const HostTimes times = HostTimes::learn(recorded, std::vector{first});
  Costs costs{recorded.program};
  const AppliedHostTimes applied = times.apply(recorded, second, costs);
  // T2 is 3 + 1, the call 4, T3 5, T5 7. The gaps of 2 and 6 have no task: the operator's first takes them.
  EXPECT_THAT(durations(recorded, costs, second), ElementsAre(2 + 4, 4, 5, 6 + 7));
  EXPECT_EQ(applied.own_us, 2 + 4 + 4 + 5 + 6 + 7);
  EXPECT_EQ(applied.default_us, 0);
  EXPECT_TRUE(applied.unknown_ops.empty());
  EXPECT_THAT(durations(recorded, costs, first), ElementsAre(2, 3, 1, 4, 5, 6, 7)) << "not asked for";
  // On a host half as fast.
  Costs slow{recorded.program};
  (void)times.apply(recorded, second, slow, {.between_ops = 2, .in_ops = 2, .calls = 2});
  EXPECT_THAT(durations(recorded, slow, second), ElementsAre(12, 8, 10, 26));
}

// enumerate(DataLoader): gap 100 * slow | to: 10 * slow | gap 50 * slow | copy: 20 * slow; behind it to: 3
RankClassId loading_rank(RecordedProgram& recorded, double slow) {
  HostThread thread{recorded};
  thread.gap(100 * slow);
  thread.enter_loader("aten::to");
  thread.add(OverheadType::t5, "aten::to", 10 * slow);
  thread.leave();
  thread.gap(50 * slow);
  thread.enter_loader("aten::copy_");
  thread.add(OverheadType::t5, "aten::copy_", 20 * slow);
  thread.leave();
  thread.enter("aten::to");
  thread.add(OverheadType::t5, "aten::to", 3);
  return thread.finish();
}

TEST(HostTimes, OfADataLoaderAreItsOwnAndAsFastAsItsOperators) {
  RecordedProgram recorded;
  const RankClassId one = loading_rank(recorded, 1), other = loading_rank(recorded, 1.5);
  const HostTimes times = HostTimes::learn(recorded, std::vector{one});
  const HostSpeed speed = times.speed_of(HostTimes::learn(recorded, std::vector{other}));
  EXPECT_DOUBLE_EQ(speed.data_loader, 1.5);
  EXPECT_DOUBLE_EQ(speed.in_ops, 1) << "the same operator elsewhere says so";
  Costs costs{recorded.program};
  (void)times.apply(recorded, other, costs, speed);
  EXPECT_THAT(durations(recorded, costs, other), ElementsAre(150, 15, 75, 30, 3));
}

TEST(HostTimes, OfRanksTogetherAreTheirMeans) {
  RecordedProgram recorded;
  const RankClassId first = first_rank(recorded);
  const RankClassId second = second_rank(recorded);
  HostTimes pooled = HostTimes::learn(recorded, std::vector{first});
  pooled.add(HostTimes::learn(recorded, std::vector{second}));
  Costs costs{recorded.program};
  (void)pooled.apply(recorded, first, costs);
  // Gaps (2 + 0) / 2 and (6 + 0) / 2, T2 (4 + 10) / 2 over two tasks, call 7, T3 7.5, T5 8.5.
  EXPECT_THAT(durations(recorded, costs, first), ElementsAre(1, 3.5, 3.5, 7, 7.5, 3, 8.5));
}

TEST(HostTimes, OfWhatWasNotLearnedAreThoseOfItsFamily) {
  RecordedProgram recorded;
  const RankClassId first = first_rank(recorded);
  HostThread thread{recorded};
  thread.enter("aten::bmm");
  thread.add(OverheadType::t5, "aten::bmm", 100);
  const RankClassId other = thread.finish();
  Costs costs{recorded.program};
  const AppliedHostTimes applied =
      HostTimes::learn(recorded, std::vector{first}).apply(recorded, other, costs);
  EXPECT_EQ(applied.own_us, 0);
  EXPECT_EQ(applied.unknown_ops.at("aten::bmm"), 2U) << "its gap and itself";
  // No operator of bmm's family had a T5: nothing like it was learned, the recorded time stays. Gaps of the
  // family were (2).
  EXPECT_THAT(durations(recorded, costs, other), ElementsAre(102));
}

TEST(HostTimes, TellHowMuchSlowerAnotherHostIs) {
  RecordedProgram recorded;
  const RankClassId first = first_rank(recorded);
  const RankClassId second = second_rank(recorded);
  const HostTimes a = HostTimes::learn(recorded, std::vector{first});
  const HostTimes b = HostTimes::learn(recorded, std::vector{second});
  // mm 10 + 10, call 10, view 10 against 4 + 5, 4, 7: twice as slow as a whole, which counts as 100 us of each part.
  const HostSpeed speed = a.speed_of(b);
  EXPECT_DOUBLE_EQ(speed.in_ops, (30 + 2.0 * 100) / (16 + 100));
  EXPECT_DOUBLE_EQ(speed.calls, (10 + 2.0 * 100) / (4 + 100));
  EXPECT_DOUBLE_EQ(speed.between_ops, 200.0 / (8 + 100)) << "no time between its operators, against 2 + 6";
  EXPECT_DOUBLE_EQ(a.speed_of(HostTimes{}).in_ops, 1);
}

// A job on a host ten times slower, and one with a long pause, move no median.
TEST(HostTimes, OfSeveralJobsAreMediansAtOneSpeed) {
  RecordedProgram recorded;
  const auto job = [&](double us, double pause_us) {
    HostThread thread{recorded};
    thread.gap(pause_us);
    thread.enter("aten::mm");
    thread.add(OverheadType::t5, "aten::mm", us);
    thread.leave();
    thread.gap(us);
    thread.enter("aten::view");
    thread.add(OverheadType::t5, "aten::view", us);
    return HostTimes::learn(recorded, std::vector{thread.finish()});
  };
  const std::vector<HostTimes> jobs{job(10000, 10000), job(100000, 100000), job(10000, 10000)};
  const HostTimes pool = HostTimes::pooled(jobs);
  const HostSpeed slow = pool.speed_of(jobs[1]);
  EXPECT_NEAR(slow.in_ops, 10, 0.01);
  EXPECT_NEAR(slow.between_ops, 10, 0.1);
  EXPECT_NEAR(pool.speed_of(jobs[0]).in_ops, 1, 0.01);
  EXPECT_DOUBLE_EQ(pool.share_known(jobs[2]), 1);
  EXPECT_LT(pool.by_family_alone().share_known(jobs[2]), 1);
}

TEST(HostOverheadsOfAPlatform, AreApplied) {
  RecordedProgram recorded;
  const RankClassId first = first_rank(recorded);
  Platform platform;
  platform.set(OverheadRecord{.type = OverheadType::t2,
                              .op = "aten::mm",
                              .mean_us = 20,
                              .std_us = {},
                              .p10_us = {},
                              .p50_us = {},
                              .p90_us = {},
                              .n = 1,
                              .provenance = {}});
  const Result<HostOverheads> overheads = HostOverheads::of(platform);
  ASSERT_TRUE(overheads.ok()) << overheads.error().message();
  Costs costs{recorded.program};
  (void)apply_host_overheads(*overheads, recorded, first, costs);
  EXPECT_THAT(durations(recorded, costs, first), ElementsAre(2, 10, 10, 4, 5, 6, 7)) << "only T2 is known";
  Costs slower{recorded.program};
  scale_host_time(recorded, first, slower, 3);
  EXPECT_THAT(durations(recorded, slower, first), ElementsAre(6, 9, 3, 12, 15, 18, 21)) << "each by itself";
}

// Whatever is learned from a rank keeps its sum; what the other ranks say comes close to it.
TEST(HostTimes, OfAGeneratedJob) {
  test::GeneratorOptions options;
  options.ranks = 4;
  options.cpu_jitter = 0.3;
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<RecordedInput> inputs;
  for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
  const Result<RecordedProgram> recorded = rebuild_program(inputs);
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  for (std::size_t c = 0; c < 4; ++c) {
    const RankClassId id{c};
    const std::vector<double> own = durations(*recorded, Costs{recorded->program}, id);
    Costs costs{recorded->program};
    (void)HostTimes::learn(*recorded, std::vector{id}).apply(*recorded, id, costs);
    const std::vector<double> means = durations(*recorded, costs, id);
    EXPECT_NE(own, means);
    EXPECT_NEAR(std::accumulate(own.begin(), own.end(), 0.0),
                std::accumulate(means.begin(), means.end(), 0.0), 1e-6);
    std::vector<RankClassId> others;
    for (std::size_t o = 0; o < 4; ++o) {
      if (o != c) others.emplace_back(o);
    }
    Costs foreign{recorded->program};
    (void)HostTimes::learn(*recorded, others).apply(*recorded, id, foreign);
    const Result<ReplayScores> scores = score_replay(*recorded, foreign);
    ASSERT_TRUE(scores.ok()) << scores.error().message();
    EXPECT_LT(std::abs(scores->ranks[c].step.error()), 0.06) << "rank " << c;
  }
}

}  // namespace
}  // namespace stepcast::host_prices_test
