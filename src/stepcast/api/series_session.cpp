// Series of predictions over numbers of GPUs and batches.
#include <algorithm>
#include <utility>

#include "stepcast/api/stepcast.h"
#include "stepcast/formats/layout_choice.h"

namespace stepcast {
namespace {

// The values of an axis; for an empty axis one entry that keeps the request's value.
std::vector<std::optional<std::int64_t>> axis(const std::vector<std::int64_t>& values) {
  if (values.empty()) return {std::nullopt};
  return {values.begin(), values.end()};
}

// Sets `to` if there is a value.
void set(std::optional<std::int64_t>& to, const std::optional<std::int64_t>& value) {
  if (value) to = value;
}

}  // namespace

Result<std::vector<ScalingPoint>> Session::predict_series(const PredictRequest& request,
                                                          const StepSeries& series) const {
  std::vector<ScalingPoint> points;
  // Settings that complete the layout of the first point.
  JobSettings kept;
  // The global batch varies fastest, then the micro-batch, then the GPUs.
  for (const auto& gpus : axis(series.gpus)) {
    for (const auto& micro_batch : axis(series.micro_batches)) {
      for (const auto& global_batch : axis(series.global_batches)) {
        PredictRequest one = request;
        // With `same_layout`, later points get the settings of the first, and the same origin, so that their
        // expected times are comparable.
        if (series.same_layout && !points.empty()) {
          one.job.settings = over(one.job.settings, kept);
          const Forecast& first = points.front().forecast;
          one.open_layout =
              first.promised_ms() > first.step_time_ms ? OpenLayout::as_planned : OpenLayout::as_said;
        }
        set(one.job.n_gpus, gpus);
        set(one.job.settings.micro_batch_sequences, micro_batch);
        set(one.job.settings.global_batch_sequences, global_batch);
        ScalingPoint point;
        JobSettings chosen;
        STEPCAST_ASSIGN(point.forecast, predict(one, Extras{.chosen = &chosen, .point = &point}));
        if (points.empty()) {
          kept = std::move(chosen);
        } else if (series.same_layout && !points.front().layout_source.empty()) {
          point.layout_source = "as in the first line";
        }
        points.push_back(std::move(point));
      }
    }
  }
  return points;
}

}  // namespace stepcast
