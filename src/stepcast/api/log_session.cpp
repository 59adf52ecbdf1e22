// Prediction of the step in a training log and its comparison with the log. If the request describes another
// step than the log, the log anchors the forecast of that step.
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "stepcast/analyze/trace_forecast.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/predict/anchor.h"

namespace stepcast {
namespace {

// Default for logs without a GPU name.
constexpr const char* kUsualPlatform = "dgx-h100";

// Name of the built-in platform for the GPU of the log, or the default platform. Adds a note about the choice.
std::string platform_of(const LoggedRun& run, std::vector<std::string>& notes) {
  const std::string& gpu = run.job->gpu;
  if (!gpu.empty()) {
    if (Result<PlatformChoice> found = platform_for({.gpu = gpu})) {
      notes.push_back("platform by the GPU that the log names, " + gpu + ": " + found->platform.name);
      return found->platform.name;
    }
  }
  notes.push_back(std::string{"platform not given, and the log names none: "} + kUsualPlatform);
  return kUsualPlatform;
}

// Whether two jobs have the same model and layout; their notes may differ.
bool same_step(const ResolvedJob& a, const ResolvedJob& b) {
  return a.model == b.model && a.layout == b.layout;
}

// If the request asks for another step than the one in the log, returns the logged step as an anchor and
// completes the job of `request` with the settings of the log. Null: the log does not describe its step
// completely, or the request asks for the logged step itself.
std::shared_ptr<const MeasuredTimes> anchor_of(const LoggedRun& alone, PredictRequest& request) {
  if (!alone.resolved || !alone.resolved->n_gpus || !alone.times.why_no_time.empty()) return nullptr;
  if (leaves_layout_open(alone.job->job) && alone.resolved->layout.world_size() > 1) return nullptr;
  Job asked = alone.job->job;
  const Job& said = request.job;
  if (said.command_line || said.torchtitan || said.deepspeed || said.config) return nullptr;
  if (!said.model.empty()) {
    asked.model = said.model;
    asked.transformer.reset();
  }
  if (said.n_gpus) asked.n_gpus = said.n_gpus;
  if (said.framework) asked.framework = said.framework;
  asked.settings = over(asked.settings, said.settings);
  // The number of data-parallel ranks of the log only fits its number of GPUs.
  if (said.n_gpus && !said.settings.data) asked.settings.data.reset();
  const Result<ResolvedJob> other = resolve(asked);
  if (other && same_step(*other, *alone.resolved)) return nullptr;
  request.job = std::move(asked);
  auto measured = std::make_shared<MeasuredTimes>();
  measured->steps.push_back({alone.resolved->model, alone.resolved->layout, alone.times.median_ms});
  return measured;
}

}  // namespace

Result<PredictedLog> Session::predict(const PredictLogRequest& request) const {
  PredictRequest anchored = request.request;
  anchored.open_layout = OpenLayout::as_said;  // the layout of the log is not to be improved
  std::error_code ignored;
  // A pipe can be read only once.
  const bool read_again = std::filesystem::is_regular_file(request.log, ignored);
  // First without the request's job: if the log describes another step than the request, it becomes an anchor.
  if (read_again && request.anchors && (anchored.job.n_gpus || anchored.job.settings != JobSettings{})) {
    Result<LoggedRun> alone = read_logged_run(request.log, {}, {request.progress});
    if (alone) anchored.measured_steps = anchor_of(*alone, anchored);
    if (anchored.measured_steps != nullptr) {
      PredictedLog result;
      ResolvedJob used;  // passing it permits settings without effect, which logs contain
      std::vector<std::string> notes;
      if (anchored.platform.empty()) anchored.platform = platform_of(*alone, notes);
      STEPCAST_TRY(detail::output_at(anchored.timeline, {request.log}));
      anchored.explained = anchored.explained || request.pictures;
      STEPCAST_ASSIGN(result.forecast, predict(anchored, request.pictures ? Extras{&result.sensitivity,
                                                                                   &result.pictures, &used}
                                                                          : Extras{.job = &used}));
      notes.insert(notes.end(), result.forecast.notes.begin(), result.forecast.notes.end());
      result.forecast.notes = std::move(notes);
      result.measured = log_forecast(*alone);
      result.run = std::make_shared<const LoggedRun>(std::move(*alone));
      return result;
    }
  }
  STEPCAST_ASSIGN(LoggedRun run, read_logged_run(request.log, request.request.job, {request.progress}));
  if (!run.resolved) {
    Error error{run.why_no_job};
    return error;
  }
  if (!run.times.why_no_time.empty()) return Error::at(request.log.string(), "", run.times.why_no_time);
  PredictedLog result;
  std::vector<std::string> notes;
  PredictRequest forecast = request.request;
  forecast.open_layout = OpenLayout::as_said;
  forecast.job = run.job->job;
  if (forecast.platform.empty()) forecast.platform = platform_of(run, notes);
  STEPCAST_TRY(detail::output_at(forecast.timeline, {request.log}));
  // If the log does not contain its layout, the run is assumed to have used the layout that the forecast chose.
  if (request.pictures) {
    forecast.explained = true;
    STEPCAST_ASSIGN(result.forecast,
                    predict(forecast, Extras{&result.sensitivity, &result.pictures, &*run.resolved, nullptr,
                                             nullptr, run.times.median_ms}));
  } else {
    STEPCAST_ASSIGN(result.forecast,
                    predict(forecast, Extras{.job = &*run.resolved, .measured_ms = run.times.median_ms}));
  }
  notes.insert(notes.end(), run.job->notes.begin(), run.job->notes.end());
  notes.insert(notes.end(), result.forecast.notes.begin(), result.forecast.notes.end());
  result.forecast.notes = std::move(notes);
  result.measured = log_forecast(run);
  result.comparison = compare(result.forecast, result.measured);
  result.run = std::make_shared<const LoggedRun>(std::move(run));
  return result;
}

}  // namespace stepcast
