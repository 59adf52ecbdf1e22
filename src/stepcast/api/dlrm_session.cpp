// Predictions of recommendation models: the step, series of steps, resharding during training, and the
// comparison of shardings.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/analyze/make_step_picture.h"
#include "stepcast/analyze/step_forecast.h"
#include "stepcast/api/detail/recorded_tables.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/file.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/text.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/recommend/dlrm_forecast.h"
#include "stepcast/recommend/dlrm_job.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/measured_indices.h"
#include "stepcast/recommend/sharders.h"
#include "stepcast/recommend/sharding_search.h"
#include "stepcast/recommend/table_sets.h"
#include "stepcast/recommend/torchrec_plan.h"
#include "stepcast/report/perfetto.h"

namespace stepcast {
namespace {

// The model of a request, with the tables, indices and batch that the request replaces.
template <class Request>
Result<DlrmJob> job_of(const Request& request) {
  STEPCAST_ASSIGN(DlrmJob job, read_dlrm_job(request.model));
  STEPCAST_TRY(set_training(request.settings, job.training));
  if (!request.tables.empty()) STEPCAST_TRY(detail::take_tables(request.tables, job));
  if (!request.indices.empty()) STEPCAST_TRY(read_indices(request.indices, job.model));
  if (request.global_batch) {
    job.global_batch = request.global_batch;
    job.batch_per_rank.reset();
  }
  return job;
}

// A request with its files read and its step model created.
struct Prepared {
  DlrmJob job;
  Platform platform;
  DlrmStepModel steps;
  std::string note;  // about a platform that differs from the named one; empty if it does not
  std::vector<std::filesystem::path> inputs;
};

Result<Prepared> prepare(const PredictDlrmRequest& request) {
  STEPCAST_ASSIGN(DlrmJob job, job_of(request));
  if (request.n_gpus < 1)
    return Error::at("", "--gpus").found("nothing").expected("the total number of GPUs");
  if (request.batch_per_rank) {
    job.batch_per_rank = request.batch_per_rank;
    job.global_batch.reset();
  }
  StepAssumptions assumptions;
  DlrmWhatIf what_if;
  STEPCAST_TRY(apply_what_if(request.what_if, assumptions, factors_of(what_if)));
  // All input files, which outputs must not overwrite.
  std::vector<std::filesystem::path> inputs{request.model, request.tables, request.indices, request.plan};
  std::optional<Platform> links;
  if (!request.links_of.empty()) {
    STEPCAST_ASSIGN(links, load_platform(request.links_of));
    inputs.insert(inputs.end(), links->files.begin(), links->files.end());
  }
  STEPCAST_ASSIGN(PlatformChoice chosen,
                  load_meant_platform(request.platform, request.n_gpus, request.gpus_per_node));
  auto& [platform, note] = chosen;
  inputs.insert(inputs.end(), platform.files.begin(), platform.files.end());
  STEPCAST_ASSIGN(DlrmStepModel steps,
                  DlrmStepModel::create(job.model, job.training_on(request.n_gpus), platform, request.n_gpus,
                                        assumptions, {}, links ? &*links : nullptr));
  if (what_if != DlrmWhatIf{}) steps.set_what_if(what_if);
  return Prepared{std::move(job), std::move(platform), std::move(steps), std::move(note), std::move(inputs)};
}

// The plan of the request, or the default sharding of the model's software.
Result<ShardingPlan> plan_of(const PredictDlrmRequest& request, const DlrmJob& job, DlrmStepModel& steps) {
  ShardingPlan plan;
  if (!request.plan.empty()) {
    STEPCAST_ASSIGN(const std::string text, read_file(request.plan));
    STEPCAST_ASSIGN(plan, parse_torchrec_plan(text, request.plan, job.model, request.n_gpus));
  } else {
    plan = usual_sharding(steps);
  }
  return plan;
}

// All ranks are simulated from time 0 to the end of the step.
StepPictures pictures_of(const DlrmStepModel& steps) {
  const FlatProgram flat{steps.program()};
  const TaskTimes times = TaskTimes::simulated(flat, steps.timeline());
  const std::vector<Interval> windows(flat.class_count(), Interval{0, steps.timeline().end_us()});
  const std::vector<double> starts(flat.class_count(), 0.0);
  return {.passes = {},
          .ranks = picture_of_ranks({flat, steps.costs(), times, windows, starts}),
          .path = picture_of_path(flat, critical_path(flat, times, steps.costs(), starts))};
}

}  // namespace

Result<Forecast> Session::predict(const PredictDlrmRequest& request, const Extras& extras) const {
  STEPCAST_ASSIGN(Prepared prepared, prepare(request));
  auto& [job, platform, steps, note, inputs] = prepared;
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline, detail::output_at(request.timeline, inputs));
  STEPCAST_ASSIGN(const ShardingPlan plan, plan_of(request, job, steps));
  STEPCAST_ASSIGN(const DlrmStep step, steps.predict(plan));
  Forecast forecast = dlrm_forecast(steps, step, platform, plan, {.collectives = request.collectives});
  if (request.explained) forecast.explained = explained_items(steps.explain());
  if (!note.empty()) forecast.notes.insert(forecast.notes.begin(), note);
  if (!request.what_if.empty()) forecast.layout.push_back({"what_if", join(request.what_if)});
  add_power(forecast, platform);
  STEPCAST_TRY(add_training(forecast, request.budget));
  if (timeline) {
    const FlatProgram flat{steps.program()};
    const TaskTimes times = TaskTimes::simulated(flat, steps.timeline());
    STEPCAST_TRY(write_perfetto(*timeline, {.flat = flat, .costs = steps.costs(), .times = times}));
  }
  if (extras.pictures != nullptr) *extras.pictures = pictures_of(steps);
  if (extras.sensitivity != nullptr) {
    STEPCAST_ASSIGN(*extras.sensitivity, dlrm_sensitivity(steps));
  }
  if (extras.point != nullptr)
    *extras.point = {request.n_gpus, steps.training().global_batch, {}, step.bound_us * 1e-3};
  return forecast;
}

Result<Forecast> Session::predict(const PredictDlrmRequest& request) const {
  return predict(request, Extras{});
}
Result<Sensitive> Session::sensitivity(const PredictDlrmRequest& request) const {
  return detailed(request, false);
}
Result<Report> Session::report(const PredictDlrmRequest& request) const { return detailed(request, true); }

// All combinations, the batch varying fastest. An empty axis keeps the value of the request.
Result<std::vector<ScalingPoint>> Session::predict_series(
    const PredictDlrmRequest& request, std::span<const std::int64_t> gpus,
    std::span<const std::int64_t> batches_per_rank) const {
  std::vector<ScalingPoint> series;
  for (std::size_t g = 0; g < std::max<std::size_t>(1, gpus.size()); ++g) {
    for (std::size_t b = 0; b < std::max<std::size_t>(1, batches_per_rank.size()); ++b) {
      PredictDlrmRequest one = request;
      if (!gpus.empty()) one.n_gpus = gpus[g];
      if (!batches_per_rank.empty()) one.batch_per_rank = batches_per_rank[b];
      ScalingPoint point;
      STEPCAST_ASSIGN(point.forecast, predict(one, Extras{.point = &point}));
      series.push_back(std::move(point));
    }
  }
  return series;
}

// The model keeps its caches between decisions; `plan` is the current plan.
struct Resharder::Impl {
  DlrmStepModel steps;
  ShardingPlan plan;
};

Resharder::Resharder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Resharder::Resharder(Resharder&&) noexcept = default;
Resharder& Resharder::operator=(Resharder&&) noexcept = default;
Resharder::~Resharder() = default;

Result<Resharder> Resharder::create(const PredictDlrmRequest& request) {
  STEPCAST_ASSIGN(Prepared prepared, prepare(request));
  // Models that replicate their popular rows have no plan to change.
  STEPCAST_ASSIGN(ShardingPlan plan, plan_of(request, prepared.job, prepared.steps));
  if (plan.tables.empty()) {
    return Error{"the popular rows of this model are on every rank"}.advice(
        "choose a stack that places tables: torchrec");
  }
  STEPCAST_TRY(check(prepared.job.model, plan, request.n_gpus));
  return Resharder{std::make_unique<Impl>(Impl{std::move(prepared.steps), std::move(plan)})};
}

const ShardingPlan& Resharder::plan() const { return impl_->plan; }

Result<Resharded> Resharder::decide(const std::vector<ReuseFactors>& batch) {
  const std::size_t n_tables = impl_->steps.model().tables.size();
  if (batch.size() != n_tables) {
    return Error::at("", "reuse factors")
        .found(fmt::format("those of {} tables", batch.size()))
        .expected(fmt::format("one for each of {} tables", n_tables));
  }
  // The decision becomes the current plan for the next batch.
  Resharded next = reshard(impl_->steps, impl_->plan, batch);
  impl_->plan = next.plan;
  return next;
}

Result<ShardingComparison> Session::shard(const ShardRequest& request) const {
  STEPCAST_ASSIGN(const PlatformChoice meant,
                  load_meant_platform(request.platform, request.n_gpus, request.gpus_per_node));
  const Platform& platform = meant.platform;
  std::vector<std::filesystem::path> inputs{request.model, request.tables, request.indices,
                                            request.choices.now};
  inputs.insert(inputs.end(), platform.files.begin(), platform.files.end());
  inputs.insert(inputs.end(), request.choices.plans.begin(), request.choices.plans.end());
  STEPCAST_ASSIGN(const std::optional<OutputFile> plan, detail::output_at(request.plan, inputs));
  STEPCAST_ASSIGN(const std::optional<OutputFile> tables, detail::output_at(request.tables_csv, inputs));
  STEPCAST_ASSIGN(DlrmJob job, job_of(request));
  if (!request.generate.empty()) {
    STEPCAST_ASSIGN(job.model.tables,
                    generate_task(request.generate, request.n_gpus, platform.device.memory_size.value(),
                                  request.choices.seed));
  }
  STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(job.model, job.training_on(request.n_gpus),
                                                             platform, request.n_gpus));
  if (tables) STEPCAST_TRY(tables->write(tables_csv(job.model.tables)));
  // The current placement may be given as a folder of traces instead of a plan.
  ShardingsToCompare choices = request.choices;
  if (detail::is_trace_folder(choices.now)) {
    STEPCAST_ASSIGN(detail::RecordedTables recorded, detail::recorded_tables(choices.now));
    choices.now_plan = std::move(recorded.plan);
  }
  STEPCAST_ASSIGN(ShardingComparison all, compare_shardings(choices, steps));
  if (!meant.note.empty()) all.notes.push_back(meant.note);
  if (plan) {
    const ComparedSharding* best = all.first_torchrec_plan();
    if (best == nullptr) return Error{"no sharding that TorchRec supports fits: no plan is written"};
    STEPCAST_TRY(
        plan->write(torchrec_plan_json(job.model, best->plan, request.n_gpus, steps.gpus_per_node())));
  }
  return all;
}

}  // namespace stepcast
