// The number of GPUs and the machine for a training: plans every size on every platform and compares deadline and cost.
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

// What the training needs.
struct TrainingGoal {
  double tokens = 0;                  // tokens to train on
  std::optional<double> within_days;  // deadline
  std::optional<double> price_per_gpu_hour;
  std::string currency{};                    // of the prices; empty: any
  std::optional<double> carbon_g_per_kWh{};  // carbon intensity of the electricity, in g/kWh
  std::optional<double> power_budget_W{};    // limit for nodes and switches together
  std::optional<RunAssumptions> run;         // interruptions of the run; empty: an uninterrupted run
  // Options per platform and number of GPUs: the chosen layout, then the following layouts of the ranking.
  std::size_t layouts_of_each = 1;
};

// One way to run the training.
struct TrainingOption {
  std::string platform;
  std::int64_t n_gpus = 0;
  std::string why_not;  // why no layout runs and fits; empty: one does
  std::string layout, flags;
  // With `run`, days and GPU-hours include its losses.
  // step_ms: the expected step, including the factor for searched layouts.
  double step_ms = 0, days = 0, days_p90 = 0, gpu_hours = 0, margin_GiB = 0;
  double forecast_ms = 0;  // the unscaled forecast of that step
  std::optional<RunForecast> run;
  std::optional<double> price, price_per_gpu_hour;
  // Of nodes and switches (cost/node_power.h). Empty if the platform has no power limit for its GPUs.
  std::optional<double> power_kW{}, energy_MWh{}, co2_t{};
  bool over_power = false;  // exceeds the power budget of the goal
  bool meets = false;       // meets deadline (by the forecast) and power budget; true without them
  bool surely = false;      // meets the deadline also by its p90
  // Pareto-optimal in time, cost and headroom.
  bool best = false;
};

// All options and the best ones by objective.
struct TrainingPlan {
  std::vector<TrainingOption> options;  // by platform, then ascending GPUs
  // Indices of the best options among those that meet the goal. Cheapest: fewest GPU-hours or lowest price. Fastest: by p90.
  // Least energy: among options with known energy. Roomiest: most headroom.
  std::optional<std::size_t> fewest, cheapest, fastest, least_energy, roomiest;
  // The best option by the objective of the request.
  std::optional<std::size_t> wanted;
};

// A platform to plan on.
struct NamedPlatform {
  std::string name;
  Platform platform;
  std::optional<double> price_per_gpu_hour{};  // empty: the price of the goal
};

// The option for one layout of a plan. A run that cannot be forecast gives an option with `why_not`. Errors: checkpoints or
// evaluations without a price.
[[nodiscard]] Result<TrainingOption> training_option(const LayoutPlan& plan, const ChosenLayout& chosen,
                                                     const TrainingGoal& goal, const NamedPlatform& on,
                                                     std::optional<double> power_limit_W);

// Plans every platform with every number of GPUs. The first layout of each is the choice of plan_layouts(). Errors: those of
// plan_layouts().
[[nodiscard]] Result<TrainingPlan> plan_training(const PlanRequest& request,
                                                 const std::vector<NamedPlatform>& platforms,
                                                 const std::vector<std::int64_t>& gpus,
                                                 const TrainingGoal& goal);

// Parses a duration in days: "30d", "12h", "2w", or a plain number of days.
[[nodiscard]] Result<double> parse_days(const std::string& text);

}  // namespace stepcast
