// How many GPUs of which machine a training needs: every count and platform planned, what meets a deadline, what costs
// least.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/run/recovery.h"
#include "stepcast/run/run_forecast.h"

namespace stepcast {

struct TrainingGoal {
  double tokens = 0;
  std::optional<double> within_days;
  std::optional<double> price_per_gpu_hour;
  std::optional<double> carbon_g_per_kWh{};  // of the electricity
  std::optional<double> power_budget_W{};    // that nodes and switches may draw
  std::optional<RunAssumptions> run;         // with what interrupts it
  // Options of every platform and number of GPUs: the chosen layout, and behind it the next of the ranking.
  std::size_t layouts_of_each = 1;
};

struct TrainingOption {
  std::string platform;
  std::int64_t n_gpus = 0;
  std::string why_not;  // no layout runs and fits; empty otherwise
  std::string layout, flags;
  // With `run` these are those with its losses.
  double step_ms = 0, days = 0, days_p90 = 0, gpu_hours = 0, margin_GiB = 0;  // step: expected (promise.h)
  double forecast_ms = 0;                                                     // the forecast of that step
  std::optional<RunForecast> run;
  std::optional<double> price, price_per_gpu_hour;
  // Of nodes and switches (cost/node_power.h). Nothing where the platform states no power limit of its GPUs.
  std::optional<double> power_kW{}, energy_MWh{}, co2_t{};
  bool over_power = false;  // of the goal's budget
  bool meets = false;       // the deadline, by the forecast, and the power budget; true without
  bool surely = false;      // by its p90, too
  // No other option is as fast, as cheap and as far from the limit of the memory, and better in one.
  bool best = false;
};

struct TrainingPlan {
  std::vector<TrainingOption> options;  // platform by platform, GPUs ascending
  // Of those that meet the deadline. Cheapest: fewest GPU-hours or least price. Fastest: by p90. Least energy: of those
  // that state it.
  std::optional<std::size_t> fewest, cheapest, fastest, least_energy, roomiest;
  // What the request's objective wants: the fastest, the cheapest, the one of least energy or with most memory to spare.
  std::optional<std::size_t> wanted;
};

struct NamedPlatform {
  std::string name;
  Platform platform;
  std::optional<double> price_per_gpu_hour{};  // nothing: that of the goal
};

// A training with one layout of a plan. A run that cannot be forecast is an option with `why_not`. Errors: checkpoints or
// evaluations that cannot be priced.
[[nodiscard]] Result<TrainingOption> training_option(const LayoutPlan& plan, const ChosenLayout& chosen,
                                                     const TrainingGoal& goal, const NamedPlatform& on,
                                                     std::optional<double> power_limit_W);

// The first layout of each is the one that plan_layouts() chooses. Errors: those of plan_layouts().
[[nodiscard]] Result<TrainingPlan> plan_training(const PlanRequest& request,
                                                 const std::vector<NamedPlatform>& platforms,
                                                 const std::vector<std::int64_t>& gpus,
                                                 const TrainingGoal& goal);

// "30d", "12h", "2w", or days alone.
[[nodiscard]] Result<double> parse_days(const std::string& text);

}  // namespace stepcast
