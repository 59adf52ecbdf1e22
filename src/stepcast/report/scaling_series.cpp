#include "stepcast/report/scaling_series.h"

#include <algorithm>
#include <cmath>

#include "stepcast/report/fields/schema_fields.h"
#include "stepcast/report/fields/write_fields.h"

namespace stepcast {
double samples_per_second(const ScalingPoint& point) {
  return static_cast<double>(point.global_batch) / (point.forecast.step_time_ms * 1e-3);
}

double exposed_share(const Forecast& f) {
  const auto busiest = std::ranges::max_element(
      f.classes, [](const auto& a, const auto& b) { return a.computation_ms < b.computation_ms; });
  return busiest == f.classes.end() || f.step_time_ms <= 0 ? 0 : busiest->exposed_comm_ms / f.step_time_ms;
}

double scaling_efficiency(const ScalingPoint& first, const ScalingPoint& point) {
  const double one = samples_per_second(first) / static_cast<double>(first.n_gpus);
  return one > 0 ? samples_per_second(point) / static_cast<double>(point.n_gpus) / one : 0;
}

std::optional<std::int64_t> largest_batch(std::span<const BatchForecast> series) {
  if (series.empty()) return std::nullopt;
  const BatchForecast& last = series.back();
  if (!last.forecast.memory || last.forecast.memory->stages.empty()) return std::nullopt;
  const ForecastMemory& memory = *last.forecast.memory;
  const double activations = memory.stages.front().activations_GiB;
  if (activations <= 0) return std::nullopt;
  const double room = memory.available_GiB - (memory.peak_memory_GiB - activations);
  const double batch =
      std::floor(std::max(0.0, room) / activations * static_cast<double>(last.batch_per_rank));
  if (!(batch < 1e15)) return std::nullopt;
  return static_cast<std::int64_t>(batch);
}

namespace detail {

struct ScalingSeriesAnswer {
  std::span<const ScalingPoint> series;
};

constexpr AnswerHead answer_head(const ScalingSeriesAnswer*) {
  return {"stepcast.scaling_series/1", "stepcast predict --gpus A,B,... --json"};
}

void fields(auto& a, Is<ScalingSeriesAnswer> auto& s) {
  const ScalingPoint first = s.series.empty() ? ScalingPoint{} : s.series.front();
  a("model", first.forecast.model.value_or(""));
  a("platform", first.forecast.platform.value_or(""));
  a("gpu", first.forecast.gpu.value_or(""));
  a("points",
    Each{s.series, [&](auto& p, const ScalingPoint& point) {
           const Forecast& f = point.forecast;
           p("n_gpus", point.n_gpus);
           p("global_batch_samples", point.global_batch);
           p("layout", point.layout.empty() ? std::nullopt : std::optional{point.layout},
             "degrees, micro-batch, sharding; null: a recommendation model");
           p("micro_batch_sequences", point.micro_batch > 0 ? std::optional{point.micro_batch} : std::nullopt,
             "null: a recommendation model");
           p("layout_source", point.layout_source.empty() ? std::nullopt : std::optional{point.layout_source},
             "where the layout comes from that was not said; null: it was said");
           p("step_time_ms", f.step_time_ms);
           p("step_time_p10_ms", f.step_time_p10_ms);
           p("step_time_p90_ms", f.step_time_p90_ms);
           p("bound_ms", point.bound_ms, "no step of this work at peak rates is shorter");
           p("samples_per_s", samples_per_second(point));
           p("efficiency", scaling_efficiency(first, point),
             "samples per second and GPU over those of the first point");
           p("tflops_per_gpu", f.throughput.tflops_per_gpu);
           p("exposed_comm_share", exposed_share(f), "of the step, on the ranks that compute longest");
           p("peak_memory_GiB", f.memory ? std::optional{f.memory->peak_memory_GiB} : std::nullopt);
           p("fits", f.fits());
         }});
}

struct BatchSeriesAnswer {
  std::span<const BatchForecast> series;
};

constexpr AnswerHead answer_head(const BatchSeriesAnswer*) {
  return {"stepcast.batch_series/1", "stepcast predict --trace DIR --batch A,B,... --json"};
}

void fields(auto& a, Is<BatchForecast> auto& one) {
  const Forecast& f = one.forecast;
  a("batch_per_rank", one.batch_per_rank, "samples");
  a("step_time_ms", f.step_time_ms);
  a("step_time_p10_ms", f.step_time_p10_ms);
  a("step_time_p90_ms", f.step_time_p90_ms);
  a("samples_per_s", f.throughput.samples_per_s, "of all ranks");
  a("peak_memory_GiB", f.memory ? std::optional{f.memory->peak_memory_GiB} : std::nullopt, "of one GPU");
  a("available_GiB", f.memory ? std::optional{f.memory->available_GiB} : std::nullopt);
  a("memory_verdict", f.memory ? std::optional{f.memory->verdict} : std::nullopt,
    "fits, tight, does not fit");
  a("notes", f.notes);
}

void fields(auto& a, Is<BatchSeriesAnswer> auto& s) {
  const Forecast first = s.series.empty() ? Forecast{} : s.series.front().forecast;
  a("traces", first.traces.value_or(""), "the traces that were read");
  a("gpu", first.gpu.value_or(""), "name of the device");
  a("n_gpus", first.n_gpus, "recorded ranks");
  a("largest_batch_per_rank", largest_batch(s.series), "that the memory holds; null: memory is not known");
  a("batches", s.series);
}

}  // namespace detail

std::string scaling_series_json(std::span<const ScalingPoint> series) {
  return answer_json(detail::ScalingSeriesAnswer{series});
}

std::string scaling_series_schema() { return answer_schema<detail::ScalingSeriesAnswer>(); }

std::string batch_series_json(std::span<const BatchForecast> series) {
  return answer_json(detail::BatchSeriesAnswer{series});
}

std::string batch_series_schema() { return answer_schema<detail::BatchSeriesAnswer>(); }

}  // namespace stepcast
