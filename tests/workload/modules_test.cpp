// Parts of layers as modules: which of them a layer has, and that the kinds of attention agree with themselves.

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/layer_module.h"
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

}  // namespace
}  // namespace stepcast::test::modules_test
