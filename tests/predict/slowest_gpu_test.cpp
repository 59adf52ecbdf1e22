#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include "stepcast/predict/step_assumptions.h"

namespace stepcast::slowest_gpu_test {
namespace {

TEST(SlowestGpu, ANodeIsWhatPricesWereMeasuredOn) {
  EXPECT_EQ(slowest_gpu_excess(1, 0.015), 0);
  EXPECT_EQ(slowest_gpu_excess(8, 0.015), 0);
  EXPECT_GT(slowest_gpu_excess(9, 0.015), 0);
}

// Expected largest of n normal deviates (Harter 1961): 8: 1.42360, 20: 1.86748, 50: 2.24907, 100: 2.50759,
// 1,000: 3.24144.
TEST(SlowestGpu, FollowsTheExpectedLargestOfNormalDeviates) {
  const std::pair<std::int64_t, double> exact[] = {
      {20, 1.86748}, {50, 2.24907}, {100, 2.50759}, {1000, 3.24144}};
  for (const auto& [n, largest] : exact) {
    const double excess = 0.02 * (largest - 1.42360);
    EXPECT_NEAR(slowest_gpu_excess(n, 0.02), excess, 0.03 * excess) << n;
  }
}

TEST(SlowestGpu, GrowsWithTheJobAndWithTheSpread) {
  double before = 0;
  for (std::int64_t n = 16; n <= 1 << 20; n *= 2) {
    const double now = slowest_gpu_excess(n, 0.015);
    EXPECT_GT(now, before) << n;
    before = now;
  }
  EXPECT_LT(before, 0.06);
  EXPECT_DOUBLE_EQ(slowest_gpu_excess(512, 0.03), 2 * slowest_gpu_excess(512, 0.015));
  EXPECT_EQ(slowest_gpu_excess(512, 0), 0);
}

}  // namespace
}  // namespace stepcast::slowest_gpu_test
