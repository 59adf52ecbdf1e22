#include "lab/cadence.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/trace_builder.h"

namespace stepcast::cadence_test {
namespace {

// Steps 1, 2, ... that begin at these times, and last until 1 ms before the next one or for 9 ms.
TraceSet set_of(const std::vector<double>& starts_ms) {
  test::TraceBuilder t;
  const int main = t.thread(1);
  for (std::size_t s = 0; s < starts_ms.size(); ++s) {
    const double end_ms = s + 1 < starts_ms.size() ? starts_ms[s + 1] - 1 : starts_ms[s] + 9;
    t.step(main, static_cast<int>(s) + 1, 1e3 * starts_ms[s], 1e3 * (end_ms - starts_ms[s]));
  }
  TraceSet set;
  set.ranks.push_back(t.build());
  return set;
}

TEST(Cadence, IsTheMeanTimeBetweenStarts) {
  const auto cadence = recorded_cadence(set_of({0, 10, 20.4, 30.2, 40}));
  ASSERT_TRUE(cadence);
  EXPECT_EQ(cadence->steps, 5);
  EXPECT_NEAR(cadence->recorded_us, 10'000, 1e-6);
  // 0, 0.4, -0.2 and -0.2 ms off the mean.
  EXPECT_NEAR(cadence->spread, 0.0245, 1e-4);
  EXPECT_FALSE(recorded_cadence(set_of({0, 10, 20})));
}

TEST(Cadence, IsThatOfTheLongestRowOfOrdinarySteps) {
  // The third step is twice as long.
  const auto cadence = recorded_cadence(set_of({0, 10, 20, 40, 51, 62, 73}));
  ASSERT_TRUE(cadence);
  EXPECT_EQ(cadence->steps, 4);
  EXPECT_NEAR(cadence->recorded_us, 11'000, 1e-6);
}

}  // namespace
}  // namespace stepcast::cadence_test
