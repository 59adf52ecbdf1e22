// Names of the columns of tables, and of the scalars of TensorBoard, that contain steps, step times and batch
// sizes.
#pragma once

#include <optional>
#include <string_view>

namespace stepcast::detail {

// How values of a column are converted to the time of a step.
struct TimeColumn {
  double unit = 1;       // milliseconds
  bool is_rate = false;  // the value is in steps per `unit`
  // The time of a step in ms for a value of the column.
  [[nodiscard]] double milliseconds(double value) const { return is_rate ? unit / value : unit * value; }
};

// All names are given in lower case. A prefix of W&B ("run-7 - ") or of a section ("train/") is ignored.
// Empty if the column is not a step time or a rate of steps.
[[nodiscard]] std::optional<TimeColumn> time_column(std::string_view name);
// A column of times without a unit in its name.
[[nodiscard]] bool is_time_without_unit(std::string_view name);
// Columns with the step number and with the batch size in sequences.
[[nodiscard]] bool is_step_column(std::string_view name);
[[nodiscard]] bool is_batch_column(std::string_view name);
[[nodiscard]] bool is_rate_column(std::string_view name);   // FLOP/s of a GPU
[[nodiscard]] bool is_clock_column(std::string_view name);  // seconds since some moment

}  // namespace stepcast::detail
