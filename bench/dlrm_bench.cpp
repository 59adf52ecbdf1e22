// Speed of one sharding of a recommendation model, priced and simulated: 64 tables on 8 ranks, as a search asks for it, and
// with the reuse factors of a new batch.
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/recommend/dlrm_presets.h"
#include "stepcast/recommend/dlrm_step.h"

#include "replicated_program.h"

namespace stepcast {
namespace {

using bench::value_or_exit;

constexpr std::int32_t kTables = 64, kRanks = 8;

DlrmStepModel model_of_tables() {
  Dlrm model = *dlrm_preset("dlrm-multi-gpu");
  for (std::int32_t t = 0; t < kTables; ++t) {
    EmbeddingTable table;
    table.name = "table_" + std::to_string(t);
    table.rows = 10'000 + 37'000 * t;
    table.dim = 32 << (t % 4);
    table.pooling = 1 + t % 40;
    model.tables.push_back(table);
  }
  return value_or_exit(DlrmStepModel::create(model, {.global_batch = 16384},
                                             value_or_exit(load_platform("dgx-a100")), kRanks));
}

ShardingPlan shifted(std::int32_t by) {
  ShardingPlan plan;
  for (std::int32_t t = 0; t < kTables; ++t)
    plan.tables.push_back({.ranks = {(t * (1 + by % 3) + by) % kRanks}});
  return plan;
}

void BM_PriceAndSimulateSharding(benchmark::State& state) {
  DlrmStepModel steps = model_of_tables();
  std::vector<ShardingPlan> plans;
  for (std::int32_t by = 0; by < 16; ++by) plans.push_back(shifted(by));
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(steps.step_us(plans[next++ % plans.size()], true));
}
BENCHMARK(BM_PriceAndSimulateSharding)->Unit(benchmark::kMicrosecond);

void BM_PriceAndSimulateNewReuse(benchmark::State& state) {
  DlrmStepModel steps = model_of_tables();
  const ShardingPlan plan = shifted(0);
  ReuseFactors reuse;
  for (std::size_t k = 0; k < 10; ++k) reuse.of_rows[k] = reuse.of_lookups[k] = 0.1;
  reuse.lookups = 200'000;
  reuse.distinct_rows = 40'000;
  reuse.hottest = 400;
  const std::vector<ReuseFactors> batch(kTables, reuse);
  for (auto _ : state) {
    steps.set_reuse(batch);
    benchmark::DoNotOptimize(steps.step_us(plan, true));
  }
}
BENCHMARK(BM_PriceAndSimulateNewReuse)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stepcast
