// The documents of a training log: facts about the log alone (log_facts()), and its comparison with the
// forecast of its job (against_the_log()), with the likely reason of the difference (reason_of()).
#include "stepcast/report/log_document.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/base/text.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/comparison_document.h"
#include "stepcast/report/detail/comparison_fields.h"
#include "stepcast/report/detail/log_fields.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/html/charts.h"

namespace stepcast {
namespace {

// A time as "2,129.8 ms".
std::string tenths_of_ms(double ms) { return table_number(ms, 1) + " ms"; }

// A lasting change of the step time: "from step 121 on 1,200.0 instead of 1,000.0 ms (+20.0 %)".
std::string change_text(const LoggedChange& change) {
  return fmt::format("from step {} on {} instead of {} ms ({} %)", table_count(change.step),
                     table_number(change.after_ms, 1), table_number(change.before_ms, 1),
                     table_signed(100 * (change.after_ms / change.before_ms - 1), 1));
}

// What in the log makes its steps slower than the forecast of an undisturbed machine: spread, drift, changes,
// times that include more than steps. Empty if there is nothing.
std::string unrest(const LoggedTimes& t) {
  constexpr double kWide = 0.1, kDrift = 3;  // fraction of the median; percent
  std::vector<std::string> what;
  if (t.p90_ms - t.p10_ms > kWide * t.median_ms) {
    what.push_back(fmt::format("its steps spread from {} to {} ms (p10, p90): stragglers or sharing",
                               table_number(t.p10_ms, 1), table_number(t.p90_ms, 1)));
  }
  if (t.trend_percent.value_or(0) > kDrift)
    what.push_back(fmt::format("its steps get {:.1f} % slower from start to end", *t.trend_percent));
  for (const LoggedChange& change : t.changes) what.push_back(change_text(change));
  if (t.from_clock)
    what.emplace_back("its times are differences of timestamps and include work between steps");
  if (t.whole_run) what.emplace_back("its time is a mean with evaluation, checkpoints and warm-up");
  return join(what, "; ");
}

// The format of a log and its length: "training log of Megatron-LM, 1,204 lines".
std::string log_format_text(const LoggedRun& run) {
  const TrainingLog& log = run.log;
  std::string text = fmt::format("training log of {}, {}", log_format_name(run.times.format),
                                 counted(log.n_lines, "line", "lines"));
  std::vector<std::string> others;
  for (std::size_t f = 0; f < kLogFormats; ++f) {
    const auto format = static_cast<LogFormat>(f);
    if (format != run.times.format && log.n_of_format[f] > 0)
      others.push_back(fmt::format("{} of {}", table_count(log.n_of_format[f]), log_format_name(format)));
  }
  if (!others.empty()) text += fmt::format(" (step lines that were ignored: {})", join(others));
  return text;
}

// The steps that are included and those that are not, with reasons: "11 to 500, 480 lines count; left out: 2
// with a stall".
std::string steps_text(const LoggedRun& run) {
  const LoggedTimes& t = run.times;
  if (t.whole_run) return fmt::format("{}, one mean of the whole run", table_count(t.last_step));
  std::string text = fmt::format("{} to {}, {}", table_count(t.first_step), table_count(t.last_step),
                                 counted(t.n, "line counts", "lines count"));
  if (t.steps_per_line > 1) text += fmt::format(", each the mean of {:g} steps", t.steps_per_line);
  std::vector<std::string> left_out;
  const auto add = [&](std::uint64_t n, std::string_view what) {
    if (n > 0) left_out.push_back(fmt::format("{} {}", table_count(n), what));
  };
  add(t.warm_up, "of warm-up");
  add(t.duplicates, "said twice");
  add(t.other_batches, "with other batch sizes");
  add(t.earlier_settings, "with earlier settings");
  add(static_cast<std::uint64_t>(std::ranges::count(t.stalls, false, &LoggedStall::between_steps)),
      "with a stall");
  add(t.other_stretches, fmt::format("outside of steps {} to {}, the longest interval of constant speed",
                                     table_count(t.stretch_first_step), table_count(t.stretch_last_step)));
  add(run.log.broken_lines, "broken off");
  if (!left_out.empty()) text += "; left out: " + join(left_out);
  return text;
}

// The throughput that the log prints; empty if it prints none.
std::string rates_text(const LoggedTimes& t) {
  std::vector<std::string> rates;
  if (t.tokens_per_s_per_gpu > 0)
    rates.push_back(table_number(t.tokens_per_s_per_gpu, 1) + " tokens/s per GPU");
  if (t.samples_per_s > 0) rates.push_back(table_number(t.samples_per_s, 2) + " samples/s");
  if (t.tflops_per_gpu > 0)
    rates.push_back(table_number(t.tflops_per_gpu, 1) + " TFLOP/s per GPU as counted by the log");
  return join(rates);
}

// The median step with its spread: "median 2,129.8 ms (p10 2,124.8, p90 2,135.4)". A single time has no
// spread.
std::string middle_text(const LoggedTimes& t) {
  const std::string middle = tenths_of_ms(t.median_ms);
  if (t.n == 1) return middle + ", only one time: the spread of steps is unknown";
  return fmt::format("median {} (p10 {}, p90 {})", middle, table_number(t.p10_ms, 1),
                     table_number(t.p90_ms, 1));
}

// The change over the run: "+0.01 % from begin to end".
std::string trend_text(const LoggedTimes& t) {
  if (!t.trend_percent) return fmt::format("unknown, too few times ({})", table_count(t.n));
  return table_signed(*t.trend_percent, 2) + " % from start to end";
}

// The likely cause of a stall.
std::string_view cause_text(LogEvent cause) {
  if (cause == LogEvent::none) return "not known";
  return cause == LogEvent::evaluation_or_checkpoint ? "evaluation or checkpoint" : to_string(cause);
}

// The stalls, the time they took, and their causes: "3, 12.4 s lost; likely cause: checkpoint 3".
std::string stalls_text(const LoggedTimes& t) {
  std::map<std::string_view, std::uint64_t> n;
  double lost_ms = 0;
  for (const LoggedStall& s : t.stalls) {
    ++n[cause_text(s.cause)];
    lost_ms += s.lost_ms;
  }
  std::vector<std::string> kinds;
  for (const auto& [cause, count] : n) kinds.push_back(fmt::format("{} {}", cause, table_count(count)));
  return fmt::format("{}, {} s lost; likely cause: {}", table_count(t.stalls.size()),
                     table_number(lost_ms * 1e-3, 1), join(kinds));
}

// The likely reason for the difference between a forecast (a) and its log (b): a sentence without capital
// letter. Tried in this order: the difference is within the forecast interval; the log itself shows
// disturbances; the log counts other FLOPs, so the description may be wrong; one part of the forecast is off
// by a plausible factor. Work that is not modelled is added if the measured step is slower.
std::string reason_of(const Forecast& forecast, const LoggedRun& run, const Comparison& c) {
  std::vector<std::string> reasons;
  if (c.b_step_time_ms >= c.a_p10_ms && c.b_step_time_ms <= c.a_p90_ms)
    reasons.emplace_back("the measured step is between p10 and p90 of the forecast");
  const bool slower = c.step_difference_ms > 0;
  if (const std::string noise = unrest(run.times); slower && !noise.empty())
    reasons.push_back("of the log: " + noise);
  constexpr std::size_t kMost = 2;
  // Our FLOPs at the measured step time. The limit is wide, since frameworks count attention and
  // recomputation differently.
  constexpr double kOtherCount = 0.3;
  const double ours = forecast.throughput.tflops_per_gpu.value_or(0) * c.a_step_time_ms / c.b_step_time_ms;
  const double theirs = run.times.tflops_per_gpu;
  if (reasons.empty() && ours > 0 && theirs > 0 && std::abs(theirs / ours - 1) > kOtherCount) {
    reasons.push_back(
        fmt::format("the log has {} TFLOP/s per GPU, but this description gives {}: check model, batch, "
                    "sequence length and GPUs",
                    table_number(theirs, 1), table_number(ours, 1)));
  }
  constexpr double kBeyondBelief = 3;  // in usual errors of such a part
  const bool believable = !c.explanations.empty() && c.explanations.front().deviations <= kBeyondBelief;
  if (reasons.empty() && !believable) {
    reasons.emplace_back(
        "no single part of the forecast explains it: check platform, GPUs, sequence length and batch, and "
        "the definition of a step in the log");
  }
  if (const std::string parts = explanations_text(c, kMost); reasons.empty() && !parts.empty()) {
    reasons.push_back(fmt::format("{} alone would explain it", parts));
    constexpr double kWeak = 0.3;
    if (forecast.coverage.assumed + forecast.coverage.analytic > kWeak)
      reasons.emplace_back(
          "much of the forecast comes from data sheets: measure kernels or collectives of this machine");
  }
  for (const std::string& note : forecast.notes)
    if (slower && note.starts_with("not modelled: ")) reasons.push_back(note);
  return join(reasons, "; ");
}

// The job of a log in one line: "llama-3-70b (70,553,706,496 parameters) on 512 GPUs; tensor 4 x pipeline 4 x
// ...". Empty if the log does not describe it.
std::string logged_job_text(const LoggedRun& run) {
  if (!run.resolved) return {};
  const ResolvedJob& job = *run.resolved;
  const Layout& l = job.layout;
  std::string text =
      fmt::format("{} ({} parameters) on {}", job.model.name, table_count(parameter_count(job.model).total()),
                  counted(job.n_gpus.value_or(l.world_size()), "GPU", "GPUs"));
  if (run.job && !run.job->gpu.empty()) text += fmt::format(" ({})", run.job->gpu);
  text += fmt::format("; tensor {} x pipeline {} x context {} x data {}", l.degrees.tensor,
                      l.degrees.pipeline, l.degrees.context, l.degrees.data);
  if (l.degrees.expert > 1) text += fmt::format(", expert {}", l.degrees.expert);
  text += fmt::format("; {} x {} tokens per micro-batch, {} sequences per step; {}, {}",
                      l.batch.micro_batch_sequences, l.batch.seq_len_tokens, l.batch.global_batch_sequences,
                      to_string(l.layer.precision.compute), to_string(l.sharding.kind));
  return text;
}

// The facts that the log contains, as rows of a label and a text.
ReportTable log_facts(const LoggedRun& run) {
  const LoggedTimes& t = run.times;
  ReportTable facts = ReportTable::facts();
  facts.row({"format", log_format_text(run)});
  facts.row({"steps", steps_text(run)});
  if (!t.why_no_time.empty()) {
    facts.row({"step time", t.why_no_time});
  } else if (t.whole_run) {
    facts.row({"step time", tenths_of_ms(t.median_ms) + ", evaluation and checkpoints included"});
  } else {
    facts.row({"step time", middle_text(t) + (t.from_clock ? ", by timestamps of the lines" : "")});
    if (t.contradiction) facts.row({"but", contradiction_text(*t.contradiction)});
    facts.row({"mean", tenths_of_ms(t.mean_ms) + ", stalls included"});
    // Rounding below this percentage does not matter.
    constexpr double kCoarse = 0.05;
    if (run.log.rounding_percent > kCoarse && !t.from_clock)
      facts.row(
          {"rounding", fmt::format("+-{:.2g} %: the log has no more digits", run.log.rounding_percent)});
    facts.row({"trend", trend_text(t)});
    for (const LoggedChange& change : t.changes)
      facts.row({&change == t.changes.data() ? "changes" : "", change_text(change)});
  }
  if (const std::string rates = rates_text(t); !rates.empty()) facts.row({"throughput", rates});
  if (run.log.peak_memory_GiB > 0)
    facts.row({"memory", fmt::format("at most {} GiB", table_number(run.log.peak_memory_GiB, 2))});
  for (const LoggedRestart& r : t.restarts) {
    facts.row({&r == t.restarts.data() ? "restarts" : "",
               fmt::format("line {}: step {} after step {}", table_count(r.line), table_count(r.next_step),
                           table_count(r.last_step))});
  }
  if (t.why_no_time.empty() && !t.whole_run)
    facts.row({"stalls", t.stalls.empty() ? "none" : stalls_text(t)});
  if (run.resolved) {
    facts.row({"settings", run.job->source});
    facts.row({"", logged_job_text(run)});
    if (!run.not_said.empty()) facts.row({"not said", join(run.not_said) + ": defaults"});
    for (const std::string& note : run.job->notes) facts.row({"note", note});
  } else {
    // Errors name the file; here it is known already.
    const std::string file = run.log.file + ": ";
    facts.row({"settings", run.why_no_job.substr(run.why_no_job.starts_with(file) ? file.size() : 0)});
  }
  return facts;
}

// The error of the forecast in percent, relative to the measured step.
std::string error_text(const Comparison& c) {
  return table_signed(100 * (c.a_step_time_ms / c.b_step_time_ms - 1), 1) + " %";
}

// The section that compares forecast and log: the job, both times, memory and FLOP/s, and the likely reason.
ReportSection against_the_log(const Forecast& f, const LoggedRun& run, const Comparison& c) {
  const LoggedTimes& t = run.times;
  ReportTable facts = ReportTable::facts();
  facts.row({"it ran", fmt::format("{} (from {}{})", logged_job_text(run), run.job->source,
                                   run.not_said.empty() ? "" : "; not given: " + join(run.not_said))});
  facts.row({"forecast", fmt::format("{} (p10 {}, p90 {})", tenths_of_ms(c.a_step_time_ms),
                                     table_number(c.a_p10_ms, 1), table_number(c.a_p90_ms, 1))});
  facts.row({"measured", t.whole_run ? tenths_of_ms(t.median_ms) + ", the mean of the whole run"
                         : t.n == 1  ? middle_text(t)
                                     : fmt::format("{} (p10 {}, p90 {}; median of {})",
                                                   tenths_of_ms(t.median_ms), table_number(t.p10_ms, 1),
                                                   table_number(t.p90_ms, 1), counted(t.n, "line", "lines"))});
  if (t.contradiction) facts.row({"but", contradiction_text(*t.contradiction)});
  facts.row({"difference", fmt::format("the forecast is {} off ({} ms)", error_text(c),
                                       table_signed(-c.step_difference_ms, 1))});
  if (f.memory && run.log.peak_memory_GiB > 0) {
    facts.row({"memory", fmt::format("forecast {} GiB, log {} GiB", gib(f.memory->peak_memory_GiB),
                                     gib(run.log.peak_memory_GiB))});
  }
  if (f.throughput.tflops_per_gpu && t.tflops_per_gpu > 0) {
    facts.row(
        {"TFLOP/s",
         fmt::format("{} per GPU at the measured step by our count, {} by the log",
                     table_number(*f.throughput.tflops_per_gpu * c.a_step_time_ms / c.b_step_time_ms, 1),
                     table_number(t.tflops_per_gpu, 1))});
  }
  facts.row({"likely", reason_of(f, run, c)});
  const BarChart chart{.bars = {{.label = "forecast",
                                 .parts = {{"c-alike", "forecast", c.a_step_time_ms}},
                                 .note = band_text(c.a_step_time_ms, c.a_p10_ms, c.a_p90_ms)},
                                {.label = "measured",
                                 .parts = {{"c-accent", "measured", c.b_step_time_ms}},
                                 .note = band_text(c.b_step_time_ms, c.b_p10_ms, c.b_p90_ms)}},
                       .unit = "ms",
                       .with_legend = false};
  ReportSection section{"Forecast and log", {ReportFigure{bar_chart(chart), ""}, std::move(facts)}};
  section.opening = fmt::format("\n{}\n", in_one_line(run.log.file));
  return section;
}

}  // namespace

ReportDocument log_document(const LoggedRun& run) {
  ReportDocument document{.title = "Log of " + run.log.file};
  ReportSection& section = document.add("Facts from the log", {log_facts(run)});
  section.opening = in_one_line(run.log.file) + "\n";
  document.first_screen = FirstScreen{.blocks = {log_facts(run)}, .most_figures = 0};
  if (const LoggedTimes& t = run.times; t.why_no_time.empty())
    document.figures = {{"Step time", duration_text(t.median_ms, t.p10_ms, t.p90_ms),
                         band_text(t.median_ms, t.p10_ms, t.p90_ms), "measured"}};
  if (run.times.stalls.empty()) return document;
  std::vector<LoggedStall> stalls = run.times.stalls;
  std::ranges::stable_sort(stalls, std::greater{}, &LoggedStall::lost_ms);
  ReportTable table{"step | line | lost s | where< | likely<"};
  table.most = 10;
  for (const LoggedStall& s : stalls) {
    table.row({table_count(s.step), table_count(s.line), table_number(s.lost_ms * 1e-3, 1),
               s.between_steps ? "before the step" : "in the step", std::string{cause_text(s.cause)}});
  }
  section.add(TerminalText{"\n"});
  section.add(std::move(table));
  return document;
}

ReportDocument log_forecast_document(const Forecast& forecast, const LoggedRun& run, const Comparison& c,
                                     const ForecastIllustrations& illustrations) {
  ReportDocument document = forecast_document(forecast, illustrations);
  FirstScreen& screen = *document.first_screen;
  screen.why = fmt::format("The forecast is {} off: {} against {} measured. {}.", error_text(c),
                           duration_text(c.a_step_time_ms), duration_text(c.b_step_time_ms),
                           sentence(reason_of(forecast, run, c)));
  document.figures.insert(
      document.figures.begin() + 1,
      {{"Measured step", duration_text(c.b_step_time_ms, c.b_p10_ms, c.b_p90_ms),
        band_text(c.b_step_time_ms, c.b_p10_ms, c.b_p90_ms), "measured"},
       {"Forecast minus log", error_text(c),
        fmt::format("intervals {}", c.intervals_overlap ? "overlap" : "do not overlap")}});
  document.figures.front().label = "Forecast step";
  if (run.times.contradiction)
    screen.blocks.insert(screen.blocks.begin(),
                         ReportText{sentence(contradiction_text(*run.times.contradiction)) + "."});
  screen.blocks.insert(
      screen.blocks.begin(),
      ReportText{fmt::format("The run: {} (from {}{}).", logged_job_text(run), run.job->source,
                             run.not_said.empty() ? "" : "; not given: " + join(run.not_said))});
  // The comparison comes first in a page and last in a terminal, where the last lines are the ones that stay
  // visible.
  const ReportSection against = against_the_log(forecast, run, c);
  document.sections.push_back(against);
  document.sections.back().shown = Shown::terminal;
  if (!document.has_page()) return document;
  ReportDocument log = log_document(run);
  log.sections.insert(log.sections.begin(), against);
  for (ReportSection& section : log.sections) section.shown = Shown::page;
  document.sections.insert(document.sections.begin(), log.sections.begin(), log.sections.end());
  document.subject.insert(document.subject.begin(),
                          fmt::format("compared with {}; settings from {}", run.log.file, run.job->source));
  document.verdict = screen.why;
  Forecast plain = forecast;  // JSON output does not include the operations of layers
  plain.explained.clear();
  document.json = predicted_log_json(plain, run, c);
  return document;
}

// The members of the JSON, stepcast.log_forecast/1. Pointers may be null only when the schema is made.
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
