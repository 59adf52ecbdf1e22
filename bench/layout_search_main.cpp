// How fast layouts are searched, and whether the engine agrees: measure_layout_search [MODEL PLATFORM GPUS BATCH SEQ [SAMPLES]].
// Without arguments: GPT-3 175B on 1,024 A100 and Llama 3.1 405B on 2,048 H100, without samples.
//
//   layouts      of the space: refused, same as another, too large, priced
//   seconds      of processor time on one thread, platform and lists loaded before, and priced layouts per second
//   allocations  of memory, for each layout that is priced or too large
//   two threads  how many times sooner they are done, and how much more processor time they take: the first is of two idle
//                processors, the second says what there is to win
//   samples      so many priced layouts, drawn with a fixed seed, as Programs of every operation: the largest relative
//                difference of the engine's time, and whether both have the same fastest one
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/plan/layout_plan.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/predicted_step.h"

#include "call_cost.h"

namespace stepcast {
namespace {

template <class T>
T value_or_exit(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  fmt::print(stderr, "{}\n", result.error().message());
  std::exit(2);
}

void measure(const std::string& model, const std::string& platform_name, std::int64_t n_gpus,
             std::int64_t batch, std::int64_t seq_len, int n_samples) {
  const Platform platform = value_or_exit(load_platform(platform_name));
  PlanRequest request;
  request.job.model = model;
  request.job.settings.global_batch_sequences = batch;
  request.job.settings.seq_len_tokens = seq_len;
  request.n_gpus = n_gpus;
  request.threads = 1;
  const LayoutPlan plan = value_or_exit(plan_layouts(request, platform));
  SearchedLayouts found;
  const auto search = [&](unsigned threads) {
    const auto from = std::chrono::steady_clock::now();
    const CallCost cost = cost_of([&] {
      found = value_or_exit(
          search_layouts(plan.space, plan.prototypes, platform, {plan.memory, threads, request.assumptions}));
    });
    return std::pair{cost, std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count()};
  };
  const auto [one, one_wall_s] = search(1);
  const auto [two, two_wall_s] = search(2);
  const double seconds = one.ms * 1e-3;
  const auto n_priced = static_cast<double>(found.priced.size());
  fmt::print("{} on {} x {}: {} layouts: {} refused, {} same, {} too large, {} priced\n", model, n_gpus,
             platform_name, found.n_layouts(), found.n_rejected, found.n_same, found.n_too_large,
             found.priced.size());
  fmt::print("  {:.3f} s on one thread, {:.0f} priced layouts per second, {:.1f} allocations for each\n",
             seconds, n_priced / seconds,
             one.allocations / static_cast<double>(found.priced.size() + found.n_too_large));
  fmt::print("  two threads: {:.2f} times sooner, {:.2f} times the processor time\n", one_wall_s / two_wall_s,
             two.ms / one.ms);
  if (n_samples <= 0 || found.priced.empty()) return;

  std::mt19937 random{11};
  StepModel steps{platform};
  double worst = 0, best_us = INFINITY, best_engine_us = INFINITY;
  LayoutPoint best, best_of_engine;
  for (int i = 0; i < n_samples; ++i) {
    const PricedLayout& one = found.priced[random() % found.priced.size()];
    const PredictedStep step =
        value_or_exit(predict_step(plan.prototypes.model(), plan.prototypes.layout(one.point), steps));
    const double engine_us = step.timeline.end_us();
    worst = std::max(worst, std::abs(engine_us / one.step_us - 1));
    if (one.step_us < best_us) best_us = one.step_us, best = one.point;
    if (engine_us < best_engine_us) best_engine_us = engine_us, best_of_engine = one.point;
  }
  fmt::print("  {} samples: the engine differs by {:.1e} at most; fastest of them: {}; of the engine: {}\n",
             n_samples, worst, to_string(best), to_string(best_of_engine));
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  if (argc == 1) {
    stepcast::measure("gpt3-175b", "dgx-a100", 1024, 1536, 2048, 0);
    stepcast::measure("llama-3.1-405b", "dgx-h100", 2048, 2048, 8192, 0);
    return 0;
  }
  if (argc < 6) {
    fmt::print(stderr, "measure_layout_search [MODEL PLATFORM GPUS BATCH SEQ [SAMPLES]]\n");
    return 2;
  }
  const auto number = [&](int i) { return argc > i ? std::atoll(argv[i]) : 0; };
  stepcast::measure(argv[1], argv[2], number(3), number(4), number(5), static_cast<int>(number(6)));
  return 0;
}
