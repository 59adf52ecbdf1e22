// Step times in a CSV file: a column of steps and one of times, as people and W&B or TensorBoard export them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/logs/detail/step_lines.h"

namespace stepcast::detail {

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
  double scale_ = 1;  // to milliseconds
  std::uint32_t rows_ = 0;
  std::vector<std::string_view> cells_;
};

}  // namespace stepcast::detail
