#include "stepcast/rollout/rl_step.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/report/rl_document.h"

#include "tests/support/fails_with.h"

namespace stepcast::rl_step_test {
namespace {

using test::FailsWith;
using ::testing::HasSubstr;

const Platform& h100() {
  static const Platform kPlatform = *load_platform("dgx-h100");
  return kPlatform;
}

RlQuestion question(std::int64_t n_gpus = 16, const char* model = "llama-3.1-8b") {
  RlQuestion q;
  q.job.model = model;
  q.job.n_gpus = n_gpus;
  q.settings = {.prompts = 64, .generations = 16, .lengths = "mean=1000,max=4096"};
  return q;
}

Result<RlAnswer> asked(const RlQuestion& q) {
  StepModel steps{h100()};
  return rl_step(q, steps);
}

TEST(RlStep, PartsFollowEachOtherOnPolicyAndOverlapOffPolicy) {
  const RlWork work{
      .generation = {.prefill_s = 1, .decode_s = 20, .tail_s = 4, .decode_layers = 1e6, .tail_layers = 5e5},
      .log_probabilities_s = 3,
      .reward_s = 1,
      .train_s = 6,
      .parameters = 2e11};
  const RlConstants c{.decode_factor = 1.5,
                      .layer_us = 10,
                      .training_factor = 2,
                      .colocated_s = 30,
                      .handover_s = 8,
                      .transfer_s_per_100B = 5};
  double step_s = 0;
  RlParts parts = parts_of(work, {.on_policy = true}, c, step_s);
  EXPECT_DOUBLE_EQ(parts.decode_s, 40);    // 20 x 1.5 + 1e6 layers x 10 us
  EXPECT_DOUBLE_EQ(parts.tail_s, 11);      // 4 x 1.5 + 5
  EXPECT_DOUBLE_EQ(parts.learn_s(), 20);   // (3 + 1 + 6) x 2
  EXPECT_DOUBLE_EQ(parts.transfer_s, 50);  // 30 + 2 x 2 x 5
  EXPECT_DOUBLE_EQ(step_s, 1 + 40 + 11 + 20 + 50);
  parts = parts_of(work, {.on_policy = false, .generation_gpus = 8, .training_gpus = 24}, c, step_s);
  EXPECT_DOUBLE_EQ(step_s, 52 + 8 + 10);
  EXPECT_DOUBLE_EQ(parts.idle_s, 32);
  EXPECT_EQ(parts.idle_gpus, 24);
}

TEST(RlStep, SplitAndLayoutAreTheFastestOfAll) {
  RlQuestion q = question(32);
  q.settings.policy = "off:1";
  const Result<RlAnswer> found = asked(q);
  ASSERT_TRUE(found.ok()) << found.error().message();
  double fastest = std::numeric_limits<double>::infinity();
  StepModel steps{h100()};
  for (const std::int64_t gpus : {8, 16, 24}) {
    for (const std::int64_t tensor : {1, 2, 4, 8, 16}) {
      q.settings.generation_gpus = gpus;
      q.settings.generation_tensor = tensor;
      q.settings.generation_pipeline = 1;
      if (const Result<RlAnswer> one = rl_step(q, steps)) fastest = std::min(fastest, one->forecast.step_s);
    }
  }
  EXPECT_DOUBLE_EQ(found->forecast.step_s, fastest);
  EXPECT_EQ(found->forecast.split.generation_gpus + found->forecast.split.training_gpus, 32);
  ASSERT_EQ(found->forecast.alternatives.size(), 1U);
  EXPECT_TRUE(found->forecast.alternatives.front().on_policy);
}

TEST(RlStep, AddsUp) {
  const Result<RlAnswer> answer = asked(question());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  const RlForecast& f = answer->forecast;
  EXPECT_NEAR(f.parts.generate_s() + f.parts.learn_s() + f.parts.transfer_s, f.step_s, 1e-9);
  EXPECT_NEAR(f.tokens_per_s_per_gpu, 1024 * 1000 / f.step_s / 16, 1e-6);
  EXPECT_LT(f.p10_s, f.step_s);
  EXPECT_GT(f.p90_s, f.step_s);
  EXPECT_THAT(report_text(rl_document(f)), HasSubstr("tail of the longest answers"));
  EXPECT_THAT(rl_json(f), HasSubstr(R"("schema": "stepcast.rl_forecast/1")"));
}

TEST(RlStep, AlgorithmsDiffer) {
  RlQuestion q = question();
  const Result<RlAnswer> grpo = asked(q);
  q.settings.algorithm = "ppo";
  q.settings.reward_model = "llama-3.1-8b";
  const Result<RlAnswer> ppo = asked(q);
  q.settings.reward_model.clear();
  q.settings.algorithm = "dapo";
  const Result<RlAnswer> dapo = asked(q);
  ASSERT_TRUE(grpo.ok() && ppo.ok() && dapo.ok());
  EXPECT_DOUBLE_EQ(ppo->work.train_s, 2 * grpo->work.train_s);
  EXPECT_DOUBLE_EQ(ppo->work.log_probabilities_s, 1.5 * grpo->work.log_probabilities_s);
  EXPECT_DOUBLE_EQ(ppo->work.reward_s, grpo->work.log_probabilities_s / 2);  // one pass of as large a model
  EXPECT_DOUBLE_EQ(dapo->work.log_probabilities_s, grpo->work.log_probabilities_s / 2);
  EXPECT_EQ(dapo->forecast.generated_sequences, 3 * grpo->forecast.generated_sequences);
  EXPECT_GT(dapo->forecast.parts.decode_s, grpo->forecast.parts.decode_s);
}

TEST(RlStep, SaysWhatCannotBe) {
  RlQuestion q = question();
  q.job.settings.global_batch_sequences = 100;
  EXPECT_THAT(asked(q), FailsWith("64 prompts x 16 answers do not divide into updates of 100"));
  EXPECT_THAT(asked(q), FailsWith("nearest that works: --generations 25, or --gbs 1024"));
  q = question();
  q.settings.lengths = "mean=5000,max=4096";
  EXPECT_THAT(asked(q), FailsWith("the mean is above the maximum"));
  EXPECT_THAT(asked(question(16, "bert-large")), FailsWith("expected a decoder"));
  q = question();
  q.settings.policy = "off:1";
  q.settings.generation_gpus = 16;
  EXPECT_THAT(asked(q), FailsWith("the split leaves one side empty"));
  EXPECT_THAT(asked(q), FailsWith("nearest that works: 15"));
  q.settings.policy = "sometimes";
  EXPECT_THAT(asked(q), FailsWith("expected on, or off:N"));
  q = question(16, "llama-3.1-70b");
  q.settings.generation_tensor = 1;
  EXPECT_THAT(asked(q), FailsWith("leaves 0.0 GiB for keys and values"));
  EXPECT_THAT(asked(q), FailsWith("nearest that works: --generation-tp 4"));
  q = question();
  q.settings.generation_gpus = 8;
  EXPECT_THAT(asked(q), FailsWith("on-policy all GPUs generate and train"));
  q = question();
  q.settings.prompt_tokens = 1000;
  EXPECT_THAT(asked(q), FailsWith("--prompt-tokens"));
}

}  // namespace
}  // namespace stepcast::rl_step_test
