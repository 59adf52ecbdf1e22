#include "stepcast/analyze/critical_path.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/analyze/hand_made.h"
#include "tests/support/random_program.h"
#include "tests/support/sketch.h"

namespace stepcast::critical_path_test {
namespace {

struct Found {
  FlatProgram flat;
  CriticalPath path;
};

Found path_of(const Program& program, const std::vector<double>& starts,
              const CriticalPathOptions& options = {}) {
  const Timeline timeline = fixtures::simulated(program, {.start_offset_us = starts});
  Found found{FlatProgram{program}, {}};
  found.path =
      critical_path(found.flat, TaskTimes::simulated(found.flat, timeline), Costs{program}, starts, options);
  return found;
}

double share(const std::vector<PathShare>& shares, const std::string& what) {
  for (const PathShare& s : shares) {
    if (s.what == what) return s.time_us;
  }
  return 0;
}

TEST(CriticalPath, OfOneRankByHand) {
  const fixtures::OneRank hand;
  const auto [flat, path] = path_of(hand.program, {0});
  // L1 0-4, L2 4-8, launch delay 2, copy 10-20, event 1, element-wise 21-26, return delay 4, R 30-33.
  EXPECT_DOUBLE_EQ(path.time.length_us(), 33);
  ASSERT_EQ(path.steps.size(), 8U);
  EXPECT_EQ(path.steps[0].task, fixtures::OneRank::kL1);
  EXPECT_EQ(path.steps[1].task, fixtures::OneRank::kL2);
  EXPECT_EQ(path.steps[2].kind, PathStep::Kind::edge);
  EXPECT_EQ(path.steps[2].edge.origin, EdgeOrigin::launch);
  EXPECT_EQ(path.steps[3].task, fixtures::OneRank::kCopy);
  EXPECT_EQ(path.steps[4].edge.origin, EdgeOrigin::event);
  EXPECT_EQ(path.steps[7].task, fixtures::OneRank::kReturn);
  const std::vector<PathShare> by_class = path_by_class(flat, path);
  EXPECT_DOUBLE_EQ(share(by_class, "cpu"), 11);  // 4 + 4 + 3
  EXPECT_DOUBLE_EQ(share(by_class, "copies"), 10);
  EXPECT_DOUBLE_EQ(share(by_class, "kernels: elementwise"), 5);
  EXPECT_DOUBLE_EQ(share(by_class, "delay: synchronization"), 4);
  EXPECT_EQ(by_class.front().what, "cpu");
  EXPECT_DOUBLE_EQ(share(path_by_name(flat, path), "aten::linear (Memcpy HtoD)"), 10);
}

TEST(CriticalPath, CrossesToTheRankThatCameLast) {
  const fixtures::TwoRanks hand;
  const auto [flat, path] = path_of(hand.program, {0, 0});
  // Both end at 18, rank 0 is reported; its transfer 10-18 began when rank 1 arrived: launch delay 9-10, L
  // 0-9.
  EXPECT_EQ(path.last_rank, RankClassId{0});
  ASSERT_EQ(path.steps.size(), 3U);
  EXPECT_DOUBLE_EQ(share(path_by_rank(flat, path), "rank 0"), 8);
  EXPECT_DOUBLE_EQ(share(path_by_rank(flat, path), "rank 1"), 10);
  EXPECT_DOUBLE_EQ(share(path_by_class(flat, path), "communication"), 8);
}

TEST(CriticalPath, NamesALateStart) {
  const fixtures::TwoRanks hand;
  const auto [flat, path] = path_of(hand.program, {0, 100});
  EXPECT_DOUBLE_EQ(path.time.length_us(), 118);
  EXPECT_EQ(path.steps.front().kind, PathStep::Kind::start_offset);
  EXPECT_DOUBLE_EQ(share(path_by_class(flat, path), "late start"), 100);
  EXPECT_DOUBLE_EQ(share(path_by_rank(flat, path), "late start of rank 1"), 100);
}

TEST(CriticalPath, LeadsToAnyTask) {
  const fixtures::OneRank hand;
  const auto [flat, path] =
      path_of(hand.program, {0},
              {.to_rank = RankClassId{0}, .to_task = fixtures::OneRank::kElementwise, .to_start = true});
  EXPECT_DOUBLE_EQ(path.time.end_us, 21);
  EXPECT_EQ(path.steps.back().edge.origin, EdgeOrigin::event);
}

// Steps follow each other without a hole, and to lengthen a task by x puts the end off by at least x for
// every time it is on the path.
TEST(CriticalPath, IsContiguousAndHoldsTheEndInRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Program program = fixtures::random_program(seed);
    const std::vector<double> starts = fixtures::random_offsets(seed, program.rank_classes().size());
    const auto [flat, path] = path_of(program, starts);
    if (path.steps.empty()) continue;
    double at = path.time.start_us;
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> times_on_path;  // [block, task]
    for (const PathStep& step : path.steps) {
      ASSERT_NEAR(step.time.start_us, at, 1e-6) << "seed " << seed;
      ASSERT_NE(step.kind, PathStep::Kind::unexplained) << "seed " << seed;
      at = step.time.end_us;
      if (step.kind != PathStep::Kind::task) continue;
      const TaskRef ref = flat.ref(step.rank_class, step.task);
      const BlockId block = program.rank_class(step.rank_class).instances[ref.instance.index()].block;
      ++times_on_path[{block.index(), ref.task.index()}];
    }
    ASSERT_NEAR(at, path.time.end_us, 1e-6) << "seed " << seed;

    const Result<Plan> plan = Plan::compile(program);
    ASSERT_TRUE(plan.ok());
    const double x = 3;
    for (const auto& [where, n] : times_on_path) {
      Costs longer{program};
      longer.duration_us(BlockId{std::size_t{where.first}})[where.second] += x;
      const Result<Timeline> timeline = plan->simulate(longer, {.start_offset_us = starts});
      ASSERT_TRUE(timeline.ok());
      ASSERT_GE(timeline->end_us(), path.time.end_us + n * x - 1e-6) << "seed " << seed;
    }
  }
}

TEST(CriticalPath, OfNothingIsEmpty) {
  Program program;
  const FlatProgram flat{program};
  const CriticalPath path = critical_path(flat, TaskTimes{}, Costs{program}, {});
  EXPECT_TRUE(path.steps.empty());
  EXPECT_EQ(path.time.length_us(), 0);
}

}  // namespace
}  // namespace stepcast::critical_path_test
