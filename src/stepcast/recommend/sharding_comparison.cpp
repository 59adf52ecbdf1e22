// Compares shardings of one job: collects the requested plans, predicts the step of each, sorts them and
// states a verdict.
#include "stepcast/recommend/sharding_comparison.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/stop.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/reshard.h"
#include "stepcast/recommend/sharders.h"
#include "stepcast/recommend/torchrec_plan.h"

namespace stepcast {
namespace {

constexpr const char* kResharded = "resharded";

// Reads a TorchRec plan. Errors: those of reading and parsing.
Result<ShardingPlan> plan_of_file(const std::filesystem::path& file, const DlrmStepModel& steps) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  return parse_torchrec_plan(text, file.string(), steps.model(), steps.n_ranks());
}

// All plans to compare. If the job runs a plan now, it is the first one, followed by the resharded plan if
// there is a better one.
Result<std::vector<ShardingPlan>> plans_of(const ShardingsToCompare& choices, DlrmStepModel& steps) {
  std::vector<ShardingPlan> plans;
  const Dlrm& model = steps.model();
  if (!choices.now.empty()) {
    ShardingPlan now = choices.now_plan;
    if (now.tables.empty()) {
      STEPCAST_ASSIGN(now, plan_of_file(choices.now, steps));
    }
    STEPCAST_TRY(check(model, now, steps.n_ranks()));
    now.name = "now";
    Resharded next = reshard(steps, now);
    plans.push_back(std::move(now));
    if (!next.moved_tables.empty()) {
      next.plan.name = kResharded;
      plans.push_back(std::move(next.plan));
    }
  }
  const double weights = model.tables.front().bytes();
  const SharderOptions with{.memory_bytes = steps.table_memory_bytes(),
                            .state_factor = steps.shard_bytes({.table = 0}) / std::max(1.0, weights),
                            .seed = choices.seed};
  std::vector<std::string> names = choices.sharders;
  const bool all = names.empty() && choices.now.empty();
  if (all) {
    for (const Sharder sharder : kSharders) names.emplace_back(to_string(sharder));
    names.insert(names.end(), {"search", "stack"});
  }
  for (const std::string& name : names) {
    STEPCAST_TRY(not_stopped());
    if (name == "search") {
      plans.push_back(search_sharding(steps, {.seed = choices.seed,
                                              .max_evaluations = choices.max_evaluations,
                                              .max_seconds = choices.max_seconds})
                          .plan);
      continue;
    }
    if (name == "stack") {
      std::optional<ShardingPlan> of_stack = stack_sharding(steps);
      if (of_stack)
        plans.push_back(std::move(*of_stack));
      else if (!all)
        return Error{"the software of this model has no sharder for these tables"}.advice("take `search`");
      continue;
    }
    const std::optional<Sharder> sharder = parse_sharder(name);
    if (!sharder) {
      return Error::at("", "--sharders")
          .found(fmt::format("`{}`", name))
          .expected("naive, random, size, lookup, norm_lookup, size_lookup, search or stack");
    }
    plans.push_back(shard(model, steps.n_ranks(), *sharder, with));
  }
  for (const std::filesystem::path& file : choices.plans) {
    STEPCAST_ASSIGN(ShardingPlan plan, plan_of_file(file, steps));
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace

double ComparedSharding::most_lookups_us() const {
  double most = 0;
  for (const DlrmRank& rank : step.ranks) most = std::max(most, rank.lookup_us + rank.lookup_backward_us);
  return most;
}

double ComparedSharding::most_sent_bytes() const {
  double most = 0;
  for (const DlrmRank& rank : step.ranks) most = std::max(most, rank.sent_bytes);
  return most;
}

const ComparedSharding* ShardingComparison::first_torchrec_plan() const {
  const auto found = std::ranges::find_if(
      shardings, [](const ComparedSharding& c) { return c.step.fits && !c.plan.tables.empty(); });
  return found == shardings.end() ? nullptr : &*found;
}

// Compares the best plan with the next different one. Both expected times have errors in common, so a small
// difference is a tie.
std::string ShardingComparison::verdict() const {
  const ComparedSharding& best = shardings.front();
  if (!best.step.fits) return "No sharding fits the memory of the GPUs.";
  // Identical plans count as one; the first of them represents all.
  const auto other = std::ranges::find_if(
      shardings, [&](const ComparedSharding& c) { return c.plan.tables != best.plan.tables; });
  const ComparedSharding* next = other != shardings.end() && other->step.fits ? &*other : nullptr;
  if (other == shardings.end() && shardings.size() > 1) {
    return fmt::format("{} fits; {} is the same plan.", best.plan.name,
                       shardings.size() == 2 ? shardings[1].plan.name : "every other one");
  }
  if (shardings.size() == 1) return fmt::format("{} fits; no other sharding was given.", best.plan.name);
  if (next == nullptr) return fmt::format("{} is the only one that fits.", best.plan.name);
  const double gain = next->expected_us / best.expected_us - 1;
  if (gain < kShardingsAlike) {
    return fmt::format(
        "{} and {} are tied: their expected steps differ by {:.1f} %, less than the error of the lookup "
        "model ({:.0f} %).",
        best.plan.name, next->plan.name, 100 * gain, 100 * kShardingsAlike);
  }
  return fmt::format("{} is expected to be the fastest, {:.1f} % faster than {}.", best.plan.name, 100 * gain,
                     next->plan.name);
}

Result<ShardingComparison> compare_shardings(const ShardingsToCompare& choices, DlrmStepModel& steps) {
  STEPCAST_ASSIGN(std::vector<ShardingPlan> plans, plans_of(choices, steps));
  ShardingComparison all{.model = steps.model(),
                         .n_gpus = steps.n_ranks(),
                         .gpus_per_node = steps.gpus_per_node(),
                         .global_batch_samples = steps.training().global_batch,
                         .shardings = {}};
  const std::size_t given = choices.now.empty() ? plans.size() - choices.plans.size() : 0;
  for (const ShardingPlan& plan : plans) {
    STEPCAST_TRY(not_stopped());
    const double expected_us = steps.expected_us(plan, true);
    STEPCAST_ASSIGN(DlrmStep step, steps.predict(plan));
    // A plan without tables (hybrid) has parts of all tables on every rank.
    std::vector<std::size_t> tables(step.ranks.size(), plan.tables.empty() ? steps.model().tables.size() : 0);
    if (!plan.tables.empty()) {
      for (const TableShard& s : shards_of(steps.model(), plan, steps.n_ranks()))
        ++tables[static_cast<std::size_t>(s.rank)];
    }
    ComparedSharding& compared =
        all.shardings.emplace_back(ComparedSharding{plan, std::move(step), expected_us, std::move(tables)});
    compared.is_resharded = !choices.now.empty() && all.shardings.size() == 2 && plan.name == kResharded;
    compared.is_given = all.shardings.size() == given + 1;
    for (std::uint32_t t = 0; !choices.now.empty() && t < plan.tables.size(); ++t) {
      if (plan.tables[t] == plans.front().tables[t]) continue;
      ++compared.moved_tables;
      compared.moved_bytes += steps.shard_bytes({.table = t});
    }
  }
  std::ranges::stable_sort(all.shardings, [](const ComparedSharding& a, const ComparedSharding& b) {
    if (a.step.fits != b.step.fits) return a.step.fits;
    return a.expected_us < b.expected_us;
  });
  all.least_step_us = steps.least_step_us();
  return all;
}

}  // namespace stepcast
