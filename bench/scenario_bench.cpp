// Speed of a recorded step once its traces are read: rebuilding and predicting it, and sweeping straggler scenarios.
// STEPCAST_TRACES names the folder of traces; otherwise the example of the checkout, from its root.
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <benchmark/benchmark.h>

#include "stepcast/analyze/step_series.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/scenario_sweep.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/trace_set.h"

#include "replicated_program.h"

namespace stepcast {
namespace {

using bench::value_or_exit;

const TraceSet& traces() {
  static const TraceSet set = [] {
    const char* named = std::getenv("STEPCAST_TRACES");
    const std::vector<std::filesystem::path> places{named != nullptr ? named : "examples/dlrm_4gpu"};
    return value_or_exit(read_trace_set(value_or_exit(list_traces(places))));
  }();
  return set;
}

// From what was read to predicted step times.
void BM_PredictStep(benchmark::State& state) {
  const std::vector<RecordedInput> inputs = traces().inputs();
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(predict_trace(inputs, {})).step.time.value());
}
BENCHMARK(BM_PredictStep)->Unit(benchmark::kMillisecond)->UseRealTime();

// The same with the index of the files made before: every further step, every further question.
void BM_PredictStepOfIndexedTraces(benchmark::State& state) {
  std::vector<RecordedInput> inputs = traces().inputs();
  for (RecordedInput& input : inputs) input.index = index_trace(input);
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(predict_trace(inputs, {})).step.time.value());
}
BENCHMARK(BM_PredictStepOfIndexedTraces)->Unit(benchmark::kMillisecond)->UseRealTime();

// Other costs on the rebuilt step.
void BM_ScoreStep(benchmark::State& state) {
  const RecordedProgram recorded = value_or_exit(rebuild_program(traces().inputs()));
  const Costs costs{recorded.program};
  for (auto _ : state)
    benchmark::DoNotOptimize(value_or_exit(score_replay(recorded, costs)).global_window.simulated_us);
}
BENCHMARK(BM_ScoreStep)->Unit(benchmark::kMillisecond)->UseRealTime();

// Argument: scenarios, with what makes the slowest tenth slow.
void BM_StragglerScenarios(benchmark::State& state) {
  const RecordedProgram recorded = value_or_exit(rebuild_program(traces().inputs()));
  const Costs costs{recorded.program};
  const SlowdownDraws draws = draws_of_ranks(rank_times(recorded, costs));
  const auto n = static_cast<std::size_t>(state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(
        value_or_exit(sweep_with_causes(recorded, costs, draws, {.n = n, .seed = 1})).n_tail);
  state.counters["scenarios_per_s"] =
      benchmark::Counter(static_cast<double>(n), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_StragglerScenarios)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace stepcast
