// Recognises step times by the words of a name. A name such as "step_time_ms" is split into words, and each
// word is replaced by a letter for its kind; the sequence of letters decides. This reads lines of programs
// that stepcast does not know.
#include "stepcast/logs/detail/named_units.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/logs/detail/log_text.h"

namespace stepcast::detail {
namespace {

bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }

// Milliseconds of a unit of time; 0 if the word is not a unit.
double unit_of(std::string_view word) {
  if (is_among(word, "ms msec millisecond milliseconds")) return 1;
  if (is_among(word, "s sec secs second seconds")) return 1e3;
  if (is_among(word, "us usec microseconds")) return 1e-3;
  if (is_among(word, "min minutes")) return 6e4;
  return 0;
}
bool is_step(std::string_view word) {
  return is_among(word, "step steps iter iters iteration iterations it");
}
bool is_time(std::string_view word) { return is_among(word, "time duration timing latency"); }
// Words that may be part of a name without changing its meaning.
bool is_filler(std::string_view word) {
  return is_among(word, "avg average mean train training perf performance in the last global optimizer");
}

// The kinds of the words of a name, one letter each: u unit, s step, t time, p per. Fillers are left out.
// Empty if the name has other words. `unit` receives the unit in ms.
std::string kinds_of(std::string_view name, double& unit) {
  std::string kinds;
  for (std::size_t at = 0; at < name.size();) {
    if (!is_small_letter(name[at])) {
      if (name[at] == '/') kinds += 'p';
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < name.size() && is_small_letter(name[end])) ++end;
    const std::string_view word = name.substr(at, end - at);
    at = end;
    if (unit_of(word) > 0) {
      unit = unit_of(word);
      kinds += 'u';
    } else if (is_step(word)) {
      kinds += 's';
    } else if (is_time(word)) {
      kinds += 't';
    } else if (word == "per") {
      kinds += 'p';
    } else if (!is_filler(word)) {
      return {};
    } else if (kinds == "p" || kinds.ends_with('p')) {
      continue;
    }
  }
  while (kinds.starts_with('p')) kinds.erase(0, 1);  // "train/step_time_ms"
  return kinds;
}

// Names of a step time without a unit, which needs a unit after the value.
bool is_time_of_step(std::string_view name) {
  double unit = 0;
  return is_among(kinds_of(name, unit), "st tps tpps");
}

// The name at the end of `text`, in lower case, back to the preceding separator.
std::string name_before(std::string_view text) {
  constexpr std::string_view kBetween = ",|;{[]}\t=:>";
  while (!text.empty() && (text.back() == ' ' || text.back() == '"' || text.back() == '\''))
    text.remove_suffix(1);
  std::size_t from = text.size();
  while (from > 0 && kBetween.find(text[from - 1]) == std::string_view::npos && text[from - 1] != '"' &&
         text[from - 1] != '\'' && !text.substr(0, from).ends_with("  ") &&
         !text.substr(0, from).ends_with(" - "))
    --from;
  // A preceding value is not part of the name: "loss=1.2 sec/it=".
  text = trimmed(text.substr(from));
  while (!text.empty() && is_digit(text.front()) && text.find(' ') != std::string_view::npos)
    text = trimmed(text.substr(text.find(' ')));
  return lower(text);
}

// The number at the start of `text` as a step time in ms, if `name` in front of it or the unit after it says
// so.
std::optional<LoggedNumber> time_with_unit(std::string_view name, std::string_view text) {
  const auto number = number_at(text);
  if (!number || !is_figure(number->value)) return std::nullopt;
  const auto converted = [&](const TimeColumn& unit) {
    const double ms = unit.milliseconds(number->value);
    return LoggedNumber{ms, ms * number->half_digit / number->value};
  };
  if (const auto unit = unit_in_name(name)) return converted(*unit);
  std::string_view behind = text.substr(std::min(text.find_first_not_of("0123456789.eE+-"), text.size()));
  behind.remove_prefix(std::min(behind.find_first_not_of(' '), behind.size()));
  std::size_t end = 0;
  const std::string after = lower(behind.substr(0, 16));
  while (end < after.size() && (is_small_letter(after[end]) || after[end] == '/')) ++end;
  const std::string_view unit = std::string_view{after}.substr(0, end);
  // "loss=2.1 sec/it=2.5": the apparent unit of one value is the name of the next.
  const std::size_t next = after.find_first_not_of(' ', end);
  if (next < after.size() && (after[next] == '=' || after[next] == ':')) return std::nullopt;
  if (const std::size_t slash = unit.find('/'); slash != std::string_view::npos) {
    const double time = unit_of(unit.substr(0, slash)), per = unit_of(unit.substr(slash + 1));
    if (time > 0 && is_step(unit.substr(slash + 1))) return converted({time});
    if (per > 0 && is_step(unit.substr(0, slash))) return converted({per, true});
    return std::nullopt;
  }
  return unit_of(unit) > 0 && is_time_of_step(name) ? std::optional{converted({unit_of(unit)})}
                                                    : std::nullopt;
}

}  // namespace

std::optional<TimeColumn> unit_in_name(std::string_view name) {
  double unit = 0;
  if (std::ranges::any_of(name, is_digit)) return std::nullopt;  // contains a value, so it is not only a name
  const std::string kinds = kinds_of(name, unit);
  if (is_among(kinds, "ups stu tsu tpsu su upsut")) return TimeColumn{unit};
  if (is_among(kinds, "spu")) return TimeColumn{unit, true};
  return std::nullopt;
}

// Visits every number of the line and the name in front of it, until both a step and a time are found.
std::optional<StepLine> line_with_units(std::string_view line) {
  constexpr std::size_t kLongest = 4096;
  line = line.substr(0, kLongest);
  // Lines about evaluation, loading, compilation and generation are not training steps.
  const std::string lowered = lower(line);
  for (const std::string_view other : {"eval", "valid", "test ", "load", "warmup", "compil", "generat"})
    if (lowered.find(other) != std::string::npos) return std::nullopt;
  std::optional<double> step;
  std::optional<LoggedNumber> time;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (!is_digit(line[at]) || (at > 0 && (is_digit(line[at - 1]) || line[at - 1] == '.'))) continue;
    if (at > 0 && (is_small_letter(lowered[at - 1]) || line[at - 1] == '_' || line[at - 1] == '/')) continue;
    std::size_t from = at;
    while (from > 0 && (line[from - 1] == ' ' || line[from - 1] == '=' || line[from - 1] == ':')) --from;
    const std::string name = name_before(line.substr(0, from));
    const auto number = number_at(line.substr(at));
    if (!time) time = time_with_unit(name, line.substr(at));
    constexpr std::array<std::string_view, 7> kSteps{"step",   "iter",  "iteration", "global_step",
                                                     "update", "steps", "it"};
    // "[12/1000]" at the start of a line is a step number, too.
    const std::size_t end = line.find_first_not_of("0123456789", at);
    if (!step && number && line.substr(0, at) == "[" && end < line.size() && line[end] == '/')
      step = number->value;
    for (const std::string_view one : kSteps)
      if (!step && number && number->value >= 0 && (name == one || name.ends_with(" " + std::string{one})))
        step = number->value;
  }
  if (!step || !time || !is_figure(time->value)) return std::nullopt;
  StepLine told;
  told.step.format = LogFormat::named_units;
  told.step.step = step_number(*step);
  told.step.time_ms = time->value;
  told.half_digit_share = time->half_digit / time->value;
  return told;
}

}  // namespace stepcast::detail
