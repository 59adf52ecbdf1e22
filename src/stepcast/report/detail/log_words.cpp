#include "stepcast/report/detail/log_words.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/report/comparison_document.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/text_table.h"

namespace stepcast::detail {
namespace {

double lost_ms(const std::vector<LoggedStall>& stalls) {
  double sum = 0;
  for (const LoggedStall& s : stalls) sum += s.lost_ms;
  return sum;
}

// What of the log itself makes its steps other than a forecast of a quiet machine; empty: nothing.
std::string unrest(const LoggedTimes& t) {
  constexpr double kWide = 0.1, kDrift = 3;  // of the median; percent
  std::vector<std::string> what;
  if (t.p90_ms - t.p10_ms > kWide * t.median_ms) {
    what.push_back(fmt::format("its steps spread from {} to {} ms (p10, p90): stragglers or sharing",
                               table_number(t.p10_ms, 1), table_number(t.p90_ms, 1)));
  }
  if (t.trend_percent.value_or(0) > kDrift)
    what.push_back(fmt::format("its steps get {:.1f} % slower from begin to end", *t.trend_percent));
  if (t.from_clock) what.emplace_back("its times are distances of lines and hold what stands between steps");
  if (t.whole_run) what.emplace_back("its time is a mean with evaluation, saving and warm-up");
  return join(what, "; ");
}

}  // namespace

std::string log_format_text(const LoggedRun& run) {
  const TrainingLog& log = run.log;
  std::string text = fmt::format("training log of {}, {}", log_format_name(run.times.format),
                                 plural(static_cast<std::int64_t>(log.n_lines), "line", "lines"));
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
                                 plural(static_cast<std::int64_t>(t.n), "line counts", "lines count"));
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

std::string middle_text(const LoggedTimes& t) {
  const std::string middle = table_number(t.median_ms, 1) + " ms";
  if (t.n == 1) return middle + ", one time alone: how far steps spread is not known";
  return fmt::format("median {} (p10 {}, p90 {})", middle, table_number(t.p10_ms, 1),
                     table_number(t.p90_ms, 1));
}

std::string trend_text(const LoggedTimes& t) {
  if (!t.trend_percent) return fmt::format("not told by so few times ({})", table_count(t.n));
  return table_signed(*t.trend_percent, 2) + " % from begin to end";
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
                    "what ran (model, batch, sequence length, GPUs)",
                    table_number(theirs, 1), table_number(ours, 1)));
  }
  constexpr double kBeyondBelief = 3;  // times what such a part is usually off
  const bool believable = !c.explanations.empty() && c.explanations.front().deviations <= kBeyondBelief;
  if (reasons.empty() && !believable) {
    reasons.emplace_back(
        "no part of the forecast alone explains it: check platform, GPUs, sequence length and batch, and "
        "what the log counts as a step");
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

}  // namespace stepcast::detail
