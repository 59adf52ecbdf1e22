// The step of a training log, predicted and compared.
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

constexpr const char* kUsualPlatform = "dgx-h100";

// The node that the GPU of the log is usually bought in.
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

bool same_step(const ResolvedJob& a, const ResolvedJob& b) {
  return a.model == b.model && a.layout == b.layout;
}

// The step that the log tells by itself, where what is asked is another one: it anchors the forecast. The request is that of
// what is asked then. Null: the log does not tell it, or it is what is asked.
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
  // Other GPUs leave another number of data-parallel ranks.
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
  anchored.open_layout = OpenLayout::as_said;  // of what ran
  std::error_code ignored;
  const bool read_again = std::filesystem::is_regular_file(request.log, ignored);  // a pipe is read once
  if (read_again && request.anchors && (anchored.job.n_gpus || anchored.job.settings != JobSettings{})) {
    Result<LoggedRun> alone = read_logged_run(request.log, {}, {request.progress});
    if (alone) anchored.measured_steps = anchor_of(*alone, anchored);
    if (anchored.measured_steps != nullptr) {
      PredictedLog result;
      ResolvedJob used;  // a log prints settings that do nothing, too
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
  // A log that says nothing of its layout is taken to have run the one that the forecast chose.
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
