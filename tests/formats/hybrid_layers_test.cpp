#include "stepcast/formats/detail/hybrid_layers.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/resolve_job.h"

namespace stepcast::hybrid_layers_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ResolvedJob> resolved(const std::string& more) {
  Job job;
  job.command_line =
      "--hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
      "--micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --bf16 " +
      more;
  return resolve(job);
}

ResolvedJob job_of(const std::string& more) {
  auto job = resolved(more);
  EXPECT_TRUE(job.ok()) << job.error().message();
  return job.ok() ? *std::move(job) : ResolvedJob{};
}

std::string refusal(const std::string& more) {
  const auto job = resolved(more);
  return job.ok() ? "no error" : job.error().message();
}

std::int64_t layers_of(const Transformer& model, Mixer mixer, LayerKind::FeedForward feed) {
  return std::count_if(model.kind_of_layer.begin(), model.kind_of_layer.end(), [&](std::uint8_t k) {
    return model.layer_kinds[k].mixer == mixer && model.layer_kinds[k].feed_forward == feed;
  });
}

using Feed = LayerKind::FeedForward;

TEST(HybridLayers, AreLettersOfAPattern) {
  const ResolvedJob job = job_of(
      "--hybrid-layer-pattern 'M-M*|ME-M/*E' --num-experts 8 --moe-ffn-hidden-size 512 --mamba-num-heads 64 "
      "--mamba-head-dim 32 --mamba-num-groups 4 --mamba-state-dim 96 --pipeline-model-parallel-size 2 "
      "--moe-latent-size 256");
  EXPECT_EQ(job.model.n_layers, 8);
  EXPECT_EQ(layers_of(job.model, Mixer::mamba2, Feed::none), 4);
  EXPECT_EQ(layers_of(job.model, Mixer::attention, Feed::none), 1);
  EXPECT_EQ(layers_of(job.model, Mixer::none, Feed::dense), 2);
  EXPECT_EQ(layers_of(job.model, Mixer::none, Feed::experts), 1);
  EXPECT_EQ(job.model.n_multi_token_prediction_layers, 1);
  EXPECT_EQ(job.model.state_mixer->n_heads, 64);
  EXPECT_EQ(job.model.state_mixer->head_dim, 32);
  EXPECT_EQ(job.model.state_mixer->n_key_heads, 4);
  EXPECT_EQ(job.model.state_mixer->key_head_dim, 96);
  EXPECT_EQ(job.model.moe->latent_size, 256);
  EXPECT_THAT(job.layout.pipeline.layers_per_stage, ElementsAre(4, 4));
}

// 48 layers, of which 0.08 attend and half feed forward.
TEST(HybridLayers, MayBeShares) {
  const Transformer model =
      job_of("--num-layers 48 --is-hybrid-model --hybrid-attention-ratio 0.08 --hybrid-mlp-ratio 0.5").model;
  EXPECT_EQ(model.n_layers, 48);
  EXPECT_EQ(layers_of(model, Mixer::attention, Feed::none), 3);
  EXPECT_NEAR(static_cast<double>(layers_of(model, Mixer::none, Feed::dense)), 24, 1);
  EXPECT_EQ(model.state_mixer->n_heads, 32);  // 2 x 1024 / 64
}

TEST(HybridLayers, RefuseWhatTheyCannotBe) {
  EXPECT_THAT(refusal("--hybrid-layer-pattern MGM"), HasSubstr("layers of the kind `G` are not modelled"));
  EXPECT_THAT(refusal("--hybrid-layer-pattern M- --num-layers 3"),
              HasSubstr("the 3 layers of --num-layers, not 2"));
  EXPECT_THAT(refusal("--hybrid-layer-pattern '|'"), HasSubstr("a letter for every layer"));
  EXPECT_THAT(refusal("--num-layers 4 --is-hybrid-model --hybrid-mlp-ratio 2"),
              HasSubstr("at most 1 together"));
  EXPECT_THAT(
      refusal("--hybrid-layer-pattern M-M --pipeline-model-parallel-size 2 --hybrid-layer-pattern 'M|-|M'"),
      HasSubstr("a multiple of 2 stages, not 3"));
}

TEST(HybridLayers, LinearAttentionOfMegatron) {
  const std::string gdn =
      "--num-layers 8 --experimental-attention-variant gated_delta_net --linear-num-value-heads 16 --swiglu "
      "--linear-num-key-heads 8 --linear-key-head-dim 64 --linear-value-head-dim 96 --linear-conv-kernel-dim "
      "3 "
      "--num-experts 8 --moe-ffn-hidden-size 512 --moe-layer-freq '[0]*1+[1]*7' ";
  const Transformer model = job_of(gdn + "--linear-attention-freq 4").model;
  EXPECT_EQ(layers_of(model, Mixer::gated_delta, Feed::dense), 1);
  EXPECT_EQ(layers_of(model, Mixer::gated_delta, Feed::experts), 5);
  EXPECT_EQ(layers_of(model, Mixer::attention, Feed::experts), 2);
  EXPECT_EQ(model.layer_kinds[model.kind(3)].mixer, Mixer::attention);
  EXPECT_EQ(
      model.state_mixer,
      (StateMixer{.n_heads = 16, .head_dim = 96, .n_key_heads = 8, .key_head_dim = 64, .conv_kernel = 3}));
  // Sizes of one kind of layers with a state are not those of the other: logs print all of them.
  EXPECT_EQ(job_of("--hybrid-layer-pattern M-M* --mamba-num-groups 4").model,
            job_of("--hybrid-layer-pattern M-M* --mamba-num-groups 4 --linear-num-key-heads 16").model);
  EXPECT_EQ(job_of(gdn + "--linear-attention-freq '([1]*3+[0]*1+[1]*3+[0]*1)'").model.kind_of_layer,
            model.kind_of_layer);
  EXPECT_EQ(layers_of(job_of(gdn).model, Mixer::attention, Feed::experts), 0);
  EXPECT_THAT(refusal(gdn + "--linear-attention-freq 0"), HasSubstr("1 or more, or a list"));
  EXPECT_THAT(refusal(gdn + "--linear-attention-freq [1]*3"),
              HasSubstr("an entry for each of 8 layers, not 3"));
}

TEST(HybridLayers, IndexerOfMegatron) {
  const std::string dsa =
      "--num-layers 6 --experimental-attention-variant dsa --multi-latent-attention --q-lora-rank 256 "
      "--kv-lora-rank 128 ";
  const std::string sizes = "--dsa-indexer-n-heads 8 --dsa-indexer-head-dim 64 --dsa-indexer-topk 128 ";
  const Transformer model = job_of(dsa + sizes).model;
  EXPECT_EQ(model.sparse_indexer, (SparseIndexer{8, 64, 128}));
  EXPECT_THAT(
      job_of(dsa + sizes + "--dsa-indexer-topk-freq 2 --dsa-indexer-skip-topk-offset 2").model.kind_of_layer,
      ElementsAre(0, 0, 1, 0, 1, 0));
  EXPECT_THAT(refusal(dsa), HasSubstr("--dsa-indexer-n-heads"));
}

}  // namespace
}  // namespace stepcast::hybrid_layers_test
