// Speed of sharding questions: the published study's 20 tasks with six sharders on two platforms, one sharding of 64
// tables on 8 ranks, and the decision for the reuse factors of a new batch.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "stepcast/cost/access_pattern.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/recommend/dlrm_presets.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/reshard.h"
#include "stepcast/recommend/sharders.h"
#include "stepcast/recommend/table_sets.h"

#include "replicated_program.h"

namespace stepcast {
namespace {

using bench::value_or_exit;

DlrmTraining training() {
  return {.stack = DlrmStack::torchrec, .cuda_graphs = true, .global_batch = 4096, .dtype = DType::fp32};
}

Dlrm model_of(std::vector<EmbeddingTable> tables) {
  Dlrm model = *dlrm_preset("dlrm-multi-gpu");
  model.tables = std::move(tables);
  return model;
}

// From tables to the step times of all six.
void BM_StudyOf20Tasks(benchmark::State& state) {
  const std::vector<EmbeddingTable> pool = generate_tables(kPublished2021);
  std::vector<Dlrm> tasks;
  for (std::uint64_t k = 0; k < 20; ++k)
    tasks.push_back(model_of(draw_task(pool, {.heavy_only = k % 2 == 0, .memory_bytes = 32e9, .seed = k})));
  const std::vector<Platform> platforms{value_or_exit(load_platform("hpc-4xa100-40gb")),
                                        value_or_exit(load_platform("dgx-1-v100-32gb"))};
  for (auto _ : state) {
    for (const Platform& platform : platforms) {
      for (const Dlrm& task : tasks) {
        DlrmStepModel steps = value_or_exit(DlrmStepModel::create(task, training(), platform, 4));
        for (const Sharder sharder : kSharders)
          benchmark::DoNotOptimize(
              steps.step_us(shard(task, 4, sharder, {.memory_bytes = steps.table_memory_bytes()})));
      }
    }
  }
}
BENCHMARK(BM_StudyOf20Tasks)->Unit(benchmark::kMillisecond);

struct EightRanks {
  Dlrm model = [] {
    std::vector<EmbeddingTable> tables = generate_tables(kPublished2022);
    tables.resize(64);
    return model_of(std::move(tables));
  }();
  DlrmStepModel steps =
      value_or_exit(DlrmStepModel::create(model, training(), value_or_exit(load_platform("dgx-a100")), 8));
};

void BM_OneShardingOf64Tables(benchmark::State& state) {
  EightRanks job;
  const ShardingPlan plans[] = {shard(job.model, 8, Sharder::lookup), shard(job.model, 8, Sharder::random)};
  std::size_t k = 0;
  for (auto _ : state) benchmark::DoNotOptimize(job.steps.step_us(plans[++k % 2]));
}
BENCHMARK(BM_OneShardingOf64Tables)->Unit(benchmark::kMicrosecond);

// Two batches take turns, so that every decision prices all tables anew.
void BM_ReshardForANewBatch(benchmark::State& state) {
  EightRanks job;
  std::vector<std::vector<ReuseFactors>> batches(2);
  for (const EmbeddingTable& t : job.model.tables) {
    for (std::size_t b = 0; b < 2; ++b) {
      const AccessPattern pattern =
          AccessPattern::zipf(static_cast<double>(t.rows), t.skew * (b == 0 ? 1 : 0.8));
      const double lookups = 4096 * t.pooling, distinct = pattern.distinct_rows(lookups);
      ReuseFactors reuse{.of_rows = pattern.reuse_of_rows(lookups)};
      reuse.of_lookups = reuse.of_rows;
      reuse.lookups = static_cast<std::uint64_t>(lookups);
      reuse.distinct_rows = static_cast<std::uint64_t>(distinct);
      batches[b].push_back(reuse);
    }
  }
  const ShardingPlan now = shard(job.model, 8, Sharder::size_lookup);
  std::size_t k = 0;
  for (auto _ : state) benchmark::DoNotOptimize(reshard(job.steps, now, batches[++k % 2]));
}
BENCHMARK(BM_ReshardForANewBatch)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stepcast
