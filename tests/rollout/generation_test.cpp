#include "stepcast/rollout/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"

#include "tests/support/fails_with.h"

namespace stepcast::generation_test {
namespace {

using test::FailsWith;

const Platform& h100() {
  static const Platform kPlatform = *load_platform("dgx-h100");
  return kPlatform;
}

Transformer preset(const char* name) { return *find_preset(name); }

TEST(TouchedExperts, OfFewAndManyTokens) {
  EXPECT_DOUBLE_EQ(touched_experts(128, 8, 1), 8);
  EXPECT_DOUBLE_EQ(touched_experts(128, 8, 2), 15.5);  // 128 (1 - (15/16)^2)
  EXPECT_NEAR(touched_experts(128, 8, 1e4), 128, 1e-6);
  EXPECT_EQ(touched_experts(0, 8, 4), 0);
}

TEST(Generation, KeepsKeysAndValuesOfItsHeads) {
  StepWorker steps = StepModel{h100()}.worker();
  // 32 layers x 8 heads x (128 + 128) elements x 2 bytes.
  const Result<Generation> whole = Generation::create(preset("llama-3.1-8b"), {}, steps.pricer());
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  EXPECT_EQ(whole->cache_bytes(1000), 1000.0 * 32 * 8 * 256 * 2);
  EXPECT_NEAR(whole->weight_bytes(), 2 * 8'030'261'248.0, 1e7);
  // 16 ranks for 8 heads: each has one, twice as much as a sixteenth.
  const Result<Generation> split = Generation::create(preset("llama-3.1-8b"), {.tensor = 16}, steps.pricer());
  ASSERT_TRUE(split.ok()) << split.error().message();
  EXPECT_EQ(split->cache_bytes(1000), 1000.0 * 32 * 256 * 2);
  // Latent vectors of 512 and a rotated key of 64 are on every rank.
  const Result<Generation> latent = Generation::create(preset("deepseek-v3"), {.tensor = 32}, steps.pricer());
  ASSERT_TRUE(latent.ok()) << latent.error().message();
  EXPECT_EQ(latent->cache_bytes(1000), 1000.0 * 61 * 576 * 2);
  const Result<Generation> narrow =
      Generation::create(preset("llama-3.1-8b"), {.pipeline = 2, .dtype = DType::fp8}, steps.pricer());
  ASSERT_TRUE(narrow.ok()) << narrow.error().message();
  EXPECT_NEAR(narrow->weight_bytes(), 8'030'261'248.0 / 2, 1e7);
}

TEST(Generation, ReadsItsWeightsInEveryIteration) {
  StepWorker steps = StepModel{h100()}.worker();
  Result<Generation> engine = Generation::create(preset("llama-3.1-8b"), {}, steps.pricer());
  ASSERT_TRUE(engine.ok()) << engine.error().message();
  const double bandwidth = h100().device.memory_bandwidth.value();
  // All weights but the embedding, of which a row is read: 15.0 GB at 3.35 TB/s are 4.48 ms.
  const double least_us = 1e6 * (engine->weight_bytes() - 2.0 * 128256 * 4096) / bandwidth;
  const Result<double> alone = engine->iteration_us(1, 1);
  ASSERT_TRUE(alone.ok()) << alone.error().message();
  EXPECT_GT(*alone, least_us);
  EXPECT_LT(*alone, 3 * least_us);
  // 64 sequences of 8,192 tokens: 68.7 GB of keys and values besides.
  const Result<double> many = engine->iteration_us(64, 8192), short_ones = engine->iteration_us(64, 1);
  ASSERT_TRUE(many.ok() && short_ones.ok());
  const double cache_us = 1e6 * 64 * engine->cache_bytes(8192) / bandwidth;
  EXPECT_GT(*many - *short_ones, 0.99 * cache_us);
  EXPECT_LT(*many - *short_ones, 1.5 * cache_us);
}

// A trainer adds the biases of experts one expert after the other; products of engines add them all.
// The language model of qwen3-vl-8b is qwen3-8b; its tower sees an image once, and no token of an answer.
TEST(Generation, RunsNoTowerForTheTokensOfAnAnswer) {
  StepWorker steps = StepModel{h100()}.worker();
  Result<Generation> sees = Generation::create(preset("qwen3-vl-8b"), {}, steps.pricer()),
                     reads = Generation::create(preset("qwen3-8b"), {}, steps.pricer());
  ASSERT_TRUE(sees.ok() && reads.ok());
  EXPECT_GT(sees->weight_bytes(), reads->weight_bytes());
  EXPECT_DOUBLE_EQ(sees->iteration_us(16, 1000).value(), reads->iteration_us(16, 1000).value());
}

TEST(Generation, AddsBiasesOfExpertsInTheirProducts) {
  StepWorker steps = StepModel{h100()}.worker();
  Transformer model = preset("gpt-oss-120b");
  ASSERT_TRUE(model.ffn_bias);
  Result<Generation> with = Generation::create(model, {.tensor = 8}, steps.pricer());
  model.ffn_bias = false;
  Result<Generation> without = Generation::create(model, {.tensor = 8}, steps.pricer());
  ASSERT_TRUE(with.ok() && without.ok());
  const Result<double> biased_us = with->iteration_us(16, 1000), plain_us = without->iteration_us(16, 1000);
  ASSERT_TRUE(biased_us.ok() && plain_us.ok());
  EXPECT_GE(*biased_us, *plain_us * 0.999);
  EXPECT_LE(*biased_us, *plain_us * 1.15);
}

TEST(Generation, WaitsForTheLongestUnlessOthersStartMeanwhile) {
  StepWorker steps = StepModel{h100()}.worker();
  Result<Generation> engine = Generation::create(preset("llama-3.1-8b"), {}, steps.pricer());
  ASSERT_TRUE(engine.ok()) << engine.error().message();
  const Lengths lengths = *Lengths::read("mean=1000,max=4096");
  GenerationLoad load{.sequences = 64,
                      .all_sequences = 512,
                      .prompts = 4,
                      .prompt_tokens = 200,
                      .at_once = 1024,
                      .lengths = &lengths};
  const Result<GenerationTime> to_the_end = engine->generate(load);
  load.batches_in_flight = 1;
  const Result<GenerationTime> refilled = engine->generate(load);
  ASSERT_TRUE(to_the_end.ok() && refilled.ok());
  // Layers run: 3,896 iterations nearly, as 512 draws reach the maximum; 800 where the mean decides.
  EXPECT_NEAR(to_the_end->decode_layers + to_the_end->tail_layers, 32 * 3896, 32 * 3896 * 0.1);
  EXPECT_DOUBLE_EQ(refilled->decode_layers, 32 * 800.0);
  EXPECT_GT(to_the_end->tail_s, 0);
  EXPECT_EQ(refilled->tail_s, 0);
  // Twice as many as fit: 64 wait.
  load.batches_in_flight = 0;
  load.sequences = 128;
  load.at_once = 64;
  const Result<GenerationTime> waves = engine->generate(load);
  ASSERT_TRUE(waves.ok());
  EXPECT_NEAR(waves->decode_layers + waves->tail_layers,
              to_the_end->decode_layers + to_the_end->tail_layers + 32 * 800.0, 1);
}

TEST(Generation, RefusesWhatGeneratesNothing) {
  StepWorker steps = StepModel{h100()}.worker();
  EXPECT_THAT(Generation::create(preset("bert-large"), {}, steps.pricer()), FailsWith("expected a decoder"));
  EXPECT_THAT(Generation::create(preset("llama-3.1-8b"), {.tensor = 3}, steps.pricer()), FailsWith("3"));
  EXPECT_THAT(Generation::create(preset("llama-3.1-8b"), {.pipeline = 64}, steps.pricer()),
              FailsWith("at most the 32 layers"));
}

}  // namespace
}  // namespace stepcast::generation_test
