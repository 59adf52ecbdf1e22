#include "stepcast/plan/layout_refinement.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/base/stop.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/recipe_dimensions.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {

namespace {

bool has_all_flags(Framework framework) { return rule_of(framework).search.has_megatron_flags; }

double passes_us(const PricedLayer& layer) {
  return layer.forward.time_us + layer.backward.time_us + layer.held_back.time_us;
}

class Refiner {
 public:
  Refiner(const LayoutPrototypes& prototypes, const StepModel& steps, const RefinementOptions& options)
      : prototypes_(prototypes),
        model_(prototypes.model()),
        steps_(steps),
        device_(steps.platform().device),
        memory_(options.memory),
        said_(options.said) {}

  // The step of the layout if refinement did all that it can: no recomputation, the leanest of every choice of the recipe,
  // no exposed communication inside layers, stages of equal length.
  Result<double> bound_us(const LayoutPoint& point) {
    Layout layout = prototypes_.layout(point);
    layout.layer.recompute = {};
    JobSettings unused;
    for (const RecipeDimension& one : recipe_dimensions()) {
      if (!one.is_open(said_) || !one.applies(layout, model_, device_)) continue;
      Layout leaner = layout;
      one.changes.back().apply(leaner, unused);
      if (check(leaner, model_).ok()) layout = std::move(leaner);
    }
    STEPCAST_ASSIGN(const PricedStep step, steps_.price(model_, layout));
    const StepPrediction p = steps_.predict(step, layout);
    double sum_us = 0, most_us = 0;
    for (const StageTimes& stage : p.times.stages) {
      sum_us += stage.compute_us;
      most_us = std::max(most_us, stage.compute_us);
    }
    const double even = sum_us / std::max(1e-9, most_us * static_cast<double>(p.times.stages.size()));
    const auto exposed = [&](GroupKind kind) { return p.shares.exposed_us[static_cast<std::size_t>(kind)]; };
    return even * (p.step.time.value() - exposed(GroupKind::tensor) - exposed(GroupKind::expert) -
                   exposed(GroupKind::context));
  }

  Result<RankedLayout> look_at(const std::vector<PricedLayout>& priced, std::size_t rank) {
    return stepcast::look_at(priced, rank, prototypes_, steps_, memory_);
  }

  Result<RefinedLayout> refined(const RankedLayout& ranked) {
    RefinedLayout best;
    best.layout = ranked.layout;
    best.step = ranked.step;
    best.memory = ranked.memory;
    best.settings = complete_settings(ranked.point, ranked.layout, prototypes_);
    for (const RecipeDimension& one : recipe_dimensions())
      if (one.room == Room::frees) vary(best, one);
    RefinedLayout by_modules = best;
    STEPCAST_TRY(recompute_fewer(best));
    recompute_modules(by_modules);
    if (by_modules.step.step.time < best.step.step.time) best = std::move(by_modules);
    STEPCAST_TRY(balance(best));
    for (const RecipeDimension& one : recipe_dimensions())
      if (one.room != Room::frees) vary(best, one);
    return best;
  }

 private:
  // What had memory to spare keeps some: a layout that is tight is not recommended.
  static bool suffices(MemoryVerdict verdict, const RefinedLayout& best) {
    return verdict == MemoryVerdict::fits ||
           (verdict == MemoryVerdict::tight && best.memory.verdict == MemoryVerdict::tight);
  }

  // Takes the change if it is faster and fits. What cannot run is no change.
  bool takes(RefinedLayout& best, const Layout& layout, const JobSettings& settings, std::string words,
             double least_gain = kWorthIt) {
    const Result<PricedStep> step = steps_.price(model_, layout);
    if (!step.ok()) return false;
    Result<MemoryForecast> memory = memory_forecast(step->work, model_, layout, memory_);
    if (!memory.ok() || !suffices(memory->verdict, best)) return false;
    StepPrediction prediction = steps_.predict(*step, layout);
    if (!(prediction.step.time.value() < best.step.step.time.value() * (1 - least_gain))) return false;
    best.layout = layout;
    best.settings = settings;
    best.step = std::move(prediction);
    best.memory = std::move(*memory);
    best.changes.push_back(std::move(words));
    return true;
  }

  // One of several, in place of the one that was taken behind the first `n` changes.
  void takes_instead(RefinedLayout& best, std::size_t n, const Layout& layout, const JobSettings& settings,
                     std::string words, double least_gain = kWorthIt) {
    if (takes(best, layout, settings, std::move(words), least_gain) && best.changes.size() > n + 1)
      best.changes.erase(best.changes.begin() + static_cast<std::ptrdiff_t>(n));
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

  // Full recomputation of the first layers of a chunk, as few as fit, where nobody says that it is full.
  Status recompute_fewer(RefinedLayout& best) {
    if (best.layout.layer.recompute.kind != Recompute::full || said_.recompute == Recompute::full)
      return Ok{};
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
      (suffices(memory.verdict, best) ? high : low) = middle;
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
    if (said_.recompute == Recompute::full) return;
    if (!has_all_flags(best.layout.software.framework) || best.layout.layer.recompute.kind != Recompute::full)
      return;
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
      takes_instead(best, before.changes.size(), layout, settings,
                    fmt::format("recompute {} alone", set.words));
    }
  }

  // The fastest of what one choice of the recipe can be.
  void vary(RefinedLayout& best, const RecipeDimension& dimension) {
    if (!dimension.is_open(said_) || !dimension.applies(best.layout, model_, device_)) return;
    const bool needs_room = dimension.room == Room::needs;
    if (needs_room && best.memory.verdict != MemoryVerdict::fits) return;
    const std::size_t n = best.changes.size();
    for (const RecipeChange& change : dimension.changes) {
      Layout layout = best.layout;
      JobSettings settings = best.settings;
      change.apply(layout, settings);
      const double least_gain = needs_room ? kWorthItsWords : kWorthIt;
      takes_instead(best, n, layout, settings, std::string{change.words}, least_gain);
    }
  }

  // Less is rounding; less is not worth a setting that may cost what is not counted (assumed).
  static constexpr double kWorthIt = 1e-4, kWorthItsWords = 0.002;

  const LayoutPrototypes& prototypes_;
  const Transformer& model_;
  StepModel steps_;
  const Device& device_;
  Bytes memory_;
  const JobSettings& said_;
};

// The fastest step that may be chosen: of a measured kind, with flags, in memory that is not tight.
class FastestChoice {
 public:
  explicit FastestChoice(const LayoutPrototypes& prototypes) : prototypes_(prototypes) {}
  void add(const RankedLayout& ranked) { add(ranked, ranked.step, ranked.memory); }
  void add(const RankedLayout& ranked, const StepPrediction& step, const MemoryForecast& memory) {
    const bool may_be = ranked.unmeasured.empty() && memory.verdict != MemoryVerdict::tight;
    if (may_be && step.step.time.value() < us_ && has_flags(ranked, prototypes_))
      us_ = step.step.time.value();
  }
  [[nodiscard]] double us() const { return us_; }

 private:
  const LayoutPrototypes& prototypes_;
  double us_ = std::numeric_limits<double>::infinity();
};

// What was found of one layout.
struct Found {
  RankedLayout ranked;
  RefinedLayout refined;
};

class Refinement {
 public:
  Refinement(LayoutRanking& ranking, const std::vector<PricedLayout>& priced,
             const LayoutPrototypes& prototypes, const Platform& platform, const RefinementOptions& options)
      : ranking_(ranking),
        priced_(priced),
        prototypes_(prototypes),
        n_threads_(options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency())),
        fastest_(prototypes) {
    const StepModel steps = options.steps != nullptr ? options.steps->with(options.assumptions)
                                                     : StepModel{platform, options.assumptions};
    for (unsigned i = 0; i < n_threads_; ++i) refiners_.emplace_back(prototypes, steps, options);
  }

  Result<RefinedLayouts> all() {
    RefinedLayouts result;
    const std::size_t n = std::min(kAlwaysRefined, ranking_.layouts.size());
    std::vector<Found> found(n);
    STEPCAST_TRY(each(n, [&](Refiner& refiner, std::size_t i) -> Status {
      found[i].ranked = ranking_.layouts[i];
      STEPCAST_ASSIGN(found[i].refined, refiner.refined(found[i].ranked));
      found[i].refined.of = i;
      return Ok{};
    }));
    for (const RankedLayout& ranked : ranking_.layouts) fastest_.add(ranked);
    for (Found& one : found) take(std::move(one), result.faster);
    result.n_tried = n;
    if (has_all_flags(prototypes_.framework())) STEPCAST_TRY(beyond(n, result));
    std::ranges::stable_sort(result.faster, [](const RefinedLayout& a, const RefinedLayout& b) {
      return a.step.step.time < b.step.step.time;
    });
    return result;
  }

 private:
  // Calls work(refiner, i) for i below n, each refiner on a thread of its own.
  template <class Work>
  Status each(std::size_t n, const Work& work) {
    return parallel_for(n_threads_, n_threads_, [&](std::size_t thread) -> Status {
      for (std::size_t i = thread; i < n; i += n_threads_) {
        STEPCAST_TRY(not_stopped());
        STEPCAST_TRY(work(refiners_[thread], i));
      }
      return Ok{};
    });
  }

  void take(Found&& one, std::vector<RefinedLayout>& faster) {
    if (one.refined.changes.empty()) return;
    fastest_.add(one.ranked, one.refined.step, one.refined.memory);
    faster.push_back(std::move(one.refined));
  }

  // Layouts behind the first `n`, in the order of what they could become.
  Status beyond(std::size_t n, RefinedLayouts& result) {
    struct Candidate {
      std::size_t rank = 0;
      double bound_us = 0;
    };
    std::vector<Candidate> candidates;
    for (std::size_t rank = n; rank < priced_.size(); ++rank) {
      if (priced_[rank].step_us > kReach * fastest_.us()) break;
      candidates.push_back({rank, 0});
    }
    STEPCAST_TRY(each(candidates.size(), [&](Refiner& refiner, std::size_t i) -> Status {
      STEPCAST_ASSIGN(candidates[i].bound_us, refiner.bound_us(priced_[candidates[i].rank].point));
      return Ok{};
    }));
    std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
      return std::tie(a.bound_us, a.rank) < std::tie(b.bound_us, b.rank);
    });
    std::vector<Found> better;
    for (std::size_t from = 0; from < candidates.size(); from += kAtOnce) {
      if (!(candidates[from].bound_us < fastest_.us())) break;
      std::vector<Found> found(std::min(kAtOnce, candidates.size() - from));
      STEPCAST_TRY(each(found.size(), [&](Refiner& refiner, std::size_t i) -> Status {
        STEPCAST_ASSIGN(found[i].ranked, refiner.look_at(priced_, candidates[from + i].rank));
        STEPCAST_ASSIGN(found[i].refined, refiner.refined(found[i].ranked));
        return Ok{};
      }));
      result.n_tried += found.size();
      for (Found& one : found) {
        if (one.refined.changes.empty()) continue;
        fastest_.add(one.ranked, one.refined.step, one.refined.memory);
        better.push_back(std::move(one));
      }
    }
    add_best(std::move(better), result.faster);
    return Ok{};
  }

  // The best of those that the ranking does not show, with the layouts that they refine.
  void add_best(std::vector<Found>&& better, std::vector<RefinedLayout>& faster) {
    // First those that may be chosen.
    const auto order = [](const Found& one) {
      const bool may_be = one.ranked.unmeasured.empty() && one.refined.memory.verdict != MemoryVerdict::tight;
      return std::pair{!may_be, one.refined.step.step.time.value()};
    };
    std::ranges::stable_sort(better, {}, order);
    better.resize(std::min(better.size(), kMostAdded));
    std::ranges::sort(better, {}, [](const Found& one) { return one.ranked.rank; });
    for (Found& one : better) {
      // Those that the ranking shows, though they were not refined at once, keep their place.
      const bool is_shown = one.ranked.rank < ranking_.layouts.size() &&
                            ranking_.layouts[one.ranked.rank].rank == one.ranked.rank;
      one.refined.of = is_shown ? one.ranked.rank : ranking_.layouts.size();
      if (!is_shown) {
        one.ranked.behind_us =
            one.ranked.step.step.time.value() - ranking_.layouts.front().step.step.time.value();
        ranking_.layouts.push_back(std::move(one.ranked));
      }
      faster.push_back(std::move(one.refined));
    }
  }

  // Refined in any case; at once; added to the ranking.
  static constexpr std::size_t kAlwaysRefined = 200, kAtOnce = 64, kMostAdded = 20;
  // Refinement does not make a step three times as fast (2.6 times where tokens go over many nodes).
  static constexpr double kReach = 3;

  LayoutRanking& ranking_;
  const std::vector<PricedLayout>& priced_;
  const LayoutPrototypes& prototypes_;
  unsigned n_threads_;
  std::vector<Refiner> refiners_;
  FastestChoice fastest_;
};

}  // namespace

bool has_flags(const RankedLayout& ranked, const LayoutPrototypes& prototypes) {
  return has_all_flags(prototypes.framework()) &&
         megatron_text(ranked.point, ranked.layout, prototypes).has_value();
}

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

Result<RefinedLayouts> refine_layouts(LayoutRanking& ranking, const std::vector<PricedLayout>& priced,
                                      const LayoutPrototypes& prototypes, const Platform& platform,
                                      const RefinementOptions& options) {
  if (ranking.layouts.empty()) return RefinedLayouts{};
  return Refinement{ranking, priced, prototypes, platform, options}.all();
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
    for (std::size_t i = is_last ? n : c; i <= n; ++i) {  // fewer layers are too few for the chunks
      Best& here = best[c][i];
      const std::size_t end = is_last ? i + 1 : i;  // a chunk between the ends has a layer
      // From the back: once the chunk alone is slower than the best, longer ones are, too.
      for (std::size_t j = end; j-- > c - 1;) {
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
