// What columns of tables and scalars of TensorBoard are called that tell steps, their times and their batch.
#pragma once

#include <optional>
#include <string_view>

namespace stepcast::detail {

struct TimeColumn {
  double unit = 1;       // in milliseconds
  bool is_rate = false;  // steps per `unit`
  [[nodiscard]] double milliseconds(double value) const { return is_rate ? unit / value : unit * value; }
};

// Names in lower case, with what W&B ("run-7 - ") and sections ("train/") put before them.
[[nodiscard]] std::optional<TimeColumn> time_column(std::string_view name);
[[nodiscard]] bool is_time_without_unit(std::string_view name);
[[nodiscard]] bool is_step_column(std::string_view name);
[[nodiscard]] bool is_batch_column(std::string_view name);
[[nodiscard]] bool is_rate_column(std::string_view name);   // FLOPs of a GPU
[[nodiscard]] bool is_clock_column(std::string_view name);  // seconds since some moment

}  // namespace stepcast::detail
