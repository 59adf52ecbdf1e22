#include "stepcast/recommend/reshard.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/sharders.h"

namespace stepcast::reshard_test {
namespace {

DlrmStepModel steps_of(int n_tables) {
  Dlrm model{.name = "m", .bottom_mlp = {64}, .top_mlp = {64, 1}, .interaction = Interaction::concatenate};
  for (int t = 0; t < n_tables; ++t) {
    model.tables.push_back(
        {.name = std::to_string(t), .rows = 1'000'000, .dim = 128, .pooling = 40, .skew = 0.8});
  }
  Result<Platform> platform = load_platform("hpc-4xa100-40gb");
  if (!platform.ok()) throw std::runtime_error(platform.error().message());
  Result<DlrmStepModel> steps = DlrmStepModel::create(
      model, {.stack = DlrmStack::torchrec, .cuda_graphs = true, .global_batch = 4096}, *platform, 4);
  if (!steps.ok()) throw std::runtime_error(steps.error().message());
  return std::move(*steps);
}

// Every row once, or every row 64 times: next to no hits and rows updated, or all.
ReuseFactors reuse_of(bool cold) {
  ReuseFactors reuse;
  const std::size_t bin = cold ? 0 : 6;
  reuse.of_rows[bin] = reuse.of_lookups[bin] = 1;
  reuse.lookups = 4096 * 40;
  reuse.distinct_rows = cold ? reuse.lookups : reuse.lookups / 64;
  reuse.hottest = cold ? 1 : 64;
  return reuse;
}

TEST(Reshard, LeavesAnEvenShardingAlone) {
  DlrmStepModel steps = steps_of(16);
  const ShardingPlan now = shard(steps.model(), 4, Sharder::naive);
  const Resharded same = reshard(steps, now, std::vector<ReuseFactors>(16, reuse_of(true)));
  EXPECT_TRUE(same.moved_tables.empty());
  EXPECT_EQ(same.plan, now);
  EXPECT_DOUBLE_EQ(same.step_us, same.kept_step_us);
}

// Rank 0 holds four tables whose rows grew cold; the others' are hot.
TEST(Reshard, MovesWhatGrewDearer) {
  DlrmStepModel steps = steps_of(16);
  const ShardingPlan now = shard(steps.model(), 4, Sharder::naive);
  std::vector<ReuseFactors> reuse;
  for (std::size_t t = 0; t < 16; ++t) reuse.push_back(reuse_of(t % 4 == 0));
  const Resharded next = reshard(steps, now, reuse);
  EXPECT_LT(next.step_us, 0.95 * next.kept_step_us);
  ASSERT_FALSE(next.moved_tables.empty());
  EXPECT_DOUBLE_EQ(static_cast<double>(next.moved_tables.size()) * 512e6, next.moved_bytes);
  EXPECT_TRUE(check(steps.model(), next.plan, 4).ok());
  EXPECT_DOUBLE_EQ(steps.step_us(next.plan), next.step_us);
  // Decided as sharding searches do.
  EXPECT_DOUBLE_EQ(steps.expected_us(next.plan), next.expected_us);
  EXPECT_DOUBLE_EQ(steps.expected_us(now), next.kept_expected_us);
  EXPECT_LT(next.expected_us, 0.98 * next.kept_expected_us);
}

TEST(Resharder, DecidesForBatchesOfItsTables) {
  Result<Resharder> resharder =
      Resharder::create({.model = "dlrm-default", .platform = "hpc-4xa100-40gb", .n_gpus = 4});
  ASSERT_TRUE(resharder.ok()) << resharder.error().message();
  EXPECT_FALSE(resharder->decide({}).ok());
  const Result<Resharded> next = resharder->decide(std::vector<ReuseFactors>(8, reuse_of(true)));
  ASSERT_TRUE(next.ok()) << next.error().message();
  EXPECT_EQ(resharder->plan(), next->plan);
  EXPECT_LE(next->expected_us, next->kept_expected_us);
}

}  // namespace
}  // namespace stepcast::reshard_test
