// Lines that tell a step, one function per format.
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/logs/detail/log_text.h"
#include "stepcast/logs/training_log.h"

namespace stepcast::detail {

// What one line tells beside the step itself.
struct StepLine {
  LoggedStep step;
  double half_digit_share = 0;  // of the time or rate: half a unit of its last digit over its value
  double memory_GiB = 0, tokens_per_s_per_gpu = 0;
};

// `line` without colours and prefixes. Nothing where the line does not tell the time or rate of a step, broken or of
// another kind.
[[nodiscard]] std::optional<StepLine> megatron_line(std::string_view line);
[[nodiscard]] std::optional<StepLine> megatron_bridge_line(std::string_view line);
[[nodiscard]] std::optional<StepLine> nemo_line(std::string_view line);
[[nodiscard]] std::optional<StepLine> torchtitan_line(std::string_view line);
[[nodiscard]] std::optional<StepLine> deepspeed_line(std::string_view line);
[[nodiscard]] std::optional<StepLine> deepspeed_pipeline_line(std::string_view line);
[[nodiscard]] std::optional<StepLine> progress_bar_line(std::string_view line);

}  // namespace stepcast::detail
