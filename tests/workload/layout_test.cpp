#include "stepcast/workload/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::layout_test {
namespace {

// 4 bits and 4 bytes per 64 weights: 0.5625. Double: a byte per 64 and 4 bytes per 256 of those: 0.516.
TEST(FrozenWeights, BytesOfAWeight) {
  EXPECT_DOUBLE_EQ(bytes_of(FrozenWeights::nf4).stored, 0.5 + 4.0 / 64);
  EXPECT_DOUBLE_EQ(bytes_of(FrozenWeights::nf4_double).stored, 0.5 + 1.0 / 64 + 4.0 / (64 * 256));
  EXPECT_DOUBLE_EQ(bytes_of(FrozenWeights::int8).stored, 1);
  EXPECT_DOUBLE_EQ(bytes_of(FrozenWeights::as_computed).stored, 0);
}

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 30 layers, 32 heads of 96.
Transformer model_3_6b() {
  return {.name = "gpt-3.6b",
          .n_layers = 30,
          .hidden_size = 3072,
          .ffn_hidden_size = 12288,
          .n_heads = 32,
          .vocab_size = 50257,
          .max_position = 2048};
}

Layout layout_64() {
  return {.degrees = {.tensor = 2, .pipeline = 5, .data = 6},
          .batch = {.micro_batch_sequences = 2, .global_batch_sequences = 480, .seq_len_tokens = 2048}};
}

std::string message_of(const Layout& layout, const Transformer& model = model_3_6b(),
                       std::optional<std::int64_t> n_gpus = std::nullopt) {
  const Status status = check(layout, model, n_gpus);
  return status.ok() ? "no error" : status.error().message();
}

TEST(Layout, CountsRanksAndMicroBatches) {
  const Layout layout = layout_64();
  EXPECT_EQ(layout.world_size(), 60);
  EXPECT_EQ(layout.micro_batches(), 40);
  EXPECT_EQ(message_of(layout), "no error");
  EXPECT_EQ(message_of(layout, model_3_6b(), 60), "no error");
}

TEST(Layout, NamesWhatDoesNotDivideAndWhatWould) {
  Layout layout = layout_64();
  layout.degrees.pipeline = 4;
  EXPECT_THAT(message_of(layout), AllOf(HasSubstr("n_layers 30 is not divisible by pipeline_parallel 4"),
                                        HasSubstr("pipeline_parallel 3 or 5")));
  layout = layout_64();
  layout.degrees.tensor = 3;
  EXPECT_THAT(message_of(layout), AllOf(HasSubstr("n_heads 32 is not divisible by tensor_parallel 3"),
                                        HasSubstr("tensor_parallel 2 or 4")));
  layout = layout_64();
  layout.batch.global_batch_sequences = 500;
  EXPECT_THAT(message_of(layout),
              AllOf(HasSubstr("500 is not divisible by micro_batch_sequences 2 x data_parallel 6"),
                    HasSubstr("global_batch_sequences 492 or 504")));
  layout = layout_64();
  EXPECT_THAT(message_of(layout, model_3_6b(), 80),
              AllOf(HasSubstr("= 60 GPUs, not 80"), HasSubstr("data_parallel 8 uses all")));
  EXPECT_THAT(message_of(layout, model_3_6b(), 64), HasSubstr("nearest that work: 60 or 70 GPUs"));
  EXPECT_THAT(message_of(layout, model_3_6b(), 0), AllOf(HasSubstr("GPUs"), HasSubstr("at least 1")));
  layout = layout_64();
  layout.batch.seq_len_tokens = 4096;
  EXPECT_THAT(message_of(layout), HasSubstr("above the 2048 learned positions"));
  layout = layout_64();
  layout.degrees.expert = 2;
  EXPECT_THAT(message_of(layout), HasSubstr("a model without experts"));
  layout = layout_64();
  layout.degrees.data = 0;
  EXPECT_THAT(message_of(layout), AllOf(HasSubstr("data_parallel"), HasSubstr("found 0")));
  layout = layout_64();
  layout.layer.precision.compute = DType::int8;
  EXPECT_THAT(message_of(layout), AllOf(HasSubstr("int8"), HasSubstr("fp32, tf32, fp16, bf16, fp8 or fp4")));
  layout = layout_64();
  layout.rank_order = "tp-tp-pp";
  EXPECT_THAT(message_of(layout), HasSubstr("rank_order"));
}

TEST(Layout, ChecksInterleaving) {
  Layout layout = layout_64();
  layout.degrees.virtual_stages = 3;
  EXPECT_THAT(message_of(layout), HasSubstr("with the schedule 1f1b"));
  layout.pipeline.schedule = PipelineSchedule::interleaved;
  EXPECT_EQ(message_of(layout), "no error");
  layout.degrees.virtual_stages = 4;
  EXPECT_THAT(message_of(layout),
              AllOf(HasSubstr("6 layers per pipeline rank"), HasSubstr("virtual_stages 3 or 6")));
  layout.degrees.virtual_stages = 2;
  layout.batch.global_batch_sequences = 12 * 7;
  EXPECT_THAT(message_of(layout), AllOf(HasSubstr("7 micro-batches are not divisible by pipeline_parallel 5"),
                                        HasSubstr("global_batch_sequences 60 or 120")));
  layout = layout_64();
  layout.degrees.pipeline = 1;
  layout.pipeline.schedule = PipelineSchedule::interleaved;
  layout.degrees.virtual_stages = 2;
  EXPECT_THAT(message_of(layout), HasSubstr("without a pipeline"));
}

TEST(Layout, ChunksFollowTheModel) {
  Layout layout{.degrees = {.pipeline = 2, .virtual_stages = 3},
                .pipeline = {.schedule = PipelineSchedule::interleaved}};
  const auto even = stage_chunks(model_3_6b(), layout);
  ASSERT_EQ(even.size(), 6u);
  EXPECT_EQ(even[0], (StageChunk{0, 0, 0, 5}));
  EXPECT_EQ(even[1], (StageChunk{1, 0, 5, 5}));
  EXPECT_EQ(even[2], (StageChunk{0, 1, 10, 5}));
  EXPECT_EQ(even[5], (StageChunk{1, 2, 25, 5}));

  layout = {.degrees = {.pipeline = 4},
            .batch = {.seq_len_tokens = 2048},
            .pipeline = {.layers_per_stage = {7, 8, 8, 7}}};
  EXPECT_EQ(message_of(layout), "no error");
  EXPECT_THAT(stage_chunks(model_3_6b(), layout),
              ElementsAre(StageChunk{0, 0, 0, 7}, StageChunk{1, 0, 7, 8}, StageChunk{2, 0, 15, 8},
                          StageChunk{3, 0, 23, 7}));
  layout.pipeline.layers_per_stage = {7, 8, 8, 8};
  EXPECT_THAT(message_of(layout), AllOf(HasSubstr("31 layers in total"), HasSubstr("n_layers 30")));
  layout.pipeline.layers_per_stage = {15, 15};
  EXPECT_THAT(message_of(layout), AllOf(HasSubstr("2 entries"), HasSubstr("= 4")));
  layout.pipeline.layers_per_stage = {10, 10, 10, 0};  // the loss alone
  EXPECT_EQ(message_of(layout), "no error");
  layout.pipeline.layers_per_stage = {10, 0, 10, 10};
  EXPECT_THAT(message_of(layout), HasSubstr("at least one layer"));
}

TEST(Layout, SpreadsLayersWithEmbeddingAndOutput) {
  EXPECT_THAT(layers_counting_embedding_and_output(126, 8), ElementsAre(15, 16, 16, 16, 16, 16, 16, 15));
  EXPECT_THAT(layers_counting_embedding_and_output(32, 4), ElementsAre(8, 9, 8, 7));
  EXPECT_THAT(layers_counting_embedding_and_output(32, 1), ElementsAre(32));
  const std::vector<std::int64_t> output_alone = layers_counting_embedding_and_output(61, 32);
  EXPECT_EQ(output_alone.front(), 1);
  EXPECT_EQ(output_alone[1], 2);
  EXPECT_EQ(output_alone.back(), 0);
  EXPECT_THAT(layers_counting_embedding_and_output(4, 6), ElementsAre(0, 1, 1, 1, 1, 0));
  EXPECT_TRUE(layers_counting_embedding_and_output(4, 5).empty());
  EXPECT_TRUE(layers_counting_embedding_and_output(4, 7).empty());
}

TEST(Layout, ChecksContextParallelism) {
  Layout layout{.degrees = {.context = 8}, .batch = {.seq_len_tokens = 2048}};
  EXPECT_EQ(message_of(layout), "no error");
  layout.batch.seq_len_tokens = 2040;
  EXPECT_THAT(message_of(layout), AllOf(HasSubstr("2 x context_parallel 8"), HasSubstr("2032 or 2048")));
  layout.degrees.context = 5;
  layout.layer.context_parallel_kind = ContextParallelKind::all_to_all;
  EXPECT_THAT(message_of(layout), AllOf(HasSubstr("n_heads / tensor_parallel = 32"), HasSubstr("4 or 8")));
  layout = {.degrees = {.tensor = 8, .context = 2},
            .batch = {.seq_len_tokens = 24},
            .layer = {.sequence_parallel = true}};
  EXPECT_THAT(message_of(layout), HasSubstr("seq_len_tokens / context_parallel 12 is not divisible"));
}

TEST(Layout, ChecksExpertParallelism) {
  Transformer model = model_3_6b();
  model.moe = MixtureOfExperts{.n_experts = 64, .experts_per_token = 6, .expert_ffn_hidden_size = 1408};
  Layout layout{.degrees = {.tensor = 4, .data = 16, .expert = 8},
                .batch = {.global_batch_sequences = 16, .seq_len_tokens = 2048}};
  EXPECT_EQ(message_of(layout, model), "no error");
  EXPECT_EQ(layout.expert_data_parallel(), 2);
  layout.degrees.expert_tensor = 1;
  EXPECT_EQ(layout.expert_data_parallel(), 8);
  layout.degrees.expert = 48;
  EXPECT_THAT(message_of(layout, model),
              AllOf(HasSubstr("n_experts 64"), HasSubstr("expert_parallel 32 or 64")));
  layout.degrees.expert = 32;
  layout.degrees.expert_tensor = 4;
  EXPECT_THAT(message_of(layout, model),
              AllOf(HasSubstr("the 64 ranks of a pipeline stage"), HasSubstr("16")));
  layout.degrees.expert = 8;
  layout.layer.expert_imbalance = 0.5;
  EXPECT_THAT(message_of(layout, model), HasSubstr("expert_imbalance"));
}

TEST(Layout, ChecksWhatRunsBesideTheExchange) {
  Transformer model = model_3_6b();
  model.moe = MixtureOfExperts{.n_experts = 64, .experts_per_token = 6, .expert_ffn_hidden_size = 1408};
  Layout layout{.degrees = {.pipeline = 2, .data = 8, .expert = 8},
                .batch = {.global_batch_sequences = 16, .seq_len_tokens = 2048}};
  layout.layer.overlap.delayed_weight_gradient = true;
  EXPECT_THAT(message_of(layout, model), AllOf(HasSubstr("weight gradients are delayed"),
                                               HasSubstr("add --overlap-moe-expert-parallel-comm")));
  layout.layer.overlap.expert = true;
  EXPECT_THAT(message_of(layout, model), HasSubstr("a pipeline without virtual stages"));
  layout.degrees.virtual_stages = 3;
  layout.pipeline.schedule = PipelineSchedule::interleaved;
  EXPECT_EQ(message_of(layout, model), "no error");
  layout.degrees.virtual_stages = 1;
  layout.pipeline.schedule = PipelineSchedule::dual_pipe;
  EXPECT_EQ(message_of(layout, model), "no error");
}

TEST(Layout, ChecksShardGroups) {
  Layout layout{.degrees = {.data = 16}, .batch = {.global_batch_sequences = 16, .seq_len_tokens = 2048}};
  EXPECT_EQ(layout.shard_group(), 1);
  layout.sharding.kind = Sharding::zero3;
  EXPECT_EQ(layout.shard_group(), 16);
  layout.sharding.shard_group_size = 8;
  EXPECT_EQ(layout.shard_group(), 8);
  EXPECT_EQ(message_of(layout), "no error");
  layout.sharding.shard_group_size = 6;
  EXPECT_THAT(message_of(layout), HasSubstr("shard_group_size 4 or 8"));
  layout.sharding.kind = Sharding::none;
  EXPECT_THAT(message_of(layout), HasSubstr("without sharding"));
}

// Data-parallel ranks, stages and schedule leave the layers as they are; degrees that split a layer, the
// micro-batch and the choices of a layer do not.
TEST(Layout, LayerKeyHoldsWhatALayerDependsOn) {
  const Layout base{
      .degrees = {.tensor = 4, .data = 2},
      .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 16, .seq_len_tokens = 2048}};
  Layout same = base;
  same.degrees.pipeline = 4;
  same.degrees.data = 8;
  same.pipeline.schedule = PipelineSchedule::gpipe;
  same.sharding.kind = Sharding::zero1;
  EXPECT_EQ(layer_key(same), layer_key(base));
  Layout experts = base;
  experts.degrees.expert_tensor = 4;  // as tensor is: said twice
  EXPECT_EQ(layer_key(experts), layer_key(base));

  Layout split = base, batch = base, recomputed = base, once = base;
  split.degrees.context = 2;
  batch.batch.micro_batch_sequences = 2;
  recomputed.layer.recompute.kind = Recompute::full;
  once.batch.global_batch_sequences = 2;  // one micro-batch: nothing to add up
  for (const Layout& other : {split, batch, recomputed, once}) EXPECT_NE(layer_key(other), layer_key(base));
}

TEST(Layout, PadsTheVocabulary) {
  Layout layout{.degrees = {.tensor = 8}, .software = {.framework = Framework::megatron}};
  EXPECT_EQ(padded_vocab_size(model_3_6b(), layout), 51200);
  layout.software.framework = Framework::fsdp;
  EXPECT_EQ(padded_vocab_size(model_3_6b(), layout), 50264);
  layout.degrees.tensor = 1;
  EXPECT_EQ(padded_vocab_size(model_3_6b(), layout), 50257);
  layout.software.vocab_divisible_by = 64;
  EXPECT_EQ(padded_vocab_size(model_3_6b(), layout), 50304);
}

TEST(Layout, KnowsWhichLayersAreRecomputed) {
  Layout layout;
  EXPECT_FALSE(is_recomputed(layout, 0));
  layout.layer.recompute.kind = Recompute::full;
  EXPECT_TRUE(is_recomputed(layout, 0));
  layout.layer.recompute.every_n_layers = 2;
  EXPECT_FALSE(is_recomputed(layout, 0));
  EXPECT_TRUE(is_recomputed(layout, 1));
  layout.layer.recompute.every_n_layers = 1;
  layout.layer.recompute.layers_per_stage = 2;
  EXPECT_TRUE(is_recomputed(layout, 1));
  EXPECT_FALSE(is_recomputed(layout, 2));
}

TEST(Layout, PrecisionFollowsTheComputation) {
  EXPECT_EQ(precision_for(DType::fp16).reduction, DType::fp16);
  EXPECT_TRUE(precision_for(DType::fp16).loss_scaling);
  EXPECT_EQ(precision_for(DType::bf16).reduction, DType::fp32);
  EXPECT_EQ(precision_for(DType::fp8).other, DType::bf16);
  EXPECT_FALSE(precision_for(DType::tf32).master_weights);
}

}  // namespace
}  // namespace stepcast::layout_test
