// Progress bars and table rows that contain a step. Lines with names and numbers are in line_patterns.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/logs/detail/log_text.h"
#include "stepcast/logs/detail/step_columns.h"
#include "stepcast/logs/training_log.h"

namespace stepcast::detail {

// The result of reading one line or row: a step, and more about the run.
struct StepLine {
  LoggedStep step;
  // Relative rounding error of the time or rate: half a unit of the last digit over the value.
  double half_digit_share = 0;
  // Peak memory in GiB; tokens per second and GPU; 0: not printed.
  double memory_GiB = 0, tokens_per_s_per_gpu = 0;
  // Mean time in ms of all steps of the run so far, for lines that print it instead of the time of the step;
  // 0: not printed.
  double mean_ms = 0;
};

// A step number as it is stored: clamped to [0, 4e9].
[[nodiscard]] std::uint32_t step_number(double value);
// True for a valid time, rate or size: above 1e-9 and below 1e12.
[[nodiscard]] bool is_figure(double value);

// Read a progress bar of tqdm or of Rich. `line` has no colours and prefixes. Empty if it does not contain a
// time or rate per step, is incomplete, or belongs to another kind of bar.
[[nodiscard]] std::optional<StepLine> progress_bar_line(std::string_view line);
[[nodiscard]] std::optional<StepLine> rich_bar_line(std::string_view line);

// Step times in a CSV file with a column of steps and one of times, as users write it or W&B and TensorBoard
// export it.

class CsvSteps {
 public:
  // Reads the first line of a file. Returns whether it is a header with a column of step times. Error: a
  // column of step times without a unit.
  [[nodiscard]] Result<bool> header(std::string_view line);
  // True if rows can be read.
  [[nodiscard]] bool active() const { return time_ || wall_; }
  // Reads a row. Empty if a number is missing or out of range.
  [[nodiscard]] std::optional<StepLine> row(std::string_view line);

 private:
  // Positions of the columns; none: there is no such column.
  std::optional<std::size_t> step_, time_, wall_, batch_, tflops_;
  TimeColumn column_;
  // Number of rows read, which replaces missing step numbers.
  std::uint32_t rows_ = 0;
  std::vector<std::string_view> cells_;
};

// A JSON object as a row of a table, with one cell for each of `keys`. The first line sets the keys. Empty if
// the line is not a JSON object.
[[nodiscard]] std::optional<std::string> json_row(std::string_view line, std::vector<std::string>& keys);

}  // namespace stepcast::detail
