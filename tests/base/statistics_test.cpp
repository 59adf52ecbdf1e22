#include "stepcast/base/statistics.h"

#include <vector>

#include <gtest/gtest.h>

namespace stepcast::statistics_test {
namespace {

const std::vector<double> kFour = {1, 2, 4, 8};

TEST(Statistics, MediansOfAnEvenNumberDiffer) {
  EXPECT_EQ(median({8, 1, 4, 2}), 3);  // (2 + 4) / 2
  EXPECT_EQ(upper_median({8, 1, 4, 2}), 4);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(upper_median({3, 1, 2}), 2);
}

TEST(Statistics, QuantilesByDefinition) {
  // Of four values: positions 0.9 x 3 = 2.7, ceil(0.9 x 4) = 4th, 0.9 x 5 - 1 = 3.5 and so the last.
  EXPECT_DOUBLE_EQ(quantile({8, 4, 2, 1}, 0.9), 4 + 0.7 * 4);
  EXPECT_EQ(nearest_rank_quantile(kFour, 0.9), 8);
  EXPECT_EQ(future_quantile(kFour, 0.9), 8);
  // 0.5 x 3 = 1.5; 2nd; 0.5 x 5 - 1 = 1.5.
  EXPECT_EQ(quantile(kFour, 0.5), 3);
  EXPECT_EQ(nearest_rank_quantile(kFour, 0.5), 2);
  EXPECT_EQ(future_quantile(kFour, 0.5), 3);
  // 0.3 x 3 = 0.9; ceil(1.2) = 2nd; 0.3 x 5 - 1 = 0.5.
  EXPECT_DOUBLE_EQ(quantile(kFour, 0.3), 1.9);
  EXPECT_EQ(nearest_rank_quantile(kFour, 0.3), 2);
  EXPECT_DOUBLE_EQ(future_quantile(kFour, 0.3), 1.5);
}

TEST(Statistics, StaysAmongTheValues) {
  for (const double share : {-1.0, 0.0, 1.0, 2.0}) {
    const double end = share < 0.5 ? 1 : 8;
    EXPECT_EQ(quantile(kFour, share), end);
    EXPECT_EQ(nearest_rank_quantile(kFour, share), end);
    EXPECT_EQ(future_quantile(kFour, share), end);
  }
  EXPECT_EQ(quantile({7}, 0.3), 7);
  EXPECT_EQ(future_quantile(std::vector<double>{7}, 0.3), 7);
}

TEST(Statistics, OfNothingIsZero) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(upper_median({}), 0);
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(nearest_rank_quantile({}, 0.5), 0);
  EXPECT_EQ(future_quantile({}, 0.5), 0);
}

}  // namespace
}  // namespace stepcast::statistics_test
