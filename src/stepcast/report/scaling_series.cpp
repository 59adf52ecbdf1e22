#include "stepcast/report/scaling_series.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "stepcast/report/fields/schema_fields.h"
#include "stepcast/report/fields/write_fields.h"

namespace stepcast {
double samples_per_second(const ScalingPoint& point) {
  return static_cast<double>(point.global_batch) / (point.forecast.step_time_ms * 1e-3);
}

double exposed_share(const Forecast& f) {
  const auto busiest = std::max_element(f.classes.begin(), f.classes.end(), [](const auto& a, const auto& b) {
    return a.computation_ms < b.computation_ms;
  });
  return busiest == f.classes.end() || f.step_time_ms <= 0 ? 0 : busiest->exposed_comm_ms / f.step_time_ms;
}

namespace {}  // namespace

double scaling_efficiency(const ScalingPoint& first, const ScalingPoint& point) {
  const double one = samples_per_second(first) / static_cast<double>(first.n_gpus);
  return one > 0 ? samples_per_second(point) / static_cast<double>(point.n_gpus) / one : 0;
}

namespace detail {

struct ScalingSeriesAnswer {
  std::span<const ScalingPoint> series;
};

constexpr AnswerHead answer_head(const ScalingSeriesAnswer*) {
  return {"stepcast.scaling_series/1", "stepcast predict --gpus A,B,... --batch C,D,... --json"};
}

void fields(auto& a, Is<ScalingSeriesAnswer> auto& s) {
  const ScalingPoint first = s.series.empty() ? ScalingPoint{} : s.series.front();
  a("model", first.forecast.model.value_or(""));
  a("platform", first.forecast.platform.value_or(""));
  a("gpu", first.forecast.gpu.value_or(""));
  a("points", Each{s.series, [&](auto& p, const ScalingPoint& point) {
                     const Forecast& f = point.forecast;
                     p("n_gpus", point.n_gpus);
                     p("global_batch_samples", point.global_batch);
                     p("step_time_ms", f.step_time_ms);
                     p("step_time_p10_ms", f.step_time_p10_ms);
                     p("step_time_p90_ms", f.step_time_p90_ms);
                     p("bound_ms", point.bound_ms, "no step of this work at peak rates is shorter");
                     p("samples_per_s", samples_per_second(point));
                     p("efficiency", scaling_efficiency(first, point),
                       "samples per second and GPU over those of the first point");
                     p("tflops_per_gpu", f.throughput.tflops_per_gpu);
                     p("exposed_comm_share", exposed_share(f),
                       "of the step, on the ranks that compute longest");
                     p("peak_memory_GiB", f.memory ? std::optional{f.memory->peak_memory_GiB} : std::nullopt);
                     p("fits", f.fits());
                   }});
}

}  // namespace detail

std::string scaling_series_json(std::span<const ScalingPoint> series) {
  return answer_json(detail::ScalingSeriesAnswer{series});
}

std::string scaling_series_schema() { return answer_schema<detail::ScalingSeriesAnswer>(); }

}  // namespace stepcast
