// The step of a training log, predicted and compared.
#include <utility>

#include "stepcast/analyze/trace_forecast.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/platform/platform_choice.h"

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

}  // namespace

Result<PredictedLog> Session::predict(const PredictLogRequest& request) const {
  STEPCAST_ASSIGN(LoggedRun run, read_logged_run(request.log, request.request.job, {request.progress}));
  if (!run.resolved) {
    Error error{run.why_no_job};
    return error;
  }
  if (!run.times.why_no_time.empty()) return Error::at(request.log.string(), "", run.times.why_no_time);
  PredictedLog result;
  std::vector<std::string> notes;
  PredictRequest forecast = request.request;
  forecast.job = run.job->job;
  if (forecast.platform.empty()) forecast.platform = platform_of(run, notes);
  STEPCAST_TRY(detail::output_at(forecast.timeline, {request.log}));
  // A log that says nothing of its layout is taken to have run the one that the forecast chose.
  if (request.pictures) {
    forecast.explained = true;
    STEPCAST_ASSIGN(result.forecast,
                    predict(forecast, Extras{&result.sensitivity, &result.pictures, &*run.resolved}));
  } else {
    STEPCAST_ASSIGN(result.forecast, predict(forecast, Extras{.job = &*run.resolved}));
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
