// Shardings of embedding tables, compared.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/api/detail/recorded_tables.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/output_file.h"
#include "stepcast/describe/dlrm_job.h"
#include "stepcast/describe/measured_indices.h"
#include "stepcast/describe/torchrec_plan.h"
#include "stepcast/plan/table_sets.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/predict/dlrm_step.h"

namespace stepcast {
namespace {

// The model with the tables, lookups and batch of the request.
Result<DlrmJob> job_of(const ShardRequest& request, const Platform& platform) {
  STEPCAST_ASSIGN(DlrmJob job, read_dlrm_job(request.model));
  STEPCAST_TRY(set_training(request.settings, job.training));
  if (!request.tables.empty()) STEPCAST_TRY(detail::take_tables(request.tables, job));
  if (!request.indices.empty()) STEPCAST_TRY(read_indices(request.indices, job.model));
  if (request.global_batch) {
    job.global_batch = *request.global_batch;
    job.batch_per_rank.reset();
  }
  if (!request.generate.empty()) {
    STEPCAST_ASSIGN(job.model.tables,
                    generate_task(request.generate, request.n_gpus, platform.device.memory_size.value(),
                                  request.choices.seed));
  }
  return job;
}

}  // namespace

Result<ShardingComparison> Session::shard(const ShardRequest& request) const {
  STEPCAST_ASSIGN(std::shared_ptr<const Platform> shipped, impl_->platform(request.platform));
  std::vector<std::string> notes;
  if (const auto node = default_node_for(*shipped, request.n_gpus)) {
    notes.push_back(node_note(request.platform, *node));
    STEPCAST_ASSIGN(shipped, impl_->platform(*node));
  }
  std::vector<std::filesystem::path> inputs{request.model, request.tables, request.indices,
                                            request.choices.now};
  inputs.insert(inputs.end(), shipped->files.begin(), shipped->files.end());
  inputs.insert(inputs.end(), request.choices.plans.begin(), request.choices.plans.end());
  STEPCAST_ASSIGN(const std::optional<OutputFile> plan, detail::output_at(request.plan, inputs));
  STEPCAST_ASSIGN(const std::optional<OutputFile> tables, detail::output_at(request.tables_csv, inputs));
  STEPCAST_ASSIGN(const DlrmJob job, job_of(request, *shipped));
  Platform platform = *shipped;
  if (request.gpus_per_node) {
    std::string note;
    adapt_to({.gpus_per_node = *request.gpus_per_node}, platform, note);
    STEPCAST_TRY(platform.check());
  }
  STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(job.model, job.training_on(request.n_gpus),
                                                             platform, request.n_gpus));
  if (tables) STEPCAST_TRY(tables->write(tables_csv(job.model.tables)));
  ShardingsToCompare choices = request.choices;
  if (detail::is_trace_folder(choices.now)) {
    STEPCAST_ASSIGN(detail::RecordedTables recorded, detail::recorded_tables(choices.now));
    choices.now_plan = std::move(recorded.plan);
  }
  STEPCAST_ASSIGN(ShardingComparison all, compare_shardings(choices, steps));
  all.notes = std::move(notes);
  if (plan) {
    const ComparedSharding* best = all.first_torchrec_plan();
    if (best == nullptr) return Error{"no sharding that TorchRec knows fits: no plan is written"};
    STEPCAST_TRY(
        plan->write(torchrec_plan_json(job.model, best->plan, request.n_gpus, steps.gpus_per_node())));
  }
  return all;
}

}  // namespace stepcast
