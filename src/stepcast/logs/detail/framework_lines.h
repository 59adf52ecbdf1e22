// Lines of frameworks that tell a step as a list of names and figures: a row of a table each, and the few that need a
// line before.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "stepcast/logs/detail/step_lines.h"

namespace stepcast::detail {

class FrameworkLines {
 public:
  // `line` without colours and prefixes. Nothing where it tells no step; `broken` then says whether it begins as one.
  [[nodiscard]] std::optional<StepLine> take(std::string_view line, bool& broken);

 private:
  // "step:20/1390 train_time:2846ms": the time since the line before, once it has enough digits.
  [[nodiscard]] std::optional<StepLine> running_total(std::string_view line);
  // "[step=20/1000,epoch=1]", then a line for every figure (OLMo, OLMo-core).
  [[nodiscard]] std::optional<StepLine> olmo(std::string_view line);

  std::optional<double> total_ms_;
  std::uint32_t total_step_ = 0, olmo_step_ = 0;
  double olmo_wall_s_ = 0;
};

}  // namespace stepcast::detail
