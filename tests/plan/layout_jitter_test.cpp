#include "stepcast/plan/layout_jitter.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/plan/layout_plan.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::layout_jitter_test {
namespace {

PlanRequest request_for(std::int64_t n_gpus) {
  PlanRequest request;
  request.job.model = "llama-3-8b";
  request.job.settings.global_batch_sequences = 64;
  request.job.settings.seq_len_tokens = 2048;
  request.n_gpus = n_gpus;
  request.threads = 1;
  return request;
}

class LayoutJitter : public ::testing::Test {
 protected:
  // The only layout with these degrees, shaken by `sigma` of every GPU.
  JitteredLayout shaken(std::int64_t n_gpus, std::int64_t tensor, std::int64_t pipeline, Sharding sharding,
                        double sigma, const char* model = "llama-3-8b") {
    PlanRequest request = request_for(n_gpus);
    request.job.model = model;
    request.memory_bytes = 1e13;
    request.restrictions.tensor = {{tensor}};
    request.restrictions.pipeline = {{pipeline}};
    request.restrictions.virtual_stages = {{1}};
    request.restrictions.context = {{1}};
    request.restrictions.micro_batch = {{1}};
    request.restrictions.recomputations = {{Recompute::full}};
    request.restrictions.sequence_parallel = {{tensor > 1}};
    request.restrictions.shardings = {{DataSharding{sharding, 0}}};
    request.jitter.gpu = sigma;
    const Result<LayoutPlan> plan = plan_layouts(request, platform_);
    EXPECT_TRUE(plan.ok()) << plan.error().message();
    EXPECT_EQ(plan->jittered.size(), 1U);
    return plan->jittered.front();
  }

  Platform platform_ = *load_platform("dgx-h100");
};

TEST_F(LayoutJitter, MoreRanksThatWaitForEachOtherLoseMore) {
  constexpr double kSigma = 0.05;
  // Of 8 GPUs in one tensor-parallel group: the largest of eight normal deviates is 1.42 on average, so the slowest of the
  // eight takes about exp(0.05 x 1.42) = 1.074 times as long; transfers and the fixed part do not.
  const JitteredLayout eight = shaken(8, 8, 1, Sharding::none, kSigma);
  EXPECT_GT(eight.slowdown, 1.03);
  EXPECT_LT(eight.slowdown, 1.074);
  EXPECT_LT(eight.p50_ms, eight.p90_ms);
  const JitteredLayout of_sixty_four = shaken(64, 8, 1, Sharding::zero1, kSigma);
  EXPECT_GT(of_sixty_four.slowdown, eight.slowdown);
  // Twice the spread, about twice the loss.
  const JitteredLayout twice = shaken(8, 8, 1, Sharding::none, 2 * kSigma);
  EXPECT_NEAR((twice.slowdown - 1) / (eight.slowdown - 1), 2, 0.25);
}

TEST_F(LayoutJitter, StagesOfAPipelineWaitForTheSlowest) {
  // Eight stages that do about the same: all go at the pace of the slowest of eight, about 1.074 times as long. Filling and
  // draining is as long as the mean of the stages.
  const JitteredLayout alike = shaken(8, 1, 8, Sharding::none, 0.05, "gpt3-175b");
  EXPECT_GT(alike.slowdown, 1.03);
  EXPECT_LT(alike.slowdown, 1.08);
  // The output of a large vocabulary makes the last stage the slowest by far: how fast its own GPU is decides, and that is
  // one times as long on average.
  const JitteredLayout last_decides = shaken(8, 1, 8, Sharding::none, 0.05);
  EXPECT_NEAR(last_decides.slowdown, 1, 0.01);
}

TEST_F(LayoutJitter, NothingDrawnNothingLost) {
  PlanRequest request = request_for(8);
  request.jitter.network = 1e-9;
  const LayoutPlan plan = *plan_layouts(request, platform_);
  ASSERT_FALSE(plan.jittered.empty());
  for (const JitteredLayout& one : plan.jittered) {
    EXPECT_NEAR(one.slowdown, 1, 1e-6);
    EXPECT_NEAR(one.mean_ms / plan.ranking.layouts[one.of].step_ms(), 1, 1e-6);
  }
}

TEST_F(LayoutJitter, ChoosesTheLeastOfNineInTen) {
  PlanRequest request = request_for(32);
  request.jitter.gpu = 0.1;
  const LayoutPlan plan = *plan_layouts(request, platform_), again = *plan_layouts(request, platform_);
  const auto p90_of = [&](std::size_t index) {
    return std::find_if(plan.jittered.begin(), plan.jittered.end(),
                        [&](const auto& j) { return j.of == index; })
        ->p90_ms;
  };
  for (std::size_t i = 0; i < plan.jittered.size(); ++i) {
    const RankedLayout& layout = plan.ranking.layouts[plan.jittered[i].of];
    if (layout.alike && layout.memory.verdict != MemoryVerdict::tight) {
      EXPECT_LE(p90_of(plan.ranking.chosen), plan.jittered[i].p90_ms);
    }
    EXPECT_EQ(plan.jittered[i].p90_ms, again.jittered[i].p90_ms);
  }
}

TEST(ParetoOfLayouts, KeepsWhatNothingBeats) {
  const auto priced = [](double us, double bytes) { return PricedLayout{{}, us, bytes}; };
  // Ascending in time: the second needs more memory than the first, the third less, the fourth as much as the third.
  const std::vector<PricedLayout> front =
      pareto_of({priced(1, 50), priced(2, 60), priced(3, 40), priced(4, 40), priced(5, 10)});
  ASSERT_EQ(front.size(), 3U);
  EXPECT_EQ(front[0].step_us, 1);
  EXPECT_EQ(front[1].step_us, 3);
  EXPECT_EQ(front[2].step_us, 5);
}

TEST(PlanObjectives, AreReadByName) {
  EXPECT_EQ(*parse_objective("time"), PlanObjective::step_time);
  EXPECT_EQ(*parse_objective("energy"), PlanObjective::energy);
  EXPECT_FALSE(parse_objective("speed").ok());
}

}  // namespace
}  // namespace stepcast::layout_jitter_test
