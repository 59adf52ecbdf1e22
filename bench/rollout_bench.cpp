// A step of post-training by the public call: with its layouts given, and with split, engines and layouts searched.
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "stepcast/api/stepcast.h"

namespace {

stepcast::PredictRlRequest rl_request(const char* model, std::int64_t n_gpus, const char* policy) {
  stepcast::PredictRlRequest request;
  request.actor.model = model;
  request.actor.n_gpus = n_gpus;
  request.rl = {.algorithm = "grpo",
                .prompts = 64,
                .generations = 32,
                .lengths = "mean=1100,max=4096",
                .policy = policy};
  return request;
}

void run(benchmark::State& state, const stepcast::PredictRlRequest& request) {
  const stepcast::Session session;
  for (auto _ : state) {
    const auto forecast = session.predict(request);
    if (!forecast.ok()) std::abort();
    benchmark::DoNotOptimize(forecast->step_s);
  }
}

void BM_PredictPostTraining(benchmark::State& state) {
  stepcast::PredictRlRequest request = rl_request("qwen3-30b-a3b", 32, "on");
  request.actor.settings = {.expert = 8, .distributed_optimizer = true};
  request.rl.generation_tensor = 2;
  run(state, request);
}
BENCHMARK(BM_PredictPostTraining)->Unit(benchmark::kMillisecond);

void BM_SearchPostTraining(benchmark::State& state) {
  constexpr const char* kModels[] = {"llama-3.1-8b", "deepseek-v3", "qwen3-235b-a22b"};
  run(state, rl_request(kModels[state.range(0)], 512, "off:1"));
}
BENCHMARK(BM_SearchPostTraining)->Arg(0)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond);

}  // namespace
