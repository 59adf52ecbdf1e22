#include "stepcast/predict/stage_pools.h"

#include <array>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/predicted_step.h"

#include "tests/predict/random_training.h"

namespace stepcast::stage_pools_test {
namespace {

Platform platform(const char* name) {
  Result<Platform> loaded = load_platform(name);
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
  return std::move(*loaded);
}

// Two pools of one kind are the step of one; of two kinds, the engine finds what the recurrences do, between the steps of
// either kind alone.
TEST(StagePools, PricesAreThoseOfThePoolOfEachStage) {
  const Platform h100 = platform("dgx-h100"), a100 = platform("dgx-a100");
  StepModel fast{h100}, same{h100}, slow{a100};
  std::mt19937_64 random{3};
  int tried = 0;
  for (int i = 0; i < 200; ++i) {
    test::RandomTraining t = test::random_training(random);
    const auto stages = static_cast<std::uint32_t>(t.layout.degrees.pipeline);
    if (stages < 2 || t.layout.layer.precision.compute == DType::fp8) continue;
    SCOPED_TRACE(describe(t));
    ++tried;
    const Result<StepPrediction> whole = fast.predict(t.model, t.layout);
    ASSERT_TRUE(whole.ok()) << whole.error().message();
    const std::array alike{StagePool{stages / 2, fast}, StagePool{stages, same}};
    const Result<StepPrediction> twice = predict_on_pools(t.model, t.layout, alike);
    ASSERT_TRUE(twice.ok());
    ASSERT_NEAR(twice->step.time.value() / whole->step.time.value(), 1, 1e-12);

    const std::array pools{StagePool{stages / 2, fast}, StagePool{stages, slow}};
    const Result<PredictedStep> mixed = predict_step(t.model, t.layout, pools);
    ASSERT_TRUE(mixed.ok()) << mixed.error().message();
    ASSERT_NEAR(mixed->timeline.end_us() / mixed->summary.times.step_us, 1, 1e-9);
    std::array far = pools;
    far[1].links = {.zone = 1, .latency_us = 700};
    const Result<PredictedStep> apart = predict_step(t.model, t.layout, far);
    ASSERT_TRUE(apart.ok()) << apart.error().message();
    ASSERT_NEAR(apart->timeline.end_us() / apart->summary.times.step_us, 1, 1e-9);
    ASSERT_GE(apart->summary.times.step_us, mixed->summary.times.step_us * (1 - 1e-12));
    const Result<StepPrediction> slowest = slow.predict(t.model, t.layout);
    ASSERT_TRUE(slowest.ok());
    ASSERT_LE(mixed->summary.step.time.value(), slowest->step.time.value() * 1.02);
  }
  EXPECT_GT(tried, 30);
}

}  // namespace
}  // namespace stepcast::stage_pools_test
