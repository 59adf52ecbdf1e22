// stepcast plan --gpus 64xh100+64xa100: layouts over pools of different GPUs.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/cost/node_power.h"
#include "stepcast/describe/gpu_pools.h"
#include "stepcast/plan/restriction_words.h"

#include "plan_options.h"
#include "progress.h"

namespace stepcast::cli {

bool plans_pools(const PlanOptions& options) {
  return options.gpus.size() == 1 && names_gpu_pools(options.gpus.front());
}

// Searches layouts over pools of different GPUs, as `predict` does, and prints the best as a table.
Result<int> run_pools(const PlanOptions& options) {
  if (options.prices.size() > 1)
    return Error::at("", "--gpu-hour-price").found("several values").expected("one, with pools of GPUs");
  PredictRequest request;
  STEPCAST_ASSIGN(request.job, job_of(options));
  STEPCAST_ASSIGN(LayoutRestrictions lists, restrictions_of(options.space));
  request.pool_space = {std::make_shared<const LayoutRestrictions>(std::move(lists)), options.top};
  request.job.gpus_per_node = options.gpus_per_node;
  request.pools = options.gpus.front();
  request.zones = options.zones;
  request.what_if = options.what_if;
  if (!options.power_limit.empty()) {
    STEPCAST_ASSIGN(request.power_limit_W, parse_watts(options.power_limit, "--power-limit"));
  }
  if (options.goal.tokens > 0) request.budget.tokens = options.goal.tokens;
  request.budget.currency = options.goal.currency;
  request.budget.carbon_g_per_kWh = options.goal.carbon_g_per_kWh;
  request.budget.failures = options.failures;
  request.budget.recovery = options.recovery;
  if (!options.prices.empty()) {
    std::vector<NamedPlatform> none;
    TrainingGoal goal;
    STEPCAST_TRY(set_prices(options.prices, none, {}, goal));
    request.budget.price_per_gpu_hour = goal.price_per_gpu_hour;
  }
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  std::optional<ProgressLine> progress{std::in_place, "plan on pools of GPUs"};
  STEPCAST_ASSIGN(const Forecast forecast, Session{}.predict(request));
  progress.reset();
  return report.finish(forecast_document(forecast, {.made_for = report.made_for()}),
                       options.json ? forecast_json(forecast) : std::string{});
}

}  // namespace stepcast::cli
