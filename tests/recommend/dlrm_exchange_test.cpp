#include "stepcast/recommend/detail/dlrm_exchange.h"

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/recommend/dlrm_presets.h"
#include "stepcast/recommend/dlrm_step.h"

namespace stepcast::dlrm_exchange_test {
namespace {

Platform load(const char* name) {
  Result<Platform> platform = load_platform(name);
  if (!platform.ok()) throw std::runtime_error(platform.error().message());
  return std::move(*platform);
}

// Row parts of one table of 128 columns on the two ranks of node 0, a whole one of 64 on rank 3 of node 1.
std::vector<detail::RankLoad> two_nodes_of_two() {
  std::vector<detail::RankLoad> ranks(4);
  ranks[0].vector_dims = ranks[1].vector_dims = 64;  // half of the one sum of their node
  ranks[0].node_dims = ranks[1].node_dims = 64;
  ranks[3].vector_dims = 64;
  return ranks;
}

TEST(DlrmExchange, BytesOfEachLevelByHand) {
  const auto groups = detail::DlrmGroupsOnNodes::of(4, 2);
  EXPECT_EQ(groups.n_nodes, 2);
  EXPECT_EQ(groups.rail.n_ranks, 2);
  EXPECT_EQ(groups.rail.groups_per_node, 2);
  const detail::LevelSizes sizes = detail::level_sizes(two_nodes_of_two(), 1000, 4, groups);
  // In node 0 each rank has 128 columns of 1,000 samples and gives its neighbour those of the 500 samples of its place: 500
  // x 128 x 4 bytes sent, twice that as the buffer of two ranks.
  EXPECT_DOUBLE_EQ(sizes.in_node.value(), 2 * 500 * 128 * 4.0);
  // Node 0 then has sums of 128 columns: each of its GPUs sends the 250 samples of its place in node 1.
  EXPECT_DOUBLE_EQ(sizes.between_nodes.value(), 2 * 250 * 128 * 4.0);
}

TEST(DlrmExchange, WhereATableLiesInItsNodeDoesNotMatterBetweenNodes) {
  const auto groups = detail::DlrmGroupsOnNodes::of(16, 8);
  std::vector<detail::RankLoad> whole(16), split(16);
  whole[0].vector_dims = whole[8].vector_dims = 128;
  for (detail::RankLoad& rank : split) rank.vector_dims = 16, rank.node_dims = 112;
  EXPECT_DOUBLE_EQ(detail::level_sizes(whole, 4096, 2, groups).between_nodes.value(),
                   detail::level_sizes(split, 4096, 2, groups).between_nodes.value());
}

TEST(DlrmExchange, OneNodeHasOneLevel) {
  const Platform platform = load("dgx-h100");
  StepPricer prices{platform, {}};
  const auto groups = detail::DlrmGroupsOnNodes::of(4, 8);
  const std::vector<detail::RankLoad> ranks = two_nodes_of_two();
  const auto one = detail::price_vectors(ranks, 4096, 4, false, groups, prices),
             two = detail::price_vectors(ranks, 4096, 4, true, groups, prices);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->time.value(), two->time.value());
}

TEST(DlrmExchange, SeveralNodesTakeTheShorterWay) {
  const Platform platform = load("dgx-h100");
  StepPricer prices{platform, {}};
  const auto groups = detail::DlrmGroupsOnNodes::of(64, 8);
  std::vector<detail::RankLoad> ranks(64);
  for (std::size_t r = 0; r < 64; r += 8) ranks[r].vector_dims = 256;  // whole tables, one rank of each node
  const auto flat = detail::price_vectors(ranks, 65536, 2, false, groups, prices),
             levels = detail::price_vectors(ranks, 65536, 2, true, groups, prices);
  ASSERT_TRUE(flat.ok() && levels.ok());
  EXPECT_LT(levels->time.value(), 0.5 * flat->time.value());
}

double step_us(const Platform& platform, std::int64_t n, std::int32_t release = 0) {
  const DlrmTraining training{
      .stack = DlrmStack::hugectr, .release = release, .global_batch = 65536, .dtype = DType::fp16};
  Result<DlrmStepModel> steps = DlrmStepModel::create(*dlrm_preset("dlrm-mlperf-v1"), training, platform, n);
  if (!steps.ok()) throw std::runtime_error(steps.error().message());
  return steps->predict({})->time.time.value();
}

TEST(DlrmExchange, ARackOf64IsOneNodeOf64) {
  const Platform rack = load("gb200-nvl72");
  Platform node = rack;
  node.node.gpus_per_node = 64;
  node.node.segment.reset();
  node.node.network.reset();
  EXPECT_EQ(step_us(rack, 64), step_us(node, 64));
  EXPECT_LT(step_us(rack, 64), step_us(load("gb200-4gpu"), 64));
  // Sixteen trays of four are that rack; nodes of eight are not.
  EXPECT_EQ(rack_of_trays("NVIDIA GB200", 4, 64), "gb200-nvl72");
  EXPECT_EQ(rack_of_trays("NVIDIA GB200", 4, 144), std::nullopt);
  EXPECT_EQ(rack_of_trays("NVIDIA H100-SXM5-80GB", 8, 64), std::nullopt);
}

TEST(DlrmExchange, ANewerReleaseHidesExchangesAndIndices) {
  const Platform platform = load("dgx-a100");
  EXPECT_LT(step_us(platform, 64, 2109), step_us(platform, 64, 2105));
  EXPECT_EQ(step_us(platform, 64, 2109), step_us(platform, 64));
  // One node has no waits for others that would hide indices, and the same exchanges.
  EXPECT_LT(step_us(platform, 8, 2109), step_us(platform, 8, 2105));
  EXPECT_EQ(step_us(platform, 1, 2109), step_us(platform, 1, 2105));
  EXPECT_EQ(parse_dlrm_release("v1.1"), parse_dlrm_release("21.09"));
  EXPECT_EQ(parse_dlrm_release("21.13"), std::nullopt);
  EXPECT_EQ(parse_dlrm_release("newest"), std::nullopt);
}

}  // namespace
}  // namespace stepcast::dlrm_exchange_test
