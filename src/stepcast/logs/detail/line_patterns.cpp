// The table of log lines that describe a step with names and numbers, and the code that applies a row to a
// line. The rows are in tables/line_patterns.json, one per framework and kind of line.
#include "stepcast/logs/detail/line_patterns.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "stepcast/base/json_value.h"
#include "stepcast/base/named_members.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/text.h"
#include "stepcast/base/units.h"

namespace stepcast::detail {

STEPCAST_MEMBERS(kLinePattern, &LinePattern::format, &LinePattern::marker, &LinePattern::also,
                 &LinePattern::unless, &LinePattern::step, &LinePattern::epoch, &LinePattern::of,
                 &LinePattern::ms, &LinePattern::seconds, &LinePattern::tqdm, &LinePattern::per_second,
                 &LinePattern::work, &LinePattern::work_per_s, &LinePattern::mean_seconds,
                 &LinePattern::mean_per_s, &LinePattern::tokens_per_s_per_gpu, &LinePattern::samples_per_s,
                 &LinePattern::batch, &LinePattern::tflops, &LinePattern::memory, &LinePattern::has_letters,
                 &LinePattern::is_common);

namespace {

// Removes the first of several texts separated by '|' from `texts` and returns it.
std::string_view next_of(std::string_view& texts) {
  const std::size_t bar = texts.find('|');
  const std::string_view text = texts.substr(0, bar);
  texts.remove_prefix(bar == std::string_view::npos ? texts.size() : bar + 1);
  return text;
}

// Reads the table and numbers the markers of all rows, so that one pass over a line finds all of them.
Result<LinePatterns> read_patterns() {
  static const std::string kFile = "line_patterns.json";
  static const Result<JsonValue> kTable = parse_json(shipped_table(kFile), kFile);
  if (!kTable) return kTable.error();
  LinePatterns all;
  for (const JsonValue& item : kTable->items()) {
    LinePattern row;
    STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(item, "", kFile));
    STEPCAST_TRY(read_members(keys, kLinePattern, row));
    STEPCAST_TRY(keys.finish());
    for (std::string_view texts = row.marker; !texts.empty();) {
      row.markers.set(all.markers.size());
      all.markers.push_back(next_of(texts));
    }
    all.rows.push_back(row);
  }
  return all;
}

// A number with a suffix for thousands ("2.17K", "1.1M") or in numpy's text form ("np.float64(51.2)"). The
// suffixes are K, M, B or G, and T; "MiB" is a unit, not a suffix.
std::optional<LoggedNumber> figure_at(std::string_view text) {
  constexpr std::string_view kBlanks = " \t:='\"";
  const std::size_t from = text.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return std::nullopt;
  text.remove_prefix(from);
  if (text.starts_with("np.")) text.remove_prefix(std::min(text.find('(') + 1, text.size()));
  std::optional<LoggedNumber> number = number_at(text);
  if (!number) return number;
  const std::size_t end = text.find_first_not_of("0123456789.,+-eE");
  if (end == std::string_view::npos) return number;
  constexpr double kThousand = 1e3;
  const char letter = text[end];
  const int thousands = letter == 'K' || letter == 'k'                  ? 1
                        : letter == 'M' && text.substr(end, 3) != "MiB" ? 2
                        : letter == 'B' || letter == 'G'                ? 3
                        : letter == 'T'                                 ? 4
                                                                        : 0;
  const double factor = std::pow(kThousand, thousands);
  number->value *= factor;
  number->half_digit *= factor;
  return number;
}

// The number that one text of a pattern (without '|') finds in the line. Forms: "text" (number after it),
// "#text" (number before it), "A*B" (number after the last A in front of the first B).
std::optional<LoggedNumber> number_of(std::string_view line, std::string_view text, bool has_letters) {
  constexpr std::size_t kNone = std::string_view::npos;
  const bool is_before = text.starts_with('#');
  if (is_before) text.remove_prefix(1);
  const std::size_t star = text.find('*');
  const std::size_t end = star == kNone ? kNone : line.find(text.substr(star + 1));
  if (star != kNone && end == kNone) return std::nullopt;
  text = text.substr(0, star);
  const std::size_t at = star == kNone ? line.find(text) : line.rfind(text, end);
  if (at == kNone) return std::nullopt;
  if (is_before) {
    std::size_t from = at;
    while (from > 0 && (is_digit(line[from - 1]) || line[from - 1] == '.' || line[from - 1] == ',')) --from;
    return number_at(line.substr(from, at - from));
  }
  return has_letters ? figure_at(line.substr(at + text.size())) : number_behind(line.substr(at), text);
}

// The first number found by `texts` that passes the test `counts`.
std::optional<LoggedNumber> first_of(const LinePattern& pattern, std::string_view line,
                                     std::string_view texts, bool (*counts)(double) = is_figure) {
  while (!texts.empty()) {
    const auto number = number_of(line, next_of(texts), pattern.has_letters);
    if (number && counts(number->value)) return number;
  }
  return std::nullopt;
}

// Step numbers start at 0, so 0 is valid.
bool is_step(double value) { return value >= 0; }

constexpr double kMsPerSecond = 1e3;

// The time of a step in ms with its rounding, from whichever field the pattern has: time, tqdm rate, work
// over rate, steps per second, or the mean over the run. Empty if the line has none of them.
std::optional<LoggedNumber> time_ms_of(const LinePattern& pattern, std::string_view line) {
  const auto scaled = [](LoggedNumber number, double factor) {
    return LoggedNumber{number.value * factor, number.half_digit * factor};
  };
  const auto inverse = [](const LoggedNumber& number) {
    const double ms = kMsPerSecond / number.value;
    return LoggedNumber{ms, ms * number.half_digit / number.value};
  };
  if (const auto ms = first_of(pattern, line, pattern.ms)) return ms;
  if (const auto seconds = first_of(pattern, line, pattern.seconds)) return scaled(*seconds, kMsPerSecond);
  if (const auto figure = first_of(pattern, line, pattern.tqdm)) {
    const std::string_view unit = *text_behind(line, pattern.tqdm);
    const bool is_time = unit.substr(0, unit.find(' ')).ends_with("s/it");
    return is_time ? scaled(*figure, kMsPerSecond) : inverse(*figure);
  }
  if (const auto work = first_of(pattern, line, pattern.work),
      rate = first_of(pattern, line, pattern.work_per_s);
      work && rate)
    return LoggedNumber{kMsPerSecond * work->value / rate->value,
                        kMsPerSecond * work->value / rate->value *
                            (rate->half_digit / rate->value + work->half_digit / work->value)};
  if (const auto rate = first_of(pattern, line, pattern.per_second)) return inverse(*rate);
  if (const auto mean = first_of(pattern, line, pattern.mean_seconds)) return scaled(*mean, kMsPerSecond);
  if (const auto rate = first_of(pattern, line, pattern.mean_per_s)) return inverse(*rate);
  return std::nullopt;
}

// Whether the pattern has a field with times. Otherwise the line contains only rates.
bool tells_times(const LinePattern& pattern) {
  return !pattern.ms.empty() || !pattern.seconds.empty() || !pattern.tqdm.empty() ||
         !pattern.per_second.empty() || !pattern.work.empty() || !pattern.mean_seconds.empty();
}

// The number of the step, counted over the whole run: epoch x steps per epoch + step if the pattern has
// epochs.
std::optional<double> step_of(const LinePattern& pattern, std::string_view line) {
  const auto step = first_of(pattern, line, pattern.step, is_step);
  if (!step) return std::nullopt;
  const auto epoch = first_of(pattern, line, pattern.epoch, is_step);
  const auto of = first_of(pattern, line, pattern.of);
  constexpr double kMostEpochs = 1e5;
  if (!epoch || !of || epoch->value > kMostEpochs) return step->value;
  return epoch->value * of->value + step->value;
}

}  // namespace

const LinePatterns& line_patterns() {
  static const LinePatterns kPatterns = as_shipped(read_patterns());
  return kPatterns;
}

// The batch size is derived from samples/s and the step time if the line has no batch field.
std::optional<StepLine> patterned_line(const LinePattern& pattern, std::string_view line) {
  // A memory value from kBytesFrom on is in bytes, smaller values are in GiB.
  constexpr double kBytesFrom = 1e6, kHalf = 0.5;
  const auto number = [&](std::string_view texts) { return first_of(pattern, line, texts); };
  const auto value = [&](std::string_view texts) { return number(texts).value_or(LoggedNumber{}).value; };
  StepLine told;
  told.step.format = pattern.format;
  const auto step = step_of(pattern, line);
  if (step)
    told.step.step = step_number(*step);
  else if (!pattern.step.empty())
    return std::nullopt;
  std::optional<LoggedNumber> figure = time_ms_of(pattern, line);
  if (figure) {
    (pattern.mean_seconds.empty() ? told.step.time_ms : told.mean_ms) = figure->value;
  } else if (!tells_times(pattern)) {
    figure =
        number(pattern.tokens_per_s_per_gpu.empty() ? pattern.samples_per_s : pattern.tokens_per_s_per_gpu);
    if (figure) told.step.rate = static_cast<float>(figure->value);
  }
  if (!figure) return std::nullopt;
  told.half_digit_share = figure->half_digit / figure->value;
  told.step.batch_sequences = step_number(value(pattern.batch));
  if (const auto samples = static_cast<float>(value(pattern.samples_per_s));
      told.step.time_ms > 0 && samples > 0)
    told.step.batch_sequences =
        step_number(told.step.time_ms / kMsPerSecond * static_cast<double>(samples) + kHalf);
  told.step.tflops_per_gpu = static_cast<float>(value(pattern.tflops));
  const double tokens = value(pattern.tokens_per_s_per_gpu);
  told.tokens_per_s_per_gpu = pattern.has_letters ? tokens : static_cast<float>(tokens);
  const double memory = value(pattern.memory);
  told.memory_GiB = memory >= kBytesFrom ? memory / kGiB : memory;
  return told;
}

}  // namespace stepcast::detail
