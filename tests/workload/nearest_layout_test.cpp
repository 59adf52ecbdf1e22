#include "stepcast/workload/nearest_layout.h"

#include <gtest/gtest.h>

#include "stepcast/describe/presets.h"
#include "stepcast/workload/memory.h"

namespace stepcast {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// 8.03 billion parameters on 64 GPUs. Plain data parallelism keeps 2 + 4 + 4 + 8 = 18 bytes of each, 134.6 GiB; the
// distributed optimizer (4 + 8) / 64 + 2 + 4 = 6.2 bytes, 46.3 GiB.
TEST(NearestLayout, TriesTheCheapestChangeFirst) {
  const Transformer model = find_preset("llama-3-8b").value();
  const Layout layout{.degrees = {.data = 64},
                      .batch = {.global_batch_sequences = 64, .seq_len_tokens = 1024}};
  const auto nearest = nearest_layout_that_fits(model, layout, Bytes{80 * kGiB});
  ASSERT_TRUE(nearest.has_value());
  EXPECT_EQ(nearest->change, "the distributed optimizer");
  EXPECT_EQ(nearest->layout.sharding.kind, Sharding::zero1);
  EXPECT_EQ(nearest->layout.world_size(), 64);
}

// What is named is all that changes: activations of 16 Ki tokens need recomputation on top of the distributed optimizer.
TEST(NearestLayout, NamesEveryChange) {
  const Transformer model = find_preset("llama-3-8b").value();
  const Layout layout{.degrees = {.data = 64},
                      .batch = {.global_batch_sequences = 64, .seq_len_tokens = 16384}};
  const auto nearest = nearest_layout_that_fits(model, layout, Bytes{80 * kGiB});
  ASSERT_TRUE(nearest.has_value());
  EXPECT_EQ(nearest->change, "the distributed optimizer, full recomputation");
  EXPECT_EQ(nearest->layout.sharding.kind, Sharding::zero1);
  EXPECT_EQ(nearest->layout.layer.recompute.kind, Recompute::full);
}

// A quarter of the memory: tensor parallelism splits weights and gradients, on as many GPUs.
TEST(NearestLayout, SpreadsTheModelOnAsManyGpus) {
  const Transformer model = find_preset("llama-3-8b").value();
  const Layout layout{.degrees = {.data = 64},
                      .batch = {.global_batch_sequences = 64, .seq_len_tokens = 1024}};
  const auto nearest = nearest_layout_that_fits(model, layout, Bytes{20 * kGiB});
  ASSERT_TRUE(nearest.has_value());
  EXPECT_GT(nearest->layout.degrees.tensor * nearest->layout.degrees.pipeline, 2);
  EXPECT_EQ(nearest->layout.world_size(), 64);
  const auto memory = memory_forecast(model, nearest->layout, Bytes{20 * kGiB});
  ASSERT_TRUE(memory.ok()) << memory.error().message();
  EXPECT_NE(memory->verdict, MemoryVerdict::does_not_fit);
}

TEST(NearestLayout, SaysNothingWhereNothingHelps) {
  const Transformer model = find_preset("llama-3-8b").value();
  const Layout layout{.batch = {.seq_len_tokens = 1024}};  // one GPU
  EXPECT_FALSE(nearest_layout_that_fits(model, layout, Bytes{8 * kGiB}).has_value());
}

}  // namespace
}  // namespace stepcast
