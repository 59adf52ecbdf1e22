#include "lab/step_scores.h"

#include <gtest/gtest.h>

namespace stepcast::step_scores_test {
namespace {

TEST(TwoWays, CountByHowFarTheyWereOff) {
  TwoWays ways;
  EXPECT_DOUBLE_EQ(ways.together(10, 20), 15) << "nothing was seen";
  ways.seen(100, 110, 120);  // 10 and 20 %: squared errors of 1 to 4, weights of 16 to 1
  EXPECT_NEAR(ways.together(10, 20), (16 * 10 + 1 * 20) / 17.0, 1e-9);
  ways.seen(0, 5, 5);
  EXPECT_NEAR(ways.together(10, 20), (16 * 10 + 1 * 20) / 17.0, 1e-9) << "nothing was measured";
  TwoWays exact;
  exact.seen(100, 100, 101);
  EXPECT_DOUBLE_EQ(exact.together(10, 20), 10);
}

}  // namespace
}  // namespace stepcast::step_scores_test
