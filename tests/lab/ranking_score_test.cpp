#include "lab/ranking_score.h"

#include <gtest/gtest.h>

namespace stepcast::ranking_score_test {
namespace {

// Ranks 1, 2, 3 against 1, 3, 2: rho = 1 - 6 (0 + 1 + 1) / (3 (9 - 1)) = 0.5.
TEST(RankLayouts, CorrelatesRanks) {
  const RankingScore r = score_ranking({10, 20, 30}, {11, 33, 22});
  EXPECT_NEAR(r.spearman, 0.5, 1e-12);
  EXPECT_EQ(r.n_pairs, 3U);
  EXPECT_NEAR(r.pairs_ordered, 100.0 * 2 / 3, 1e-9);
  EXPECT_NEAR(r.top1_regret, 0, 1e-12);
}

// The second layout is predicted fastest and is 20 % slower than the first. The first and the third are 4 %
// apart and have no order.
TEST(RankLayouts, RegretsTheWrongChoice) {
  const RankingScore r = score_ranking({100, 120, 104}, {110, 90, 111});
  EXPECT_NEAR(r.top1_regret, 20, 1e-9);
  EXPECT_EQ(r.n_pairs, 2U);
  EXPECT_NEAR(r.pairs_ordered, 0, 1e-12);
}

}  // namespace
}  // namespace stepcast::ranking_score_test
