#include "stepcast/rollout/rl_step.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/resolve_job.h"
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

TEST(RlStep, ListsAllWaysTheFastestFirst) {
  RlQuestion q = question(32);
  q.settings.options = 10;
  const Result<RlAnswer> found = asked(q);
  ASSERT_TRUE(found.ok()) << found.error().message();
  const std::vector<RlSplit>& all = found->forecast.alternatives;
  ASSERT_EQ(all.size(), 4U);  // on-policy, and 8, 16, 24 GPUs that generate
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, [](const RlSplit& s) {
    return std::pair{!s.training_fits, s.step_s};
  }));
  const auto same = std::ranges::find(all, true, &RlSplit::on_policy);
  ASSERT_NE(same, all.end());
  EXPECT_DOUBLE_EQ(same->step_s, found->forecast.step_s);
  q.settings.policy = "off:1";
  const auto off = std::ranges::find(all, false, &RlSplit::on_policy);
  EXPECT_DOUBLE_EQ(off->step_s,
                   asked(q)->forecast.step_s);  // an on-policy question is held against one step off
}

// Layouts of training are searched for the pools in front alone: that is as fast as searching all of them.
TEST(RlStep, OpenLayoutsAreSearchedWhereTheyMatter) {
  RlQuestion q = question(64, "qwen3-8b");
  q.settings.policy = "off:1";
  StepModel steps{h100()};
  int asked_for = 0;
  double share = 1;
  const TrainingLayout fastest = [&](const Job& job, const ResolvedJob&) -> std::optional<LayoutChoice> {
    ++asked_for;
    Job with = job;
    share = *job.n_gpus > 32 ? 2 : 1;  // tensor parallelism pays on many GPUs
    with.settings.tensor = share > 1 ? 2 : 1;
    with.settings.distributed_optimizer = true;
    Result<ResolvedJob> resolved = resolve(with);
    if (!resolved) return std::nullopt;
    return LayoutChoice{
        .settings = with.settings, .flags = "--tp", .job = std::move(*resolved), .memory = {}};
  };
  const Result<RlAnswer> found = rl_step(q, steps, {}, fastest);
  ASSERT_TRUE(found.ok()) << found.error().message();
  const int for_one = asked_for;
  q.settings.options = 100;
  const Result<RlAnswer> all = rl_step(q, steps, {}, fastest);
  ASSERT_TRUE(all.ok());
  const auto off = std::ranges::find(all->forecast.alternatives, false, &RlSplit::on_policy);
  EXPECT_LE(found->forecast.step_s, 1.01 * off->step_s);
  EXPECT_LT(for_one, asked_for - for_one);
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
  EXPECT_THAT(asked(q), FailsWith("the split leaves one pool empty"));
  EXPECT_THAT(asked(q), FailsWith("nearest that works: 15"));
  q.settings.policy = "sometimes";
  EXPECT_THAT(asked(q), FailsWith("expected on, or off:N"));
  q = question(16, "llama-3.1-70b");
  q.settings.generation_tensor = 1;
  EXPECT_THAT(asked(q), FailsWith("leaves 0.0 GiB for the KV cache"));
  EXPECT_THAT(asked(q), FailsWith("nearest that works: --generation-tp 4"));
  q.settings.generation_tensor = 0;
  EXPECT_THAT(asked(q), FailsWith("--generation-tp: found 0, expected a number from 1"));
  q = question();
  q.settings.generation_gpus = 8;
  EXPECT_THAT(asked(q), FailsWith("on-policy all GPUs generate and train"));
  q = question();
  q.settings.prompt_tokens = 1000;
  EXPECT_THAT(asked(q), FailsWith("--prompt-tokens"));
  q = question();
  q.settings.prompts.reset();
  EXPECT_THAT(asked(q), FailsWith("--prompts: found nothing"));
  q = question();
  q.settings.generation_memory_share = 1.5;
  EXPECT_THAT(asked(q), FailsWith("expected a fraction above 0, at most 1"));
}

}  // namespace
}  // namespace stepcast::rl_step_test
