// The JSON members of a training log (report/fields/field_list.h), for every answer that contains one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/analyze/step_forecast.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/report/fields/field_list.h"
#include "stepcast/report/forecast_json.h"

namespace stepcast {

constexpr std::string_view schema_name(const LoggedRun*) { return "training_log"; }

namespace detail {

// The number of lines with step times, by format of the log; formats without any are left out.
inline std::vector<std::pair<std::string, std::uint64_t>> step_lines_of(const TrainingLog& log) {
  std::vector<std::pair<std::string, std::uint64_t>> out;
  for (std::size_t f = 0; f < kLogFormats; ++f)
    if (log.n_of_format[f] > 0) out.emplace_back(to_string(static_cast<LogFormat>(f)), log.n_of_format[f]);
  return out;
}

// The notes on the job of the log, and its settings that are not modelled.
inline std::vector<std::string> notes_of(const LoggedRun& run) {
  std::vector<std::string> notes;
  if (run.job) notes = run.job->notes;
  if (run.resolved)
    for (const std::string& setting : run.resolved->not_modelled) notes.push_back("not modelled: " + setting);
  return notes;
}

}  // namespace detail

// A restart: the step numbers around it, which go back.
void fields(auto& a, Is<LoggedRestart> auto& r) {
  a("line", r.line);
  a("last_step", r.last_step);
  a("next_step", r.next_step);
}

// A stall: time lost in a step or between two steps, with its likely cause.
void fields(auto& a, Is<LoggedStall> auto& s) {
  a("step", s.step);
  a("line", s.line);
  a("lost_ms", fixed<3>(s.lost_ms));
  a("likely", s.cause);
  a("between_steps", s.between_steps);
}

// A lasting change of the step time.
void fields(auto& a, Is<LoggedChange> auto& c) {
  a("step", c.step);
  a("line", c.line);
  a("before_ms", fixed<3>(c.before_ms));
  a("after_ms", fixed<3>(c.after_ms));
}

// Two statements of the log about the step time that contradict each other.
void fields(auto& a, Is<LoggedContradiction> auto& c) {
  a("lines_ms", fixed<3>(c.lines_ms), "step time according to the lines, in ms");
  a("other_ms", fixed<3>(c.other_ms), "step time according to other values of the log, in ms");
  a("other", c.other);
}

// The step times of a log. Values that are 0 in the structure are unknown, and null in JSON.
void fields(auto& a, Is<LoggedTimes> auto& t, const TrainingLog& log) {
  using Known = std::optional<Fixed<6>>;
  const auto known = [](double value) { return value > 0 ? Known{{value}} : Known{}; };
  a("first_step", t.first_step);
  a("last_step", t.last_step);
  a("steps_per_line", t.steps_per_line, "number of steps averaged in one logged time");
  a("counted", t.n, "number of times without warm-up and stalls");
  a("from_clock", t.from_clock, "whether step times come from timestamps of the lines");
  a("confirmed", t.confirmed, "whether timestamps of the lines give the same step time within 10 %");
  a("contradiction", t.contradiction,
    "contradiction in the log; if there is one, step_time_ms comes from timestamps or is null");
  a("whole_run", t.whole_run, "whether the time is one mean over all steps, with evaluation and checkpoints");
  a("step_time_ms", known(t.median_ms), "median step time, in ms");
  a("step_time_p10_ms", known(t.n > 1 ? t.p10_ms : 0));
  a("step_time_p90_ms", known(t.n > 1 ? t.p90_ms : 0));
  a("mean_step_time_ms", known(t.mean_ms), "mean step time with stalls, without warm-up, in ms");
  a("why_no_time", t.why_no_time.empty() ? std::nullopt : std::optional{t.why_no_time});
  a("trend_percent", fixed<6>(t.trend_percent),
    "trend of the step time over the log, in percent; null: too few times");
  a("rounding_percent", fixed<6>(log.rounding_percent),
    "rounding error of the logged times or rates: half a unit of the last digit, in percent");
  a("left_out", Object{[&](auto& n) {
      n("warm_up", t.warm_up);
      n("duplicates", t.duplicates);
      n("other_batches", t.other_batches);
      n("earlier_settings", t.earlier_settings);
      n("other_stretches", t.other_stretches);
    }});
  a("changes", t.changes, "lasting changes of the step time");
  a("restarts", t.restarts);
  a("stalls", t.stalls);
  a("tokens_per_s_per_gpu", known(t.tokens_per_s_per_gpu));
  a("samples_per_s", known(t.samples_per_s));
  a("tflops_per_gpu", known(t.tflops_per_gpu), "TFLOP/s per GPU as counted by the log");
  a("peak_memory_GiB", known(log.peak_memory_GiB));
}

// A training log: the file, its step times, and the job that it describes, if it describes one.
void fields(auto& a, Is<LoggedRun> auto& run) {
  using Text = std::optional<std::string>;
  const auto& job = run.resolved;
  a("file", run.log.file);
  a("format", Constant{"training_log"});
  a("framework", run.times.format, "framework that wrote the log lines of steps");
  a("lines", run.log.n_lines);
  a("bytes", run.log.n_bytes);
  a("step_lines", detail::step_lines_of(run.log), "number of lines with a step time, by framework");
  a("broken_lines", run.log.broken_lines, "number of lines that begin like a step's line but have no time");
  fields(a, run.times, run.log);
  a("settings_from", job ? Text{run.job->source} : Text{});
  a("why_no_settings", job ? Text{} : Text{run.why_no_job});
  a("model", job ? Text{job->model.name} : Text{});
  a("n_gpus",
    job ? std::optional<std::int64_t>{job->n_gpus.value_or(job->layout.world_size())} : std::nullopt);
  a("gpu", run.job && !run.job->gpu.empty() ? Text{run.job->gpu} : Text{});
  a("layout", job ? settings_of(job->layout, job->model) : std::vector<Setting>{});
  a("not_said", run.not_said, "settings that neither the log nor a flag gives; they have defaults");
  a("notes", detail::notes_of(run));
}

}  // namespace stepcast
