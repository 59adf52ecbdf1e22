#include "stepcast/sources/recorded_steps.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/trace_builder.h"

namespace stepcast::recorded_steps_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A rank whose steps 1, 2, ... take so many milliseconds.
RecordedRank rank_of(const std::vector<double>& lengths_ms, int number = 0) {
  test::TraceBuilder t{number, 2};
  const int main = t.thread(1);
  double at_us = 0;
  for (std::size_t s = 0; s < lengths_ms.size(); ++s) {
    t.step(main, static_cast<int>(s) + 1, at_us, 1e3 * lengths_ms[s]).op(main, "aten::mm", at_us, 10);
    at_us += 1e3 * lengths_ms[s] + 10;
  }
  return t.build();
}

TraceSet set_of(std::vector<RecordedRank> ranks) {
  TraceSet set;
  set.ranks = std::move(ranks);
  return set;
}

TEST(RecordedSteps, OrdinaryOnesLeaveOutWhereAProfilerStops) {
  // As of data/measured: 93, 116 and 294 ms; 25, 31 and 42 ms.
  EXPECT_THAT(ordinary_steps(set_of({rank_of({93.3, 116.2, 294.2})})), ElementsAre(1, 2));
  EXPECT_THAT(ordinary_steps(set_of({rank_of({24.7, 30.6, 41.9})})), ElementsAre(1, 2));
  EXPECT_THAT(ordinary_steps(set_of({rank_of({50, 140})})), ElementsAre(1)) << "the longer of two";
  EXPECT_THAT(ordinary_steps(set_of({rank_of({50, 60})})), ElementsAre(1, 2));
  EXPECT_THAT(ordinary_steps(set_of({rank_of({140})})), ElementsAre(1)) << "there is no other one";
}

TEST(RecordedSteps, OrdinaryOnesAreThoseOfEveryRankWithoutSigns) {
  // The second rank holds a step less, and waits in one of those that the first had no trouble with.
  EXPECT_THAT(ordinary_steps(set_of({rank_of({10, 10, 10, 10}), rank_of({10, 30, 10}, 1)})),
              ElementsAre(1, 3));
  RecordedRank rank = rank_of({10, 11, 10});
  rank.special_steps = {{2, StepKind::checkpoint}};
  EXPECT_THAT(ordinary_steps(set_of({rank})), ElementsAre(1, 3));
  rank.special_steps = {{1, StepKind::loader}, {2, StepKind::loader}, {3, StepKind::loader}};
  EXPECT_THAT(ordinary_steps(set_of({rank})), ElementsAre(1, 2, 3)) << "what all are is ordinary";
  EXPECT_THAT(ordinary_steps(set_of({test::TraceBuilder{}.build()})), IsEmpty());
}

}  // namespace
}  // namespace stepcast::recorded_steps_test
