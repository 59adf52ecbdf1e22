#include "stepcast/workload/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::transformer_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Transformer gpt2() {
  return {.name = "gpt2",
          .n_layers = 12,
          .hidden_size = 768,
          .ffn_hidden_size = 3072,
          .n_heads = 12,
          .vocab_size = 50257,
          .max_position = 1024};
}

Transformer mixtral() {
  Transformer model{.name = "mixtral",
                    .n_layers = 32,
                    .hidden_size = 4096,
                    .ffn_hidden_size = 14336,
                    .n_heads = 32,
                    .n_kv_heads = 8,
                    .vocab_size = 32000,
                    .max_position = 32768,
                    .norm = NormKind::rms_norm,
                    .norm_bias = false,
                    .activation = Activation::silu,
                    .gated_ffn = true,
                    .position = PositionEncoding::rotary,
                    .tied_embeddings = false,
                    .qkv_bias = false,
                    .attention_output_bias = false,
                    .ffn_bias = false};
  model.moe = MixtureOfExperts{.n_experts = 8, .experts_per_token = 2, .expert_ffn_hidden_size = 14336};
  return model;
}

std::string message_of(const Transformer& model) {
  const Status status = check(model);
  return status.ok() ? "no error" : status.error().message();
}

TEST(Transformer, CountsTheParametersOfGpt2) {
  const ParameterCount n = parameter_count(gpt2());
  EXPECT_EQ(n.word_embedding, 50257 * 768);
  EXPECT_EQ(n.position_embedding, 1024 * 768);
  EXPECT_EQ(n.attention, 12 * (4 * 768 * 768 + 4 * 768));
  EXPECT_EQ(n.ffn, 12 * (8 * 768 * 768 + 5 * 768));
  EXPECT_EQ(n.norms, 25 * 2 * 768);
  EXPECT_EQ(n.head, 0);
  EXPECT_EQ(n.total(), 124'439'808);
}

// Each head: two norms of 128. Over all heads: one of 32 x 128 and one of 8 x 128, in each of 32 layers.
TEST(Transformer, CountsNormsOfQueriesAndKeys) {
  Transformer model = mixtral();
  const std::int64_t without = parameter_count(model).attention;
  model.qk_norm = true;
  EXPECT_EQ(parameter_count(model).attention - without, 32 * 2 * 128);
  model.qk_norm_spans_heads = true;
  EXPECT_EQ(parameter_count(model).attention - without, 32 * (32 + 8) * 128);
}

TEST(Transformer, PartsAddUpToTheWhole) {
  for (const Transformer& model : {gpt2(), mixtral()}) {
    ParameterCount sum = embedding_parameter_count(model);
    for (std::int64_t layer = 0; layer < model.n_layers; ++layer) sum += layer_parameter_count(model, layer);
    sum += head_parameter_count(model);
    EXPECT_EQ(sum, parameter_count(model)) << model.name;
  }
}

TEST(Transformer, PartsAddUpWhereOnlySomeLayersHaveExperts) {
  Transformer model = mixtral();
  for (const std::int64_t first_dense : {0, 1, 3, 32}) {
    for (const std::int64_t every : {1, 2, 3, 5}) {
      model.moe->first_dense_layers = first_dense;
      model.moe->moe_every_n_layers = every;
      ParameterCount sum = embedding_parameter_count(model);
      std::int64_t n_moe = 0;
      for (std::int64_t layer = 0; layer < model.n_layers; ++layer) {
        sum += layer_parameter_count(model, layer);
        n_moe += model.has_experts(layer) ? 1 : 0;
      }
      sum += head_parameter_count(model);
      EXPECT_EQ(sum, parameter_count(model)) << first_dense << ' ' << every;
      EXPECT_EQ(n_moe, model.n_moe_layers()) << first_dense << ' ' << every;
    }
  }
}

TEST(Transformer, ATokenMeetsAFewExperts) {
  const Transformer model = mixtral();
  EXPECT_EQ(parameter_count(model).total(), 46'702'792'704);
  // 12.9 B: six of eight experts less in each of 32 layers.
  EXPECT_EQ(active_parameter_count(model), 46'702'792'704 - 32LL * 6 * 3 * 4096 * 14336);
  EXPECT_EQ(active_parameter_count(gpt2()), parameter_count(gpt2()).total());
}

TEST(Transformer, WindowsFollowTheirPattern) {
  Transformer model = gpt2();
  EXPECT_EQ(model.window_tokens(0), 0);
  model.sliding_window_tokens = 128;
  EXPECT_EQ(model.window_tokens(11), 128);
  model.global_attention_every_n_layers = 6;
  EXPECT_EQ(model.window_tokens(4), 128);
  EXPECT_EQ(model.window_tokens(5), 0);
  EXPECT_EQ(model.window_tokens(6), 128);
}

TEST(Transformer, RefusesWhatCannotBe) {
  EXPECT_EQ(message_of(gpt2()), "no error");
  EXPECT_EQ(message_of(mixtral()), "no error");
  Transformer model = gpt2();
  model.n_heads = 13;
  EXPECT_THAT(message_of(model), AllOf(HasSubstr("hidden_size 768 is not divisible by n_heads 13"),
                                       HasSubstr("n_heads 12 or 16")));
  model = mixtral();
  model.n_kv_heads = 5;
  EXPECT_THAT(message_of(model), HasSubstr("nearest that work: n_kv_heads 4 or 8"));
  model = gpt2();
  model.n_layers = 0;
  EXPECT_THAT(message_of(model), AllOf(HasSubstr("n_layers"), HasSubstr("found 0")));
  model = gpt2();
  model.max_position = 0;
  EXPECT_THAT(message_of(model), HasSubstr("max_position"));
  model = gpt2();
  model.hidden_dropout = 1.5;
  EXPECT_THAT(message_of(model), HasSubstr("hidden_dropout"));
  model = mixtral();
  model.moe->experts_per_token = 9;
  EXPECT_THAT(message_of(model), AllOf(HasSubstr("moe.experts_per_token"), HasSubstr("from 1 to 8")));
  model = mixtral();
  model.attention = attention_named("latent", {{"kv_lora_rank", 512}, {"qk_nope_head_dim", 128}});
  EXPECT_THAT(message_of(model), HasSubstr("latent_attention.v_head_dim"));
}

TEST(Transformer, RefusesSizesThatWouldOverflow) {
  Transformer model = mixtral();
  model.hidden_size = 100'000'000;
  model.ffn_hidden_size = 100'000'000;
  model.n_layers = 10'000;
  EXPECT_THAT(message_of(model), HasSubstr("at most 1e16"));
  model = mixtral();
  model.moe->n_experts = 1'000'000;
  model.moe->expert_ffn_hidden_size = 100'000'000;
  EXPECT_THAT(message_of(model), HasSubstr("at most 1e16"));
  model = mixtral();
  model.n_layers = 1'000'000;
  EXPECT_THAT(message_of(model),
              HasSubstr("n_layers: found 1000000, expected a whole number from 1 to 10000"));
}

}  // namespace
}  // namespace stepcast::transformer_test
