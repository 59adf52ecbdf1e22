#include "lab/expert_tests.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/platform/platform_choice.h"

#include "calibrate/expert_fit.h"

namespace stepcast {
namespace {

constexpr std::size_t kFolds = 5;
constexpr std::int64_t kUnmeasuredNodes = 16;

ScoredRow scored(std::string row, double measured, double predicted, double log_p10, double log_p90) {
  return {
      std::move(row), measured, predicted, predicted * std::exp(log_p10), predicted * std::exp(log_p90), {}};
}

// Platform of one node for a GPU name of the measurements; nullopt and an entry in `skipped` if none is shipped.
std::optional<Platform> platform_of(const std::string& gpu, std::vector<Skipped>& skipped) {
  constexpr std::int64_t kGpusOfNode = 8;
  Result<PlatformChoice> choice = platform_for({.gpu = gpu, .gpus_per_node = kGpusOfNode});
  if (choice.ok()) return std::move(choice->platform);
  skipped.push_back({gpu, "no platform describes this GPU", 1});
  return std::nullopt;
}

// Sizes of layers of one model, or of a similar one: they are held out together.
using LayerSizes = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
LayerSizes sizes_of(const MeasuredExpertLayer& m) {
  return {m.hidden_size, m.expert_ffn_size, m.n_experts, m.top_k};
}

std::string row_name(const MeasuredExpertLayer& m) {
  return fmt::format("line {} tokens {} hidden {} ffn {} experts {} top {} ep {} etp {}", m.line, m.tokens,
                     m.hidden_size, m.expert_ffn_size, m.n_experts, m.top_k, m.expert_parallel,
                     m.expert_tensor_parallel);
}

std::string row_name(const MeasuredExchange& m) {
  return fmt::format("line {} nodes {} tokens {} hidden {} experts {} top {} sms {}", m.line, m.n_nodes,
                     m.tokens, m.hidden_size, m.n_experts, m.top_k, m.sms);
}

}  // namespace

Result<std::vector<TestScore>> score_expert_layers(const std::vector<MeasuredExpertLayer>& layers,
                                                   const SuiteOptions& options,
                                                   std::vector<Skipped>& skipped) {
  std::map<std::pair<std::string, DType>, std::vector<const MeasuredExpertLayer*>> by_device;
  for (const MeasuredExpertLayer& m : layers) by_device[{m.gpu, m.dtype}].push_back(&m);
  struct Task {
    std::string set;
    Platform platform;
    DType dtype = DType::bf16;
    std::vector<const MeasuredExpertLayer*> rows;
    SetScore even, uneven;
  };
  std::vector<Task> tasks;
  for (auto& [key, rows] : by_device) {
    std::optional<Platform> platform = platform_of(key.first, skipped);
    if (!platform || !platform->device.peak(key.second)) continue;
    tasks.push_back({fmt::format("{} {}", key.first, to_string(key.second)),
                     std::move(*platform),
                     key.second,
                     std::move(rows),
                     {},
                     {}});
  }
  STEPCAST_TRY(parallel_for(tasks.size(), options.threads, [&](std::size_t i) -> Status {
    Task& task = tasks[i];
    std::map<LayerSizes, std::size_t> fold_of;
    for (const MeasuredExpertLayer* m : task.rows) fold_of.emplace(sizes_of(*m), 0);
    std::size_t n = 0;
    for (auto& [sizes, fold] : fold_of) fold = n++ % kFolds;
    const DeviceFigures figures = figures_of(task.platform.device);
    for (std::size_t fold = 0; fold < std::min(kFolds, n); ++fold) {
      std::vector<const MeasuredExpertLayer*> fit, tested;
      for (const MeasuredExpertLayer* m : task.rows)
        (fold_of[sizes_of(*m)] == fold ? tested : fit).push_back(m);
      if (fit.empty()) continue;
      const ExpertRates rates = fit_expert_rates(fit, task.platform.device, task.dtype);
      for (const MeasuredExpertLayer* m : tested) {
        SetScore& set = m->load.balanced() ? task.even : task.uneven;
        set.n_fit = fit.size();
        const ExpertBand band = layer_band(rates, *m);
        set.rows.push_back(scored(row_name(*m), m->time_us, predicted_layer_us(rates, figures, *m),
                                  band.log_p10, band.log_p90));
      }
    }
    return Ok{};
  }));
  TestScore even = refit_test("moe_layer"), uneven = refit_test("moe_layer_uneven");
  for (Task& task : tasks) {
    task.even.set = task.set + " balanced";
    task.uneven.set = task.set + " power law";
    task.even.group = task.uneven.group = std::string{to_string(task.dtype)};
    if (!task.even.rows.empty()) even.sets.push_back(std::move(task.even));
    if (!task.uneven.rows.empty()) uneven.sets.push_back(std::move(task.uneven));
  }
  return finished({&even, &uneven});
}

Result<std::vector<TestScore>> score_expert_exchanges(const std::vector<MeasuredExchange>& exchanges,
                                                      const SuiteOptions& options,
                                                      std::vector<Skipped>& skipped) {
  std::map<std::string, std::vector<const MeasuredExchange*>> by_device;
  for (const MeasuredExchange& m : exchanges) by_device[m.gpu].push_back(&m);
  struct HeldOut {
    std::string_view test;
    std::size_t folds;
    // the fold in which a row is tested; nullopt: it is always fitted
    std::function<std::optional<std::size_t>(const MeasuredExchange&)> fold;
    double wider = 0;  // widening of the band on each side, ln
  };
  std::map<std::int64_t, std::size_t> token_counts, hidden_sizes;
  for (const MeasuredExchange& m : exchanges) {
    token_counts.emplace(m.tokens, 0);
    hidden_sizes.emplace(m.hidden_size, 0);
  }
  // Every third count is in one of three folds; every hidden size is a fold.
  constexpr std::size_t kTokenFolds = 3;
  std::size_t n = 0;
  for (auto& [tokens, fold] : token_counts) fold = n++ % kTokenFolds;
  n = 0;
  for (auto& [hidden, fold] : hidden_sizes) fold = n++;
  const std::vector<HeldOut> kinds = {
      {"expert_exchange_tokens", kTokenFolds,
       [&](const MeasuredExchange& m) { return std::optional{token_counts.at(m.tokens)}; }},
      {"expert_exchange_hidden_sizes", hidden_sizes.size(),
       [&](const MeasuredExchange& m) { return std::optional{hidden_sizes.at(m.hidden_size)}; }},
      {"expert_exchange_nodes", 1,
       [](const MeasuredExchange& m) {
         return m.n_nodes == 2 || m.n_nodes == 4 ? std::optional<std::size_t>{0} : std::nullopt;
       },
       band_of_other_nodes(kUnmeasuredNodes)}};
  std::vector<std::pair<std::string, Platform>> platforms;
  for (const auto& [gpu, rows] : by_device)
    if (auto platform = platform_of(gpu, skipped)) platforms.emplace_back(gpu, std::move(*platform));
  std::vector<TestScore> tests;
  for (const HeldOut& kind : kinds) {
    struct Task {
      const Platform* platform;
      const std::vector<const MeasuredExchange*>* rows;
      bool combine;
      SetScore set;
    };
    std::vector<Task> tasks;
    for (const auto& [gpu, platform] : platforms) {
      for (const bool combine : {false, true}) {
        Task task{&platform, &by_device.at(gpu), combine, {}};
        task.set.set = fmt::format("{} {}", gpu, combine ? "combine" : "dispatch");
        tasks.push_back(std::move(task));
      }
    }
    STEPCAST_TRY(parallel_for(tasks.size(), options.threads, [&](std::size_t i) -> Status {
      Task& task = tasks[i];
      for (std::size_t fold = 0; fold < kind.folds; ++fold) {
        std::vector<const MeasuredExchange*> fit, tested;
        for (const MeasuredExchange* m : *task.rows) (kind.fold(*m) == fold ? tested : fit).push_back(m);
        if (fit.empty() || tested.empty()) continue;
        const ExchangeRates rates =
            fit_exchange_rates(fit, task.platform->device, task.platform->node, task.combine);
        task.set.n_fit = fit.size();
        for (const MeasuredExchange* m : tested) {
          task.set.rows.push_back(scored(row_name(*m), task.combine ? m->combine_us : m->dispatch_us,
                                         predicted_exchange_us(rates, task.platform->node, *m),
                                         rates.log_p10 - kind.wider, rates.log_p90 + kind.wider));
        }
      }
      return Ok{};
    }));
    TestScore test = refit_test(kind.test);
    for (Task& task : tasks)
      if (!task.set.rows.empty()) test.sets.push_back(std::move(task.set));
    for (TestScore& done : finished({&test})) tests.push_back(std::move(done));
  }
  return tests;
}

}  // namespace stepcast
