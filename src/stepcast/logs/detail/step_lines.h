// Progress bars and rows of tables that tell a step. Lines of names and figures are line_patterns.h.
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

// What one line tells beside the step itself.
struct StepLine {
  LoggedStep step;
  double half_digit_share = 0;  // of the time or rate: half a unit of its last digit over its value
  double memory_GiB = 0, tokens_per_s_per_gpu = 0;
  double mean_ms = 0;  // of all steps of the run until then, instead of the time of the step; 0: not told
};

// The number of a step as a step has it: from 0 on, and as far as it can count.
[[nodiscard]] std::uint32_t step_number(double value);
// Whether a time, rate or size is one: above 0, and not beyond that of any step.
[[nodiscard]] bool is_figure(double value);

// `line` without colours and prefixes. Nothing where the line does not tell the time or rate of a step, broken or of
// another kind.
[[nodiscard]] std::optional<StepLine> progress_bar_line(std::string_view line);
[[nodiscard]] std::optional<StepLine> rich_bar_line(std::string_view line);

// Step times in a CSV file: a column of steps and one of times, as people and W&B or TensorBoard export them.

class CsvSteps {
 public:
  // The first line of a file: whether it is a header with a column that tells step times. Errors: such a column that
  // names no unit.
  [[nodiscard]] Result<bool> header(std::string_view line);
  [[nodiscard]] bool active() const { return time_ || wall_; }
  // A row; nothing where a number is missing.
  [[nodiscard]] std::optional<StepLine> row(std::string_view line);

 private:
  std::optional<std::size_t> step_, time_, wall_, batch_, tflops_;
  TimeColumn column_;
  std::uint32_t rows_ = 0;
  std::vector<std::string_view> cells_;
};

// A line of JSON as a row of a table, a cell for each of `keys`, which the first line sets; nothing if it is none.
[[nodiscard]] std::optional<std::string> json_row(std::string_view line, std::vector<std::string>& keys);

}  // namespace stepcast::detail
