#include "stepcast/plan/pool_layouts.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/formats/layout_choice.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {
namespace {

// True if the layout of the job is searched.
bool is_open(const PoolLayoutsRequest& request) {
  return request.completes || leaves_layout_open(request.job);
}

// True if the pools contain whole stages or whole replicas of the layout.
bool keeps_parts_whole(const Transformer& model, const Layout& layout, std::span<const std::int64_t> gpus) {
  const WholeParts whole = whole_parts(model, layout, gpus);
  return whole.stages || whole.replicas;
}

// Settings beyond the job from searches for all GPUs on each distinct platform: refined layouts first, then the fastest of
// each choice of degrees. `failed`: the first error.
std::vector<JobSettings> searched(const PoolLayoutsRequest& request, std::span<const SplitPool> pools,
                                  std::span<const std::int64_t> gpus, std::optional<Error>& failed) {
  // Most candidates per choice of degrees, and per platform.
  constexpr std::size_t kMostOfDegrees = 2, kMostOfPlatform = 48;
  std::vector<JobSettings> all;
  const auto offer = [&](const JobSettings& settings) {
    JobSettings beyond = settings_beyond(request.job, settings);
    if (std::ranges::find(all, beyond) == all.end()) all.push_back(std::move(beyond));
  };
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const Platform& platform = pools[p].steps.platform();
    // Pools on the same platform share one search.
    if (std::ranges::any_of(pools.first(p), [&](const SplitPool& before) {
          return before.steps.platform().name == platform.name;
        }))
      continue;
    PlanRequest plan_request{.job = request.job, .n_gpus = *request.job.n_gpus, .restrictions = {}};
    plan_request.restrictions = request.restrictions;
    plan_request.threads = 1;
    plan_request.assumptions = pools[p].steps.assumptions();
    plan_request.refines = true;
    plan_request.steps = &pools[p].steps;
    const Result<LayoutPlan> plan = plan_layouts(plan_request, platform);
    if (!plan) {
      if (!failed) failed = plan.error();
      continue;
    }
    const Transformer& model = plan->prototypes.model();
    for (const RefinedLayout& refined : plan->refined)
      if (keeps_parts_whole(model, refined.layout, gpus)) offer(refined.settings);
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>, std::size_t> n_of_degrees;
    std::size_t n = 0;
    for (const PricedLayout& priced : plan->found.priced) {
      const LayoutPoint& point = priced.point;
      const Layout layout = plan->prototypes.layout(point);
      if (!keeps_parts_whole(model, layout, gpus)) continue;
      if (++n_of_degrees[{point.tensor, point.pipeline, point.context, point.expert}] > kMostOfDegrees)
        continue;
      offer(complete_settings(point, layout, plan->prototypes));
      if (++n == kMostOfPlatform) break;
    }
  }
  return all;
}

// Settings for all combinations of degrees: from the lists, else from the job, else powers of two. Numbers of stages include
// those that fill pools of these sizes. Optimizer states are sharded unless the job says otherwise. Settings with
// recomputation come last.
std::vector<JobSettings> grid_of_degrees(const Job& asked, const LayoutRestrictions& lists,
                                         std::span<const std::int64_t> gpus, std::int64_t gpus_per_node) {
  using Values = std::vector<std::int64_t>;
  constexpr std::int64_t kMostTensor = 8, kMostStages = 64;
  const JobSettings& said = asked.settings;
  const auto powers = [](std::int64_t most) {
    Values values;
    for (std::int64_t v = 1; v <= most; v *= 2) values.push_back(v);
    return values;
  };
  const auto values = [](const std::optional<Values>& list, const std::optional<std::int64_t>& one,
                         Values usual) {
    if (list) return *list;
    return one ? Values{*one} : std::move(usual);
  };
  // The number of experts limits expert parallelism; unresolved jobs use the setting.
  const Result<ResolvedJob> plain = resolve(asked);
  const std::int64_t n_experts =
      plain ? (plain->model.moe ? plain->model.moe->n_experts : 1) : said.n_experts.value_or(1);
  std::int64_t common_gpus = 0;
  for (const std::int64_t n : gpus) common_gpus = std::gcd(common_gpus, n);
  const Values tensors = values(lists.tensor, said.tensor, powers(std::min(gpus_per_node, kMostTensor)));
  Values stages = powers(std::min(kMostStages, *asked.n_gpus));
  // A stage of `part` GPUs fits whole into every pool if `part` divides all of them.
  for (std::int64_t part = 1; part <= common_gpus; ++part)
    if (const std::int64_t n = *asked.n_gpus / part;
        common_gpus % part == 0 && n <= kMostStages && std::ranges::find(stages, n) == stages.end())
      stages.push_back(n);
  const Values pipelines = values(lists.pipeline, said.pipeline, std::move(stages));
  const Values contexts = values(lists.context, said.context, {1});
  const Values experts = values(lists.expert, said.expert, powers(std::max<std::int64_t>(1, n_experts)));
  const Values micro_batches = values(lists.micro_batch, said.micro_batch_sequences, {1, 2});
  std::vector<Recompute> recomputations =
      lists.recomputations.value_or(std::vector{Recompute::none, Recompute::full});
  if (said.recompute) recomputations = {*said.recompute};
  const Recompute usual_recomputation =
      rule_of(asked.framework.value_or(Framework::megatron)).layers.recompute;
  std::vector<JobSettings> all;
  const auto add = [&](JobSettings settings) {
    if (lists.sequence_parallel)
      settings.sequence_parallel = lists.sequence_parallel->front();
    else if (!said.sequence_parallel && *settings.tensor > 1)
      settings.sequence_parallel = true;
    if (!said.sharding && !said.zero_stage && !said.fully_sharded && !said.distributed_optimizer)
      settings.distributed_optimizer = true;
    if (lists.shardings) set_sharding(lists.shardings->front().kind, settings);
    if (lists.dtypes) {
      settings.fp8 = lists.dtypes->front() == DType::fp8;
      settings.fp4 = lists.dtypes->front() == DType::fp4;
    }
    // Degrees of one and the default recomputation are left open, so that the shown flags are short.
    if (settings.context == 1) settings.context.reset();
    if (settings.expert == 1) settings.expert.reset();
    if (settings.recompute == usual_recomputation) settings.recompute.reset();
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

// True if the grid of degrees can satisfy the restrictions: it tries only one value for everything except degrees.
bool grid_keeps(const LayoutRestrictions& lists) {
  const auto is_one = [](const auto& list) { return !list || list->size() == 1; };
  return !lists.virtual_stages && !lists.schedules && !lists.expert_tensor && is_one(lists.dtypes) &&
         is_one(lists.sequence_parallel) && is_one(lists.shardings) &&
         !(lists.shardings && lists.shardings->front().nodes > 0);
}

// Error that names a pool no layout can fill and the sizes that work. Empty if a layout fills all pools, or if changing any
// single pool does not help.
std::optional<Error> unfilled_pool(const PoolLayoutsRequest& request, std::vector<std::int64_t> gpus,
                                   std::int64_t gpus_per_node) {
  Job asked = request.job;
  const auto works = [&] {
    asked.n_gpus = std::accumulate(gpus.begin(), gpus.end(), std::int64_t{0});
    const std::vector<JobSettings> tried =
        is_open(request) ? grid_of_degrees(asked, request.restrictions, gpus, gpus_per_node)
                         : std::vector{JobSettings{}};
    return std::ranges::any_of(tried, [&](const JobSettings& settings) {
      Job job = asked;
      job.settings = over(asked.settings, settings);
      const Result<ResolvedJob> resolved = resolve(job);
      const WholeParts whole = resolved ? whole_parts(resolved->model, resolved->layout, gpus) : WholeParts{};
      return whole.stages || whole.replicas;
    });
  };
  if (works()) return std::nullopt;
  // The error names the smallest pool with a size that works.
  std::vector<std::size_t> smallest_first(gpus.size());
  std::iota(smallest_first.begin(), smallest_first.end(), 0);
  std::ranges::stable_sort(smallest_first, {}, [&](std::size_t p) { return gpus[p]; });
  for (const std::size_t p : smallest_first) {
    const std::int64_t n = gpus[p], nodes = n / gpus_per_node;
    const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
    std::set<std::int64_t> fill;
    // Powers of two and whole nodes around the current size.
    for (const std::int64_t size : {power, 2 * power, nodes * gpus_per_node, (nodes + 1) * gpus_per_node}) {
      gpus[p] = size;
      if (size > 0 && size != n && works()) fill.insert(size);
    }
    gpus[p] = n;
    if (fill.empty()) continue;
    return Error::at("", "--gpus")
        .found(fmt::format("{} x {}, which no layout can fill with whole stages or replicas", n,
                           request.names[p]))
        .expected(fmt::format("{} of them", fmt::join(fill, " or ")));
  }
  return std::nullopt;
}

// Time per sequence, in us: comparable between layouts with different batches.
double us_of_sequence(const PooledLayout& one) {
  return one.split.step.time.value() / static_cast<double>(one.job.layout.batch.global_batch_sequences);
}

}  // namespace

Result<std::vector<PooledLayout>> pool_layouts(const PoolLayoutsRequest& request,
                                               std::span<const SplitPool> pools) {
  std::vector<PooledLayout> found;
  std::optional<Error> failed;
  bool fits = false;
  std::vector<std::int64_t> gpus;
  std::int64_t in_node = std::numeric_limits<std::int64_t>::max();
  for (const SplitPool& pool : pools) {
    gpus.push_back(pool.n_gpus);
    in_node = std::min<std::int64_t>(in_node, pool.steps.platform().node.gpus_per_node);
  }
  // Resolves and splits one candidate; the first error is kept for the case that none works.
  const auto try_one = [&](const JobSettings& settings) {
    Job job = request.job;
    job.settings = over(request.job.settings, settings);
    Result<ResolvedJob> resolved = resolve(job);
    Result<PoolSplit> split = resolved ? split_over_pools(resolved->model, resolved->layout, pools)
                                       : Result<PoolSplit>{resolved.error()};
    if (!split) {
      if (!failed) failed = split.error();
      return;
    }
    fits = fits || split->fits();
    found.push_back({std::move(*resolved), std::move(*split), settings});
  };
  if (!is_open(request)) {
    try_one({});
  } else {
    for (const JobSettings& settings : searched(request, pools, gpus, failed)) try_one(settings);
    // The grid is searched only if no candidate of the planner fits.
    const bool searches_grid = !fits && grid_keeps(request.restrictions);
    for (const JobSettings& settings : grid_of_degrees(request.job, request.restrictions, gpus, in_node)) {
      const bool recomputes = settings.recompute && !request.job.settings.recompute;
      if (!searches_grid || (fits && recomputes && !request.restrictions.recomputations)) break;
      try_one(settings);
    }
  }
  if (found.empty()) {
    const Error none = failed.value_or(Error{"no layout of these degrees runs on the pools"});
    return unfilled_pool(request, gpus, in_node).value_or(none);
  }
  // Batches may differ if none was given, so layouts are sorted by tokens per second.
  std::ranges::stable_sort(found, {}, [](const PooledLayout& one) {
    return std::pair{!one.split.fits(), us_of_sequence(one)};
  });
  // Candidates that differ only in the division of layers are equal after the split, which decides it.
  const auto same = std::ranges::unique(found, [](const PooledLayout& one, const PooledLayout& other) {
    return one.split.over == other.split.over && one.split.layouts == other.split.layouts;
  });
  found.erase(same.begin(), same.end());
  return found;
}

}  // namespace stepcast
