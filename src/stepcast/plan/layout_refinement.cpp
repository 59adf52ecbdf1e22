#include "stepcast/plan/layout_refinement.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/stop.h"
#include "stepcast/describe/megatron_writer.h"
#include "stepcast/plan/layout_flags.h"

namespace stepcast {

namespace {

double passes_us(const PricedLayer& layer) {
  return layer.forward.time_us + layer.backward.time_us + layer.held_back.time_us;
}

class Refiner {
 public:
  Refiner(const LayoutPrototypes& prototypes, StepModel& steps, Bytes memory)
      : prototypes_(prototypes), model_(prototypes.model()), steps_(steps), memory_(memory) {}

  Result<RefinedLayout> refined(const RankedLayout& ranked) {
    RefinedLayout best;
    best.layout = ranked.layout;
    best.step = ranked.step;
    best.memory = ranked.memory;
    best.settings = complete_settings(ranked.point, ranked.layout, prototypes_);
    RefinedLayout by_modules = best;
    STEPCAST_TRY(recompute_fewer(best));
    recompute_modules(by_modules);
    if (by_modules.step.step.time < best.step.step.time) best = std::move(by_modules);
    STEPCAST_TRY(balance(best));
    overlap(best);
    reorder_ranks(best);
    return best;
  }

 private:
  // Takes the change if it is faster and fits. What cannot run is no change.
  bool takes(RefinedLayout& best, const Layout& layout, const JobSettings& settings, std::string words) {
    const Result<PricedStep> step = steps_.price(model_, layout);
    if (!step.ok()) return false;
    Result<MemoryForecast> memory = memory_forecast(step->work, model_, layout, memory_);
    if (!memory.ok() || memory->verdict == MemoryVerdict::does_not_fit) return false;
    StepPrediction prediction = steps_.predict(*step, layout);
    if (!(prediction.step.time.value() < best.step.step.time.value() * (1 - kWorthIt))) return false;
    best.layout = layout;
    best.settings = settings;
    best.step = std::move(prediction);
    best.memory = std::move(*memory);
    best.changes.push_back(std::move(words));
    return true;
  }

  Status balance(RefinedLayout& best) {
    if (best.layout.degrees.pipeline < 2) return Ok{};
    STEPCAST_ASSIGN(const PricedStep step, steps_.price(model_, best.layout));
    Layout layout = best.layout;
    layout.pipeline.layers_per_stage = best_stages(step, model_);
    if (layout.pipeline.layers_per_stage.empty()) return Ok{};
    JobSettings settings = best.settings;
    settings.virtual_stages.reset();
    settings.pipeline_layout =
        pipeline_layout_string(layout.pipeline.layers_per_stage, model_.n_multi_token_prediction_layers);
    takes(best, layout, settings, fmt::format("stages {}", *settings.pipeline_layout));
    return Ok{};
  }

  // Full recomputation of the first layers of a chunk, as few as fit.
  Status recompute_fewer(RefinedLayout& best) {
    if (best.layout.layer.recompute.kind != Recompute::full) return Ok{};
    const std::vector<StageChunk> chunks = stage_chunks(model_, best.layout);
    std::int64_t most = 0;
    for (const StageChunk& chunk : chunks) most = std::max(most, chunk.n_layers);
    // Memory falls with every layer that is recomputed: the fewest that fit.
    std::int64_t low = 0, high = most;
    while (low + 1 < high) {
      const std::int64_t middle = (low + high) / 2;
      Layout layout = best.layout;
      layout.layer.recompute.layers_per_stage = middle;
      STEPCAST_ASSIGN(const MemoryForecast memory, memory_forecast(model_, layout, memory_));
      (memory.verdict == MemoryVerdict::does_not_fit ? low : high) = middle;
    }
    if (high >= most) return Ok{};
    Layout layout = best.layout;
    layout.layer.recompute.layers_per_stage = high;
    JobSettings settings = best.settings;
    settings.recompute_by_block = true;
    settings.recompute_layers = high;
    takes(best, layout, settings, fmt::format("recompute {} of {} layers a chunk", high, most));
    return Ok{};
  }

  // Parts of a layer instead of all of it, where Megatron-LM has flags for them: each set that fits is tried.
  void recompute_modules(RefinedLayout& best) {
    const Framework framework = best.layout.software.framework;
    const bool has_flags = framework == Framework::megatron || framework == Framework::nemo;
    if (!has_flags || best.layout.layer.recompute.kind != Recompute::full) return;
    struct Modules {
      std::string_view words;  // of --recompute-modules
      RecomputedModules parts;
      bool of_experts;
    };
    static constexpr Modules kSets[] = {
        {"core_attn layernorm", {.norms = true}, false},
        {"core_attn mlp", {.ffn = true}, false},
        {"core_attn layernorm mlp", {.norms = true, .ffn = true}, false},
        {"core_attn moe_act", {.expert_activation = true}, true},
        {"core_attn layernorm moe_act", {.norms = true, .expert_activation = true}, true},
        {"core_attn moe", {.experts = true}, true},
        {"core_attn layernorm moe", {.norms = true, .experts = true}, true},
        {"core_attn layernorm moe mlp", {.norms = true, .ffn = true, .experts = true}, true},
    };
    const RefinedLayout before = best;
    for (const Modules& set : kSets) {
      if (set.of_experts != model_.moe.has_value()) continue;
      Layout layout = before.layout;
      layout.layer.recompute = {.kind = Recompute::selective, .modules = set.parts};
      JobSettings settings = before.settings;
      settings.recompute = Recompute::selective;
      settings.recompute_by_block.reset();
      settings.recompute_layers.reset();
      settings.recompute_modules = std::string{set.words};
      // Instead of a set that was taken before.
      if (takes(best, layout, settings, fmt::format("recompute {} alone", set.words)))
        best.changes = {best.changes.back()};
    }
  }

  // Pipeline stages inside nodes and data-parallel ranks across them, instead of the other way round.
  void reorder_ranks(RefinedLayout& best) {
    const Framework framework = best.layout.software.framework;
    const bool has_flag = framework == Framework::megatron || framework == Framework::nemo;
    constexpr std::string_view kUsual = "tp-cp-ep-dp-pp", kOther = "tp-cp-ep-pp-dp";
    if (!has_flag || best.layout.degrees.pipeline < 2 || best.layout.rank_order != kUsual) return;
    Layout layout = best.layout;
    layout.rank_order = kOther;
    JobSettings settings = best.settings;
    settings.pipeline_before_data = true;
    takes(best, layout, settings, "pipeline stages next to each other (ranks in the order tp-cp-ep-pp-dp)");
  }

  void overlap(RefinedLayout& best) {
    if (best.layout.degrees.tensor > 1 && best.layout.layer.sequence_parallel &&
        !best.layout.layer.overlap.tensor_parallel) {
      Layout layout = best.layout;
      layout.layer.overlap.tensor_parallel = true;
      JobSettings settings = best.settings;
      settings.overlap_tensor_parallel = true;
      takes(best, layout, settings, "tensor-parallel communication overlapped with products");
    }
    const Degrees& degrees = best.layout.degrees;
    const bool two_batches_at_once = degrees.pipeline == 1 || degrees.virtual_stages > 1;
    if (degrees.expert > 1 && two_batches_at_once && !best.layout.layer.overlap.expert) {
      Layout layout = best.layout;
      layout.layer.overlap.expert = layout.layer.overlap.delayed_weight_gradient = true;
      JobSettings settings = best.settings;
      settings.overlap_expert = settings.delay_weight_gradient = true;
      takes(best, layout, settings, "exchange of tokens overlapped with another micro-batch");
    }
  }

  // Less is rounding.
  static constexpr double kWorthIt = 1e-4;

  const LayoutPrototypes& prototypes_;
  const Transformer& model_;
  StepModel& steps_;
  Bytes memory_;
};

}  // namespace

std::vector<std::int64_t> best_stages(const PricedStep& step, const Transformer& model) {
  std::vector<double> layers;
  for (const ChunkWork& chunk : step.work.chunks)
    for (const ChunkWork::Run& run : chunk.runs)
      layers.insert(layers.end(), run.count, passes_us(step.layers[run.kind]));
  // Layers that predict further tokens stand behind the last and stay there.
  double back_us = passes_us(step.head);
  const std::size_t further = static_cast<std::size_t>(model.n_multi_token_prediction_layers) *
                              layers_of_further_prediction(model).size();
  for (std::size_t i = 0; i < further && !layers.empty(); ++i) {
    back_us += layers.back();
    layers.pop_back();
  }
  return balanced_stages(layers, passes_us(step.embedding), back_us, step.work.chunks.size());
}

Result<std::vector<RefinedLayout>> refine_layouts(const LayoutRanking& ranking,
                                                  const LayoutPrototypes& prototypes, StepModel& steps,
                                                  Bytes memory) {
  Refiner refiner{prototypes, steps, memory};
  std::vector<RefinedLayout> all;
  for (std::size_t i = 0; i < std::min(kMostRefined, ranking.layouts.size()); ++i) {
    STEPCAST_TRY(not_stopped());
    STEPCAST_ASSIGN(RefinedLayout one, refiner.refined(ranking.layouts[i]));
    one.of = i;
    if (!one.changes.empty()) all.push_back(std::move(one));
  }
  std::ranges::stable_sort(all, [](const RefinedLayout& a, const RefinedLayout& b) {
    return a.step.step.time < b.step.step.time;
  });
  return all;
}

std::vector<std::int64_t> balanced_stages(std::span<const double> layer_us, double front_us, double back_us,
                                          std::size_t n_chunks) {
  const std::size_t n = layer_us.size();
  if (n_chunks < 2 || n + 2 < n_chunks) return {};
  std::vector<double> before(n + 1, 0);  // of the layers in front
  for (std::size_t i = 0; i < n; ++i) before[i + 1] = before[i] + layer_us[i];

  struct Best {
    double slowest = std::numeric_limits<double>::infinity(), squares = 0;
    std::size_t from = 0;  // first layer of the last chunk
  };
  // best[c][i]: the first i layers on the first c + 1 chunks.
  std::vector<std::vector<Best>> best(n_chunks, std::vector<Best>(n + 1));
  for (std::size_t i = 0; i <= n; ++i) {
    const double load = front_us + before[i];
    best[0][i] = {load, load * load, 0};
  }
  for (std::size_t c = 1; c < n_chunks; ++c) {
    const bool is_last = c + 1 == n_chunks;
    for (std::size_t i = is_last ? n : 0; i <= n; ++i) {
      Best& here = best[c][i];
      const std::size_t end = is_last ? i + 1 : i;  // a chunk between the ends has a layer
      // From the back: once the chunk alone is slower than the best, longer ones are, too.
      for (std::size_t j = end; j-- > 0;) {
        const double load = before[i] - before[j] + (is_last ? back_us : 0);
        if (load > here.slowest) break;
        const Best& front = best[c - 1][j];
        const double slowest = std::max(front.slowest, load), squares = front.squares + load * load;
        if (slowest < here.slowest || (slowest == here.slowest && squares < here.squares))
          here = {slowest, squares, j};
      }
    }
  }
  if (best[n_chunks - 1][n].slowest == std::numeric_limits<double>::infinity()) return {};
  std::vector<std::int64_t> layers(n_chunks, 0);
  std::size_t end = n;
  for (std::size_t c = n_chunks; c-- > 0;) {
    const std::size_t from = best[c][end].from;
    layers[c] = static_cast<std::int64_t>(end - from);
    end = from;
  }
  return layers;
}

}  // namespace stepcast
