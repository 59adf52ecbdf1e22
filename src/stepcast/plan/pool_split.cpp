#include "stepcast/plan/pool_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/workload/memory.h"

namespace stepcast {

namespace {

// [pool] step models with groups that span the pools.
std::vector<StepModel> linked(std::span<const SplitPool> pools, SpreadOver over) {
  std::vector<StepModel> steps;
  for (const SplitPool& pool : pools) {
    PoolLinks links = pool.links;
    links.replicas = over == SpreadOver::replicas;
    steps.push_back(pool.steps.with(links));
  }
  return steps;
}

Bytes memory_of_pool(const SplitPool& pool) { return pool.steps.platform().device.memory_size; }

// Headroom of a layout that cannot run.
constexpr Bytes kNothingFits{-std::numeric_limits<double>::infinity()};

// Headroom of the stage with the least free memory in its pool.
Bytes spare_of_stages(const Transformer& model, const Layout& layout, std::span<const SplitPool> pools,
                      std::span<const StagePool> stages) {
  const Result<MemoryForecast> memory = memory_forecast(model, layout, Bytes{1});
  if (!memory) return kNothingFits;
  Bytes spare{std::numeric_limits<double>::infinity()};
  for (std::uint32_t s = 0; s < memory->stages.size(); ++s)
    spare = std::min(spare, memory_of_pool(pools[pool_of_stage(stages, s)]) - memory->stages[s].total());
  return spare;
}

// Local search: moves layers between stages while the step gets shorter.
class LayerSplit {
 public:
  LayerSplit(const Transformer& model, std::span<const SplitPool> pools, std::span<const StagePool> stages)
      : model_(model), pools_(pools), stages_(stages) {}

  // A division of layers with its step time and headroom.
  struct Found {
    Layout layout;
    double us = 0;
    Bytes spare = kNothingFits;
    [[nodiscard]] bool is_better_than(const Found& other) const {
      const bool fits = spare.value() >= 0, other_fits = other.spare.value() >= 0;
      return fits != other_fits ? fits : us < other.us;
    }
  };
  // The best division found from the even one.
  Result<Found> from(const Layout& layout);

 private:
  [[nodiscard]] Result<std::vector<std::int64_t>> balanced(const Layout& layout,
                                                           const std::vector<std::int64_t>& even) const;
  // Forecasts the layout with the given layers per stage.
  Result<Found> tried(const Layout& layout, const std::vector<std::int64_t>& layers) const {
    Found found{layout, 0, kNothingFits};
    found.layout.pipeline.layers_per_stage = layers;
    STEPCAST_ASSIGN(const StepPrediction step, predict_on_pools(model_, found.layout, stages_));
    found.us = step.step.time.value();
    found.spare = spare_of_stages(model_, found.layout, pools_, stages_);
    return found;
  }

  const Transformer& model_;
  std::span<const SplitPool> pools_;
  std::span<const StagePool> stages_;
};

// Layers per stage that equalise the stage times. `even`: the current layers. Greedy: each further layer goes to the stage
// that is shortest with it, which minimises the slowest stage.
Result<std::vector<std::int64_t>> LayerSplit::balanced(const Layout& layout,
                                                       const std::vector<std::int64_t>& even) const {
  struct Stage {
    double fixed_us = 0, layer_us = 0;
    std::int64_t layers = 1;
    [[nodiscard]] double us() const { return fixed_us + layer_us * static_cast<double>(layers); }
  };
  std::vector<Stage> stages;
  // Price the even division on every pool alone.
  std::vector<PricedStep> alone;
  for (const StagePool& pool : stages_) {
    STEPCAST_ASSIGN(PricedStep priced, pool.steps.price(model_, layout));
    alone.push_back(std::move(priced));
  }
  // Separate the constant time of a stage (embedding, head) from the time per layer.
  for (std::size_t s = 0; s < even.size(); ++s) {
    const PricedStep& priced = alone[pool_of_stage(stages_, static_cast<std::uint32_t>(s))];
    const ChunkWork& work = priced.work.chunks[s];
    std::vector<double> units;
    for (const ScheduleUnit& unit : priced.schedule.chunks[s].units)
      units.push_back(unit.forward_us + unit.backward_us + unit.weight_gradient_us);
    Stage& stage = stages.emplace_back();
    if (work.has_embedding) stage.fixed_us += units.front();
    if (work.has_head) stage.fixed_us += units.back();
    const double all = std::accumulate(units.begin(), units.end(), 0.0);
    stage.layer_us = std::max(1e-3, (all - stage.fixed_us) / static_cast<double>(even[s]));
  }
  const std::int64_t wanted = std::accumulate(even.begin(), even.end(), std::int64_t{0});
  std::int64_t given = static_cast<std::int64_t>(stages.size());
  for (; given < wanted; ++given) {  // each to the stage that is shortest with it
    ++std::ranges::min_element(stages, {}, [](const Stage& s) { return s.us() + s.layer_us; })->layers;
  }
  std::vector<std::int64_t> layers;
  for (const Stage& stage : stages) layers.push_back(stage.layers);
  return layers;
}

Result<LayerSplit::Found> LayerSplit::from(const Layout& layout) {
  const auto n_stages = static_cast<std::size_t>(layout.degrees.pipeline);
  const std::vector<StageChunk> even = stage_chunks(model_, layout);
  std::vector<std::int64_t> layers;
  for (const StageChunk& chunk : even) layers.push_back(chunk.n_layers);
  STEPCAST_ASSIGN(Found best, tried(layout, layers));
  // A single pool keeps its layout, and chunks of several virtual stages stay even.
  if (pools_.size() < 2 || layers.size() != n_stages) return best;
  STEPCAST_ASSIGN(const std::vector<std::int64_t> shares, balanced(best.layout, layers));
  if (const Result<Found> found = tried(layout, shares); found && found->is_better_than(best)) best = *found;
  // Moves one layer at a time while that helps. Inner stages of a pool with equal layers are equivalent: one represents all.
  constexpr int kMostPasses = 64;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const std::vector<std::int64_t> now = best.layout.pipeline.layers_per_stage;
    std::map<std::tuple<std::size_t, std::int64_t, bool, bool>, std::size_t> kinds;
    for (std::size_t s = 0; s < n_stages; ++s)
      kinds.try_emplace(
          {pool_of_stage(stages_, static_cast<std::uint32_t>(s)), now[s], s == 0, s + 1 == n_stages}, s);
    const Found before_pass = best;
    for (const auto& [give, from] : kinds) {
      for (const auto& [take, to] : kinds) {
        std::vector<std::int64_t> moved = now;
        if (to == from || moved[from] < 2) continue;
        --moved[from];
        ++moved[to];
        const Result<Found> found = tried(layout, moved);
        if (found && found->is_better_than(best)) best = *found;
      }
    }
    if (!best.is_better_than(before_pass)) break;
  }
  return best;
}

// Pipeline stages on each pool.
Result<PoolSplit> over_stages(const Transformer& model, const Layout& layout,
                              std::span<const SplitPool> pools) {
  PoolSplit split{SpreadOver::stages, {}, linked(pools, SpreadOver::stages), {}, {}, {}, kNothingFits, 0};
  // GPUs of one stage; every pool contains a whole number of stages.
  const std::int64_t of_stage = layout.world_size() / layout.degrees.pipeline;
  std::int64_t stages = 0;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    stages += pools[p].n_gpus / of_stage;
    split.stages.push_back({static_cast<std::uint32_t>(stages), split.steps[p], pools[p].links});
  }
  LayerSplit layers{model, pools, split.stages};
  STEPCAST_ASSIGN(const LayerSplit::Found found, layers.from(layout));
  split.layouts.assign(pools.size(), found.layout);
  split.spare = found.spare;
  STEPCAST_ASSIGN(const StepPrediction step, predict_on_pools(model, found.layout, split.stages));
  split.step = step.step;
  // The pool of the critical stage sets the step time.
  split.slowest = pool_of_stage(split.stages, step.times.critical_stage);
  return split;
}

// Whole replicas on each pool.
Result<PoolSplit> over_replicas(const Transformer& model, const Layout& layout,
                                std::span<const SplitPool> pools) {
  PoolSplit split{SpreadOver::replicas,
                  {},
                  linked(pools, SpreadOver::replicas),
                  {},
                  {},
                  {},
                  Bytes{std::numeric_limits<double>::infinity()},
                  0};
  const std::int64_t replicas = layout.degrees.data, all = layout.micro_batches() * replicas;
  const std::int64_t per_replica = layout.world_size() / replicas;
  // The layout with another number of micro-batches per replica.
  const auto with = [&](std::int64_t micro_batches) {
    Layout own = layout;
    own.batch.global_batch_sequences = micro_batches * replicas * layout.batch.micro_batch_sequences;
    return own;
  };
  const auto time_us = [&](const StepModel& steps, std::int64_t micro_batches) -> Result<double> {
    STEPCAST_ASSIGN(const StepPrediction step, steps.predict(model, with(micro_batches)));
    return step.step.time.value();
  };
  // Once the pipeline is full, the step time is linear in the number of micro-batches.
  struct Line {
    double fixed = 0, each = 0;
    std::int64_t replicas = 0;
  };
  std::vector<Line> lines;
  const std::int64_t few = std::max<std::int64_t>(1, layout.degrees.pipeline), more = 2 * few;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    STEPCAST_ASSIGN(const double short_us, time_us(split.steps[p], few));
    STEPCAST_ASSIGN(const double long_us, time_us(split.steps[p], more));
    const double each = std::max(1e-3, (long_us - short_us) / static_cast<double>(more - few));
    lines.push_back({short_us - each * static_cast<double>(few), each, pools[p].n_gpus / per_replica});
  }
  // The shortest time in which all micro-batches can be processed, by bisection. Replicas process whole micro-batches, and with
  // interleaved schedules whole rounds of them.
  const std::int64_t round = layout.degrees.virtual_stages > 1 ? layout.degrees.pipeline : 1;
  // Micro-batches of one replica within `us`, at least one round.
  const auto within = [&](const Line& line, double us) {
    const auto done = static_cast<std::int64_t>((us - line.fixed) / line.each + 1e-9);
    return std::max(round, done / round * round);
  };
  double low = 0, high = 0;
  for (const Line& line : lines)
    high = std::max(high, line.fixed + line.each * static_cast<double>(all + round));
  const auto done_within = [&](double us) {
    std::int64_t done = 0;
    for (const Line& line : lines) done += line.replicas * within(line, us);
    return done >= all;
  };
  // 60 halvings are far below the resolution of a step time.
  for (int i = 0; i < 60; ++i) (done_within((low + high) / 2) ? high : low) = (low + high) / 2;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    split.layouts.push_back(with(within(lines[p], high)));
    STEPCAST_ASSIGN(const StepPrediction step, split.steps[p].predict(model, split.layouts[p]));
    split.own_us.push_back(step.step.time.value());
    if (step.step.time > split.step.time) {
      split.slowest = p;
      split.step = step.step;
    }
    const Result<MemoryForecast> memory = memory_forecast(model, layout, memory_of_pool(pools[p]));
    split.spare = std::min(split.spare, memory ? memory_of_pool(pools[p]) - memory->peak() : kNothingFits);
  }
  return split;
}

}  // namespace

WholeParts whole_parts(const Transformer& model, const Layout& layout,
                       std::span<const std::int64_t> pool_gpus) {
  WholeParts parts;
  parts.of_stage = layout.world_size() / layout.degrees.pipeline;
  // Experts span the ranks of several replicas, which must be in the same pool.
  parts.of_replica =
      std::lcm(layout.world_size() / layout.degrees.data,
               model.moe ? layout.degrees.pipeline * layout.degrees.expert * layout.expert_tensor_degree()
                         : std::int64_t{1});
  const auto whole = [&](std::int64_t part) {
    return std::ranges::all_of(pool_gpus, [&](std::int64_t n) { return n % part == 0; });
  };
  // Stages are contiguous in ranks only if the pipeline is the slowest dimension of the rank order.
  parts.stages = layout.rank_order.ends_with("pp") && whole(parts.of_stage);
  parts.replicas = whole(parts.of_replica);
  return parts;
}

Result<PoolSplit> split_over_pools(const Transformer& model, const Layout& layout,
                                   std::span<const SplitPool> pools, std::optional<SpreadOver> only) {
  std::vector<std::int64_t> gpus;
  for (const SplitPool& pool : pools) gpus.push_back(pool.n_gpus);
  const WholeParts whole = whole_parts(model, layout, gpus);
  const bool stages = only != SpreadOver::replicas && whole.stages;
  const bool replicas = only != SpreadOver::stages && whole.replicas;
  if (!stages && !replicas) {
    return Error::at("", "--gpus")
        .found(fmt::format("{} GPUs, which split a stage or a replica over pools", fmt::join(gpus, " + ")))
        .expected(fmt::format("pools of whole stages ({} GPUs with pipeline {}) or of whole replicas ({})",
                              whole.of_stage, layout.degrees.pipeline, whole.of_replica));
  }
  std::optional<PoolSplit> best;
  std::optional<Error> failed;
  // Keeps the better division: one that fits, then the faster one.
  const auto offer = [&](Result<PoolSplit> split) {
    if (!split) {
      failed = split.error();
      return;
    }
    const bool better =
        !best || (split->fits() != best->fits() ? split->fits() : split->step.time < best->step.time);
    if (better) best = std::move(*split);
  };
  if (stages) offer(over_stages(model, layout, pools));
  if (replicas) offer(over_replicas(model, layout, pools));
  if (!best) return *failed;
  return std::move(*best);
}

}  // namespace stepcast
