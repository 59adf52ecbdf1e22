#include "stepcast/simulate/scenarios.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/simulate/engine.h"

#include "tests/support/random_program.h"
#include "tests/support/sketch.h"

namespace stepcast::scenarios_test {
namespace {

using fixtures::BlockSketch;
using fixtures::ProgramSketch;
using fixtures::random_program;

// Durations and delays of every block times one of 16 factors each.
Costs scaled(const Program& program, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  Costs costs{program};
  for (std::size_t b = 0; b < costs.block_count(); ++b) {
    for (double& d : costs.duration_us(BlockId{b})) d *= 0.37 * static_cast<double>(random() % 16);
    for (double& d : costs.delay_us(BlockId{b})) d *= 0.37 * static_cast<double>(random() % 16);
  }
  return costs;
}

// 19 scenarios: two tiles of eight and three more, one by one.
TEST(Scenarios, EndAsEachDoesAlone) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = random_program(seed, {.max_multiplicity = 5});
    std::vector<Costs> scenarios;
    for (std::uint64_t s = 0; s < 19; ++s) scenarios.push_back(scaled(program, 100 * seed + s));
    const Plan plan = Plan::compile(program).value();
    const auto ends = plan.simulate(scenarios);
    ASSERT_TRUE(ends.ok()) << ends.error().message();
    ASSERT_EQ(ends->size(), scenarios.size());
    for (std::size_t s = 0; s < scenarios.size(); ++s) {
      const Timeline alone = plan.simulate(scenarios[s]).value();
      ASSERT_EQ(ends->end_us(s), alone.end_us()) << "seed " << seed << " scenario " << s;
      for (std::size_t c = 0; c < program.rank_classes().size(); ++c) {
        const auto together = ends->lane_free_us(s, RankClassId{c});
        const auto single = alone.lane_free_us(RankClassId{c});
        ASSERT_TRUE(std::equal(together.begin(), together.end(), single.begin(), single.end()))
            << "seed " << seed << " scenario " << s << " class " << c;
        ASSERT_EQ(ends->rank_end_us(s, RankClassId{c}), alone.rank_end_us(RankClassId{c}));
      }
    }
  }
}

// Later starts, and the start and end of every task of the first instances.
TEST(Scenarios, WatchMomentsOfRanksThatStartLater) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Program program = random_program(seed, {.max_multiplicity = 3});
    std::vector<Costs> scenarios;
    for (std::uint64_t s = 0; s < 9; ++s) scenarios.push_back(scaled(program, 100 * seed + s));
    ScenarioOptions options;
    std::vector<TaskRef> tasks;
    for (std::size_t c = 0; c < program.rank_classes().size(); ++c) {
      const RankClassId id{c};
      options.start_offset_us.push_back(static_cast<double>(7 * c));
      if (program.rank_class(id).instances.empty()) continue;
      for (std::size_t t = 0; t < program.block_of(id, InstanceId{0U}).task_count(); ++t) {
        tasks.push_back({id, 0, InstanceId{0U}, TaskId{t}});
        options.watched.push_back({id, InstanceId{0U}, TaskId{t}, true});
        options.watched.push_back({id, InstanceId{0U}, TaskId{t}, false});
      }
    }
    const Plan plan = Plan::compile(program).value();
    const auto ends = plan.simulate(scenarios, options);
    ASSERT_TRUE(ends.ok()) << ends.error().message();
    for (std::size_t s = 0; s < scenarios.size(); ++s) {
      const Timeline alone =
          plan.simulate(scenarios[s], {.start_offset_us = options.start_offset_us}).value();
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        ASSERT_EQ(ends->watched_us(s)[2 * t], alone.at(tasks[t]).start_us) << "seed " << seed;
        ASSERT_EQ(ends->watched_us(s)[2 * t + 1], alone.at(tasks[t]).end_us) << "seed " << seed;
      }
    }
  }
}

TEST(Scenarios, RefuseOffsetsAndMomentsOfAnotherProgram) {
  ProgramSketch s;
  BlockSketch b{"block", 1};
  b.work(0, 1);
  const BlockId block = s.block(b);
  const RankClassId rank = s.ranks(1, 1, {block});
  const Plan plan = Plan::compile(s.program).value();
  const std::vector<Costs> one(1, Costs{s.program});
  EXPECT_EQ(plan.simulate(one, {.start_offset_us = {0, 0}}).error().message(),
            "start offsets of scenarios, found 2, expected one per rank class: 1");
  EXPECT_FALSE(plan.simulate(one, {.start_offset_us = {-1}}).ok());
  EXPECT_EQ(plan.simulate(one, {.watched = {{rank, InstanceId{0U}, TaskId{1U}}}}).error().message(),
            "a moment to watch is of no task of the program");
}

// Rank a works 3 us and joins, rank b joins at once; the transfer takes 2 us; then b works 4 us. Scenario k
// makes the work of a k times as long: both leave at 3 k + 2, b ends at 3 k + 6.
TEST(Scenarios, OfALateRankByHand) {
  ProgramSketch s;
  BlockSketch a{"a", 1};
  a.work(0, 3);
  const TaskId join_a = a.join(0, 2);
  BlockSketch b{"b", 1};
  const TaskId join_b = b.join(0, 2);
  b.work(0, 4);
  const BlockId block_a = s.block(a), block_b = s.block(b);
  const RankClassId rank_a = s.ranks(1, 1, {block_a});
  const RankClassId rank_b = s.ranks(1, 1, {block_b});
  s.join(CollectiveKind::all, {{rank_a, InstanceId{0u}, join_a}, {rank_b, InstanceId{0u}, join_b}});

  std::vector<Costs> scenarios(9, Costs{s.program});
  for (std::size_t k = 0; k < scenarios.size(); ++k)
    scenarios[k].duration_us(block_a)[0] = 3 * static_cast<double>(k);
  const ScenarioEnds ends = Plan::compile(s.program).value().simulate(scenarios).value();
  for (std::size_t k = 0; k < scenarios.size(); ++k) {
    const double end_a = 3 * static_cast<double>(k) + 2;
    EXPECT_EQ(ends.rank_end_us(k, rank_a), end_a);
    EXPECT_EQ(ends.rank_end_us(k, rank_b), end_a + 4);
    EXPECT_EQ(ends.end_us(k), end_a + 4);
  }
}

TEST(Scenarios, NameTheOneThatIsWrong) {
  ProgramSketch s;
  BlockSketch b{"block", 1};
  b.work(0, 1);
  const BlockId block = s.block(b);
  s.ranks(1, 1, {block});
  std::vector<Costs> scenarios(3, Costs{s.program});
  scenarios[2].duration_us(block)[0] = -1;
  const Plan plan = Plan::compile(s.program).value();
  EXPECT_EQ(plan.simulate(scenarios).error().message(),
            "scenario 2: costs: invalid duration of task 0 of block 0 (\"block\"), found -1 us, expected a "
            "finite time that is not negative");
  // One task and one start offset of 16 bytes each.
  scenarios.pop_back();
  EXPECT_TRUE(plan.simulate(scenarios, {.max_bytes = 32}).ok());
  EXPECT_EQ(plan.simulate(scenarios, {.max_bytes = 31}).error().message(),
            "too many tasks for parallel scenarios, found 1 tasks, 1 scenarios at once, expected times of at "
            "most 2.89e-08 GiB; fold equal ranks into one class, or raise max_bytes");
}

TEST(Scenarios, OfNothing) {
  const Program empty;
  const Plan plan = Plan::compile(empty).value();
  EXPECT_EQ(plan.simulate(std::vector<Costs>{}).value().size(), 0U);
  EXPECT_EQ(plan.simulate(std::vector<Costs>(9, Costs{empty})).value().end_us(8), 0);
}

}  // namespace
}  // namespace stepcast::scenarios_test
