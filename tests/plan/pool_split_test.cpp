#include "stepcast/plan/pool_split.h"

#include <numeric>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/units.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::pool_split_test {
namespace {

using testing::HasSubstr;

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

ResolvedJob job_of(std::int64_t tensor, std::int64_t pipeline, std::int64_t gpus) {
  Job job{.model = "llama-3-8b", .n_gpus = gpus};
  job.settings.tensor = tensor;
  job.settings.pipeline = pipeline;
  job.settings.micro_batch_sequences = 1;
  job.settings.global_batch_sequences = 128;
  job.settings.seq_len_tokens = 4096;
  job.settings.distributed_optimizer = true;
  return value_of(resolve(job));
}

struct Machines {
  Platform h100 = value_of(load_platform("dgx-h100")), a100 = value_of(load_platform("dgx-a100"));
  StepModel fast{h100}, fast_too{h100}, slow{a100};
};

TEST(PoolSplit, PoolsOfOneKindAreOneMachine) {
  Machines m;
  const ResolvedJob job = job_of(2, 4, 32);
  const std::vector<SplitPool> pools{{16, m.fast, {}}, {16, m.fast_too, {}}};
  const PoolSplit replicas = value_of(split_over_pools(job.model, job.layout, pools, SpreadOver::replicas));
  const double alone = value_of(m.fast.predict(job.model, job.layout)).step.time.value();
  EXPECT_NEAR(replicas.step.time.value() / alone, 1, 1e-9);
  EXPECT_EQ(replicas.layouts[0].batch.global_batch_sequences, 128);
  const PoolSplit stages = value_of(split_over_pools(job.model, job.layout, pools, SpreadOver::stages));
  // Uneven layers may make up for embedding and logits, never lose.
  EXPECT_LE(stages.step.time.value(), alone * (1 + 1e-9));
}

TEST(PoolSplit, FasterPoolsGetMoreMicroBatches) {
  Machines m;
  const ResolvedJob job = job_of(2, 1, 32);
  const std::vector<SplitPool> pools{{16, m.fast, {}}, {16, m.slow, {}}};
  const PoolSplit split = value_of(split_over_pools(job.model, job.layout, pools, SpreadOver::replicas));
  const std::int64_t fast = split.layouts[0].micro_batches(), slow = split.layouts[1].micro_batches();
  EXPECT_GT(fast, slow);
  EXPECT_GE(8 * (fast + slow), 128);  // eight replicas in each pool
  // Giving the fast pool as many as the slow one would make the step longer.
  const double even = value_of(m.slow.predict(job.model, job.layout)).step.time.value();
  EXPECT_LT(split.step.time.value(), even);
}

TEST(PoolSplit, SaysWhatTheTightestGpuLeaves) {
  Machines m;
  Platform small = m.a100;
  small.device.memory_size = Bytes{20 * kGiB};
  StepModel tight{small};
  const ResolvedJob job = job_of(2, 1, 32);
  const std::vector<SplitPool> roomy{{16, m.fast, {}}, {16, m.slow, {}}},
      with_small{{16, m.fast, {}}, {16, tight, {}}};
  const Bytes spare = value_of(split_over_pools(job.model, job.layout, roomy, SpreadOver::replicas)).spare;
  const PoolSplit split = value_of(split_over_pools(job.model, job.layout, with_small, SpreadOver::replicas));
  EXPECT_NEAR((spare - split.spare).value(), 60 * kGiB, 1);
  EXPECT_TRUE(spare.value() > 0);
  EXPECT_EQ(split.fits(), split.spare.value() >= 0);
  EXPECT_FALSE(split.fits());
}

TEST(PoolSplit, FasterPoolsGetMoreLayers) {
  Machines m;
  const ResolvedJob job = job_of(2, 4, 32);
  const std::vector<SplitPool> pools{{16, m.fast, {}}, {16, m.slow, {}}};
  const PoolSplit split = value_of(split_over_pools(job.model, job.layout, pools, SpreadOver::stages));
  const std::vector<std::int64_t>& layers = split.layouts[0].pipeline.layers_per_stage;
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}), 32);
  EXPECT_GT(layers[0] + layers[1], layers[2] + layers[3] + 4);
  EXPECT_EQ(split.stages[0].end_stage, 2U);
  EXPECT_EQ(split.stages[1].end_stage, 4U);
}

// A message between two zones is 10 ms on its way: there and back through a pipeline of one micro-batch; twice over the
// ring's two crossings for gradients and weights of replicas, which are one message each.
TEST(PoolSplit, LatencyBetweenZonesIsPaidByWhatCrosses) {
  Machines m;
  const auto links = [](std::size_t zone, double us) {
    return PoolLinks{.zone = zone, .latency_us = us, .longest_us = us, .round_us = 2 * us};
  };
  const auto of_stages = [&](double us) {
    ResolvedJob job = job_of(2, 2, 32);
    job.layout.batch.global_batch_sequences = 8;
    const std::vector<StagePool> pools{{1, m.fast, links(0, us)}, {2, m.fast_too, links(1, us)}};
    return value_of(predict_on_pools(job.model, job.layout, pools)).step.time.value();
  };
  const auto of_replicas = [&](double us) {
    const ResolvedJob job = job_of(2, 1, 32);
    const std::vector<SplitPool> pools{{16, m.fast, links(0, us)}, {16, m.fast_too, links(1, us)}};
    return value_of(split_over_pools(job.model, job.layout, pools, SpreadOver::replicas)).step.time.value();
  };
  constexpr double kLatency = 10'000;
  // Without any, sums of the other stage may take longer than the first one computes.
  EXPECT_NEAR(of_stages(2 * kLatency) - of_stages(kLatency), 2 * kLatency, 1e-3);
  EXPECT_NEAR(of_replicas(kLatency) - of_replicas(0), 4 * kLatency, 1e-3);
}

TEST(PoolSplit, RefusesStagesWithoutAllOfTheirGpus) {
  Machines m;
  const ResolvedJob job = job_of(4, 4, 32);
  const std::vector<SplitPool> pools{{20, m.fast, {}}, {12, m.slow, {}}};
  const Result<PoolSplit> split = split_over_pools(job.model, job.layout, pools);
  ASSERT_FALSE(split.ok());
  EXPECT_THAT(split.error().message(),
              HasSubstr("expected pools of whole stages (8 GPUs with pipeline 4) or of whole replicas (16)"));
}

}  // namespace
}  // namespace stepcast::pool_split_test
