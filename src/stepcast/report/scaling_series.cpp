#include "stepcast/report/scaling_series.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/report/text_table.h"

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

namespace {

bool fits(const Forecast& f) { return !f.memory || f.memory->verdict != "does_not_fit"; }

}  // namespace

double scaling_efficiency(const ScalingPoint& first, const ScalingPoint& point) {
  const double one = samples_per_second(first) / static_cast<double>(first.n_gpus);
  return one > 0 ? samples_per_second(point) / static_cast<double>(point.n_gpus) / one : 0;
}

std::string scaling_series_text(std::span<const ScalingPoint> series) {
  const Forecast& first = series.front().forecast;
  std::string out =
      fmt::format("{} on {}{}\n\n", first.model.value_or("the model"), first.gpu.value_or("GPUs"),
                  first.platform ? fmt::format(" ({})", *first.platform) : "");
  TextTable table{{{"GPUs"},
                   {"batch"},
                   {"step\nms"},
                   {"p10\nms"},
                   {"p90\nms"},
                   {"bound\nms"},
                   {"samples\nper s"},
                   {"efficiency\n%"},
                   {"TFLOP/s\nper GPU"},
                   {"exposed\ncomm %"},
                   {"memory\nGiB"},
                   {"", TextTable::Align::left}}};
  for (const ScalingPoint& point : series) {
    const Forecast& f = point.forecast;
    table.row({table_count(static_cast<std::uint64_t>(point.n_gpus)),
               table_count(static_cast<std::uint64_t>(point.global_batch)), table_number(f.step_time_ms, 3),
               table_number(f.step_time_p10_ms, 3), table_number(f.step_time_p90_ms, 3),
               table_number(point.bound_ms, 3), table_number(samples_per_second(point), 0),
               table_number(100 * scaling_efficiency(series.front(), point), 1),
               f.throughput.tflops_per_gpu ? table_number(*f.throughput.tflops_per_gpu, 1) : "",
               table_number(100 * exposed_share(f), 1),
               f.memory ? table_number(f.memory->peak_memory_GiB, 1) : "", fits(f) ? "" : "does not fit"});
  }
  out += table.text(2);
  out +=
      "\n  efficiency: samples per second and GPU over those of the first line; bound: this work at peak "
      "rates\n";
  return out;
}

std::string scaling_series_json(std::span<const ScalingPoint> series) {
  const Forecast& first = series.front().forecast;
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object();
  json.field("schema", "stepcast.scaling_series/1").field("version", version());
  json.field("model", first.model.value_or(""))
      .field("platform", first.platform.value_or(""))
      .field("gpu", first.gpu.value_or(""));
  json.key("points").begin_array();
  for (const ScalingPoint& point : series) {
    const Forecast& f = point.forecast;
    json.begin_object();
    json.field("n_gpus", point.n_gpus).field("global_batch_samples", point.global_batch);
    json.field("step_time_ms", f.step_time_ms).field("step_time_p10_ms", f.step_time_p10_ms);
    json.field("step_time_p90_ms", f.step_time_p90_ms).field("bound_ms", point.bound_ms);
    json.field("samples_per_s", samples_per_second(point));
    json.field("efficiency", scaling_efficiency(series.front(), point));
    json.field("tflops_per_gpu", f.throughput.tflops_per_gpu);
    json.field("exposed_comm_share", exposed_share(f));
    json.field("peak_memory_GiB", f.memory ? std::optional{f.memory->peak_memory_GiB} : std::nullopt);
    json.field("fits", fits(f)).end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace stepcast
