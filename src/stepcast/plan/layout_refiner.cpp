#include "stepcast/plan/layout_refiner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stepcast/formats/megatron_writer.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/recipe_dimensions.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/modules/attention_module.h"

// Refinement tries one variant of a layout at a time: price it, forecast its memory, keep it if it is faster and fits. The
// settings change together with the layout, so that the result can be given to the training software.
namespace stepcast {
namespace {

// Least relative gains: below the first a difference is rounding; below the second a setting with uncounted costs is not
// worth it. Assumed.
constexpr double kWorthIt = 1e-4, kWorthItsWords = 0.002;

double us_of(const RefinedLayout& layout) { return layout.step.step.time.value(); }

// True if a variant has enough memory: a layout with headroom must keep some, because layouts with low headroom are not
// recommended.
bool suffices(MemoryVerdict verdict, const RefinedLayout& best) {
  return verdict == MemoryVerdict::fits ||
         (verdict == MemoryVerdict::tight && best.memory.verdict == MemoryVerdict::tight);
}

// Sets of modules for --recompute-modules of Megatron-LM, as alternatives to whole layers, with the models they apply to.
struct Modules {
  enum class Of : std::uint8_t { any, dense, experts, latent, latent_experts };
  std::string_view words;
  RecomputedModules parts;
  Of of;
};
constexpr Modules kModules[] = {
    {"core_attn layernorm", {.norms = true}, Modules::Of::any},
    {"core_attn mlp", {.ffn = true}, Modules::Of::dense},
    {"core_attn layernorm mlp", {.norms = true, .ffn = true}, Modules::Of::dense},
    {"core_attn moe_act", {.expert_activation = true}, Modules::Of::experts},
    {"core_attn layernorm moe_act", {.norms = true, .expert_activation = true}, Modules::Of::experts},
    {"core_attn moe", {.experts = true}, Modules::Of::experts},
    {"core_attn layernorm moe", {.norms = true, .experts = true}, Modules::Of::experts},
    {"core_attn layernorm moe mlp", {.norms = true, .ffn = true, .experts = true}, Modules::Of::experts},
    {"core_attn mla_up_proj", {.latent_projections = true}, Modules::Of::latent},
    {"core_attn mla_up_proj mlp", {.ffn = true, .latent_projections = true}, Modules::Of::latent},
    {"core_attn mla_up_proj moe_act",
     {.latent_projections = true, .expert_activation = true},
     Modules::Of::latent_experts},
    {"core_attn mla_up_proj layernorm moe_act",
     {.norms = true, .latent_projections = true, .expert_activation = true},
     Modules::Of::latent_experts},
    {"core_attn mla_up_proj layernorm moe",
     {.norms = true, .latent_projections = true, .experts = true},
     Modules::Of::latent_experts},
};

// True if the model has the parts that a set of modules recomputes.
bool has(const Transformer& model, Modules::Of of) {
  const bool experts = model.moe.has_value();
  switch (of) {
    case Modules::Of::any: return true;
    case Modules::Of::dense: return !experts;
    case Modules::Of::experts: return experts;
    case Modules::Of::latent: return attention_of(model).traits().expands_latents;
    case Modules::Of::latent_experts: return experts && attention_of(model).traits().expands_latents;
  }
  return false;
}

// A variant of a layout to be priced.
struct Variant {
  Layout layout;
  JobSettings settings;
  std::string words;
};

// The layout with another recomputation; settings of earlier recomputations are removed.
Variant with_recompute(const RefinedLayout& of, const Recomputation& recompute, std::string words) {
  Variant variant{of.layout, of.settings, std::move(words)};
  variant.layout.layer.recompute = recompute;
  variant.settings.recompute = recompute.kind;
  variant.settings.recompute_by_block.reset();
  variant.settings.recompute_layers.reset();
  variant.settings.recompute_modules.reset();
  return variant;
}

// Alternatives to full recomputation that Megatron-LM has flags for; empty for other frameworks.
std::vector<Variant> module_variants(const RefinedLayout& of, const Transformer& model) {
  std::vector<Variant> all;
  if (!rule_of(of.layout).search.has_megatron_flags || of.layout.layer.recompute.kind != Recompute::full)
    return all;
  for (const Modules& set : kModules) {
    if (!has(model, set.of)) continue;
    all.push_back(with_recompute(of, {.kind = Recompute::selective, .modules = set.parts},
                                 fmt::format("recompute {} alone", set.words)));
    all.back().settings.recompute_modules = std::string{set.words};
  }
  return all;
}

}  // namespace

LayoutRefiner::LayoutRefiner(const LayoutPrototypes& prototypes, const StepModel& steps,
                             const RefinementOptions& options)
    : prototypes_(prototypes),
      model_(prototypes.model()),
      steps_(steps),
      device_(steps.platform().device),
      memory_(options.memory),
      said_(options.said),
      recomputations_(options.recomputations) {}

Result<double> LayoutRefiner::bound_us(const LayoutPoint& point) {
  Layout layout = prototypes_.layout(point);
  layout.layer.recompute = {};
  JobSettings unused;
  for (const RecipeDimension& one : recipe_dimensions()) {
    if (!one.is_open(said_) || !one.applies(layout, model_, device_)) continue;
    // The last value of a choice has the least work left, so it gives the bound.
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
  // Mean over maximum of the stage times: the factor by which equal stages would shorten the step.
  const double even = sum_us / std::max(1e-9, most_us * static_cast<double>(p.times.stages.size()));
  const auto exposed = [&](GroupKind kind) { return p.shares.exposed_us[static_cast<std::size_t>(kind)]; };
  return even * (p.step.time.value() - exposed(GroupKind::tensor) - exposed(GroupKind::expert) -
                 exposed(GroupKind::context));
}

Result<RankedLayout> LayoutRefiner::look_at(const std::vector<PricedLayout>& priced, std::size_t rank) {
  return stepcast::look_at(priced, rank, prototypes_, steps_, memory_);
}

Result<RefinedLayout> LayoutRefiner::refined(const RankedLayout& ranked) {
  stages_seen_.clear();
  RefinedLayout best = start_of(ranked);
  // Two alternatives to full recomputation of all layers: fewer layers, or parts of every layer. The faster one is settled.
  RefinedLayout by_modules = best;
  STEPCAST_TRY(recompute_fewer(best));
  recompute_modules(by_modules);
  if (us_of(by_modules) < us_of(best)) best = std::move(by_modules);
  STEPCAST_TRY(settle(best));
  return best;
}

Result<RefinedLayout> LayoutRefiner::searched(const RankedLayout& ranked, RefinedLayout quick) {
  // The number of recomputations followed: first the fastest before other choices, then the fastest after them.
  constexpr std::size_t kSettled = 8, kSets = 3;
  const auto by_time = [](const RefinedLayout& a, const RefinedLayout& b) { return us_of(a) < us_of(b); };
  stages_seen_.clear();
  STEPCAST_ASSIGN(std::vector<RefinedLayout> bare, recomputations(start_of(ranked)));
  std::ranges::stable_sort(bare, by_time);
  // Only the fastest recomputations are settled, because each costs some 20 prices.
  bare.resize(std::min(bare.size(), kSettled));
  std::vector<RefinedLayout> settled;
  for (RefinedLayout& one : bare) {
    RefinedLayout end = one;
    STEPCAST_TRY(settle(end));
    if (!suffices(end.memory.verdict, quick)) continue;
    // Sets of choices start from the stages that fit the chosen settings.
    one.layout.pipeline.layers_per_stage = end.layout.pipeline.layers_per_stage;
    one.settings.virtual_stages = end.settings.virtual_stages;
    one.settings.pipeline_layout = end.settings.pipeline_layout;
    for (const std::string& words : end.changes)
      if (words.starts_with("stages ")) one.changes.push_back(words);
    one.step = end.step;  // for the sorting below
    one.memory = ranked.memory;
    settled.push_back(std::move(one));
    if (us_of(end) < us_of(quick)) {
      end.of = quick.of;
      quick = std::move(end);
    }
  }
  std::ranges::stable_sort(settled, by_time);
  settled.resize(std::min(settled.size(), kSets));
  if (!settled.empty()) STEPCAST_TRY(see_stages(settled.front()));
  for (const RefinedLayout& one : settled) {
    for (RefinedLayout& best : best_sets(one)) {
      STEPCAST_TRY(balance(best));
      for (std::size_t i = 0; i < stages_seen_.size(); ++i) deal(best, stages_seen_[i]);
      if (!suffices(best.memory.verdict, quick) || !(us_of(best) < us_of(quick) * (1 - kWorthIt))) continue;
      best.of = quick.of;
      quick = std::move(best);
    }
  }
  return quick;
}

std::optional<LayoutRefiner::Look> LayoutRefiner::look(const Layout& layout) {
  const Result<PricedStep> step = steps_.price(model_, layout);
  if (!step.ok()) return std::nullopt;
  Result<MemoryForecast> memory = memory_forecast(step->work, model_, layout, memory_);
  if (!memory.ok()) return std::nullopt;
  return Look{steps_.predict(*step, layout), std::move(*memory)};
}

// The layout after the choices that free memory; they precede those that use it.
RefinedLayout LayoutRefiner::start_of(const RankedLayout& ranked) {
  RefinedLayout start;
  start.layout = ranked.layout;
  start.step = ranked.step;
  start.memory = ranked.memory;
  start.settings = complete_settings(ranked.point, ranked.layout, prototypes_);
  for (const RecipeDimension& one : recipe_dimensions()) {
    if (one.room != Room::frees || !one.is_open(said_) || !one.applies(start.layout, model_, device_))
      continue;
    for (const RecipeChange& change : one.changes) {
      Layout layout = start.layout;
      JobSettings settings = start.settings;
      change.apply(layout, settings);
      takes(start, layout, settings, std::string{change.words}, -kWorthIt);
    }
  }
  return start;
}

// Accepts the variant if it is faster by `least_gain` and fits. If nothing has fit yet, less memory is an improvement.
bool LayoutRefiner::takes(RefinedLayout& best, const Layout& layout, const JobSettings& settings,
                          std::string words, double least_gain) {
  std::optional<Look> seen = look(layout);
  if (!seen) return false;
  // Before any variant fits, less memory counts as progress; afterwards only time does.
  const bool has_fitted = best.memory.verdict != MemoryVerdict::does_not_fit;
  const bool is_better =
      suffices(seen->memory.verdict, best)
          ? !has_fitted || seen->step.step.time.value() < us_of(best) * (1 - least_gain)
          : !has_fitted && seen->memory.peak().value() < best.memory.peak().value() * (1 - least_gain);
  if (!is_better) return false;
  best.layout = layout;
  best.settings = settings;
  best.step = std::move(seen->step);
  best.memory = std::move(seen->memory);
  best.changes.push_back(std::move(words));
  return true;
}

// Tries one of several exclusive variants. If accepted, it replaces the one accepted after the first `n` changes.
void LayoutRefiner::takes_instead(RefinedLayout& best, std::size_t n, const Layout& layout,
                                  const JobSettings& settings, std::string words, double least_gain) {
  if (takes(best, layout, settings, std::move(words), least_gain) && best.changes.size() > n + 1)
    best.changes.erase(best.changes.begin() + static_cast<std::ptrdiff_t>(n));
}

// Tries the best division of layers among stages.
Status LayoutRefiner::balance(RefinedLayout& best) {
  if (best.layout.degrees.pipeline < 2) return Ok{};
  STEPCAST_ASSIGN(const PricedStep step, steps_.price(model_, best.layout));
  std::vector<std::int64_t> stages = best_stages(step, model_);
  if (stages.empty()) return Ok{};
  deal(best, stages);
  see(stages);
  // Which inner chunks have one more layer is a tie of the balance, but matters for the schedule: both orders are seen.
  std::sort(stages.begin() + 1, stages.end() - 1);
  see(stages);
  std::reverse(stages.begin() + 1, stages.end() - 1);
  see(stages);
  return Ok{};
}

// Remembers a division of layers for later trials.
void LayoutRefiner::see(const std::vector<std::int64_t>& stages) {
  if (std::ranges::find(stages_seen_, stages) == stages_seen_.end()) stages_seen_.push_back(stages);
}

// Tries a division of layers; if accepted, it replaces an earlier one in the list of changes.
void LayoutRefiner::deal(RefinedLayout& best, const std::vector<std::int64_t>& stages) {
  if (stages == best.layout.pipeline.layers_per_stage) return;
  Layout layout = best.layout;
  layout.pipeline.layers_per_stage = stages;
  JobSettings settings = best.settings;
  settings.virtual_stages.reset();
  settings.pipeline_layout = pipeline_layout_string(stages, model_.n_multi_token_prediction_layers);
  if (!takes(best, layout, settings, fmt::format("stages {}", *settings.pipeline_layout), kWorthIt)) return;
  const auto before = std::ranges::find_if(
      best.changes, [](const std::string& words) { return words.starts_with("stages "); });
  if (before != best.changes.end() - 1) best.changes.erase(before);
}

// Full recomputation of only the first layers of a chunk: the fewest that fit. Skipped if the user asked for full
// recomputation.
Status LayoutRefiner::recompute_fewer(RefinedLayout& best) {
  if (best.layout.layer.recompute.kind != Recompute::full || said_.recompute == Recompute::full) return Ok{};
  const std::vector<StageChunk> chunks = stage_chunks(model_, best.layout);
  std::int64_t most = 0;
  for (const StageChunk& chunk : chunks) most = std::max(most, chunk.n_layers);
  // Memory falls with every recomputed layer: bisection finds the fewest that fit.
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
  takes(best, layout, settings, fmt::format("recompute {} of {} layers a chunk", high, most), kWorthIt);
  return Ok{};
}

// Tries each set of modules instead of full recomputation of layers.
void LayoutRefiner::recompute_modules(RefinedLayout& best) {
  if (said_.recompute == Recompute::full) return;
  const std::size_t n = best.changes.size();
  for (Variant& variant : module_variants(best, model_))
    takes_instead(best, n, variant.layout, variant.settings, std::move(variant.words), kWorthIt);
}

// Tries all values of one choice of the recipe and keeps the fastest.
void LayoutRefiner::vary(RefinedLayout& best, const RecipeDimension& dimension) {
  if (!dimension.is_open(said_) || !dimension.applies(best.layout, model_, device_)) return;
  const bool needs_room = dimension.room == Room::needs;
  // Uncounted memory is used only where there is headroom.
  if (needs_room && best.memory.verdict != MemoryVerdict::fits) return;
  const std::size_t n = best.changes.size();
  for (const RecipeChange& change : dimension.changes) {
    Layout layout = best.layout;
    JobSettings settings = best.settings;
    change.apply(layout, settings);
    takes_instead(best, n, layout, settings, std::string{change.words},
                  needs_room ? kWorthItsWords : kWorthIt);
  }
}

// Balances stages, tries the recipe choices one by one, and balances again because the layers now take other times.
Status LayoutRefiner::settle(RefinedLayout& best) {
  STEPCAST_TRY(balance(best));
  const std::size_t n = best.changes.size();
  for (const RecipeDimension& one : recipe_dimensions())
    if (one.room != Room::frees) vary(best, one);
  return best.changes.size() == n ? Status{Ok{}} : balance(best);
}

// Collects the best stages for each recipe choice alone: the stages balanced for all choices together may be slower.
Status LayoutRefiner::see_stages(const RefinedLayout& start) {
  for (const RecipeDimension& one : recipe_dimensions()) {
    if (!one.is_open(said_) || !one.applies(start.layout, model_, device_)) continue;
    for (const RecipeChange& change : one.changes) {
      RefinedLayout with = start;
      change.apply(with.layout, with.settings);
      if (check(with.layout, model_).ok()) STEPCAST_TRY(balance(with));
    }
  }
  return Ok{};
}

// The layout with every recomputation that fits or nearly fits; recipe choices and uneven stages may free the missing memory.
Result<std::vector<RefinedLayout>> LayoutRefiner::recomputations(const RefinedLayout& start) {
  constexpr double kNearly = 0.1;  // share of the memory
  std::vector<RefinedLayout> all{start};
  if (start.layout.layer.recompute.kind != Recompute::full || said_.recompute == Recompute::full) return all;
  RefinedLayout fewer = start;
  STEPCAST_TRY(recompute_fewer(fewer));
  if (fewer.changes.size() > start.changes.size()) all.push_back(std::move(fewer));
  std::vector<Variant> variants = module_variants(start, model_);
  for (const Recompute kind : {Recompute::none, Recompute::selective}) {
    if (std::ranges::find(recomputations_, kind) == recomputations_.end()) continue;
    variants.push_back(with_recompute(
        start, {.kind = kind}, kind == Recompute::none ? "recompute nothing" : "recompute core_attn alone"));
  }
  for (Variant& variant : variants) {
    std::optional<Look> seen = look(variant.layout);
    if (!seen || seen->memory.margin().value() < -kNearly * memory_.value()) continue;
    RefinedLayout& one = all.emplace_back(start);
    one.layout = std::move(variant.layout);
    one.settings = std::move(variant.settings);
    one.step = std::move(seen->step);
    one.memory = std::move(seen->memory);
    one.changes.push_back(std::move(variant.words));
  }
  return all;
}

// The fastest sets of recipe choices that fit, at most kMost. Every choice with uncounted memory must gain at least
// kWorthItsWords. Enumerates all subsets recursively.
std::vector<RefinedLayout> LayoutRefiner::best_sets(const RefinedLayout& bare) {
  constexpr std::size_t kMost = 2;
  std::vector<std::pair<double, RefinedLayout>> best;
  struct Set {
    Layout layout;
    JobSettings settings;
    std::vector<std::string_view> words;
    int n_needing = 0;
  };
  const auto judge = [&](const Set& set) {
    std::optional<Look> seen = look(set.layout);
    if (!seen || !suffices(seen->memory.verdict, bare)) return;
    if (set.n_needing > 0 && seen->memory.verdict != MemoryVerdict::fits) return;
    // The key penalises every setting a little, so that sets without effect on time stay small.
    const double key = seen->step.step.time.value() * (1 + kWorthIt * static_cast<double>(set.words.size()) +
                                                       kWorthItsWords * set.n_needing);
    if (best.size() == kMost && key >= best.back().first) return;
    if (best.size() == kMost) best.pop_back();
    const auto place = std::ranges::upper_bound(best, key, {}, [](const auto& one) { return one.first; });
    std::vector<std::string> changes = bare.changes;
    changes.insert(changes.end(), set.words.begin(), set.words.end());
    best.insert(place, {key,
                        {bare.of, set.layout, std::move(seen->step), std::move(seen->memory), set.settings,
                         std::move(changes)}});
  };
  const std::span<const RecipeDimension> dimensions = recipe_dimensions();
  const auto choose = [&](const auto& self, std::size_t i, const Set& set) -> void {
    if (i == dimensions.size()) return judge(set);
    // Without this choice, then with each of its values.
    self(self, i + 1, set);
    const RecipeDimension& one = dimensions[i];
    if (!one.is_open(said_) || !one.applies(set.layout, model_, device_)) return;
    for (const RecipeChange& change : one.changes) {
      Set with = set;
      change.apply(with.layout, with.settings);
      with.words.push_back(change.words);
      with.n_needing += one.room == Room::needs ? 1 : 0;
      self(self, i + 1, with);
    }
  };
  choose(choose, 0, {bare.layout, bare.settings, {}, 0});
  std::vector<RefinedLayout> sets;
  for (auto& [key, one] : best) sets.push_back(std::move(one));
  return sets;
}

}  // namespace stepcast
