// Parsers for progress bars (tqdm, Rich) and for tables with one row per step (CSV, or one JSON object per
// line).
#include "stepcast/logs/detail/step_lines.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/text.h"
#include "stepcast/logs/detail/step_columns.h"

namespace stepcast::detail {

namespace {

constexpr double kSecond = 1e3;  // in milliseconds

// True if there is a number in the range of is_figure().
bool usable(const std::optional<LoggedNumber>& number) { return number && is_figure(number->value); }

// A step with its number and the relative rounding of `number`.
StepLine told(LogFormat format, std::uint32_t step, const LoggedNumber& number) {
  StepLine line;
  line.step.format = format;
  line.step.step = step;
  line.half_digit_share = number.half_digit / number.value;
  return line;
}

std::string_view unquoted(std::string_view cell) {
  cell = trimmed(cell);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
  return cell;
}

// Splits a CSV line at commas outside of quotes. The cells refer to `line`.
void split(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  std::size_t from = 0;
  bool quoted = false;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (line[i] != ',' || quoted)) continue;
    cells.push_back(unquoted(line.substr(from, i - from)));
    from = i + 1;
  }
}

// The framework that printed the bar, by the text in front of it.
LogFormat bar_format(std::string_view line) {
  const std::size_t percent = line.find("%|");
  const std::string_view before = line.substr(0, std::min(percent, line.size()));
  if (before.find("Epoch ") != std::string_view::npos && before.find(':') != std::string_view::npos)
    return LogFormat::lightning;
  return before.find("|Loss:") != std::string_view::npos ? LogFormat::torchtune : LogFormat::huggingface;
}

// True for bars that count something other than training steps, such as loading or evaluation, by the text in
// front.
bool is_other_bar(std::string_view line) {
  const std::string before = lower(line.substr(0, std::min(line.find("%|"), line.size())));
  for (const std::string_view other :
       {"loading", "fetching", "download", "map", "tokeniz", "generating", "saving", "evaluat", "validat",
        "sanity", "testing", "predict", "filter", "packing", "merging", "writing", "processing", "grouping",
        "capturing"})
    if (before.find(other) != std::string::npos) return true;
  return false;
}

// Seconds of "0:03:20" or "1 day 2:03:20", which is how Python prints a time span. 0 if the text has another
// form.
double elapsed_s(std::string_view text) {
  const bool has_days = text.find("day") != std::string_view::npos;
  const auto days = has_days ? number_at(text) : std::nullopt;
  text.remove_prefix(text.rfind(' ') + 1);
  double seconds = 0;
  int parts = 0;
  for (; parts < 3 && !text.empty(); ++parts) {
    const auto part = number_at(text);
    if (!part || part->value < 0) return 0;
    seconds = seconds * 60 + part->value;
    text.remove_prefix(std::min(std::min(text.find(':'), text.size()) + 1, text.size()));
  }
  return parts == 3 && text.empty() ? seconds + (days ? days->value * 86400 : 0) : 0;
}

}  // namespace

std::uint32_t step_number(double value) {
  constexpr double kMost = 4e9;
  return static_cast<std::uint32_t>(std::clamp(value, 0.0, kMost));
}

bool is_figure(double value) {
  constexpr double kLeast = 1e-9, kMost = 1e12;
  return value > kLeast && value < kMost;
}

// tqdm: " 12%|#2  | 120/1000 [04:00<29:20,  2.00s/it]".
std::optional<StepLine> progress_bar_line(std::string_view line) {
  const std::size_t open = line.rfind(" [");
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t slash = line.rfind('/', open);
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  std::size_t from = slash;
  while (from > 0 && is_digit(line[from - 1])) --from;
  const auto step = number_at(line.substr(from, slash - from));
  const auto all = number_at(line.substr(slash + 1, open - slash - 1));
  const std::size_t comma = line.find(',', open);
  if (!step || !all || step->value < 1 || all->value < step->value || comma == std::string_view::npos)
    return std::nullopt;
  const std::string_view rate_text = line.substr(comma + 1);
  const auto rate = number_at(rate_text);
  if (!usable(rate)) return std::nullopt;
  const std::size_t unit = rate_text.find("s/it"), inverse = rate_text.find("it/s");
  if (unit == std::string_view::npos && inverse == std::string_view::npos) return std::nullopt;
  if (is_other_bar(line)) return std::nullopt;
  const LogFormat format = bar_format(line);
  StepLine told_here = told(format, step_number(step->value), *rate);
  told_here.step.time_ms = unit < inverse ? rate->value * kSecond : kSecond / rate->value;
  told_here.step.of_steps = step_number(all->value);
  // Time since the start of the bar, "[1:04:00<". If a log has several bars, the longest one is the training.
  double elapsed = 0, part = 0;
  for (const char c : line.substr(open + 2)) {
    if (is_digit(c)) {
      part = part * 10 + (c - '0');
    } else if (c == ':') {
      elapsed = (elapsed + part) * 60;
      part = 0;
    } else {
      break;
    }
  }
  told_here.step.rate = static_cast<float>(elapsed + part);
  // Lightning starts a new bar in every epoch, so the steps of the epochs before are added.
  if (const auto epoch = count_behind(line, "Epoch "); epoch && format == LogFormat::lightning)
    told_here.step.step =
        step_number(static_cast<double>(std::min<std::uint64_t>(*epoch, 1000)) * all->value + step->value);
  return told_here;
}

// Lightning with Rich: "Epoch 0/9 ━━━━━━━━━ 100/1000 0:03:20 • 0:30:00 0.50it/s v_num: 0.000".
std::optional<StepLine> rich_bar_line(std::string_view line) {
  const std::size_t unit = line.find("it/s"), dot = line.find(" \xE2\x80\xA2 ");
  if (unit == std::string_view::npos || dot == std::string_view::npos || dot > unit) return std::nullopt;
  const std::size_t rate_at = line.rfind(' ', unit), slash = line.rfind('/', dot);
  const auto epoch = count_behind(line, "Epoch ");
  if (rate_at == std::string_view::npos || slash == std::string_view::npos || slash == 0 || !epoch)
    return std::nullopt;
  std::size_t from = slash;
  while (from > 0 && is_digit(line[from - 1])) --from;
  const auto step = number_at(line.substr(from, slash - from)), all = number_at(line.substr(slash + 1)),
             rate = number_at(line.substr(rate_at));
  if (!step || !all || !usable(rate) || step->value < 1 || all->value < step->value) return std::nullopt;
  const double number = static_cast<double>(std::min<std::uint64_t>(*epoch, 1000)) * all->value + step->value;
  StepLine told_here = told(LogFormat::lightning, step_number(number), *rate);
  told_here.step.time_ms = kSecond / rate->value;
  told_here.step.of_steps = step_number(all->value);
  return told_here;
}

std::optional<std::string> json_row(std::string_view line, std::vector<std::string>& keys) {
  const Result<JsonValue> object =
      parse_json(line, "", {.max_bytes = 1U << 16, .max_values = 1000, .max_depth = 8});
  if (!object || !object->is_object()) return std::nullopt;
  if (keys.empty())
    for (const JsonValue::Member& member : object->members()) keys.push_back(member.key);
  std::string row;
  // Commas within values become blanks, so that the row can be split at commas. The separator is a control
  // character until then.
  for (const std::string& key : keys) {
    const JsonValue* const value = object->find(key);
    if (value != nullptr && value->is_number()) row += compact_json(*value);
    if (value != nullptr && value->is_text()) row += value->text();
    std::ranges::replace(row, ',', ' ');
    row += '\x1f';
  }
  std::ranges::replace(row, '\x1f', ',');
  return row;
}

// A column of times is required, with steps next to it. A file with steps and a clock but no times is used,
// too.
Result<bool> CsvSteps::header(std::string_view line) {
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (line.find(',') == std::string_view::npos) return false;
  split(line, cells_);
  std::string without_unit;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const std::string name = lower(cells_[i]);
    if (const auto column = time_column(name); column && !time_) {
      time_ = i;
      column_ = *column;
    }
    if (!step_ && time_ != i && is_step_column(name)) step_ = i;
    if (!batch_ && is_batch_column(name)) batch_ = i;
    if (!tflops_ && is_rate_column(name)) tflops_ = i;
    if (is_time_without_unit(name)) without_unit = cells_[i];
    if (!wall_ && is_clock_column(name)) wall_ = i;
  }
  if (!time_ && !without_unit.empty() && step_) {
    return Error::at("", "line 1")
        .found(fmt::format("a column `{}` without a unit", without_unit.substr(0, 60)))
        .expected(fmt::format("`{}_ms` or `{}_s`", without_unit.substr(0, 60), without_unit.substr(0, 60)));
  }
  if (!step_) time_.reset();  // rows are not steps
  // Without times, the wall time of each step is used, as in CSV exports of TensorBoard.
  if (!step_) wall_.reset();
  return active();
}

// A row needs a valid step (if there is a column of steps) and either a time or a clock.
std::optional<StepLine> CsvSteps::row(std::string_view line) {
  split(line, cells_);
  const auto number = [&](std::optional<std::size_t> column) -> std::optional<LoggedNumber> {
    if (!column || *column >= cells_.size()) return std::nullopt;
    return number_at(cells_[*column]);
  };
  const auto time = number(time_), wall = number(wall_), step = number(step_);
  constexpr double kMost = 4e9, kLongest = 1e12;
  // The clock column is in seconds, a date, or an elapsed time.
  const std::string_view when = wall_ && *wall_ < cells_.size() ? cells_[*wall_] : std::string_view{};
  const double clock = time_of_line(when).value_or(when.find(':') < when.size() ? elapsed_s(when) : 0);
  ++rows_;
  if (step_ && (!step || step->value < 0 || step->value > kMost)) return std::nullopt;
  if (time_ ? !usable(time) : clock <= 0 && (!wall || std::abs(wall->value) > kLongest)) return std::nullopt;
  StepLine told;
  told.step.format = LogFormat::csv;
  told.step.step = step ? static_cast<std::uint32_t>(step->value) : rows_;
  if (time) {
    told.step.time_ms = column_.milliseconds(time->value);
    told.half_digit_share = time->half_digit / time->value;
  }
  if (clock > 0)
    told.step.wall_s = clock;
  else if (wall && std::abs(wall->value) <= kLongest)
    told.step.wall_s = wall->value;
  const auto batch = number(batch_), tflops = number(tflops_);
  if (batch && batch->value >= 1 && batch->value < kMost)
    told.step.batch_sequences = static_cast<std::uint32_t>(batch->value);
  if (tflops && tflops->value > 0) told.step.tflops_per_gpu = static_cast<float>(tflops->value);
  return told;
}

}  // namespace stepcast::detail
