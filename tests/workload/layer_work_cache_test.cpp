#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/workload/step_work.h"

namespace stepcast::layer_work_cache_test {
namespace {

Transformer gpt() {
  return {.name = "gpt",
          .n_layers = 16,
          .hidden_size = 1024,
          .ffn_hidden_size = 4096,
          .n_heads = 16,
          .vocab_size = 50257,
          .max_position = 512};
}

Layout layout_of(std::int64_t tensor, std::int64_t pipeline) {
  return {.degrees = {.tensor = tensor, .pipeline = pipeline, .data = 2},
          .batch = {.micro_batch_sequences = 2, .global_batch_sequences = 32, .seq_len_tokens = 512}};
}

StepWork work_of(const Transformer& model, const Layout& layout, LayerWorkCache& cache) {
  StepWork work;
  const Status status = step_work(model, layout, cache, work);
  EXPECT_TRUE(status.ok()) << status.error().message();
  return work;
}

TEST(LayerWorkCache, WritesALayerOnceForAllStagesSchedulesAndShardings) {
  LayerWorkCache cache;
  const StepWork base = work_of(gpt(), layout_of(2, 2), cache);
  EXPECT_EQ(cache.size(), 3U);  // a layer, embedding and head

  Layout deeper = layout_of(2, 4), interleaved = layout_of(2, 4), sharded = layout_of(2, 2);
  interleaved.degrees.virtual_stages = 2;
  interleaved.pipeline.schedule = PipelineSchedule::interleaved;
  sharded.degrees.data = 4;
  sharded.sharding.kind = Sharding::zero2;
  for (const Layout& layout : {deeper, interleaved, sharded}) {
    const StepWork work = work_of(gpt(), layout, cache);
    ASSERT_EQ(work.layer_kinds.size(), 1U);
    EXPECT_EQ(work.layer_kinds[0], base.layer_kinds[0]);
    EXPECT_EQ(work.embedding, base.embedding);
    EXPECT_EQ(work.head, base.head);
  }
  EXPECT_EQ(cache.size(), 3U);
}

TEST(LayerWorkCache, WritesOtherLayersAnew) {
  LayerWorkCache cache;
  const StepWork base = work_of(gpt(), layout_of(2, 2), cache);
  std::vector<std::pair<Transformer, Layout>> others(6, {gpt(), layout_of(2, 2)});
  others[0].second.degrees.tensor = 4;
  others[1].second.batch.micro_batch_sequences = 4;
  others[2].second.layer.fused.bias_activation = false;
  others[3].second.batch.global_batch_sequences = 4;  // one micro-batch: no gradients are added up
  others[4].first.ffn_hidden_size = 2048;
  others[5].second.software.vocab_divisible_by = 64;
  for (std::size_t i = 0; i < others.size(); ++i) {
    SCOPED_TRACE(i);
    const StepWork work = work_of(others[i].first, others[i].second, cache);
    EXPECT_NE(work.layer_kinds[0], base.layer_kinds[0]);
    EXPECT_EQ(cache.size(), 3 * (i + 2));
    // As without the others in the cache.
    const Result<StepWork> alone = step_work(others[i].first, others[i].second);
    ASSERT_TRUE(alone.ok()) << alone.error().message();
    EXPECT_EQ(*work.layer_kinds[0], *alone->layer_kinds[0]);
    EXPECT_EQ(*work.embedding, *alone->embedding);
    EXPECT_EQ(*work.head, *alone->head);
  }
}

// Recomputing the last of every two layers makes two kinds; ZB-H1 makes a third of those that keep all.
TEST(LayerWorkCache, TellsKindsOfLayersOfOneKeyApart) {
  LayerWorkCache cache;
  Layout every_other = layout_of(2, 2);
  every_other.layer.recompute = {.kind = Recompute::full, .every_n_layers = 2};
  const StepWork work = work_of(gpt(), every_other, cache);
  ASSERT_EQ(work.layer_kinds.size(), 2U);
  EXPECT_FALSE(work.layer_kinds[0]->recomputed);
  EXPECT_TRUE(work.layer_kinds[1]->recomputed);
  EXPECT_EQ(cache.size(), 4U);

  every_other.pipeline.schedule = PipelineSchedule::zero_bubble_h1;
  const StepWork held = work_of(gpt(), every_other, cache);
  EXPECT_EQ(cache.size(), 6U);
  EXPECT_EQ(held.embedding, work.embedding);
  for (std::size_t kind = 0; kind < 2; ++kind) {
    const LayerWork &whole = *work.layer_kinds[kind], &split = *held.layer_kinds[kind];
    EXPECT_TRUE(whole.held_back.empty());
    WorkList of_weights, others;
    for (const WorkItem& item : whole.backward) (item.weight_gradient ? of_weights : others).push_back(item);
    EXPECT_FALSE(of_weights.empty());
    EXPECT_EQ(split.held_back, of_weights);
    EXPECT_EQ(split.backward, others);
    EXPECT_EQ(split.forward, whole.forward);
  }
}

TEST(LayerWorkCache, ListsOutliveIt) {
  StepWork work;
  {
    LayerWorkCache cache;
    work = work_of(gpt(), layout_of(2, 2), cache);
  }
  EXPECT_EQ(work.layer_kinds[0]->forward.front().name, "attention_norm");
}

TEST(LayerWorkCache, KeepsNothingOfLayoutsThatCannotBe) {
  LayerWorkCache cache;
  StepWork work;
  const Status status = step_work(gpt(), layout_of(2, 3), cache, work);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("n_layers 16 is not divisible"), std::string::npos)
      << status.error().message();
  EXPECT_EQ(cache.size(), 0U);
}

}  // namespace
}  // namespace stepcast::layer_work_cache_test
