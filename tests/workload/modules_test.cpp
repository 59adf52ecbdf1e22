// Parts of layers as modules: which of them a layer has, and that the kinds of attention agree with themselves.

#include <cstdint>
#include <set>
#include <string_view>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/workload/layout.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/layer_module.h"
#include "stepcast/workload/step_work.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::test::modules_test {
namespace {

Transformer small_model() {
  Transformer model;
  model.name = "small";
  model.n_layers = 2;
  model.hidden_size = 512;
  model.ffn_hidden_size = 2048;
  model.n_heads = 8;
  model.vocab_size = 1000;
  model.max_position = 1024;
  model.qkv_bias = false;
  return model;
}

int parts_of(const Transformer& model, bool experts) {
  int n = 0;
  for (const LayerPart& part : layer_parts()) n += part.applies(model, experts) ? 1 : 0;
  return n;
}

TEST(LayerParts, ALayerHasAMixerAndAFeed) {
  Transformer model = small_model();
  EXPECT_EQ(parts_of(model, false), 2);  // attention, FFN
  EXPECT_EQ(parts_of(model, true), 2);   // attention, experts
  model.has_ffn = false;
  EXPECT_EQ(parts_of(model, false), 1);
  model.mixer = Mixer::mamba2;
  EXPECT_EQ(parts_of(model, false), 1);
  model.attends_beside = true;
  EXPECT_EQ(parts_of(model, false), 2);  // state, attention
  model.mixer = Mixer::none;
  model.attends_beside = false;
  EXPECT_EQ(parts_of(model, false), 0);
}

TEST(AttentionModules, HaveNamesAndSizesThatFit) {
  std::set<std::string_view> names{""};  // of multi-head attention
  for (const AttentionModule* module : attention_modules()) {
    EXPECT_TRUE(names.insert(module->traits().name).second) << module->traits().name;
    EXPECT_LE(module->traits().sizes.size(), AttentionVariant{}.sizes.size());
  }
}

TEST(AttentionModules, AModelHasTheOneThatItNames) {
  Transformer model = small_model();
  EXPECT_EQ(attention_of(model).traits().name, "");
  EXPECT_EQ(model.qk_head_dim(), 64);
  model.attention =
      attention_named("latent", {{"v_head_dim", 32}, {"kv_lora_rank", 128}, {"qk_nope_head_dim", 48}});
  EXPECT_EQ(attention_of(model).traits().name, "latent");
  EXPECT_EQ(model.qk_head_dim(), 48);
  EXPECT_EQ(model.value_head_dim(), 32);
  EXPECT_EQ(attention_of(model).key_value_heads(model), 8);
  EXPECT_TRUE(check(model).ok());
  // What a token leaves behind: the latent vector, as wide for any number of ranks.
  EXPECT_EQ(attention_of(model).cache(model, 1).elements, 128);
  EXPECT_EQ(attention_of(model).cache(model, 8).elements, 128);
  model.attention = {};
  EXPECT_EQ(attention_of(model).cache(model, 1).elements, 8 * (64 + 64));
  EXPECT_EQ(attention_of(model).cache(model, 8).elements, 64 + 64);
}

TEST(AttentionModules, UnknownNamesAreMultiHeadAttention) { EXPECT_FALSE(attention_named("none", {})); }

// The clamped activation of models with attention sinks sums gradients over the width of its own FFN.
TEST(FeedForward, DenseLayersOfModelsWithExpertsHaveTheirOwnWidth) {
  Transformer model = small_model();
  model.gated_ffn = model.attention_sinks = true;
  model.moe = MixtureOfExperts{.n_experts = 4, .experts_per_token = 2, .expert_ffn_hidden_size = 256};
  model.layer_kinds = {LayerKind{.feed_forward = LayerKind::FeedForward::dense, .attention_sinks = true},
                       LayerKind{.feed_forward = LayerKind::FeedForward::experts, .attention_sinks = true}};
  model.kind_of_layer = {0, 1};
  Layout layout;
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 1, .seq_len_tokens = 128};
  const Result<StepWork> work = step_work(model, layout);
  ASSERT_TRUE(work.ok()) << work.error().message();
  std::vector<std::int64_t> widths;
  for (const auto& layer : work->layer_kinds) {
    for (const WorkItem& item : layer->backward) {
      if (item.name != "score_gradient_of_activation") continue;
      widths.push_back(std::get<ReductionShape>(item.operation()->shape).cols);
    }
  }
  EXPECT_THAT(widths, ::testing::ElementsAre(2048, 256));
}

}  // namespace
}  // namespace stepcast::test::modules_test
