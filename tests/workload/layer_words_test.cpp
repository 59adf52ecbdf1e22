#include "stepcast/workload/layer_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::layer_words_test {
namespace {

using ::testing::ElementsAre;

TEST(LayerWords, ModulesToRecompute) {
  const auto modules = parse_recomputed_modules("layernorm+moe_act, mla_up_proj");
  ASSERT_TRUE(modules.ok());
  EXPECT_EQ(
      *modules,
      (RecomputedModules{
          .core_attention = false, .norms = true, .latent_projections = true, .expert_activation = true}));
  EXPECT_THAT(parse_recomputed_modules("layer_norm"), test::FailsWith("layernorm"));
}

TEST(LayerWords, ScopesOfCudaGraphs) {
  EXPECT_EQ(*parse_cuda_graphs("none", "attn"), CudaGraphs{});
  EXPECT_EQ(*parse_cuda_graphs("local", ""), graphs_of_layers());
  EXPECT_EQ(*parse_cuda_graphs("local", "per_layer"), graphs_of_layers());
  EXPECT_EQ(*parse_cuda_graphs("", "full_iteration"), CudaGraphs{.full_iteration = true});
  EXPECT_EQ(*parse_cuda_graphs("transformer_engine", "attn+moe_router"),
            (CudaGraphs{.attention = true, .router = true}));
  EXPECT_THAT(parse_cuda_graphs("cudagraphs", ""), test::FailsWith("transformer_engine"));
  EXPECT_THAT(parse_cuda_graphs("", "layers"), test::FailsWith("full_iteration"));
}

TEST(LayerWords, TargetsOfAdapters) {
  EXPECT_EQ(*parse_adapter_targets("linear_qkv linear_fc2"),
            (Adapters{.attention_output = false, .ffn_down = true}));
  EXPECT_THAT(parse_adapter_targets("qkv"), test::FailsWith("linear_qkv"));
}

TEST(LayerWords, FrozenWeights) {
  EXPECT_EQ(*parse_frozen_weights("16bit"), FrozenWeights::as_computed);
  EXPECT_EQ(*parse_frozen_weights("int8"), FrozenWeights::int8);
  EXPECT_EQ(*parse_frozen_weights("nf4-double"), FrozenWeights::nf4_double);
  EXPECT_THAT(parse_frozen_weights("int4"), test::FailsWith("nf4"));
}

// Stages are what stands between bars; only `t` is a layer.
TEST(LayerWords, LayersOfStages) {
  EXPECT_THAT(*parse_pipeline_layout("Et*3|(tt|)*2,m|L"), ElementsAre(3, 2, 2, 0, 0));
  EXPECT_THAT(*parse_pipeline_layout("Et|(tt|)*3mL"), ElementsAre(1, 2, 2, 2, 0));
  EXPECT_THAT(*parse_pipeline_layout("Etttt|tttt|tmL"), ElementsAre(4, 4, 1));
  EXPECT_THAT(*parse_pipeline_layout("((t|)*2t)*2"), ElementsAre(1, 1, 2, 1, 1));
  EXPECT_THAT(*parse_pipeline_layout("7,8,8,7"), ElementsAre(7, 8, 8, 7));
  for (const char* wrong : {"7,,8", "7 8", "99999999999999999999", "E(t", "t)", "tx", "t*", "(t|)*99999999",
                            "((((((((((t))))))))))", "t*-1"}) {
    EXPECT_THAT(parse_pipeline_layout(wrong), test::FailsWith("pipeline layout")) << wrong;
  }
}

}  // namespace
}  // namespace stepcast::layer_words_test
