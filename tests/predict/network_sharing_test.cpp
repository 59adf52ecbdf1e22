#include "stepcast/predict/network_sharing.h"

#include <cmath>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/step_model.h"

#include "tests/predict/random_training.h"

namespace stepcast::network_sharing_test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

Platform with_tiers(std::vector<NetworkTier> tiers) {
  Platform platform = value_of(load_platform("dgx-h100"));
  platform.node.network->tiers = std::move(tiers);
  return platform;
}

Layout layout_of(std::int64_t tensor, std::int64_t pipeline, std::int64_t data, std::int64_t expert = 1) {
  Layout layout;
  layout.degrees.tensor = tensor;
  layout.degrees.pipeline = pipeline;
  layout.degrees.data = data;
  layout.degrees.expert = expert;
  return layout;
}

NetworkSharing sharing_of(const Platform& platform, const Layout& layout, double background = 0,
                          const std::optional<PoolLinks>& pools = {}) {
  const Placement placed = value_of(place(layout, platform.node.gpus_per_node));
  return value_of(NetworkSharing::of(*platform.node.network, layout, placed, background, pools));
}

constexpr auto kData = static_cast<std::size_t>(GroupKind::data);
constexpr auto kExpert = static_cast<std::size_t>(GroupKind::expert);

// 64 nodes, leaves of 16 with a quarter of their bandwidth upwards: eight rings of data-parallel ranks leave every leaf
// once, eight of its 32 adapters' worth.
TEST(NetworkSharing, RingsOfNeighboursLeaveALeafOnce) {
  const NetworkSharing sharing = sharing_of(with_tiers({{16, 4}}), layout_of(8, 1, 64));
  EXPECT_DOUBLE_EQ(sharing.alone()[kData], 1);
  ASSERT_EQ(sharing.tier_loads().size(), 1U);
  EXPECT_DOUBLE_EQ(sharing.tier_loads()[0], 0.25);
}

// Ranks of a data-parallel group that lie 16 nodes apart: every one of their streams leaves its leaf.
TEST(NetworkSharing, ScatteredRingsWaitForTheUplinks) {
  Layout layout = layout_of(8, 16, 4);
  layout.rank_order = "tp-cp-ep-pp-dp";
  const NetworkSharing sharing = sharing_of(with_tiers({{16, 4}}), layout);
  EXPECT_DOUBLE_EQ(sharing.alone()[kData], 4);
  EXPECT_DOUBLE_EQ(sharing.tier_loads()[0], 4);
}

// 256 ranks exchange tokens over 32 nodes, two leaves of 16 nodes: of what leaves a node, 128 of 248 parts leave the leaf.
TEST(NetworkSharing, ExchangesOfTokensLeaveWithWhatGoesElsewhere) {
  const NetworkSharing sharing = sharing_of(with_tiers({{16, 4}}), layout_of(1, 1, 256, 256));
  EXPECT_NEAR(sharing.alone()[kExpert], 4.0 * 128 / 248, 1e-12);
}

TEST(NetworkSharing, AnotherJobOnAllUplinksHalvesThem) {
  Layout layout = layout_of(8, 16, 4);
  layout.rank_order = "tp-cp-ep-pp-dp";
  EXPECT_DOUBLE_EQ(sharing_of(with_tiers({{16, 1}}), layout, 1).alone()[kData], 2);
  EXPECT_DOUBLE_EQ(sharing_of(with_tiers({{16, 1}}), layout, 0.25).alone()[kData], 1.25);
  EXPECT_DOUBLE_EQ(sharing_of(with_tiers({{16, 1}}), layout).alone()[kData], 1);
}

TEST(NetworkSharing, ZonesPassWhatTheyCanBetweenThem) {
  // Eight rings of replicas cross, an adapter of 400 Gb/s each; 800 Gb/s lead to the other zone.
  const PoolLinks links{true, 1, BytesPerSecond{100e9}};
  EXPECT_NEAR(sharing_of(with_tiers({}), layout_of(8, 1, 8), 0, links).alone()[kData], 4, 1e-12);
  const PoolLinks slower_nodes{true, 2.5, {}};
  EXPECT_DOUBLE_EQ(sharing_of(with_tiers({}), layout_of(8, 1, 8), 0, slower_nodes).alone()[kData], 2.5);
}

// Alone on a fabric that passes everything, steps are those of a platform that states none, and the engine finds what the
// recurrences do on one that does not.
TEST(NetworkSharing, FullFabricsChangeNothingAndSlowOnesDoAlike) {
  const Platform flat = with_tiers({}), full = with_tiers({{2, 1}, {16, 1}}),
                 slow = with_tiers({{1, 2}, {4, 8}});
  StepModel on_flat{flat}, on_full{full}, on_slow{slow};
  std::mt19937_64 random{5};
  int slowed = 0;
  for (int i = 0; i < 150; ++i) {
    const test::RandomTraining t = test::random_training(random);
    SCOPED_TRACE(describe(t));
    const Result<StepPrediction> before = on_flat.predict(t.model, t.layout);
    ASSERT_TRUE(before.ok()) << before.error().message();
    const double us = before->step.time.value();
    const Result<PricedStep> full_step = on_full.price(t.model, t.layout);
    ASSERT_TRUE(full_step.ok());
    ASSERT_NEAR(on_full.predict(*full_step, t.layout).step.time.value() / us, 1, 0.005);
    const Result<PredictedStep> slow_step = predict_step(t.model, t.layout, on_slow);
    ASSERT_TRUE(slow_step.ok()) << slow_step.error().message();
    ASSERT_NEAR(slow_step->timeline.end_us() / slow_step->summary.times.step_us, 1, 1e-9);
    ASSERT_GE(slow_step->summary.step.time.value(), us * (1 - 1e-9));
    ASSERT_LE(slow_step->parts.network.sweeps, kMostSweeps);
    slowed += slow_step->summary.step.time.value() > us * 1.01 ? 1 : 0;
  }
  EXPECT_GT(slowed, 10);
}

// Gradients travel beside the exchange of tokens over the same uplinks: both take longer than alone, and the schedule and
// the rates agree after a few sweeps.
TEST(NetworkSharing, GroupsThatOverlapShareTheirLinks) {
  const Platform fabric = with_tiers({{4, 4}, {32, 4}});
  const Transformer model = value_of(find_preset("qwen3-235b-a22b"));
  Layout layout = layout_of(1, 8, 64, 64);
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 1024, .seq_len_tokens = 4096};
  layout.pipeline.layers_per_stage = layers_counting_embedding_and_output(model.n_layers, 8);
  layout.sharding.kind = Sharding::zero1;
  StepModel steps{fabric, {.background_load = 0.5}};
  const NetworkUse apart = value_of(steps.price(model, layout)).network;
  EXPECT_EQ(apart.sweeps, 1U);
  EXPECT_EQ(apart.slowdown, apart.alone);
  layout.sharding.overlap_gradient_reduce = true;
  const NetworkUse together = value_of(steps.price(model, layout)).network;
  EXPECT_GT(together.alone[kExpert], 1.5);
  EXPECT_GT(together.slowdown[kData], together.alone[kData] * 1.02);
  EXPECT_GE(together.slowdown[kExpert], together.alone[kExpert]);
  EXPECT_GT(together.sweeps, 1U);
  EXPECT_LE(together.sweeps, kMostSweeps);
  EXPECT_LE(together.residual, 0.02);
}

}  // namespace
}  // namespace stepcast::network_sharing_test
