// stepcast plan --gpus 64xh100+64xa100: layouts over pools of different GPUs.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/describe/gpu_pools.h"

#include "plan_options.h"
#include "progress.h"

namespace stepcast::cli {

bool plans_pools(const PlanOptions& options) {
  return options.gpus.size() == 1 && names_gpu_pools(options.gpus.front());
}

// Layouts over pools of different GPUs, as `predict` searches them, and the best of them as a table.
Result<int> run_pools(const PlanOptions& options) {
  constexpr std::string_view kTaken[] = {"--model",
                                         "--ignore-key",
                                         "--image-size",
                                         "--images",
                                         "--text-only",
                                         "--gpus",
                                         "--zone",
                                         "--gpus-per-node",
                                         "--framework",
                                         "--gbs",
                                         "--seq",
                                         "--what-if",
                                         "--tp",
                                         "--pp",
                                         "--cp",
                                         "--ep",
                                         "--mbs",
                                         "--recompute",
                                         "--dtype",
                                         "--sharding",
                                         "--top",
                                         "--json",
                                         "--report",
                                         "--format",
                                         "--train-tokens",
                                         "--gpu-hour-price",
                                         "--carbon-intensity",
                                         "--failures",
                                         "--recovery"};
  for (const GivenFlag& flag : options.flags.given())
    if (std::ranges::find(kTaken, flag.name) == std::end(kTaken))
      return Error{fmt::format("{} means nothing for pools of GPUs", flag.name)}.advice("leave it out");
  const auto one_of = [](const char* flag, const Words& words) -> Status {
    if (words.size() < 2) return Ok{};
    return Error::at("", flag).found("several values").expected("one, with pools of GPUs");
  };
  STEPCAST_TRY(one_of("--dtype", options.space.dtypes));
  STEPCAST_TRY(one_of("--sharding", options.space.shardings));
  STEPCAST_TRY(one_of("--gpu-hour-price", options.prices));
  PredictRequest request;
  STEPCAST_ASSIGN(request.job, job_of(options));
  STEPCAST_ASSIGN(const LayoutRestrictions lists, restrictions_of(options.space));
  JobSettings& settings = request.job.settings;
  if (lists.shardings) set_sharding(lists.shardings->front().kind, settings);
  if (lists.dtypes) {
    settings.fp8 = lists.dtypes->front() == DType::fp8;
    settings.fp4 = lists.dtypes->front() == DType::fp4;
  }
  request.job.gpus_per_node = options.gpus_per_node;
  request.pools = options.gpus.front();
  request.zones = options.zones;
  request.what_if = options.what_if;
  const RestrictionWords& space = options.space;
  request.pool_space = {space.tensor,      space.pipeline,
                        space.context,     space.expert,
                        space.micro_batch, lists.recomputations.value_or(std::vector<Recompute>{}),
                        options.top};
  if (options.goal.tokens > 0) request.budget.tokens = options.goal.tokens;
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
