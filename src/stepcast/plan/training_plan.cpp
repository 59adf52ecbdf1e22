#include "stepcast/plan/training_plan.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/scan.h"
#include "stepcast/base/units.h"
#include "stepcast/cost/node_power.h"
#include "stepcast/predict/routine_job.h"

namespace stepcast {
namespace {

// True if `a` dominates `b`: at least as good in time, price and headroom, and better in one.
bool beats(const TrainingOption& a, const TrainingOption& b) {
  const double money_a = a.price.value_or(a.gpu_hours), money_b = b.price.value_or(b.gpu_hours);
  const bool no_worse = a.days <= b.days && money_a <= money_b && a.margin_GiB >= b.margin_GiB;
  return no_worse && (a.days < b.days || money_a < money_b || a.margin_GiB > b.margin_GiB);
}

// Sets power, energy and emissions of an option; leaves them empty if the platform has no power data.
void add_energy(const LayoutPlan& plan, const StepShares& shares, const TrainingGoal& goal,
                const Platform& platform, std::optional<double> limit_W, TrainingOption& option) {
  const std::optional<NodePower> power = NodePower::of(platform);
  if (!power) return;
  const auto n_gpus = static_cast<double>(plan.space.n_gpus);
  const double in_node = platform.node.gpus_per_node;
  option.power_kW =
      power->cluster_watts(n_gpus, in_node, shares.waiting_share(n_gpus > in_node), limit_W) * 1e-3;
  option.energy_MWh = *option.power_kW * option.days * 24 * 1e-3;
  if (goal.carbon_g_per_kWh) option.co2_t = *option.energy_MWh * *goal.carbon_g_per_kWh * 1e-3;
  option.over_power = goal.power_budget_W && *option.power_kW * 1e3 > *goal.power_budget_W;
}

}  // namespace

Result<TrainingOption> training_option(const LayoutPlan& plan, const ChosenLayout& chosen,
                                       const TrainingGoal& goal, const NamedPlatform& on,
                                       std::optional<double> power_limit_W) {
  const Platform& platform = on.platform;
  TrainingOption option;
  option.layout = to_string(chosen.point);
  if (chosen.refinement) option.layout += fmt::format("; {}", fmt::join(chosen.refinement->changes, "; "));
  option.flags = megatron_text(chosen, plan.prototypes).value_or("");
  option.step_ms = chosen.promise.time.value() * 1e-3;
  option.forecast_ms = chosen.step.step.time.value() * 1e-3;
  constexpr double kMsPerDay = 86400e3;
  const double steps = goal.tokens / chosen.step.tokens_per_step;
  option.days = steps * option.step_ms / kMsPerDay;
  option.days_p90 = steps * chosen.promise.p90.value() * 1e-3 / kMsPerDay;
  auto gpus = static_cast<double>(plan.space.n_gpus);
  StepModel model{platform, plan.assumptions};
  STEPCAST_ASSIGN(const RunJob job, routine_job(plan.prototypes.routine(), plan.prototypes.model(),
                                                chosen.layout, model, option.step_ms * 1e-3));
  // Without interruptions only regular stops (evaluation, checkpoints) lengthen the run.
  if (!goal.run) {
    double with_stops = 1;
    for (const RegularStop& stop : regular_stops({}, job))
      with_stops += stop.s / stop.every_steps / job.step_s;
    option.days *= with_stops;
    option.days_p90 *= with_stops;
  } else {
    const double step_s = steps * 1e-6;  // s per us of step time
    Result<RunForecast> run = forecast_run(*goal.run, job,
                                           {.s = step_s * chosen.promise.time.value(),
                                            .p10_s = step_s * chosen.promise.p10.value(),
                                            .p90_s = step_s * chosen.promise.p90.value()});
    if (!run.ok()) return TrainingOption{.platform = {}, .why_not = run.error().message()};
    option.days = run->days;
    option.days_p90 = run->days_p90;
    gpus = run->held_gpus;
    option.run = std::move(*run);
  }
  option.gpu_hours = option.days * 24 * gpus;
  option.price_per_gpu_hour = on.price_per_gpu_hour ? on.price_per_gpu_hour : goal.price_per_gpu_hour;
  if (option.price_per_gpu_hour) option.price = option.gpu_hours * *option.price_per_gpu_hour;
  add_energy(plan, chosen.step.shares, goal, platform, power_limit_W, option);
  // The deadline uses the expected days; `surely` uses their p90.
  option.margin_GiB = chosen.memory.margin().value() / kGiB;
  option.meets = !option.over_power && (!goal.within_days || option.days <= *goal.within_days);
  option.surely = !goal.within_days || option.days_p90 <= *goal.within_days;
  return option;
}

Result<TrainingPlan> plan_training(const PlanRequest& request, const std::vector<NamedPlatform>& platforms,
                                   const std::vector<std::int64_t>& gpus, const TrainingGoal& goal) {
  TrainingPlan result;
  for (const NamedPlatform& named : platforms) {
    for (const std::int64_t n : gpus) {
      PlanRequest one = request;
      one.n_gpus = n;
      STEPCAST_ASSIGN(const LayoutPlan plan, plan_layouts(one, named.platform));
      if (const Transformer& model = plan.prototypes.model(); model.network) {
        return Error::at("", "--train-tokens", fmt::format("a step of {} has no tokens", model.name))
            .advice("stepcast predict --train-samples counts samples");
      }
      const auto add = [&](TrainingOption option) {
        option.platform = named.name;
        option.n_gpus = n;
        result.options.push_back(std::move(option));
      };
      if (plan.ranking.layouts.empty()) {
        add({.platform = {}, .why_not = why_none(plan).message()});
        continue;
      }
      const ChosenLayout chosen = chosen_layout(plan);
      STEPCAST_ASSIGN(TrainingOption first,
                      training_option(plan, chosen, goal, named, request.power_limit_W));
      add(std::move(first));
      // Further options of this size: the next layouts of the ranking.
      std::size_t left = goal.layouts_of_each - 1;
      for (std::size_t i = 0; i < plan.ranking.layouts.size() && left > 0; ++i) {
        if (i == chosen.of) continue;
        STEPCAST_ASSIGN(TrainingOption option,
                        training_option(plan, listed_layout(plan, i), goal, named, request.power_limit_W));
        add(std::move(option));
        --left;
      }
    }
  }
  for (std::size_t i = 0; i < result.options.size(); ++i) {
    TrainingOption& option = result.options[i];
    if (!option.why_not.empty()) continue;
    option.best = true;
    // Pareto-optimal unless another option dominates it.
    for (const TrainingOption& other : result.options)
      if (other.why_not.empty() && beats(other, option)) option.best = false;
    if (!option.meets) continue;
    // Makes this option the best one if `less` is smaller for it.
    const auto take = [&](std::optional<std::size_t>& best, const auto& less) {
      if (!best || less(option) < less(result.options[*best])) best = i;
    };
    take(result.fewest, [](const TrainingOption& o) { return static_cast<double>(o.n_gpus); });
    take(result.cheapest, [](const TrainingOption& o) { return o.price.value_or(o.gpu_hours); });
    take(result.fastest, [](const TrainingOption& o) { return o.days_p90; });
    take(result.roomiest, [](const TrainingOption& o) { return -o.margin_GiB; });
    if (option.energy_MWh) take(result.least_energy, [](const TrainingOption& o) { return *o.energy_MWh; });
  }
  switch (request.objective) {
    case PlanObjective::step_time: result.wanted = result.fastest; break;
    case PlanObjective::cost: result.wanted = result.cheapest; break;
    case PlanObjective::energy: result.wanted = result.least_energy; break;
    case PlanObjective::memory: result.wanted = result.roomiest; break;
  }
  return result;
}

Result<double> parse_days(const std::string& text) {
  std::string_view unit = text;
  const double value = scan_front<double>(unit).value_or(0);
  constexpr ScanUnit kUnits[] = {{"", 1}, {"d", 1}, {"h", 1.0 / 24}, {"w", 7}};
  if (const auto days = scan_with_unit(text, kUnits); days && value < 1e6) return *days;
  return Error::at("", "--within").found(fmt::format("`{}`", text.substr(0, 40))).expected("30d, 12h or 2w");
}

}  // namespace stepcast
