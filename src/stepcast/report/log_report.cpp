#include "stepcast/report/log_report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/step_forecast.h"
#include "stepcast/base/text.h"
#include "stepcast/base/version.h"
#include "stepcast/report/comparison_report.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/forecast_text.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

void line(std::string& out, std::string_view label, std::string_view text) {
  fmt::format_to(std::back_inserter(out), "  {:<14}{}\n", label, text);
}

std::string milliseconds(double ms) { return table_number(ms, 1) + " ms"; }

std::string plural(std::uint64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", table_count(n), n == 1 ? one : many);
}

std::string format_text(const LoggedRun& run) {
  const TrainingLog& log = run.log;
  std::string text = fmt::format("training log of {}, {}", log_format_name(run.times.format),
                                 plural(log.n_lines, "line", "lines"));
  std::vector<std::string> others;
  for (std::size_t f = 0; f < kLogFormats; ++f) {
    const auto format = static_cast<LogFormat>(f);
    if (format != run.times.format && log.n_of_format[f] > 0)
      others.push_back(fmt::format("{} of {}", table_count(log.n_of_format[f]), log_format_name(format)));
  }
  if (!others.empty()) text += fmt::format(" (also step lines that were not needed: {})", join(others));
  return text;
}

std::string steps_text(const LoggedRun& run) {
  const LoggedTimes& t = run.times;
  if (t.whole_run) return fmt::format("{}, one mean of the whole run", table_count(t.last_step));
  std::string text = fmt::format("{} to {}, {}", table_count(t.first_step), table_count(t.last_step),
                                 plural(t.n, "line counts", "lines count"));
  if (t.steps_per_line > 1) text += fmt::format(", each the mean of {:g} steps", t.steps_per_line);
  std::vector<std::string> left_out;
  const auto add = [&](std::uint64_t n, std::string_view what) {
    if (n > 0) left_out.push_back(fmt::format("{} {}", table_count(n), what));
  };
  add(t.warm_up, "of warm-up");
  add(t.duplicates, "said twice");
  add(t.other_batches, "of other batch sizes");
  add(t.earlier_settings, "under earlier settings");
  add(static_cast<std::uint64_t>(std::count_if(t.stalls.begin(), t.stalls.end(),
                                               [](const LoggedStall& s) { return !s.between_steps; })),
      "with a stall");
  add(run.log.broken_lines, "broken off");
  if (!left_out.empty()) text += "; left out: " + join(left_out);
  return text;
}

std::string rates_text(const LoggedTimes& t) {
  std::vector<std::string> rates;
  if (t.tokens_per_s_per_gpu > 0)
    rates.push_back(table_number(t.tokens_per_s_per_gpu, 1) + " tokens/s per GPU");
  if (t.samples_per_s > 0) rates.push_back(table_number(t.samples_per_s, 2) + " samples/s");
  if (t.tflops_per_gpu > 0)
    rates.push_back(table_number(t.tflops_per_gpu, 1) + " TFLOP/s per GPU as the log counts them");
  return join(rates);
}

double lost_ms(const std::vector<LoggedStall>& stalls) {
  double sum = 0;
  for (const LoggedStall& s : stalls) sum += s.lost_ms;
  return sum;
}

std::string_view cause_text(LogEvent cause) {
  if (cause == LogEvent::none) return "not known";
  return cause == LogEvent::evaluation_or_checkpoint ? "evaluation or checkpoint" : to_string(cause);
}

std::string stalls_text(const LoggedTimes& t) {
  std::map<std::string_view, std::uint64_t> n;
  for (const LoggedStall& s : t.stalls) ++n[cause_text(s.cause)];
  std::vector<std::string> kinds;
  for (const auto& [cause, count] : n) kinds.push_back(fmt::format("{} {}", cause, table_count(count)));
  return fmt::format("{}, {} s lost; likely cause: {}", table_count(t.stalls.size()),
                     table_number(lost_ms(t.stalls) * 1e-3, 1), join(kinds));
}

std::vector<LoggedStall> longest(std::vector<LoggedStall> stalls, std::size_t most) {
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const LoggedStall& a, const LoggedStall& b) { return a.lost_ms > b.lost_ms; });
  if (stalls.size() > most) stalls.resize(most);
  return stalls;
}

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
                  plural(static_cast<std::uint64_t>(job.n_gpus.value_or(l.world_size())), "GPU", "GPUs"));
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
  std::string out = run.log.file + "\n";
  line(out, "format", format_text(run));
  line(out, "steps", steps_text(run));
  if (!t.why_no_time.empty()) {
    line(out, "step time", t.why_no_time);
  } else if (t.whole_run) {
    line(out, "step time", fmt::format("{}, evaluation and saving included", milliseconds(t.median_ms)));
  } else {
    line(out, "step time",
         fmt::format("median {} (p10 {}, p90 {}){}", milliseconds(t.median_ms), table_number(t.p10_ms, 1),
                     table_number(t.p90_ms, 1), t.from_clock ? ", by the times of day of the lines" : ""));
    line(out, "mean", fmt::format("{}, stalls included", milliseconds(t.mean_ms)));
    constexpr double kCoarse = 0.05;
    if (run.log.rounding_percent > kCoarse && !t.from_clock)
      line(out, "rounding", fmt::format("+-{:.2g} %: the log has no more digits", run.log.rounding_percent));
    line(out, "trend", fmt::format("{} % from begin to end", table_signed(t.trend_percent, 2)));
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
  known("step_time_p10_ms", t.p10_ms);
  known("step_time_p90_ms", t.p90_ms);
  known("mean_step_time_ms", t.mean_ms);
  json.field("why_no_time", t.why_no_time.empty() ? std::optional<std::string>{} : t.why_no_time);
  json.fixed_field("trend_percent", t.trend_percent, kDecimals);
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
  if (run.resolved) {
    for (const std::string& setting : run.resolved->not_modelled) json.value("not modelled: " + setting);
  }
  json.end_array().end_object();
}

namespace {

// What of the log itself makes its steps other than a forecast of a quiet machine; empty: nothing.
std::string unrest(const LoggedTimes& t) {
  constexpr double kWide = 0.1, kDrift = 3;  // of the median; percent
  std::vector<std::string> what;
  if (t.p90_ms - t.p10_ms > kWide * t.median_ms) {
    what.push_back(fmt::format("its steps spread from {} to {} ms (p10, p90): stragglers or sharing",
                               table_number(t.p10_ms, 1), table_number(t.p90_ms, 1)));
  }
  if (t.trend_percent > kDrift)
    what.push_back(fmt::format("its steps get {:.1f} % slower from begin to end", t.trend_percent));
  if (t.from_clock) what.emplace_back("its times are distances of lines and hold what stands between steps");
  if (t.whole_run) what.emplace_back("its time is a mean with evaluation, saving and warm-up");
  return join(what, "; ");
}

// The likely reason of a difference, in a sentence.
std::string reason_of(const Forecast& forecast, const LoggedRun& run, const Comparison& c) {
  std::vector<std::string> reasons;
  if (c.b_step_time_ms >= c.a_p10_ms && c.b_step_time_ms <= c.a_p90_ms)
    reasons.emplace_back("the measured step lies within the forecast's p10 to p90: no reason is needed");
  const bool slower = c.step_difference_ms > 0;
  if (const std::string noise = unrest(run.times); slower && !noise.empty())
    reasons.push_back("of the log: " + noise);
  constexpr std::size_t kMost = 2;
  // The same FLOPs by our count, at the measured step; frameworks count attention and recomputation in their own ways.
  constexpr double kOtherCount = 0.3;
  const double ours = forecast.throughput.tflops_per_gpu.value_or(0) * c.a_step_time_ms / c.b_step_time_ms;
  const double theirs = run.times.tflops_per_gpu;
  if (reasons.empty() && ours > 0 && theirs > 0 && std::abs(theirs / ours - 1) > kOtherCount) {
    reasons.push_back(
        fmt::format("the log counts {} TFLOP/s per GPU where this description comes to {}: it may not be "
                    "what ran (model, batch, "
                    "sequence length, GPUs)",
                    table_number(theirs, 1), table_number(ours, 1)));
  }
  constexpr double kBeyondBelief = 3;  // times what such a part is usually off
  const bool believable = !c.explanations.empty() && c.explanations.front().deviations <= kBeyondBelief;
  if (reasons.empty() && !believable) {
    reasons.emplace_back(
        "no part of the forecast alone explains it: check platform, GPUs, sequence length and batch, and "
        "what the "
        "log counts as a step");
  }
  if (const std::string parts = explanations_text(c, kMost); reasons.empty() && !parts.empty()) {
    reasons.push_back(fmt::format("{} alone would explain it", parts));
    constexpr double kWeak = 0.3;
    if (forecast.coverage.assumed + forecast.coverage.analytic > kWeak)
      reasons.emplace_back(
          "much of the forecast rests on data sheets: measure kernels or collectives of this machine");
  }
  for (const std::string& note : forecast.notes) {
    if (slower && note.starts_with("not modelled: ")) reasons.push_back(note);
  }
  return join(reasons, "; ");
}

}  // namespace

std::string predicted_log_text(const Forecast& forecast, const LoggedRun& run, const Comparison& c) {
  const LoggedTimes& t = run.times;
  std::string out = forecast_text(forecast);
  out += fmt::format("\n{}\n", run.log.file);
  line(out, "it ran", fmt::format("{} (from {})", logged_job_text(run), run.job->source));
  line(out, "forecast",
       fmt::format("{} (p10 {}, p90 {})", milliseconds(c.a_step_time_ms), table_number(c.a_p10_ms, 1),
                   table_number(c.a_p90_ms, 1)));
  line(out, "measured",
       t.whole_run
           ? fmt::format("{}, the mean of the whole run", milliseconds(t.median_ms))
           : fmt::format("{} (p10 {}, p90 {}; median of {})", milliseconds(t.median_ms),
                         table_number(t.p10_ms, 1), table_number(t.p90_ms, 1), plural(t.n, "line", "lines")));
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
  write_forecast(json, forecast);
  json.key("comparison").begin_object();
  write_comparison(json, c);
  json.end_object().end_object();
  return std::move(json).text();
}

}  // namespace stepcast
