// Predictions of described recommendation models.
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/analyze/dlrm_forecast.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/file.h"
#include "stepcast/base/output_file.h"
#include "stepcast/describe/dlrm_job.h"
#include "stepcast/describe/measured_indices.h"
#include "stepcast/describe/torchrec_plan.h"
#include "stepcast/plan/row_balanced_sharding.h"
#include "stepcast/plan/sharding_search.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/dlrm_step.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/report/perfetto.h"

namespace stepcast {

Result<Forecast> Session::predict(const PredictDlrmRequest& request) const {
  STEPCAST_ASSIGN(DlrmJob job, read_dlrm_job(request.model));
  if (!request.tables.empty()) {
    STEPCAST_ASSIGN(job.model.tables, read_embedding_tables(request.tables));
  }
  if (!request.indices.empty()) STEPCAST_TRY(read_indices(request.indices, job.model));
  if (request.n_gpus < 1) return Error::at("", "--gpus").found("nothing").expected("how many GPUs in all");
  if (request.global_batch) job.global_batch = request.global_batch;
  if (request.global_batch) job.batch_per_rank.reset();
  StepAssumptions assumptions;
  STEPCAST_TRY(apply_what_if(request.what_if, assumptions));
  STEPCAST_ASSIGN(Platform platform, load_platform(request.platform));
  if (request.gpus_per_node) {
    std::string note;
    adapt_to({.gpus_per_node = *request.gpus_per_node}, platform, note);
    STEPCAST_TRY(platform.check());
  }
  std::vector<std::filesystem::path> inputs = platform.files;
  for (const std::string& file : {request.model, request.tables, request.indices, request.plan})
    inputs.emplace_back(file);
  std::optional<OutputFile> timeline;
  if (!request.timeline.empty()) {
    STEPCAST_ASSIGN(timeline, OutputFile::at(request.timeline, inputs));
  }
  STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(job.model, job.training_on(request.n_gpus),
                                                             platform, request.n_gpus, assumptions));
  ShardingPlan plan;
  if (!request.plan.empty()) {
    STEPCAST_ASSIGN(const std::string text, read_file(request.plan));
    STEPCAST_ASSIGN(plan, parse_torchrec_plan(text, request.plan, job.model, request.n_gpus));
  } else if (!steps.is_hybrid()) {
    if (job.training.stack == DlrmStack::hugectr) plan = row_balanced_sharding(steps).plan;
    if (plan.tables.empty() || !std::isfinite(steps.step_us(plan))) plan = search_sharding(steps).plan;
  }
  STEPCAST_ASSIGN(const DlrmStep step, steps.predict(plan));
  Forecast forecast = dlrm_forecast(steps, step, platform, plan, {.collectives = request.collectives});
  STEPCAST_TRY(add_training(forecast, request.budget));
  if (timeline) {
    const FlatProgram flat{steps.program()};
    STEPCAST_TRY(
        write_perfetto(*timeline, flat, steps.costs(), TaskTimes::simulated(flat, steps.timeline())));
  }
  return forecast;
}

}  // namespace stepcast
