#include "stepcast/report/batch_series.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
std::optional<std::int64_t> largest_batch(std::span<const BatchForecast> series) {
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

std::string batch_series_text(std::span<const BatchForecast> series) {
  const Forecast& first = series.front().forecast;
  std::string out =
      fmt::format("{} on {} x {}{}\n\n", first.traces.value_or("traces"), first.n_gpus,
                  first.gpu.value_or("GPU"), first.platform ? fmt::format(" ({})", *first.platform) : "");
  TextTable table{{{"batch per rank"},
                   {"step ms"},
                   {"p10"},
                   {"p90"},
                   {"samples/s"},
                   {"memory GiB"},
                   {"of"},
                   {"", TextTable::Align::left}}};
  for (const BatchForecast& one : series) {
    const Forecast& f = one.forecast;
    const auto& memory = f.memory;
    table.row({table_count(static_cast<std::uint64_t>(one.batch_per_rank)), table_number(f.step_time_ms, 3),
               table_number(f.step_time_p10_ms, 3), table_number(f.step_time_p90_ms, 3),
               f.throughput.samples_per_s ? table_number(*f.throughput.samples_per_s, 0) : "",
               memory ? table_number(memory->peak_memory_GiB, 1) : "",
               memory ? table_number(memory->available_GiB, 1) : "",
               memory && memory->margin_GiB < 0 ? "out of memory" : ""});
  }
  out += table.text(2);
  if (const auto largest = largest_batch(series))
    out += fmt::format("\n  memory ends at {} samples per rank\n",
                       table_count(static_cast<std::uint64_t>(*largest)));
  out += "\n";
  for (const std::string& note : series.back().forecast.notes) out += fmt::format("note: {}\n", note);
  return out;
}

std::string batch_series_json(std::span<const BatchForecast> series) {
  const Forecast& first = series.front().forecast;
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object();
  json.field("schema", "stepcast.batch_series/1").field("version", version());
  json.field("traces", first.traces.value_or(""))
      .field("gpu", first.gpu.value_or(""))
      .field("n_gpus", first.n_gpus);
  json.key("largest_batch_per_rank");
  if (const auto largest = largest_batch(series)) {
    json.value(*largest);
  } else {
    json.null();
  }
  json.key("batches").begin_array();
  for (const BatchForecast& one : series) {
    const Forecast& f = one.forecast;
    json.begin_object();
    json.field("batch_per_rank", one.batch_per_rank).field("step_time_ms", f.step_time_ms);
    json.field("step_time_p10_ms", f.step_time_p10_ms).field("step_time_p90_ms", f.step_time_p90_ms);
    json.field("samples_per_s", f.throughput.samples_per_s);
    json.field("peak_memory_GiB", f.memory ? std::optional{f.memory->peak_memory_GiB} : std::nullopt);
    json.field("available_GiB", f.memory ? std::optional{f.memory->available_GiB} : std::nullopt);
    json.field("memory_verdict", f.memory ? std::optional{f.memory->verdict} : std::nullopt);
    json.key("notes").begin_array();
    for (const std::string& note : f.notes) json.value(note);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace stepcast
