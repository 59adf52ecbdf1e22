#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/step_model.h"

#include "tests/predict/random_training.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::step_model_threads_test {
namespace {

Platform h100() {
  Result<Platform> loaded = load_platform("dgx-h100");
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
  return std::move(*loaded);
}

// The step, and how its Program ends; 0 where it is refused.
struct Answer {
  double step_us = 0, high_us = 0, end_us = 0;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer answer(const StepModel& steps, const test::RandomTraining& t, bool whole) {
  const Result<StepPrediction> step = steps.predict(t.model, t.layout);
  if (!step.ok()) return {};
  Answer out{step->step.time.value(), step->step.p90.value(), 0};
  if (whole) {
    const Result<PredictedStep> predicted = predict_step(t.model, t.layout, steps);
    if (predicted.ok()) out.end_us = predicted->timeline.end_us();
  }
  return out;
}

// Two threads ask one model, and what shares its prices under other assumptions, in opposite orders: every answer is that
// of a model of its own.
TEST(StepModelThreads, AnswerAsAModelOfTheirOwn) {
  const Platform platform = h100();
  std::mt19937_64 random{29};
  std::vector<test::RandomTraining> trainings;
  for (int i = 0; i < 24; ++i) trainings.push_back(test::random_training(random));
  StepAssumptions slow;
  slow.gemm_factor = 2;
  slow.inter_node_factor = 3;
  const auto asked_of = [&](const StepModel& usual, const StepModel& slower, std::size_t i) {
    return answer(i % 3 == 0 ? slower : usual, trainings[i], i % 4 == 0);
  };
  std::vector<Answer> expected;
  for (std::size_t i = 0; i < trainings.size(); ++i)
    expected.push_back(asked_of(StepModel{platform}, StepModel{platform, slow}, i));
  const StepModel shared{platform}, slower = shared.with(slow);
  std::array<std::vector<Answer>, 2> found;
  const auto ask_all = [&](std::size_t thread) {
    found[thread].resize(trainings.size());
    for (std::size_t n = 0; n < trainings.size(); ++n) {
      const std::size_t i = thread == 0 ? n : trainings.size() - 1 - n;
      found[thread][i] = asked_of(shared, slower, i);
    }
  };
  std::thread one{ask_all, 0}, other{ask_all, 1};
  one.join();
  other.join();
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    SCOPED_TRACE(describe(trainings[i]));
    EXPECT_EQ(found[0][i], expected[i]);
    EXPECT_EQ(found[1][i], expected[i]);
  }
}

// On switches that transfers share, what one layout exchanges decides how its transfers share links: asked for after another
// layout of the same degrees, a step is that of a model of its own.
TEST(StepModelThreads, AStepDependsOnNoStepBefore) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "fabric.json";
  std::ofstream{file} << R"({"stepcast_platform": 1, "name": "fabric", "extends": "dgx-h100",
                             "node": {"network": {"tiers": [{"nodes": 2, "oversubscription": 4}]}}})";
  const Result<Platform> platform = load_platform(file.string());
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  const StepModel shared{*platform};
  std::mt19937_64 random{31};
  int changed = 0;
  for (int i = 0; i < 200; ++i) {
    test::RandomTraining t = test::random_training(random);
    const double before = answer(shared, t, false).step_us;
    t.layout.layer.dispatcher = t.layout.layer.dispatcher == TokenDispatcher::all_gather
                                    ? TokenDispatcher::all_to_all
                                    : TokenDispatcher::all_gather;
    t.layout.layer.context_parallel_kind =
        t.layout.layer.context_parallel_kind == ContextParallelKind::all_to_all
            ? ContextParallelKind::ring
            : ContextParallelKind::all_to_all;
    const Answer again = answer(shared, t, false);
    EXPECT_EQ(again, answer(StepModel{*platform}, t, false)) << describe(t);
    changed += again.step_us != before ? 1 : 0;
  }
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace stepcast::step_model_threads_test
