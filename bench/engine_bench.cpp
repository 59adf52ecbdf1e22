// Speed of the engine on a Program of the shape of a recorded recommendation-model step, see
// replicated_program.h.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

#include "replicated_program.h"

namespace stepcast {
namespace {

using bench::replicated_program;
using bench::value_or_exit;

void count(benchmark::State& state, const Program& program, double tasks) {
  double block_tasks = 0, block_edges = 0;
  for (const Block& b : program.blocks()) {
    block_tasks += b.task_count();
    block_edges += b.edge_count();
  }
  state.counters["tasks"] = tasks;
  state.counters["edges_per_task"] = block_edges / block_tasks;
  state.counters["tasks_per_s"] = benchmark::Counter(tasks, benchmark::Counter::kIsIterationInvariantRate);
}

// Every rank on its own, into the memory of the sweep before. Argument: ranks.
void BM_SweepUnfolded(benchmark::State& state) {
  const Program program = replicated_program(static_cast<std::uint32_t>(state.range(0)));
  const Plan plan = value_or_exit(Plan::compile(program));
  const Costs costs{program};
  Timeline timeline;
  for (auto _ : state) value_or_exit(plan.simulate(costs, {.unfold = true}, timeline));
  const auto tasks = static_cast<double>(program.expanded_task_count());
  count(state, program, tasks);

  double block_tasks = 0, structure = 0;
  for (const Block& b : program.blocks()) {
    block_tasks += b.task_count();
    structure += static_cast<double>(b.memory_bytes());
  }
  state.counters["timeline_bytes_per_task"] = static_cast<double>(timeline.memory_bytes()) / tasks;
  state.counters["structure_bytes_per_block_task"] = structure / block_tasks;
  state.counters["costs_bytes_per_block_task"] = static_cast<double>(costs.memory_bytes()) / block_tasks;
  state.counters["plan_bytes"] = static_cast<double>(plan.memory_bytes());
}
BENCHMARK(BM_SweepUnfolded)->Arg(8)->Arg(1024)->Arg(8192)->Unit(benchmark::kMillisecond);

// The same into a new Timeline each time: page faults count.
void BM_SweepUnfoldedFresh(benchmark::State& state) {
  const Program program = replicated_program(static_cast<std::uint32_t>(state.range(0)));
  const Plan plan = value_or_exit(Plan::compile(program));
  const Costs costs{program};
  for (auto _ : state) {
    const Timeline timeline = value_or_exit(plan.simulate(costs, {.unfold = true}));
    benchmark::DoNotOptimize(timeline.end_us());
  }
  count(state, program, static_cast<double>(program.expanded_task_count()));
}
BENCHMARK(BM_SweepUnfoldedFresh)->Arg(1024)->Unit(benchmark::kMillisecond);

// One rank per class.
void BM_SweepFolded(benchmark::State& state) {
  const Program program = replicated_program(1024);
  const Plan plan = value_or_exit(Plan::compile(program));
  const Costs costs{program};
  Timeline timeline;
  for (auto _ : state) value_or_exit(plan.simulate(costs, {}, timeline));
  count(state, program, static_cast<double>(program.expanded_task_count()) / 128);
}
BENCHMARK(BM_SweepFolded)->Unit(benchmark::kMicrosecond);

// Many Costs on one structure, one rank per class. Argument: scenarios.
void BM_Scenarios(benchmark::State& state) {
  const Program program = replicated_program(1024);
  const Plan plan = value_or_exit(Plan::compile(program));
  const std::vector<Costs> scenarios(static_cast<std::size_t>(state.range(0)), Costs{program});
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(plan.simulate(scenarios)).end_us(0));
  count(state, program,
        static_cast<double>(program.expanded_task_count()) / 128 * static_cast<double>(state.range(0)));
}
BENCHMARK(BM_Scenarios)->Arg(1)->Arg(64)->Unit(benchmark::kMicrosecond);

void BM_Compile(benchmark::State& state) {
  const Program program = replicated_program(1024);
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(Plan::compile(program)));
  count(state, program, static_cast<double>(program.expanded_task_count()) / 128);
}
BENCHMARK(BM_Compile)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stepcast
