#include "stepcast/report/log_report.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/base/text.h"
#include "stepcast/report/detail/comparison_fields.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/detail/log_fields.h"
#include "stepcast/report/detail/log_words.h"
#include "stepcast/report/fields/schema_fields.h"
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
  labelled_line(out, "format", log_format_text(run));
  labelled_line(out, "steps", steps_text(run));
  if (!t.why_no_time.empty()) {
    labelled_line(out, "step time", t.why_no_time);
  } else if (t.whole_run) {
    labelled_line(out, "step time",
                  fmt::format("{}, evaluation and saving included", milliseconds(t.median_ms)));
  } else {
    labelled_line(out, "step time",
                  middle_text(t) + (t.from_clock ? ", by the times of day of the lines" : ""));
    labelled_line(out, "mean", fmt::format("{}, stalls included", milliseconds(t.mean_ms)));
    constexpr double kCoarse = 0.05;
    if (run.log.rounding_percent > kCoarse && !t.from_clock)
      labelled_line(out, "rounding",
                    fmt::format("+-{:.2g} %: the log has no more digits", run.log.rounding_percent));
    labelled_line(out, "trend", trend_text(t));
  }
  if (const std::string rates = rates_text(t); !rates.empty()) labelled_line(out, "throughput", rates);
  if (run.log.peak_memory_GiB > 0)
    labelled_line(out, "memory", fmt::format("at most {} GiB", table_number(run.log.peak_memory_GiB, 2)));
  for (const LoggedRestart& r : t.restarts) {
    labelled_line(out, &r == t.restarts.data() ? "restarts" : "",
                  fmt::format("line {}: step {} behind step {}", table_count(r.line),
                              table_count(r.next_step), table_count(r.last_step)));
  }
  if (t.why_no_time.empty() && !t.whole_run)
    labelled_line(out, "stalls", t.stalls.empty() ? "none" : stalls_text(t));
  if (run.resolved) {
    labelled_line(out, "settings", run.job->source);
    labelled_line(out, "", logged_job_text(run));
    for (const std::string& note : run.job->notes) labelled_line(out, "note", note);
  } else {
    std::string why = run.why_no_job;
    if (why.starts_with(run.log.file + ": ")) why.erase(0, run.log.file.size() + 2);
    labelled_line(out, "settings", why);
  }
  if (!t.stalls.empty()) out += "\n" + stalls_table(t);
  return out;
}

std::string predicted_log_text(const Forecast& forecast, const LoggedRun& run, const Comparison& c) {
  const LoggedTimes& t = run.times;
  std::string out = forecast_text(forecast);
  out += fmt::format("\n{}\n", in_one_line(run.log.file));
  labelled_line(out, "it ran", fmt::format("{} (from {})", logged_job_text(run), run.job->source));
  labelled_line(out, "forecast",
                fmt::format("{} (p10 {}, p90 {})", milliseconds(c.a_step_time_ms),
                            table_number(c.a_p10_ms, 1), table_number(c.a_p90_ms, 1)));
  labelled_line(out, "measured",
                t.whole_run ? fmt::format("{}, the mean of the whole run", milliseconds(t.median_ms))
                : t.n == 1  ? middle_text(t)
                            : fmt::format("{} (p10 {}, p90 {}; median of {})", milliseconds(t.median_ms),
                                          table_number(t.p10_ms, 1), table_number(t.p90_ms, 1),
                                          plural(static_cast<std::int64_t>(t.n), "line", "lines")));
  labelled_line(out, "difference",
                fmt::format("the forecast is {} % off ({} ms)",
                            table_signed(100 * (c.a_step_time_ms / c.b_step_time_ms - 1), 1),
                            table_signed(-c.step_difference_ms, 1)));
  if (forecast.memory && run.log.peak_memory_GiB > 0) {
    labelled_line(out, "memory",
                  fmt::format("forecast {} GiB, the log tells {} GiB",
                              table_number(forecast.memory->peak_memory_GiB, 1),
                              table_number(run.log.peak_memory_GiB, 1)));
  }
  if (forecast.throughput.tflops_per_gpu && t.tflops_per_gpu > 0) {
    labelled_line(
        out, "TFLOP/s",
        fmt::format(
            "{} per GPU at the measured step by our count, {} by that of the log",
            table_number(*forecast.throughput.tflops_per_gpu * c.a_step_time_ms / c.b_step_time_ms, 1),
            table_number(t.tflops_per_gpu, 1)));
  }
  labelled_line(out, "likely", reason_of(forecast, run, c));
  return out;
}

// stepcast.log_forecast/1, member by member.
struct LogForecastAnswer {
  double error_percent = 0;
  std::string likely_reason;
  const LoggedRun* log = nullptr;
  const Forecast* forecast = nullptr;
  const Comparison* comparison = nullptr;
};

constexpr AnswerHead answer_head(const LogForecastAnswer*) {
  return {"stepcast.log_forecast/1", "stepcast predict --from-log LOG --json"};
}

void fields(auto& a, Is<LogForecastAnswer> auto& answer) {
  static const LoggedRun kNoLog{};
  static const Forecast kNoForecast{};
  static const Comparison kNoComparison{};
  a("error_percent", answer.error_percent, "(forecast - measured) / measured");
  a("likely_reason", answer.likely_reason);
  a("log", answer.log != nullptr ? *answer.log : kNoLog);
  a("forecast", answer.forecast != nullptr ? *answer.forecast : kNoForecast);
  a("comparison", answer.comparison != nullptr ? *answer.comparison : kNoComparison);
}

std::string predicted_log_json(const Forecast& forecast, const LoggedRun& run, const Comparison& c) {
  return answer_json(LogForecastAnswer{100 * (c.a_step_time_ms / c.b_step_time_ms - 1),
                                       reason_of(forecast, run, c), &run, &forecast, &c});
}

std::string predicted_log_schema() { return answer_schema<LogForecastAnswer>(); }

}  // namespace stepcast
