// Speed of step forecasts: GPT-3 175B on 512 GPUs, priced before (warm), for the first time (cold), among the
// layouts of a search, and as a Program of every operation on 2,048 GPUs.
#include <memory>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/step_model.h"

#include "replicated_program.h"

namespace stepcast {
namespace {

using bench::value_or_exit;

constexpr const char* kPlatforms[] = {"dgx-a100", "dgx-h100"};

const Platform& platform(std::int64_t index) {
  static const Platform kLoaded[] = {value_or_exit(load_platform(kPlatforms[0])),
                                     value_or_exit(load_platform(kPlatforms[1]))};
  return kLoaded[index];
}

const Transformer& gpt3() {
  static const Transformer kModel = value_or_exit(find_preset("gpt3-175b"));
  return kModel;
}

// 1,536 sequences of 2,048 tokens a step, one per micro-batch.
Layout layout_of(std::int64_t data_parallel, std::int64_t virtual_stages) {
  Layout layout{
      .degrees = {.tensor = 8, .pipeline = 16, .data = data_parallel, .virtual_stages = virtual_stages},
      .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 1536, .seq_len_tokens = 2048},
      .layer = {.sequence_parallel = true}};
  if (virtual_stages > 1) layout.pipeline.schedule = PipelineSchedule::interleaved;
  layout.software.framework = Framework::megatron;
  return layout;
}

void label(benchmark::State& state, const Layout& layout) {
  state.SetLabel(fmt::format("{} {} GPUs tp8 pp16x{} dp{} {} micro-batches", kPlatforms[state.range(0)],
                             layout.world_size(), layout.degrees.virtual_stages, layout.degrees.data,
                             layout.micro_batches()));
}

// Arguments: platform, virtual stages.
void BM_PredictWarm(benchmark::State& state) {
  const Layout layout = layout_of(4, state.range(1));
  StepModel steps{platform(state.range(0))};
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(steps.predict(gpt3(), layout)));
  label(state, layout);
}
BENCHMARK(BM_PredictWarm)->ArgsProduct({{0, 1}, {1, 2, 6}})->Unit(benchmark::kMicrosecond);

// A layout with experts beside a dense one of as many GPUs, layers and passes: whatever is told apart in a layer of experts
// must not make a forecast several times as slow.
Layout layout_of_experts(const Transformer& model) {
  Layout layout{
      .degrees = {.pipeline = 8, .data = 64},
      .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 4096, .seq_len_tokens = 4096}};
  layout.software.framework = Framework::megatron;
  layout.pipeline.layers_per_stage = layers_counting_embedding_and_output(model.n_layers, 8);
  layout.sharding.kind = Sharding::zero1;
  if (!model.moe) return layout;
  layout.degrees.expert = 64;
  layout.layer.dispatcher = TokenDispatcher::deepep;
  return layout;
}

// Arguments: with experts (Qwen3 235B, 94 layers) or dense (GPT-3, 96 layers), priced before or for the first time.
void BM_PredictExperts(benchmark::State& state) {
  const Transformer model = value_or_exit(find_preset(state.range(0) != 0 ? "qwen3-235b-a22b" : "gpt3-175b"));
  Layout layout = layout_of_experts(model);
  if (!model.moe) layout.batch.seq_len_tokens = model.max_position;
  auto steps = std::make_unique<StepModel>(platform(1));
  for (auto _ : state) {
    if (state.range(1) != 0) {
      state.PauseTiming();
      steps = std::make_unique<StepModel>(platform(1));
      state.ResumeTiming();
    }
    benchmark::DoNotOptimize(value_or_exit(steps->predict(model, layout)));
  }
  state.SetLabel(fmt::format("{}, {}", model.name, state.range(1) != 0 ? "cold" : "warm"));
}
BENCHMARK(BM_PredictExperts)->ArgsProduct({{0, 1}, {0, 1}})->Unit(benchmark::kMicrosecond);

// A step with experts and a dense one, on links of their own and on a fabric that they share with other jobs: what the
// sweeps until schedule and rates agree cost. Arguments: with experts, shared.
void BM_PredictShared(benchmark::State& state) {
  const Transformer model = value_or_exit(find_preset(state.range(0) != 0 ? "qwen3-235b-a22b" : "gpt3-175b"));
  Layout layout = layout_of_experts(model);
  layout.sharding.overlap_gradient_reduce = true;
  layout.layer.dispatcher = TokenDispatcher::all_to_all;
  if (!model.moe) layout.batch.seq_len_tokens = model.max_position;
  Platform fabric = platform(1);
  StepAssumptions assumptions;
  if (state.range(1) != 0) {
    fabric.node.network->tiers = {{4, 2}, {32, 4}};
    assumptions.background_load = 0.5;
  }
  StepModel steps{fabric, assumptions};
  double sweeps = 0;
  for (auto _ : state) {
    const PricedStep step = value_or_exit(steps.price(model, layout));
    sweeps = step.network.sweeps;
    benchmark::DoNotOptimize(steps.predict(step, layout));
  }
  state.SetLabel(fmt::format("{}, {} sweeps", model.name, sweeps));
}
BENCHMARK(BM_PredictShared)->ArgsProduct({{0, 1}, {0, 1}})->Unit(benchmark::kMicrosecond);

// What a search asks: every layout of the model on 512 GPUs that differs in degrees, micro-batch, recomputation
// and what data-parallel ranks share. Few of them differ in what a layer does.
const std::vector<Layout>& layouts_of_a_search() {
  static const std::vector<Layout> kLayouts = [] {
    std::vector<Layout> layouts;
    for (const std::int64_t tensor : {2, 4, 8}) {
      for (const std::int64_t pipeline : {4, 8, 16, 32}) {
        for (const std::int64_t virtual_stages : {1, 2, 3}) {
          for (const std::int64_t micro_batch : {1, 2, 4}) {
            for (const Recompute recompute : {Recompute::none, Recompute::full}) {
              for (int sharing = 0; sharing < 3; ++sharing) {
                Layout layout = layout_of(512 / (tensor * pipeline), virtual_stages);
                layout.degrees.tensor = tensor;
                layout.degrees.pipeline = pipeline;
                layout.batch.micro_batch_sequences = micro_batch;
                layout.layer.recompute.kind = recompute;
                layout.sharding.kind = sharing == 0 ? Sharding::none : Sharding::zero1;
                layout.sharding.overlap_gradient_reduce = sharing == 2;
                layout.sharding.overlap_parameter_gather = sharing == 2;
                if (check(layout, gpt3(), 512).ok()) layouts.push_back(std::move(layout));
              }
            }
          }
        }
      }
    }
    return layouts;
  }();
  return kLayouts;
}

// All of them, in turn, by a model that was just built.
void BM_PredictSweep(benchmark::State& state) {
  const std::vector<Layout>& layouts = layouts_of_a_search();
  for (auto _ : state) {
    state.PauseTiming();
    auto steps = std::make_unique<StepModel>(platform(state.range(0)));
    state.ResumeTiming();
    for (const Layout& layout : layouts)
      benchmark::DoNotOptimize(value_or_exit(steps->predict(gpt3(), layout)));
    state.PauseTiming();
    steps.reset();
    state.ResumeTiming();
  }
  const auto n = static_cast<double>(layouts.size());
  state.counters["per_layout"] =
      benchmark::Counter{n, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert};
  state.SetLabel(fmt::format("{} {} layouts of 512 GPUs", kPlatforms[state.range(0)], layouts.size()));
}
BENCHMARK(BM_PredictSweep)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// The first forecast of a model that was built before: every operation and transfer is priced.
void BM_PredictCold(benchmark::State& state) {
  const Layout layout = layout_of(4, state.range(1));
  for (auto _ : state) {
    state.PauseTiming();
    auto steps = std::make_unique<StepModel>(platform(state.range(0)));
    state.ResumeTiming();
    benchmark::DoNotOptimize(value_or_exit(steps->predict(gpt3(), layout)));
    state.PauseTiming();
    steps.reset();
    state.ResumeTiming();
  }
  label(state, layout);
}
BENCHMARK(BM_PredictCold)->ArgsProduct({{0, 1}, {1, 2}})->Unit(benchmark::kMicrosecond)->Iterations(200);

// Reading the kernel records and curves of a platform into models: once per platform.
void BM_BuildModel(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(StepModel{platform(state.range(0))});
  state.SetLabel(kPlatforms[state.range(0)]);
}
BENCHMARK(BM_BuildModel)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void BM_LoadPlatform(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(load_platform(kPlatforms[state.range(0)])));
  state.SetLabel(kPlatforms[state.range(0)]);
}
BENCHMARK(BM_LoadPlatform)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// 2,048 GPUs, every operation of every micro-batch a task, one class per pipeline stage (multiplicity 128):
// pricing the layout, building the Program, pricing it task by task, ordering it and simulating it.
void BM_PredictStep(benchmark::State& state) {
  const Layout layout = layout_of(16, state.range(1));
  StepModel steps{platform(state.range(0))};
  double tasks = 0;
  for (auto _ : state) {
    const PredictedStep step = value_or_exit(predict_step(gpt3(), layout, steps));
    benchmark::DoNotOptimize(step.timeline.end_us());
    tasks = static_cast<double>(step.program.expanded_task_count()) / 128;
  }
  state.counters["tasks"] = tasks;
  label(state, layout);
}
BENCHMARK(BM_PredictStep)->ArgsProduct({{0}, {1, 2}})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast
