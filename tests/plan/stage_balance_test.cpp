#include <algorithm>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/plan/layout_refinement.h"

namespace stepcast::stage_balance_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Layers = std::vector<std::int64_t>;

struct Load {
  double slowest = 0, squares = 0;
  auto operator<=>(const Load&) const = default;
};

Load load_of(const Layers& layers, const std::vector<double>& us, double front, double back) {
  Load load;
  std::size_t at = 0;
  for (std::size_t c = 0; c < layers.size(); ++c) {
    double sum = (c == 0 ? front : 0) + (c + 1 == layers.size() ? back : 0);
    for (std::int64_t i = 0; i < layers[c]; ++i) sum += us[at++];
    load.slowest = std::max(load.slowest, sum);
    load.squares += sum * sum;
  }
  return load;
}

// All ways to deal out `left` layers from chunk `c` on.
void every_partition(Layers& layers, std::size_t c, std::int64_t left, const auto& look) {
  const bool is_last = c + 1 == layers.size();
  if (is_last) {
    layers[c] = left;
    look(layers);
    return;
  }
  for (std::int64_t n = c == 0 ? 0 : 1; n <= left; ++n) {
    layers[c] = n;
    every_partition(layers, c + 1, left - n, look);
  }
}

TEST(BalancedStages, TakesLayersOffTheStageWithTheLoss) {
  // 14 layers of 1 us and a loss of 2 us are 16 us: 4 on each of 4 stages.
  EXPECT_THAT(balanced_stages(std::vector<double>(14, 1.0), 0, 2, 4), ElementsAre(4, 4, 4, 2));
  // A loss of 5 us stands alone.
  EXPECT_THAT(balanced_stages(std::vector<double>(12, 1.0), 0, 5, 4), ElementsAre(4, 4, 4, 0));
  EXPECT_THAT(balanced_stages(std::vector<double>(8, 1.0), 0, 0, 4), ElementsAre(2, 2, 2, 2));
}

TEST(BalancedStages, IsTheBestOfAllPartitions) {
  std::mt19937 random{3};
  std::uniform_real_distribution<double> us{0.5, 3};
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<double> layers(4 + random() % 6);
    for (double& layer : layers) layer = us(random);
    const double front = us(random) - 0.5, back = 2 * us(random);
    const std::size_t n_chunks = 2 + random() % 4;
    const Layers found = balanced_stages(layers, front, back, n_chunks);
    Load best{std::numeric_limits<double>::infinity(), 0};
    Layers all(n_chunks);
    every_partition(all, 0, static_cast<std::int64_t>(layers.size()),
                    [&](const Layers& one) { best = std::min(best, load_of(one, layers, front, back)); });
    ASSERT_EQ(found.size(), n_chunks);
    EXPECT_NEAR(load_of(found, layers, front, back).slowest, best.slowest, 1e-9);
  }
}

TEST(BalancedStages, FewerLayersThanChunksCannotBe) {
  EXPECT_THAT(balanced_stages(std::vector<double>(2, 1.0), 0, 0, 5), IsEmpty());
  EXPECT_THAT(balanced_stages(std::vector<double>(2, 1.0), 1, 1, 4), ElementsAre(0, 1, 1, 0));
}

}  // namespace
}  // namespace stepcast::stage_balance_test
