// A whole run with its interruptions: the closed form, once and 10,000 times with rates of its own.
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "stepcast/run/failures.h"
#include "stepcast/run/recovery.h"
#include "stepcast/run/run_forecast.h"

namespace {

void BM_ForecastRuns(benchmark::State& state) {
  const stepcast::RunAssumptions how{stepcast::default_failures(), {}};
  stepcast::RunJob job;
  job.gpus_per_node = 8;
  job.replicas = 128;
  job.checkpoint_bytes = 5.67e12;
  job.host_bytes_per_s = job.network_bytes_per_s = 50e9;
  for (auto _ : state) {
    for (std::int64_t i = 0; i < state.range(0); ++i) {
      job.n_gpus = job.writers = static_cast<double>(8192 + 8 * (i % 1024));
      const auto run = stepcast::forecast_run(how, job, {.s = 3e6, .p10_s = 2.8e6, .p90_s = 3.4e6});
      if (!run.ok()) std::abort();
      benchmark::DoNotOptimize(run->days);
    }
  }
}
BENCHMARK(BM_ForecastRuns)->Arg(1)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
