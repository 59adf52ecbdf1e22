// A whole run with its interruptions: the closed form, and with its bands over 10,000 drawn runs.
#include <cstddef>
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "stepcast/run/failures.h"
#include "stepcast/run/recovery.h"
#include "stepcast/run/run_forecast.h"

namespace {

// With one draw of rates and chance it is the closed form alone.
void BM_ForecastRun(benchmark::State& state) {
  const stepcast::RunAssumptions how{stepcast::default_failures(), {}};
  stepcast::RunJob job;
  job.n_gpus = job.writers = 16384;
  job.gpus_per_node = 8;
  job.replicas = 128;
  job.checkpoint_bytes = 5.67e12;
  job.host_bytes_per_s = job.network_bytes_per_s = 50e9;
  const auto draws = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    const auto run = stepcast::forecast_run(how, job, {.s = 3e6, .p10_s = 2.8e6, .p90_s = 3.4e6}, draws);
    if (!run.ok()) std::abort();
    benchmark::DoNotOptimize(run->days);
  }
}
BENCHMARK(BM_ForecastRun)->Arg(1)->Arg(2'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
