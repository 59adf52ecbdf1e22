#include "stepcast/logs/detail/step_lines.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/text.h"
#include "stepcast/base/units.h"
#include "stepcast/logs/detail/step_columns.h"

namespace stepcast::detail {

namespace {

constexpr double kSecond = 1e3;  // in milliseconds

std::uint32_t small(std::optional<std::uint64_t> count) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(count.value_or(0), kMost));
}

float rate_behind(std::string_view line, std::string_view key) {
  const auto number = number_behind(line, key);
  constexpr double kMost = 1e12;
  return number && number->value > 0 && number->value < kMost ? static_cast<float>(number->value) : 0;
}

// A time or rate above 0; times beyond any step are none.
bool usable(const std::optional<LoggedNumber>& number) {
  constexpr double kLeast = 1e-9, kMost = 1e12;
  return number && number->value > kLeast && number->value < kMost;
}

// "12.34GiB", "38.49GB" (2^30, too), or bytes.
double memory_behind(std::string_view line, std::string_view key) {
  const auto number = number_behind(line, key);
  if (!number || number->value <= 0) return 0;
  constexpr double kBytesFrom = 1e6;
  return number->value >= kBytesFrom ? number->value / kGiB : number->value;
}

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

}  // namespace

std::optional<StepLine> megatron_line(std::string_view line) {
  const auto milliseconds = number_behind(line, "elapsed time per iteration (ms)");
  // Megatron-DeepSpeed of 2021 and 2022 tells seconds.
  const auto time = milliseconds ? milliseconds : number_behind(line, "elapsed time per iteration (s)");
  const auto step = count_behind(line, "iteration ");
  if (!usable(time) || !step) return std::nullopt;
  StepLine told_here = told(LogFormat::megatron, small(step), *time);
  told_here.step.time_ms = time->value * (milliseconds ? 1 : kSecond);
  // Also as a public fork spells it.
  const auto batch = count_behind(line, "global batch size");
  told_here.step.batch_sequences = small(batch ? batch : count_behind(line, "gloabl batch size"));
  const float tflops = rate_behind(line, "(TFLOP/s/GPU)");
  told_here.step.tflops_per_gpu = tflops > 0 ? tflops : rate_behind(line, "TFLOPs:");
  told_here.tokens_per_s_per_gpu = rate_behind(line, "tokens per gpu per second (tgs)");
  return told_here;
}

std::optional<StepLine> megatron_bridge_line(std::string_view line) {
  const auto time = number_behind(line, "Step Time");
  if (!usable(time)) return std::nullopt;
  StepLine told_here = told(LogFormat::megatron_bridge, 0, *time);
  told_here.step.time_ms = time->value * kSecond;
  told_here.step.tflops_per_gpu = rate_behind(line, "GPU utilization");
  return told_here;
}

std::optional<StepLine> nemo_line(std::string_view line) {
  const auto time = number_behind(line, "train_step_timing in s");
  auto step = count_behind(line, "global_step");
  if (!step) step = count_behind(line, "iteration ");
  if (!step) {  // a bar: "45/99 ["
    const std::size_t bracket = line.find(" [");
    const std::size_t slash = bracket == std::string_view::npos ? bracket : line.rfind('/', bracket);
    if (slash != std::string_view::npos && slash > 0) {
      std::size_t from = slash;
      while (from > 0 && is_digit(line[from - 1])) --from;
      if (const auto number = number_at(line.substr(from, slash - from)))
        step = static_cast<std::uint64_t>(std::max(0.0, number->value));
    }
  }
  if (!usable(time) || !step) return std::nullopt;
  StepLine told_here = told(LogFormat::nemo, small(step), *time);
  told_here.step.time_ms = time->value * kSecond;
  told_here.step.batch_sequences = small(count_behind(line, "global_batch_size"));
  told_here.step.tflops_per_gpu = rate_behind(line, "TFLOPS_per_GPU");
  told_here.memory_GiB = memory_behind(line, "max_memory_reserved");
  told_here.tokens_per_s_per_gpu = rate_behind(line, "tokens_per_sec_per_gpu");
  return told_here;
}

std::optional<StepLine> torchtitan_line(std::string_view line) {
  auto rate = number_behind(line, " tps:");
  if (!rate) rate = number_behind(line, " wps:");
  const auto step = count_behind(line, "step:");
  if (!usable(rate) || !step) return std::nullopt;
  StepLine told_here = told(LogFormat::torchtitan, small(step), *rate);
  told_here.step.rate = static_cast<float>(rate->value);
  told_here.tokens_per_s_per_gpu = rate->value;
  told_here.step.tflops_per_gpu = rate_behind(line, "tflops:");
  told_here.memory_GiB = memory_behind(line, "memory:");
  return told_here;
}

std::optional<StepLine> deepspeed_line(std::string_view line) {
  const auto rate = number_behind(line, "CurrSamplesPerSec");
  auto step = count_behind(line, "global_step");
  if (!step) {  // "] 0/20, RunningAvg"
    const std::size_t end = line.find(", RunningAvgSamplesPerSec");
    const std::size_t slash = end == std::string_view::npos ? end : line.rfind('/', end);
    if (slash != std::string_view::npos) {
      if (const auto number = number_at(line.substr(slash + 1, end - slash - 1));
          number && number->value >= 0)
        step = static_cast<std::uint64_t>(number->value);
    }
  }
  if (!usable(rate) || !step) return std::nullopt;
  StepLine told_here = told(LogFormat::deepspeed, small(step), *rate);
  told_here.step.rate = static_cast<float>(rate->value);
  told_here.memory_GiB = memory_behind(line, "MaxMemAllocated");
  return told_here;
}

std::optional<StepLine> deepspeed_pipeline_line(std::string_view line) {
  const auto time = number_behind(line, "iter time (s)");
  const auto step = count_behind(line, "steps:");
  if (!usable(time) || !step) return std::nullopt;
  StepLine told_here = told(LogFormat::deepspeed_pipeline, small(step), *time);
  told_here.step.time_ms = time->value * kSecond;
  if (const float samples = rate_behind(line, "samples/sec"); samples > 0) {
    constexpr double kHalf = 0.5;
    told_here.step.batch_sequences =
        small(static_cast<std::uint64_t>(std::min(1e9, time->value * static_cast<double>(samples) + kHalf)));
  }
  return told_here;
}

namespace {

// Whose bar it is, by what stands before and behind.
LogFormat bar_format(std::string_view line) {
  const std::size_t percent = line.find("%|");
  const std::string_view before = line.substr(0, std::min(percent, line.size()));
  if (before.find("Epoch ") != std::string_view::npos && before.find(':') != std::string_view::npos)
    return LogFormat::lightning;
  return before.find("|Loss:") != std::string_view::npos ? LogFormat::torchtune : LogFormat::huggingface;
}

// Seconds of "0:03:20" and "1 day 2:03:20", as Python prints what has passed.
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

// " 12%|#2  | 120/1000 [04:00<29:20,  2.00s/it]"
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
  const LogFormat format = bar_format(line);
  StepLine told_here = told(format, small(static_cast<std::uint64_t>(step->value)), *rate);
  told_here.step.time_ms = unit < inverse ? rate->value * kSecond : kSecond / rate->value;
  told_here.step.of_steps = small(static_cast<std::uint64_t>(all->value));
  // Time since the bar began, "[1:04:00<": of several bars the longest is the training.
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
  // Lightning begins anew in every epoch.
  if (const auto epoch = count_behind(line, "Epoch "); epoch && format == LogFormat::lightning)
    told_here.step.step = small(static_cast<std::uint64_t>(
        static_cast<double>(std::min<std::uint64_t>(*epoch, 1000)) * all->value + step->value));
  return told_here;
}

// "Epoch 0/9 ━━━━━━━━━ 100/1000 0:03:20 • 0:30:00 0.50it/s v_num: 0.000", of Lightning with Rich.
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
  StepLine told_here = told(LogFormat::lightning, small(static_cast<std::uint64_t>(number)), *rate);
  told_here.step.time_ms = kSecond / rate->value;
  told_here.step.of_steps = small(static_cast<std::uint64_t>(all->value));
  return told_here;
}

std::optional<std::string> json_row(std::string_view line, std::vector<std::string>& keys) {
  const Result<JsonValue> object =
      parse_json(line, "", {.max_bytes = 1U << 16, .max_values = 1000, .max_depth = 8});
  if (!object || !object->is_object()) return std::nullopt;
  if (keys.empty())
    for (const JsonValue::Member& member : object->members()) keys.push_back(member.key);
  std::string row;
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
    if (!step_ && is_step_column(name)) step_ = i;
    if (!batch_ && is_batch_column(name)) batch_ = i;
    if (!tflops_ && is_rate_column(name)) tflops_ = i;
    if (is_time_without_unit(name)) without_unit = cells_[i];
    if (!wall_ && is_clock_column(name)) wall_ = i;
  }
  if (!time_ && !without_unit.empty() && step_) {
    return Error::at("", "line 1")
        .found(fmt::format("a column `{}`, which names no unit", without_unit.substr(0, 60)))
        .expected(fmt::format("`{}_ms` or `{}_s`", without_unit.substr(0, 60), without_unit.substr(0, 60)));
  }
  if (!step_) time_.reset();  // rows that are no steps
  // Without times: when each step was written, as TensorBoard's own export has it.
  if (!step_) wall_.reset();
  return active();
}

std::optional<StepLine> CsvSteps::row(std::string_view line) {
  split(line, cells_);
  const auto number = [&](std::optional<std::size_t> column) -> std::optional<LoggedNumber> {
    if (!column || *column >= cells_.size()) return std::nullopt;
    return number_at(cells_[*column]);
  };
  const auto time = number(time_), wall = number(wall_), step = number(step_);
  constexpr double kMost = 4e9, kLongest = 1e12;
  // Seconds, a date, or what has passed.
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
