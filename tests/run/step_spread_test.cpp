#include "stepcast/run/step_spread.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::step_spread_test {
namespace {

TEST(StepSpread, WithoutPausesIsThatOfANormal) {
  const StepSpread spread = step_spread(2, {.sigma = 0.02, .pauses_per_s = 0, .pause_s = 0.4});
  EXPECT_DOUBLE_EQ(spread.p50_s, 2);
  EXPECT_NEAR(spread.p90_s, 2 * (1 + 1.2815515655446004 * 0.02), 1e-9);
  EXPECT_NEAR(spread.p99_s, 2 * (1 + 2.3263478740408408 * 0.02), 1e-9);
}

// One step in twenty pauses once: the slowest hundredth is a pause longer, the slowest tenth is not.
TEST(StepSpread, OfRarePausesHoldsOneInItsTail) {
  const StepSpread spread = step_spread(1, {.sigma = 1e-4, .pauses_per_s = 0.05, .pause_s = 0.5});
  EXPECT_NEAR(spread.p90_s, 1, 1e-3);
  EXPECT_NEAR(spread.p99_s, 1.5, 1e-3);
  EXPECT_LT(step_spread(0.1, {.sigma = 1e-4, .pauses_per_s = 0.05, .pause_s = 0.5}).p99_s, 0.1001);
}

TEST(StepSpread, IsThatOfDrawnSteps) {
  for (const double typical : {0.5, 12.0, 9000.0}) {
    const StepJitter jitter{.sigma = 0.01, .pauses_per_s = 0.06, .pause_s = 0.4};
    std::mt19937_64 random{7};
    std::poisson_distribution<int> pauses{jitter.pauses_per_s * typical};
    std::normal_distribution<double> noise{1, jitter.sigma};
    std::vector<double> steps(40'000);
    for (double& step : steps) step = noise(random) * typical + jitter.pause_s * pauses(random);
    std::ranges::sort(steps);
    const auto at = [&](double share) { return steps[static_cast<std::size_t>(share * 40'000)]; };
    const StepSpread spread = step_spread(typical, jitter);
    EXPECT_NEAR(spread.p90_s / typical, at(0.9) / at(0.5), 0.003) << typical;
    EXPECT_NEAR(spread.p99_s / typical, at(0.99) / at(0.5), 0.01) << typical;
  }
}

// Behind one step in twenty an evaluation of 3 s, behind one in two hundred a checkpoint of 50 s: the slowest hundredth is
// between them.
TEST(StepSpread, HoldsWhatStopsStepsRegularly) {
  const StepJitter calm{.sigma = 1e-4, .pauses_per_s = 0};
  const std::vector<RegularStop> stops{{"evaluation", 20, 3}, {"checkpoint", 200, 50}};
  const StepSpread spread = step_spread(2, calm, stops);
  EXPECT_NEAR(spread.p50_s, 2, 1e-3);
  EXPECT_NEAR(spread.p90_s, 2, 1e-3);
  EXPECT_NEAR(spread.p99_s, 5, 1e-3);
  const std::vector<RegularStop> often{{"checkpoint", 50, 50}}, always{{"checkpoint", 1, 7}};
  EXPECT_NEAR(step_spread(2, calm, often).p99_s, 52, 1e-3);
  EXPECT_NEAR(step_spread(2, calm, always).p50_s, 9, 1e-3);
}

// The longer a step, the less of it is a pause.
TEST(StepSpread, OfLongStepsIsNarrow) {
  EXPECT_GT(step_spread(1).p99_s, 1.3);
  EXPECT_LT(step_spread(20).p99_s / 20, 1.1);
  EXPECT_EQ(step_spread(0).p99_s, 0);
}

}  // namespace
}  // namespace stepcast::step_spread_test
