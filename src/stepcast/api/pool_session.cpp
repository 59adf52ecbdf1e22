// Predictions of a step on several pools of different GPUs. lay_out_on_pools() finds the layout and the share
// of each pool; add_pools() adds the results per pool to the forecast.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/make_forecast.h"
#include "stepcast/analyze/step_forecast.h"
#include "stepcast/api/detail/open_layout.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/text.h"
#include "stepcast/base/units.h"
#include "stepcast/describe/gpu_pools.h"
#include "stepcast/describe/ignored_settings.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/plan/layout_point.h"
#include "stepcast/plan/pool_layouts.h"
#include "stepcast/plan/pool_split.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/memory.h"

namespace stepcast {
namespace {

// Errors: request fields that need equal GPUs.
Status check_several_pools(const PredictRequest& request) {
  const auto refused = [](const char* what) {
    return Error{fmt::format("{} is for one kind of GPU", what)}.advice("give one pool with --gpus");
  };
  if (!request.chakra.empty()) return refused("a Chakra trace");
  if (request.largest != LargestBatch::none) return refused("the largest batch (--mbs max, --gbs max)");
  if (request.open_layout == OpenLayout::least_memory) return refused("--layout least-memory");
  return Ok{};
}

// For each pool, the network seen by groups that span pools: bandwidth relative to the slowest pool,
// bandwidth between zones, latencies.
std::vector<PoolLinks> links_between(const Cluster& request, std::span<const Platform* const> platforms) {
  const auto of_gpu = [](const Platform& platform) {
    const std::optional<Network>& network = platform.node.network;
    return network ? network->bandwidth_per_node().value() / platform.node.gpus_per_node : 0.0;
  };
  // `slowest`: smallest network bandwidth per GPU in any pool. `zones`: smallest bandwidth that leaves a zone.
  double slowest = std::numeric_limits<double>::infinity();
  std::optional<BytesPerSecond> zones;
  for (std::size_t p = 0; p < platforms.size(); ++p) {
    slowest = std::min(slowest, of_gpu(*platforms[p]));
    const GpuZone* zone = request.zone_of(request.pools[p]);
    // Only traffic between zones is limited by the bandwidth of a zone.
    const bool elsewhere = std::ranges::any_of(
        request.pools, [&](const GpuPool& other) { return other.zone != request.pools[p].zone; });
    if (elsewhere && zone != nullptr && zone->bandwidth && (!zones || *zone->bandwidth < *zones))
      zones = zone->bandwidth;
  }
  std::vector<PoolLinks> links;
  for (std::size_t p = 0; p < platforms.size(); ++p) {
    // Without a network on some platform, all pools count as equal.
    PoolLinks own{.bandwidth_over = slowest > 0 ? of_gpu(*platforms[p]) / slowest : 1.0, .zones = zones};
    if (const GpuZone* zone = request.zone_of(request.pools[p])) {
      own.zone = static_cast<std::size_t>(zone - request.zones.data());
      own.latency_us = zone->latency.value_or(Microseconds{0}).value();
    }
    links.push_back(own);
  }
  // Latencies of the worst pair of pools, and of a ring through all pools.
  double longest_us = 0, round_us = 0;
  for (std::size_t p = 0; p < links.size(); ++p) {
    round_us += links[p].latency_us_to(links[(p + 1) % links.size()]);
    for (const PoolLinks& other : links) longest_us = std::max(longest_us, links[p].latency_us_to(other));
  }
  for (PoolLinks& own : links) {
    own.longest_us = longest_us;
    own.round_us = round_us;
  }
  return links;
}

// Global batch of a layout, in sequences.
double sequences_of(const PooledLayout& c) {
  return static_cast<double>(c.job.layout.batch.global_batch_sequences);
}

// Layers of a stage, over all its model chunks. 0 if the layout has no explicit layers per stage.
std::int64_t layers_of_stage(const Layout& layout, std::size_t stage) {
  const std::vector<std::int64_t>& layers = layout.pipeline.layers_per_stage;
  const auto stages = static_cast<std::uint32_t>(layout.degrees.pipeline);
  std::int64_t all = 0;
  for (std::size_t chunk = 0; chunk < layers.size(); ++chunk)
    if (stage_of_chunk(layout.pipeline.schedule, stages, static_cast<std::uint32_t>(chunk)) == stage)
      all += layers[chunk];
  return all;
}

// The row of a layout in the table of alternatives: its short name, times, flags and the share of each pool.
ForecastPoolLayout listed(const PooledLayout& c, const JobSettings& said) {
  const Layout& layout = c.job.layout;
  const Degrees& d = layout.degrees;
  // The pools either share the pipeline stages of each replica, or each has whole replicas.
  const bool stages = c.split.over == SpreadOver::stages;
  const auto whole = [](std::int64_t degree) { return static_cast<std::int32_t>(degree); };
  ForecastPoolLayout row{
      .layout = to_string(LayoutPoint{.tensor = whole(d.tensor),
                                      .pipeline = whole(d.pipeline),
                                      .context = whole(d.context),
                                      .data = whole(d.data),
                                      .expert = whole(d.expert),
                                      .micro_batch = whole(layout.batch.micro_batch_sequences),
                                      .virtual_stages = whole(d.virtual_stages),
                                      .sharding = {layout.sharding.kind, 0},
                                      .recompute = layout.layer.recompute.kind,
                                      .sequence_parallel = layout.layer.sequence_parallel,
                                      .dtype = layout.layer.precision.compute}),
      .over = stages ? "stages" : "replicas",
      .step_time_ms = c.split.step.time.value() * 1e-3,
      .step_time_p10_ms = c.split.step.p10.value() * 1e-3,
      .step_time_p90_ms = c.split.step.p90.value() * 1e-3,
      .tokens_per_s = sequences_of(c) * static_cast<double>(layout.batch.seq_len_tokens) /
                      (c.split.step.time.value() * 1e-6),
      .spare_GiB = c.split.spare.value() / kGiB};
  // Uneven stages can only be written as a layout string, which replaces virtual stages.
  JobSettings settings = over(said, c.chosen);
  const std::vector<std::int64_t>& layers = c.split.layouts.front().pipeline.layers_per_stage;
  if (stages && !layers.empty()) {
    settings.pipeline_layout = pipeline_layout_string(layers, c.job.model.n_multi_token_prediction_layers);
    settings.virtual_stages.reset();
  }
  row.flags = megatron_flags_of(settings);
  // Shares of the pools: micro-batches of each pool, or the layers of its stages.
  for (std::size_t p = 0, s = 0; p < c.split.layouts.size(); ++p) {
    row.shares += p == 0 ? "" : "; ";
    if (!stages) row.shares += fmt::format("{}", c.split.layouts[p].micro_batches());
    for (const std::size_t first = s; stages && s < c.split.stages[p].end_stage; ++s)
      row.shares += fmt::format("{}{}", s == first ? "" : ", ", layers_of_stage(c.split.layouts.front(), s));
  }
  return row;
}

// The result of pool `p`: its stages or replicas, busy share and peak memory per GPU.
Result<ForecastPool> pool_of(const Cluster& request, std::size_t p, const Platform& platform,
                             const PooledLayout& chosen, const Forecast& forecast) {
  const GpuPool& own = request.pools[p];
  const Layout& layout = chosen.split.layouts[p];
  const GpuZone* zone = request.zone_of(own);
  ForecastPool pool{.platform = platform.name,
                    .gpu = platform.device.name,
                    .zone = own.zone,
                    .n_gpus = static_cast<std::uint64_t>(own.n_gpus),
                    .available_GiB = platform.device.memory_size.value() / kGiB,
                    .price_per_gpu_hour = zone != nullptr ? zone->price_per_gpu_hour : std::nullopt};
  STEPCAST_ASSIGN(const MemoryForecast memory,
                  memory_forecast(chosen.job.model, layout, platform.device.memory_size));
  std::size_t from = 0, to = memory.stages.size();
  if (chosen.split.over == SpreadOver::stages) {
    from = p == 0 ? 0 : chosen.split.stages[p - 1].end_stage;
    to = chosen.split.stages[p].end_stage;
    pool.holds =
        to - from == 1 ? fmt::format("stage {}", from) : fmt::format("stages {} to {}", from, to - 1);
    // Mean idle share of the pool's stages.
    double idle = 0;
    for (std::size_t s = from; s < to; ++s) {
      pool.layers.push_back(layers_of_stage(layout, s));
      const ForecastClass& ranks = forecast.classes[s];
      idle += ranks.window_ms > 0 ? sum_ms(ranks.idle_ms) / ranks.window_ms : 0;
    }
    pool.busy_share = 1 - idle / static_cast<double>(to - from);
  } else {
    // Replicas are numbered over all pools, in the order of the pools.
    const std::int64_t of_replica = layout.world_size() / layout.degrees.data;
    std::int64_t first = 0;
    for (std::size_t before = 0; before < p; ++before) first += request.pools[before].n_gpus / of_replica;
    pool.holds = fmt::format("replicas {} to {}", first, first + own.n_gpus / of_replica - 1);
    pool.micro_batches = layout.micro_batches();
    pool.busy_share = chosen.split.own_us[p] / chosen.split.step.time.value();
  }
  for (std::size_t s = from; s < to; ++s)
    pool.peak_memory_GiB = std::max(pool.peak_memory_GiB, memory.stages[s].total().value() / kGiB);
  return pool;
}

// Adds the power of all pools to the forecast. Each pool is represented by its rank class with the least
// waiting; node figures are weighted by nodes, GPU figures by GPUs. Adds nothing if a pool has no power model.
void add_power_of_pools(Forecast& forecast, const Cluster& request,
                        std::span<const Platform* const> platforms, const PoolSplit& split,
                        std::optional<double> limit_W) {
  const auto limit_of = [&](const GpuPool& pool) {
    return pool.power_limit_W ? pool.power_limit_W : limit_W;
  };
  // The forecast has a single power limit only if all pools have the same.
  const bool one_limit = std::ranges::all_of(
      request.pools, [&](const GpuPool& pool) { return limit_of(pool) == limit_of(request.pools.front()); });
  ForecastPower all{.limit_W = one_limit ? limit_of(request.pools.front()) : std::nullopt};
  double nodes = 0;
  for (std::size_t p = 0; p < platforms.size(); ++p) {
    // A copy of the forecast as if all its GPUs were those of the pool.
    Forecast own = forecast;
    own.power.reset();
    own.n_gpus = static_cast<std::uint64_t>(request.pools[p].n_gpus);
    if (split.over == SpreadOver::stages) own.critical_class = p == 0 ? 0 : split.stages[p - 1].end_stage;
    add_power(own, *platforms[p], limit_of(request.pools[p]));
    if (!own.power) return;
    const double gpus = static_cast<double>(own.n_gpus), n = gpus / platforms[p]->node.gpus_per_node;
    nodes += n;
    all.node_W += own.power->node_W * n;
    all.node_p10_W += own.power->node_p10_W * n;
    all.node_p90_W += own.power->node_p90_W * n;
    const double share = gpus / static_cast<double>(forecast.n_gpus);
    all.gpu_W += own.power->gpu_W * share;
    all.waiting_share += own.power->waiting_share * share;
    all.cluster_W += own.power->cluster_W;
  }
  for (double* mean : {&all.node_W, &all.node_p10_W, &all.node_p90_W}) *mean /= nodes;
  if (const auto& tokens = forecast.throughput.tokens_per_s; tokens && *tokens > 0)
    all.joules_per_token = all.cluster_W / *tokens;
  forecast.power = all;
}

// The memory forecast of pool `p`, which has the least headroom. With stages, the fullest stage of that pool.
Result<MemoryForecast> memory_of_pool(const PooledLayout& chosen, std::size_t p, const Platform& platform) {
  const PoolSplit& split = chosen.split;
  STEPCAST_ASSIGN(MemoryForecast memory, memory_forecast(chosen.job.model, split.layouts[split.slowest],
                                                         platform.device.memory_size));
  if (split.over != SpreadOver::stages) return memory;
  const std::uint32_t from = p == 0 ? 0 : split.stages[p - 1].end_stage;
  memory.worst_stage = from;
  for (std::uint32_t s = from; s < split.stages[p].end_stage; ++s)
    if (memory.stages[s].total() > memory.peak()) memory.worst_stage = s;
  memory.verdict = memory.verdict_of(memory.peak());
  return memory;
}

// The chosen layout as short flags.
std::string short_flags_of(const PooledLayout& one) {
  return detail::in_short_flags(megatron_flags_of(one.chosen));
}

}  // namespace

Result<TrainingBudget> detail::with_prices_of_zones(TrainingBudget budget, const Cluster& cluster) {
  double price = 0;
  std::optional<double> one;
  bool differ = false;
  // All zones have a price or none; check_gpu_zones() ensures it.
  for (const GpuPool& pool : cluster.pools) {
    const GpuZone* zone = cluster.zone_of(pool);
    if (zone == nullptr || !zone->price_per_gpu_hour) return budget;
    differ = differ || (one && *one != *zone->price_per_gpu_hour);
    one = zone->price_per_gpu_hour;
    price += *one * static_cast<double>(pool.n_gpus);
  }
  if (budget.price_per_gpu_hour)
    return Error{"--gpu-hour-price and prices of zones contradict each other"}.advice(
        "leave one of the two out");
  budget.price_per_gpu_hour = differ ? price / static_cast<double>(cluster.n_gpus()) : *one;
  return budget;
}

Result<Session::Impl::LaidOut> Session::Impl::lay_out_on_pools(const PredictRequest& request,
                                                               const Cluster& cluster) {
  STEPCAST_TRY(check_several_pools(request));
  PoolLayoutsRequest asked{.job = request.job, .names = {}};
  asked.job.n_gpus = cluster.n_gpus();
  if (request.pool_space.lists) asked.restrictions = *request.pool_space.lists;
  asked.completes = request.pool_space.top > 0;
  std::vector<Lease> sites;
  std::vector<const Platform*> on;
  std::vector<std::filesystem::path> inputs;
  for (const GpuPool& pool : cluster.pools) {
    STEPCAST_ASSIGN(const MeantPlatform meant, meant_platform(pool.platform, pool.n_gpus));
    STEPCAST_ASSIGN(Lease site, lease(meant.name, request.job.gpus_per_node));
    on.push_back(site->platform.get());
    sites.push_back(std::move(site));
    asked.names.push_back(pool.platform);
    for (auto& file : detail::files_of(request.job, *on.back())) inputs.push_back(std::move(file));
  }
  STEPCAST_ASSIGN(std::optional<OutputFile> timeline, detail::output_at(request.timeline, inputs));
  const std::vector<PoolLinks> links = links_between(cluster, on);
  std::vector<std::string> notes;
  const Result<ResolvedJob> plain = resolve(asked.job);
  std::vector<SplitPool> pools;
  std::vector<RunPool> run_pools;
  for (std::size_t p = 0; p < sites.size(); ++p) {
    const GpuPool& pool = cluster.pools[p];
    // The limit of a pool has precedence over that of the request.
    const std::optional<double> limit_W = pool.power_limit_W ? pool.power_limit_W : request.power_limit_W;
    STEPCAST_ASSIGN(const StepAssumptions assumptions,
                    detail::assumptions_on(*on[p], request, request.what_if, limit_W));
    if (pool.power_limit_W)
      notes.push_back(fmt::format("power limit of {}: {:g} W", on[p]->name, *pool.power_limit_W));
    pools.push_back(
        {pool.n_gpus,
         sites[p]->steps.with(detail::widened_for(plain ? plain->not_modelled.size() : 0, assumptions)),
         links[p]});
    run_pools.push_back({.names = {pool.platform, on[p]->name},
                         .n_gpus = static_cast<double>(pool.n_gpus),
                         .gpus_per_node = static_cast<double>(on[p]->node.gpus_per_node)});
    if (!pool.zone.empty()) run_pools.back().names.push_back(pool.zone);
  }
  STEPCAST_ASSIGN(std::vector<PooledLayout> found, pool_layouts(asked, pools));
  const PoolSplit& split = found.front().split;
  const bool stages = split.over == SpreadOver::stages;
  // With stages, pool 0 represents the step; with replicas, the slowest pool does.
  const std::size_t base = stages ? 0 : split.slowest;
  ResolvedJob job = found.front().job;
  STEPCAST_TRY(refuse_ignored_settings(request.job.settings, job));
  STEPCAST_TRY(detail::check_micro_batches(split.layouts[split.slowest]));
  const bool is_searched = asked.completes || leaves_layout_open(request.job);
  if (is_searched) job.notes.push_back("layout not given: " + short_flags_of(found.front()));
  LaidOut step{std::move(job), split.layouts[split.slowest], split.steps[base], std::move(sites), base};
  // Peak rates are averaged over GPUs, for utilisation figures.
  double peak = 0;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const auto rate = on[p]->device.peak(step.layout.layer.precision.compute);
    peak += (rate ? rate->value() * 1e-12 : 0) * static_cast<double>(pools[p].n_gpus);
  }
  if (peak > 0) step.options.peak_tflops_per_gpu = peak / static_cast<double>(cluster.n_gpus());
  step.options.work_share =
      sequences_of(found.front()) / static_cast<double>(step.layout.batch.global_batch_sequences);
  if (is_searched || request.open_layout == OpenLayout::as_planned)
    step.layout_origin = LayoutOrigin::searched;
  step.notes = std::move(notes);
  step.timeline = std::move(timeline);
  STEPCAST_ASSIGN(step.budget, detail::with_prices_of_zones(request.budget, cluster));
  step.cluster = cluster;
  step.found = std::move(found);
  step.options.pools = step.found.front().split.stages;
  step.run_pools = std::move(run_pools);
  return step;
}

Status Session::Impl::add_pools(const LaidOut& step, const PredictRequest& request, Forecast& forecast) {
  const PooledLayout& chosen = step.found.front();
  std::vector<const Platform*> on;
  std::vector<std::string> names, gpus;
  for (const Lease& site : step.sites) {
    on.push_back(site->platform.get());
    names.push_back(on.back()->name);
    gpus.push_back(on.back()->device.name);
  }
  for (Setting& setting : forecast.layout)
    if (setting.name == "global_batch_sequences") setting.value = sequences_of(chosen);
  forecast.platform = join(names, " + ");
  forecast.gpu = join(gpus, " + ");
  forecast.n_gpus = static_cast<std::uint64_t>(step.cluster.n_gpus());
  // The pool with the least headroom determines the memory of the forecast.
  std::size_t tightest = 0;
  double margin = std::numeric_limits<double>::infinity();
  for (std::size_t p = 0; p < on.size(); ++p) {
    STEPCAST_ASSIGN(ForecastPool pool, pool_of(step.cluster, p, *on[p], chosen, forecast));
    if (pool.available_GiB - pool.peak_memory_GiB < margin) {
      margin = pool.available_GiB - pool.peak_memory_GiB;
      tightest = p;
    }
    forecast.pools.push_back(std::move(pool));
  }
  STEPCAST_ASSIGN(const MemoryForecast memory, memory_of_pool(chosen, tightest, *on[tightest]));
  forecast.memory = memory_of(memory);
  for (std::size_t i = 0; i < std::min(step.found.size(), request.pool_space.top); ++i)
    forecast.pool_layouts.push_back(listed(step.found[i], request.job.settings));
  add_power_of_pools(forecast, step.cluster, on, chosen.split, request.power_limit_W);
  return Ok{};
}

}  // namespace stepcast
