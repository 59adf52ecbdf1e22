// A kind of attention that one file and one line add: keys of width 96 that pairs of layers share.

#include <algorithm>

#include <gtest/gtest.h>

#include "stepcast/workload/memory.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/step_work.h"

namespace stepcast::test::paired_attention_test {
namespace {

Transformer paired_model() {
  Transformer model;
  model.name = "paired";
  model.n_layers = 4;
  model.hidden_size = 1024;
  model.ffn_hidden_size = 4096;
  model.n_heads = 16;
  model.vocab_size = 32000;
  model.position = PositionEncoding::rotary;
  model.norm = NormKind::rms_norm;
  model.norm_bias = model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  model.attention = attention_named("paired", {{"key_head_dim", 96}, {"key_heads", 4}});
  model.layer_kinds = {LayerKind{}, LayerKind{.shares_keys_values = true}};
  model.kind_of_layer = {0, 1, 0, 1};
  return model;
}

Layout one_gpu() {
  Layout layout;
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 1, .seq_len_tokens = 512};
  return layout;
}

bool has(const WorkList& list, std::string_view name) {
  return std::ranges::any_of(list, [&](const WorkItem& item) { return item.name == name; });
}

TEST(PairedAttention, CountsParametersOfPairs) {
  const Transformer model = paired_model();
  ASSERT_TRUE(check(model).ok()) << check(model).error().message();
  // Queries and output of 16 heads of 96 in every layer; keys and values of 4 heads in every second one.
  constexpr std::int64_t kQueries = 2 * 1024 * 16 * 96, kKeys = 2 * 1024 * 4 * 96;
  EXPECT_EQ(layer_parameter_count(model, 0).attention, kQueries + kKeys);
  EXPECT_EQ(layer_parameter_count(model, 1).attention, kQueries);
  EXPECT_EQ(parameter_count(model).attention, 4 * kQueries + 2 * kKeys);
}

TEST(PairedAttention, WritesKeysOncePerPair) {
  const Transformer model = paired_model();
  const StepWork work = step_work(model, one_gpu()).value();
  ASSERT_EQ(work.layer_kinds.size(), 2U);
  for (const auto& layer : work.layer_kinds) {
    const bool own = layer == work.layer_kinds[0];
    EXPECT_EQ(has(layer->forward, "key_value"), own);
    EXPECT_EQ(has(layer->backward, "key_value_weight_gradient"), own);
    EXPECT_TRUE(has(layer->backward, "query_weight_gradient"));
    EXPECT_TRUE(has(layer->backward, "attention_gradient"));
  }
}

TEST(PairedAttention, RecomputesAndKeeps) {
  const Transformer model = paired_model();
  Layout layout = one_gpu();
  layout.layer.recompute.kind = Recompute::none;
  const double own = layer_activations(model, layout, 0).value();
  // Keys and values of 4 heads of 96, of 512 tokens in 2 bytes, are kept by one layer of a pair.
  EXPECT_EQ(own - layer_activations(model, layout, 1).value(), 2 * 4 * 96 * 512 * 2);
  layout.layer.recompute.kind = Recompute::full;
  const StepWork work = step_work(model, layout).value();
  EXPECT_TRUE(has(work.layer_kinds[0]->backward, "key_value"));
  EXPECT_TRUE(has(work.layer_kinds[1]->backward, "attention"));
}

TEST(PairedAttention, CachesKeysOncePerPair) {
  const Transformer model = paired_model();
  const Transformer own = layer_model(model, 0), shared = layer_model(model, 1);
  EXPECT_EQ(attention_of(own).cache(own, 2).elements, 2 * 2 * 96);
  EXPECT_EQ(attention_of(shared).cache(shared, 2).elements, 0);
}

TEST(PairedAttention, NamesItsSizes) {
  Transformer model = paired_model();
  model.attention = attention_named("paired", {{"key_head_dim", 96}});
  EXPECT_NE(check(model).error().message().find("paired_attention.key_heads"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::test::paired_attention_test
