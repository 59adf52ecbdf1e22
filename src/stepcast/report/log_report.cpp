#include "stepcast/report/log_report.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/step_forecast.h"
#include "stepcast/base/one_line.h"
#include "stepcast/base/text.h"
#include "stepcast/base/version.h"
#include "stepcast/report/comparison_report.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/detail/log_words.h"
#include "stepcast/report/fields/write_fields.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using detail::cause_text;
using detail::log_format_text;
using detail::longest;
using detail::middle_text;
using detail::plural;
using detail::rates_text;
using detail::reason_of;
using detail::stalls_text;
using detail::steps_text;
using detail::trend_text;

void line(std::string& out, std::string_view label, std::string_view text) {
  fmt::format_to(std::back_inserter(out), "  {:<14}{}\n", label, text);
}

std::string milliseconds(double ms) { return table_number(ms, 1) + " ms"; }

std::string stalls_table(const LoggedTimes& t) {
  constexpr std::size_t kMost = 10;
  TextTable table{{{"step"},
                   {"line"},
                   {"lost s"},
                   {"where", TextTable::Align::left},
                   {"likely", TextTable::Align::left}}};
  for (const LoggedStall& s : longest(t.stalls, kMost)) {
    table.row({table_count(s.step), table_count(s.line), table_number(s.lost_ms * 1e-3, 1),
               s.between_steps ? "before the step" : "in the step", std::string{cause_text(s.cause)}});
  }
  return table.text(2);
}

}  // namespace

std::string logged_job_text(const LoggedRun& run) {
  if (!run.resolved) return {};
  const ResolvedJob& job = *run.resolved;
  const Layout& l = job.layout;
  std::string text =
      fmt::format("{} ({} parameters) on {}", job.model.name,
                  table_count(static_cast<std::uint64_t>(parameter_count(job.model).total())),
                  plural(static_cast<std::int64_t>(job.n_gpus.value_or(l.world_size())), "GPU", "GPUs"));
  if (run.job && !run.job->gpu.empty()) text += fmt::format(" ({})", run.job->gpu);
  text += fmt::format("; tensor {} x pipeline {} x context {} x data {}", l.degrees.tensor,
                      l.degrees.pipeline, l.degrees.context, l.degrees.data);
  if (l.degrees.expert > 1) text += fmt::format(", expert {}", l.degrees.expert);
  text += fmt::format("; {} x {} tokens per micro-batch, {} sequences per step; {}, {}",
                      l.batch.micro_batch_sequences, l.batch.seq_len_tokens, l.batch.global_batch_sequences,
                      to_string(l.layer.precision.compute), to_string(l.sharding.kind));
  return text;
}

std::string log_text(const LoggedRun& run) {
  const LoggedTimes& t = run.times;
  std::string out = in_one_line(run.log.file) + "\n";
  line(out, "format", log_format_text(run));
  line(out, "steps", steps_text(run));
  if (!t.why_no_time.empty()) {
    line(out, "step time", t.why_no_time);
  } else if (t.whole_run) {
    line(out, "step time", fmt::format("{}, evaluation and saving included", milliseconds(t.median_ms)));
  } else {
    line(out, "step time", middle_text(t) + (t.from_clock ? ", by the times of day of the lines" : ""));
    line(out, "mean", fmt::format("{}, stalls included", milliseconds(t.mean_ms)));
    constexpr double kCoarse = 0.05;
    if (run.log.rounding_percent > kCoarse && !t.from_clock)
      line(out, "rounding", fmt::format("+-{:.2g} %: the log has no more digits", run.log.rounding_percent));
    line(out, "trend", trend_text(t));
  }
  if (const std::string rates = rates_text(t); !rates.empty()) line(out, "throughput", rates);
  if (run.log.peak_memory_GiB > 0)
    line(out, "memory", fmt::format("at most {} GiB", table_number(run.log.peak_memory_GiB, 2)));
  for (const LoggedRestart& r : t.restarts) {
    line(out, &r == t.restarts.data() ? "restarts" : "",
         fmt::format("line {}: step {} behind step {}", table_count(r.line), table_count(r.next_step),
                     table_count(r.last_step)));
  }
  if (t.why_no_time.empty() && !t.whole_run) line(out, "stalls", t.stalls.empty() ? "none" : stalls_text(t));
  if (run.resolved) {
    line(out, "settings", run.job->source);
    line(out, "", logged_job_text(run));
    for (const std::string& note : run.job->notes) line(out, "note", note);
  } else {
    std::string why = run.why_no_job;
    if (why.starts_with(run.log.file + ": ")) why.erase(0, run.log.file.size() + 2);
    line(out, "settings", why);
  }
  if (!t.stalls.empty()) out += "\n" + stalls_table(t);
  return out;
}

void log_json(const LoggedRun& run, JsonWriter& json) {
  const TrainingLog& log = run.log;
  const LoggedTimes& t = run.times;
  constexpr int kDecimals = 6;
  json.begin_object().field("file", log.file).field("format", "training_log");
  json.field("framework", to_string(t.format)).field("lines", log.n_lines).field("bytes", log.n_bytes);
  json.key("step_lines").begin_object();
  for (std::size_t f = 0; f < kLogFormats; ++f) {
    if (log.n_of_format[f] > 0) json.field(to_string(static_cast<LogFormat>(f)), log.n_of_format[f]);
  }
  json.end_object();
  json.field("broken_lines", log.broken_lines);
  json.field("first_step", t.first_step)
      .field("last_step", t.last_step)
      .field("steps_per_line", t.steps_per_line);
  json.field("counted", t.n).field("from_clock", t.from_clock).field("whole_run", t.whole_run);
  const auto known = [&](std::string_view key, double value) {
    json.key(key);
    value > 0 ? json.fixed(value, kDecimals) : json.null();
  };
  known("step_time_ms", t.median_ms);
  known("step_time_p10_ms", t.n > 1 ? t.p10_ms : 0);
  known("step_time_p90_ms", t.n > 1 ? t.p90_ms : 0);
  known("mean_step_time_ms", t.mean_ms);
  json.field("why_no_time", t.why_no_time.empty() ? std::optional<std::string>{} : t.why_no_time);
  json.key("trend_percent");
  t.trend_percent ? json.fixed(*t.trend_percent, kDecimals) : json.null();
  json.fixed_field("rounding_percent", log.rounding_percent, kDecimals);
  json.key("left_out").begin_object().field("warm_up", t.warm_up).field("duplicates", t.duplicates);
  json.field("other_batches", t.other_batches).field("earlier_settings", t.earlier_settings).end_object();
  json.key("restarts").begin_array();
  for (const LoggedRestart& r : t.restarts) {
    json.begin_object().field("line", r.line).field("last_step", r.last_step).field("next_step", r.next_step);
    json.end_object();
  }
  json.end_array();
  json.key("stalls").begin_array();
  for (const LoggedStall& s : t.stalls) {
    json.begin_object().field("step", s.step).field("line", s.line).fixed_field("lost_ms", s.lost_ms, 3);
    json.field("likely", to_string(s.cause)).field("between_steps", s.between_steps).end_object();
  }
  json.end_array();
  known("tokens_per_s_per_gpu", t.tokens_per_s_per_gpu);
  known("samples_per_s", t.samples_per_s);
  known("tflops_per_gpu", t.tflops_per_gpu);
  known("peak_memory_GiB", log.peak_memory_GiB);
  json.key("settings_from");
  run.resolved ? json.value(run.job->source) : json.null();
  json.key("why_no_settings");
  run.resolved ? json.null() : json.value(run.why_no_job);
  json.key("model");
  run.resolved ? json.value(run.resolved->model.name) : json.null();
  json.key("n_gpus");
  run.resolved ? json.value(run.resolved->n_gpus.value_or(run.resolved->layout.world_size())) : json.null();
  json.key("gpu");
  run.job && !run.job->gpu.empty() ? json.value(run.job->gpu) : json.null();
  json.key("layout").begin_object();
  if (run.resolved) {
    for (const Setting& s : settings_of(run.resolved->layout)) {
      json.key(s.name);
      std::visit([&](const auto& value) { json.value(value); }, s.value);
    }
  }
  json.end_object();
  json.key("notes").begin_array();
  if (run.job) {
    for (const std::string& note : run.job->notes) json.value(note);
  }
  if (run.resolved) {
    for (const std::string& setting : run.resolved->not_modelled) json.value("not modelled: " + setting);
  }
  json.end_array().end_object();
}

std::string predicted_log_text(const Forecast& forecast, const LoggedRun& run, const Comparison& c) {
  const LoggedTimes& t = run.times;
  std::string out = forecast_text(forecast);
  out += fmt::format("\n{}\n", in_one_line(run.log.file));
  line(out, "it ran", fmt::format("{} (from {})", logged_job_text(run), run.job->source));
  line(out, "forecast",
       fmt::format("{} (p10 {}, p90 {})", milliseconds(c.a_step_time_ms), table_number(c.a_p10_ms, 1),
                   table_number(c.a_p90_ms, 1)));
  line(out, "measured",
       t.whole_run ? fmt::format("{}, the mean of the whole run", milliseconds(t.median_ms))
       : t.n == 1  ? middle_text(t)
                   : fmt::format("{} (p10 {}, p90 {}; median of {})", milliseconds(t.median_ms),
                                 table_number(t.p10_ms, 1), table_number(t.p90_ms, 1),
                                 plural(static_cast<std::int64_t>(t.n), "line", "lines")));
  line(out, "difference",
       fmt::format("the forecast is {} % off ({} ms)",
                   table_signed(100 * (c.a_step_time_ms / c.b_step_time_ms - 1), 1),
                   table_signed(-c.step_difference_ms, 1)));
  if (forecast.memory && run.log.peak_memory_GiB > 0) {
    line(out, "memory",
         fmt::format("forecast {} GiB, the log tells {} GiB",
                     table_number(forecast.memory->peak_memory_GiB, 1),
                     table_number(run.log.peak_memory_GiB, 1)));
  }
  if (forecast.throughput.tflops_per_gpu && t.tflops_per_gpu > 0) {
    line(out, "TFLOP/s",
         fmt::format(
             "{} per GPU at the measured step by our count, {} by that of the log",
             table_number(*forecast.throughput.tflops_per_gpu * c.a_step_time_ms / c.b_step_time_ms, 1),
             table_number(t.tflops_per_gpu, 1)));
  }
  line(out, "likely", reason_of(forecast, run, c));
  return out;
}

std::string predicted_log_json(const Forecast& forecast, const LoggedRun& run, const Comparison& c) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", "stepcast.log_forecast/1").field("version", version());
  json.field("error_percent", 100 * (c.a_step_time_ms / c.b_step_time_ms - 1));
  json.field("likely_reason", reason_of(forecast, run, c));
  json.key("log");
  log_json(run, json);
  json.key("forecast");
  write_answer(json, forecast);
  json.key("comparison").begin_object();
  write_comparison(json, c);
  json.end_object().end_object();
  return std::move(json).text();
}

}  // namespace stepcast
