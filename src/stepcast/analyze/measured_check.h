// "Is my number normal?": a measured step held against the forecast of the job that it is said to be of.
//
//   STEPCAST_ASSIGN(const MeasuredCheck check, check_measured(steps, model, layout, 5200));
//   check.sentence             "5,200 ms is slow: 31 % more than the forecast of 3,970 ms ..."
//   check.causes.front().what  "all activations are recomputed": what would take 5,150 ms
//
// Slow or fast is what lies outside of the band. Then every cause of the table in measured_check.cpp changes the job or the
// machine in one thing and is forecast, too: the likelier a cause is beforehand and the nearer its forecast comes to the
// measured step, in units of its own band, the more likely it is (Bayes' rule, with "by chance" as one of the causes).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/fields.h"
#include "stepcast/base/result.h"

namespace stepcast {

class StepModel;
struct Layout;
struct Transformer;

// One thing that would explain the difference.
struct MeasuredCause {
  STEPCAST_FIELDS(MeasuredCause, "measured_cause");
  STEPCAST_COLUMN(std::string, what, "the one thing that is otherwise than described",
                  "what would explain it<");
  STEPCAST_COLUMN(double, step_time_ms, "the forecast with it", "step\nms", 1);
  STEPCAST_COLUMN(double, likelihood, "of all causes that were tried, chance among them", "likely\n%", 0,
                  100);
  STEPCAST_COLUMN(std::string, look_at, "what tells whether it is so", "look at<");
};

// Published runs of one model, GPU, precision and framework, against our forecasts of them.
struct PublishedRuns {
  STEPCAST_FIELDS(PublishedRuns, "published_runs");
  STEPCAST_FIELD(std::string, source, "who published them");
  STEPCAST_FIELD(std::string, model, "");
  STEPCAST_FIELD(std::string, gpu, "");
  STEPCAST_FIELD(std::string, precision, "of the matrix products");
  STEPCAST_FIELD(std::string, framework, "");
  STEPCAST_FIELD(std::int64_t, min_gpus, "of the smallest run");
  STEPCAST_FIELD(std::int64_t, max_gpus, "of the largest run");
  STEPCAST_FIELD(std::int64_t, runs, "how many there are");
  STEPCAST_FIELD(double, measured_over_forecast, "the median", 1);
  STEPCAST_FIELD(double, min_measured_over_forecast, "", 1);
  STEPCAST_FIELD(double, max_measured_over_forecast, "", 1);
  STEPCAST_FIELD(double, distance, "0: the same model, GPU, precision, framework and number of GPUs", 1);
  STEPCAST_FIELD(std::string, differs, "in what it is another job than this one; empty: in nothing");
};

struct MeasuredCheck {
  STEPCAST_FIELDS(MeasuredCheck, "measured_check");
  STEPCAST_FIELD(std::string, verdict, "normal: within the band of the forecast; slow; fast");
  STEPCAST_FIELD(std::string, sentence, "the verdict with its numbers");
  STEPCAST_FIELD(double, measured_ms, "as it was given");
  STEPCAST_FIELD(double, forecast_ms, "without what was measured");
  STEPCAST_FIELD(double, forecast_p10_ms, "");
  STEPCAST_FIELD(double, forecast_p90_ms, "");
  STEPCAST_FIELD(double, measured_over_forecast, "", 1);
  STEPCAST_FIELD(std::vector<MeasuredCause>, causes, "where it is slow or fast; the likeliest first");
  STEPCAST_FIELD(std::optional<PublishedRuns>, nearest_published, "the nearest that were published");
};

// `steps` without what was measured. Errors: those of StepModel::predict().
[[nodiscard]] Result<MeasuredCheck> check_measured(const StepModel& steps, const Transformer& model,
                                                   const Layout& layout, double measured_ms);

}  // namespace stepcast
