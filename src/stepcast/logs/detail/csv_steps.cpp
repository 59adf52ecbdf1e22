#include "stepcast/logs/detail/csv_steps.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/text.h"

namespace stepcast::detail {
namespace {

constexpr double kSecondMs = 1e3, kMicrosecondMs = 1e-3;  // in milliseconds

// Names of columns, in lower case, and what one unit of them is; W&B puts "RUN - " before.
constexpr std::pair<std::string_view, double> kTimes[] = {
    {"step_time_ms", 1},
    {"iter_time_ms", 1},
    {"iteration_time_ms", 1},
    {"ms_per_step", 1},
    {"ms_per_iter", 1},
    {"time_per_step_ms", 1},
    {"elapsed time per iteration (ms)", 1},
    {"elapsed_time_per_iteration_ms", 1},
    {"step time (ms)", 1},
    {"iteration time (ms)", 1},
    {"step_time_us", kMicrosecondMs},
    {"step_time_s", kSecondMs},
    {"iter_time_s", kSecondMs},
    {"iteration_time_s", kSecondMs},
    {"step_time_seconds", kSecondMs},
    {"seconds_per_step", kSecondMs},
    {"sec_per_step", kSecondMs},
    {"s_per_step", kSecondMs},
    {"step time (s)", kSecondMs},
    {"iteration time (s)", kSecondMs},
    {"train_step_timing in s", kSecondMs},
    {"iteration-time", kSecondMs},  // Megatron's tag
    {"iteration-time/iteration-time", kSecondMs},
};
constexpr std::string_view kWithoutUnit[] = {"step_time", "iter_time", "iteration_time", "step time",
                                             "iteration time"};
constexpr std::string_view kSteps[] = {"step",  "iteration",   "iter",    "global_step",
                                       "_step", "global step", "batch_id"};
constexpr std::string_view kBatches[] = {"global_batch_size", "global_batch_sequences", "batch_size",
                                         "global batch size"};
constexpr std::string_view kRates[] = {"tflops_per_gpu", "tflop/s/gpu", "tflops"};

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

bool is_column(const std::string& column, std::string_view name) {
  return column == name || column.ends_with(" - " + std::string{name});
}

template <class Names>
bool is_one_of(const std::string& column, const Names& names) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](std::string_view name) { return is_column(column, name); });
}

}  // namespace

Result<bool> CsvSteps::header(std::string_view line) {
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (line.find(',') == std::string_view::npos) return false;
  split(line, cells_);
  std::string without_unit;
  std::optional<std::size_t> value;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const std::string name = lower(cells_[i]);
    for (const auto& [known, scale] : kTimes) {
      if (time_ || !is_column(name, known)) continue;
      time_ = i;
      scale_ = scale;
    }
    if (!step_ && is_one_of(name, kSteps)) step_ = i;
    if (!batch_ && is_one_of(name, kBatches)) batch_ = i;
    if (!tflops_ && is_one_of(name, kRates)) tflops_ = i;
    if (is_one_of(name, kWithoutUnit)) without_unit = cells_[i];
    if (name == "wall time" || name == "_timestamp") wall_ = i;
    if (name == "value") value = i;
  }
  if (!time_ && !without_unit.empty() && step_) {
    return Error::at("", "line 1")
        .found(fmt::format("a column `{}`, which names no unit", without_unit.substr(0, 60)))
        .expected(fmt::format("`{}_ms` or `{}_s`", without_unit.substr(0, 60), without_unit.substr(0, 60)));
  }
  if (!step_) time_.reset();  // rows that are no steps
  // TensorBoard's own export: when each step was written.
  if (!time_ && !(wall_ && step_ && value)) wall_.reset();
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
  ++rows_;
  if (step_ && (!step || step->value < 0 || step->value > kMost)) return std::nullopt;
  if (time_ ? !time || time->value <= 0 || time->value > kLongest : !wall) return std::nullopt;
  StepLine told;
  told.step.format = LogFormat::csv;
  told.step.step = step ? static_cast<std::uint32_t>(step->value) : rows_;
  if (time) {
    told.step.time_ms = time->value * scale_;
    told.half_digit_share = time->half_digit / time->value;
  }
  if (wall) told.step.wall_s = wall->value;
  const auto batch = number(batch_), tflops = number(tflops_);
  if (batch && batch->value >= 1 && batch->value < kMost)
    told.step.batch_sequences = static_cast<std::uint32_t>(batch->value);
  if (tflops && tflops->value > 0) told.step.tflops_per_gpu = static_cast<float>(tflops->value);
  return told;
}

}  // namespace stepcast::detail
