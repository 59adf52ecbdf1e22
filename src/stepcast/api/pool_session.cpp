// Predictions of a step on several pools of GPUs.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
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
#include "stepcast/describe/layout_choice.h"
#include "stepcast/describe/megatron_writer.h"
#include "stepcast/plan/layout_point.h"
#include "stepcast/plan/pool_split.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/routine_job.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/workload/memory.h"

namespace stepcast {
namespace {

using PricedPools = std::vector<std::unique_ptr<PricedPlatform>>;

// The pools and zones of a request.
struct AskedPools {
  std::vector<GpuPool> pools;
  std::vector<GpuZone> zones;
};

Result<AskedPools> asked_pools(const PredictRequest& request) {
  AskedPools asked;
  STEPCAST_ASSIGN(asked.pools, parse_gpu_pools(request.pools));
  for (const std::string& text : request.zones) {
    STEPCAST_ASSIGN(GpuZone zone, parse_gpu_zone(text));
    asked.zones.push_back(std::move(zone));
  }
  STEPCAST_TRY(check_gpu_zones(asked.pools, asked.zones));
  return asked;
}

Status check_pool_request(const PredictRequest& request) {
  const auto refused = [](const char* what) {
    return Error{fmt::format("{} is of one kind of GPUs", what)}.advice("ask with one pool in --gpus");
  };
  if (!request.chakra.empty()) return refused("a Chakra trace");
  if (request.power_limit_W) return refused("a power limit (--power-limit)");
  if (request.background_load != 0) return refused("the load of other jobs (--background-load)");
  return Ok{};
}

const GpuZone* zone_of(const AskedPools& request, const GpuPool& pool) {
  const auto found = std::ranges::find(request.zones, pool.zone, &GpuZone::name);
  return found == request.zones.end() ? nullptr : &*found;
}

// What groups that span the pools pass.
std::vector<PoolLinks> links_between(const AskedPools& request, const PricedPools& priced) {
  const auto of_gpu = [](const Platform& platform) {
    const std::optional<Network>& network = platform.node.network;
    return network ? network->bandwidth_per_node().value() / platform.node.gpus_per_node : 0.0;
  };
  double slowest = std::numeric_limits<double>::infinity();
  std::optional<BytesPerSecond> zones;
  for (std::size_t p = 0; p < priced.size(); ++p) {
    slowest = std::min(slowest, of_gpu(*priced[p]->platform));
    const GpuZone* zone = zone_of(request, request.pools[p]);
    const bool elsewhere = std::ranges::any_of(
        request.pools, [&](const GpuPool& other) { return other.zone != request.pools[p].zone; });
    if (elsewhere && zone != nullptr && zone->bandwidth && (!zones || *zone->bandwidth < *zones))
      zones = zone->bandwidth;
  }
  std::vector<PoolLinks> links;
  for (std::size_t p = 0; p < priced.size(); ++p) {
    PoolLinks own{.bandwidth_over = slowest > 0 ? of_gpu(*priced[p]->platform) / slowest : 1.0,
                  .zones = zones};
    if (const GpuZone* zone = zone_of(request, request.pools[p])) {
      own.zone = static_cast<std::size_t>(zone - request.zones.data());
      own.latency_us = zone->latency.value_or(Microseconds{0}).value();
    }
    links.push_back(own);
  }
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

struct Chosen {
  ResolvedJob job;
  PoolSplit split;
  JobSettings settings;
};

double sequences_of(const Chosen& c) {
  return static_cast<double>(c.job.layout.batch.global_batch_sequences);
}

// What is tried of a job whose layout is open: every combination of the lists, or of what the job says, or of powers of
// two, and of stages also as many as fill all pools (`common_gpus`: their greatest common divisor); optimizer states are
// sharded unless the job says how. Those that recompute come last.
std::vector<JobSettings> layouts_to_try(const Job& asked, const PoolSpace& space, std::int64_t gpus_per_node,
                                        std::int64_t n_experts, std::int64_t common_gpus) {
  using Values = std::vector<std::int64_t>;
  constexpr std::int64_t kMostTensor = 8, kMostStages = 64;
  const JobSettings& said = asked.settings;
  const auto powers = [](std::int64_t most) {
    Values values;
    for (std::int64_t v = 1; v <= most; v *= 2) values.push_back(v);
    return values;
  };
  const auto values = [](const Values& list, const std::optional<std::int64_t>& one, Values usual) {
    if (!list.empty()) return list;
    return one ? Values{*one} : std::move(usual);
  };
  const Values tensors = values(space.tensor, said.tensor, powers(std::min(gpus_per_node, kMostTensor)));
  Values stages = powers(std::min(kMostStages, *asked.n_gpus));
  for (std::int64_t part = 1; part <= common_gpus; ++part)
    if (const std::int64_t n = *asked.n_gpus / part;
        common_gpus % part == 0 && n <= kMostStages && std::ranges::find(stages, n) == stages.end())
      stages.push_back(n);
  const Values pipelines = values(space.pipeline, said.pipeline, std::move(stages));
  const Values contexts = values(space.context, said.context, {1});
  const Values experts = values(space.expert, said.expert, powers(std::max<std::int64_t>(1, n_experts)));
  const Values micro_batches = values(space.micro_batch, said.micro_batch_sequences, {1, 2});
  std::vector<Recompute> recomputations = space.recomputations;
  if (recomputations.empty()) recomputations = {Recompute::none, Recompute::full};
  if (said.recompute) recomputations = {*said.recompute};
  std::vector<JobSettings> all;
  const auto add = [&](JobSettings settings) {
    if (!said.sequence_parallel && *settings.tensor > 1) settings.sequence_parallel = true;
    if (!said.sharding && !said.zero_stage && !said.fully_sharded && !said.distributed_optimizer)
      settings.distributed_optimizer = true;
    if (settings.context == 1) settings.context.reset();
    if (settings.expert == 1) settings.expert.reset();
    if (settings.recompute == Recompute::none) settings.recompute.reset();
    all.push_back(std::move(settings));
  };
  for (const Recompute recompute : recomputations)
    for (const std::int64_t tensor : tensors)
      for (const std::int64_t pipeline : pipelines)
        for (const std::int64_t context : contexts)
          for (const std::int64_t expert : experts)
            for (const std::int64_t micro_batch : micro_batches)
              if (tensor * pipeline * std::max(context, expert) <= *asked.n_gpus)
                add({.tensor = tensor,
                     .pipeline = pipeline,
                     .context = context,
                     .expert = expert,
                     .micro_batch_sequences = micro_batch,
                     .recompute = recompute});
  return all;
}

// What is tried of a job on pools of so many GPUs.
std::vector<JobSettings> to_try(const Job& asked, const PoolSpace& space,
                                const std::vector<std::int64_t>& gpus, std::int64_t gpus_per_node) {
  if (space.top == 0 && !leaves_layout_open(asked)) return {{}};
  const Result<ResolvedJob> plain = resolve(asked);
  const std::int64_t n_experts =
      plain ? (plain->model.moe ? plain->model.moe->n_experts : 1) : asked.settings.n_experts.value_or(1);
  std::int64_t common = 0;
  for (const std::int64_t n : gpus) common = std::gcd(common, n);
  return layouts_to_try(asked, space, gpus_per_node, n_experts, common);
}

// The pool with another size of which some layout would keep stages and replicas whole; nothing where some does, or
// no pool by itself is to blame.
std::optional<Error> unfilled_pool(Job asked, const PoolSpace& space, std::span<const GpuPool> pools,
                                   std::vector<std::int64_t> gpus, std::int64_t gpus_per_node) {
  const auto works = [&] {
    asked.n_gpus = std::accumulate(gpus.begin(), gpus.end(), std::int64_t{0});
    return std::ranges::any_of(to_try(asked, space, gpus, gpus_per_node), [&](const JobSettings& settings) {
      Job job = asked;
      job.settings = over(asked.settings, settings);
      const Result<ResolvedJob> resolved = resolve(job);
      const WholeParts whole = resolved ? whole_parts(resolved->model, resolved->layout, gpus) : WholeParts{};
      return whole.stages || whole.replicas;
    });
  };
  if (works()) return std::nullopt;
  std::vector<std::size_t> smallest_first(gpus.size());
  std::iota(smallest_first.begin(), smallest_first.end(), 0);
  std::ranges::stable_sort(smallest_first, {}, [&](std::size_t p) { return pools[p].n_gpus; });
  for (const std::size_t p : smallest_first) {
    const std::int64_t n = gpus[p], nodes = n / gpus_per_node;
    const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
    std::set<std::int64_t> fill;
    for (const std::int64_t size : {power, 2 * power, nodes * gpus_per_node, (nodes + 1) * gpus_per_node}) {
      gpus[p] = size;
      if (size > 0 && size != n && works()) fill.insert(size);
    }
    gpus[p] = n;
    if (fill.empty()) continue;
    return Error::at("", "--gpus")
        .found(fmt::format("{} x {}, which no layout fills with whole stages or replicas of the batch", n,
                           pools[p].platform))
        .expected(fmt::format("{} of them", fmt::join(fill, " or ")));
  }
  return std::nullopt;
}

// The chosen one first; behind it the others, the fastest first.
Result<std::vector<Chosen>> choose(const Job& asked, const PoolSpace& space,
                                   std::span<const GpuPool> asked_pools, std::span<const SplitPool> pools,
                                   std::int64_t gpus_per_node) {
  std::vector<Chosen> found;
  const bool open = space.top > 0 || leaves_layout_open(asked);
  std::vector<std::int64_t> gpus;
  for (const GpuPool& pool : asked_pools) gpus.push_back(pool.n_gpus);
  std::optional<Error> failed;
  bool fits = false;
  for (const JobSettings& settings : to_try(asked, space, gpus, gpus_per_node)) {
    if (fits && settings.recompute && space.recomputations.empty() && !asked.settings.recompute) break;
    Job job = asked;
    job.settings = over(asked.settings, settings);
    Result<ResolvedJob> resolved = resolve(job);
    if (!resolved) {
      if (!failed) failed = resolved.error();
      continue;
    }
    Result<PoolSplit> split = split_over_pools(resolved->model, resolved->layout, pools);
    if (!split) {
      if (!failed) failed = split.error();
      continue;
    }
    fits = fits || split->fits();
    if (open)
      resolved->notes.push_back("layout not given: " + detail::in_short_flags(megatron_flags_of(settings)));
    found.push_back({std::move(*resolved), std::move(*split), job.settings});
  }
  if (found.empty()) return unfilled_pool(asked, space, asked_pools, gpus, gpus_per_node).value_or(*failed);
  // Batches differ where nobody says them: the most tokens a second.
  std::ranges::stable_sort(found, {}, [](const Chosen& c) {
    return std::pair{!c.split.fits(), c.split.step.time.value() / sequences_of(c)};
  });
  return found;
}

// How a row of the table calls it.
ForecastPoolLayout listed(const Chosen& c, std::span<const SplitPool> pools) {
  const Layout& layout = c.job.layout;
  const Degrees& d = layout.degrees;
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
  JobSettings settings = c.settings;
  const std::vector<std::int64_t>& layers = c.split.layouts.front().pipeline.layers_per_stage;
  if (stages && !layers.empty()) {
    settings.pipeline_layout = pipeline_layout_string(layers, c.job.model.n_multi_token_prediction_layers);
    settings.virtual_stages.reset();
  }
  row.flags = megatron_flags_of(settings);
  for (std::size_t p = 0, s = 0; p < pools.size(); ++p) {
    row.shares += p == 0 ? "" : "; ";
    if (!stages) row.shares += fmt::format("{}", c.split.layouts[p].micro_batches());
    for (const std::size_t first = s; stages && s < c.split.stages[p].end_stage; ++s)
      row.shares += fmt::format("{}{}", s == first ? "" : ", ", layers[s]);
  }
  return row;
}

// What a pool does of the step, and whether it fits its GPUs.
Result<ForecastPool> pool_of(const AskedPools& request, std::size_t p, const PricedPools& priced,
                             const Chosen& chosen, const Forecast& forecast) {
  const GpuPool& own = request.pools[p];
  const Platform& platform = *priced[p]->platform;
  const Layout& layout = chosen.split.layouts[p];
  const GpuZone* zone = zone_of(request, own);
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
    double idle = 0;
    for (std::size_t s = from; s < to; ++s) {
      pool.layers.push_back(layout.pipeline.layers_per_stage[s]);
      const ForecastClass& ranks = forecast.classes[s];
      idle += ranks.window_ms > 0 ? sum_ms(ranks.idle_ms) / ranks.window_ms : 0;
    }
    pool.busy_share = 1 - idle / static_cast<double>(to - from);
  } else {
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

// Sums over the nodes of all pools; of every pool the ranks that wait least stand for it.
void add_power_of_pools(Forecast& forecast, const AskedPools& request, const PricedPools& priced,
                        const PoolSplit& split) {
  ForecastPower all;
  double nodes = 0;
  for (std::size_t p = 0; p < priced.size(); ++p) {
    Forecast own = forecast;
    own.power.reset();
    own.n_gpus = static_cast<std::uint64_t>(request.pools[p].n_gpus);
    if (split.over == SpreadOver::stages) own.critical_class = p == 0 ? 0 : split.stages[p - 1].end_stage;
    add_power(own, *priced[p]->platform);
    if (!own.power) return;
    const double gpus = static_cast<double>(own.n_gpus), n = gpus / priced[p]->platform->node.gpus_per_node;
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

// Of the pool that has least to spare; of stages the fullest of its own.
Result<MemoryForecast> memory_of_pool(const Chosen& chosen, std::size_t p, const Platform& platform) {
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

Result<RunJob> run_of_pools(const Chosen& chosen, const AskedPools& asked, const PricedPools& priced,
                            StepModel& steps, double step_s) {
  const Layout& layout = chosen.split.layouts[chosen.split.slowest];
  STEPCAST_ASSIGN(RunJob job, routine_job(chosen.job.routine, chosen.job.model, layout, steps, step_s));
  for (std::size_t p = 0; p < priced.size(); ++p) {
    const GpuPool& pool = asked.pools[p];
    const Platform& platform = *priced[p]->platform;
    job.pools.push_back({.names = {pool.platform, platform.name},
                         .n_gpus = static_cast<double>(pool.n_gpus),
                         .gpus_per_node = static_cast<double>(platform.node.gpus_per_node)});
    if (!pool.zone.empty()) job.pools[p].names.push_back(pool.zone);
  }
  return job;
}

}  // namespace

Result<Forecast> Session::predict_pools(const PredictRequest& request) const {
  STEPCAST_ASSIGN(const AskedPools asked, asked_pools(request));
  STEPCAST_TRY(check_pool_request(request));
  StepAssumptions assumptions;
  STEPCAST_TRY(apply_what_if(request.what_if, assumptions));
  std::vector<std::string> notes, platforms, gpus;
  std::vector<std::filesystem::path> inputs;
  PricedPools priced;
  Job job = request.job;
  job.n_gpus = 0;
  for (const GpuPool& pool : asked.pools) {
    STEPCAST_ASSIGN(const std::shared_ptr<const Platform> shipped, impl_->platform(pool.platform));
    std::string name = pool.platform;
    if (const auto node = default_node_for(*shipped, pool.n_gpus)) name = *node;
    STEPCAST_ASSIGN(std::unique_ptr<PricedPlatform> one, impl_->take(name, request.job.gpus_per_node));
    one->steps.set_assumptions(assumptions);
    for (const auto& file : detail::files_of(request.job, *one->platform)) inputs.push_back(file);
    platforms.push_back(one->platform->name);
    gpus.push_back(one->platform->device.name);
    *job.n_gpus += pool.n_gpus;
    priced.push_back(std::move(one));
  }
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline, detail::output_at(request.timeline, inputs));
  std::vector<SplitPool> pools;
  const std::vector<PoolLinks> links = links_between(asked, priced);
  std::int64_t in_node = std::numeric_limits<std::int64_t>::max();
  double peak = 0;
  for (std::size_t p = 0; p < priced.size(); ++p) {
    pools.push_back({asked.pools[p].n_gpus, &priced[p]->steps, links[p]});
    in_node = std::min<std::int64_t>(in_node, priced[p]->platform->node.gpus_per_node);
  }
  STEPCAST_ASSIGN(const std::vector<Chosen> found,
                  choose(job, request.pool_space, asked.pools, pools, in_node));
  const Chosen& chosen = found.front();
  const PoolSplit& split = chosen.split;
  for (std::size_t p = 0; p < priced.size(); ++p) {
    const auto rate = priced[p]->platform->device.peak(chosen.job.layout.layer.precision.compute);
    peak += (rate ? rate->value() * 1e-12 : 0) * static_cast<double>(asked.pools[p].n_gpus);
  }
  const Layout& layout = split.layouts[split.slowest];
  const bool stages = split.over == SpreadOver::stages;
  const std::size_t base = stages ? 0 : split.slowest;
  const double sequences = sequences_of(chosen);
  link_pools(pools, split.over);
  StepForecastOptions options{
      .explained = request.explained,
      .pools = split.stages,
      .forecast = {.collectives = request.collectives, .path_steps = request.path_steps}};
  if (peak > 0) options.peak_tflops_per_gpu = peak / static_cast<double>(*job.n_gpus);
  options.work_share = sequences / static_cast<double>(layout.batch.global_batch_sequences);
  STEPCAST_ASSIGN(Forecast forecast, step_forecast(chosen.job.model, layout, *priced[base]->platform,
                                                   priced[base]->steps, options));
  for (Setting& setting : forecast.layout)
    if (setting.name == "global_batch_sequences") setting.value = sequences;
  forecast.platform = fmt::format("{}", fmt::join(platforms, " + "));
  forecast.gpu = fmt::format("{}", fmt::join(gpus, " + "));
  std::size_t tightest = 0;
  double price = 0, margin = std::numeric_limits<double>::infinity();
  for (std::size_t p = 0; p < priced.size(); ++p) {
    STEPCAST_ASSIGN(ForecastPool pool, pool_of(asked, p, priced, chosen, forecast));
    if (pool.available_GiB - pool.peak_memory_GiB < margin) {
      margin = pool.available_GiB - pool.peak_memory_GiB;
      tightest = p;
    }
    price += pool.price_per_gpu_hour.value_or(0) * static_cast<double>(pool.n_gpus);
    forecast.pools.push_back(std::move(pool));
  }
  STEPCAST_ASSIGN(const MemoryForecast memory, memory_of_pool(chosen, tightest, *priced[tightest]->platform));
  forecast.memory = memory_of(memory);
  notes.insert(notes.end(), chosen.job.notes.begin(), chosen.job.notes.end());
  notes.insert(notes.end(), forecast.notes.begin(), forecast.notes.end());
  forecast.notes = std::move(notes);
  for (std::size_t i = 0; i < std::min(found.size(), request.pool_space.top); ++i)
    forecast.pool_layouts.push_back(listed(found[i], pools));
  if (!forecast.fits()) forecast.notes.emplace_back("does not fit into the memory of every pool");
  add_power_of_pools(forecast, asked, priced, split);
  TrainingBudget budget = request.budget;
  if (price > 0) {
    if (budget.price_per_gpu_hour)
      return Error{"--gpu-hour-price and prices of zones say the same thing"}.advice(
          "leave one of the two out");
    budget.price_per_gpu_hour = price / static_cast<double>(*job.n_gpus);
  }
  std::optional<RunJob> run_job;
  if (budget.asked()) {
    STEPCAST_ASSIGN(run_job,
                    run_of_pools(chosen, asked, priced, priced[base]->steps, forecast.step_time_ms * 1e-3));
  }
  STEPCAST_TRY(add_training(forecast, budget, run_job ? &*run_job : nullptr));
  if (timeline) {  // of replicas the slowest
    STEPCAST_ASSIGN(const PredictedStep step,
                    stages ? predict_step(chosen.job.model, layout, split.stages)
                           : predict_step(chosen.job.model, layout, priced[base]->steps));
    STEPCAST_TRY(detail::write_step_timeline(*timeline, step));
  }
  return forecast;
}

}  // namespace stepcast
