// Patterns for log lines that describe a step with names and numbers. Each row of tables/line_patterns.json
// describes one kind of line of one framework.
//
//   {"format": "maxtext", "marker": "completed step:", "step": "completed step:", "seconds": "seconds:", "has_letters": true}
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "stepcast/logs/detail/log_text.h"
#include "stepcast/logs/detail/step_lines.h"
#include "stepcast/logs/training_log.h"

namespace stepcast::detail {

// The texts of one row. The number is after a text, or in front of it if the text begins with '#' ("# ms").
// "A*B" means the last A in front of the first B. Several texts are separated by '|'; the first one with a
// valid number is used.
struct LinePattern {
  LogFormat format{};
  std::string_view marker{};  // lower case; a line of this kind contains one of these texts
  std::string_view also{};    // and also contains this text, if not empty
  std::string_view unless{};  // and contains none of these texts
  std::string_view step{};    // number of the step; empty: the line has no step number
  // For frameworks that restart the count in every epoch: the number of the epoch, and the steps per epoch.
  std::string_view epoch{}, of{};
  // The duration of a step: one of these fields, or only one of the two rates below. `tqdm` is "1.2s/it" or
  // "1.3it/s". `work` is the number of tokens of a step and `work_per_s` their rate. `mean_seconds` and
  // `mean_per_s` are means over all steps so far.
  std::string_view ms{}, seconds{}, tqdm{}, per_second{}, work{}, work_per_s{}, mean_seconds{}, mean_per_s{};
  // Rates: tokens per second and GPU, samples per second of the whole job.
  std::string_view tokens_per_s_per_gpu{}, samples_per_s{};
  // Batch in sequences; TFLOP/s per GPU; peak memory of a GPU in GiB, or in bytes if the number is large.
  std::string_view batch{}, tflops{}, memory{};
  bool has_letters = false;  // numbers as "2.17K" or "np.float64(51.2)"
  // Other lines contain the marker, too. A line without valid numbers is then not counted as broken.
  bool is_common = false;

  MultiPatternMatcher::Found markers{};  // bit i: the row has marker i of LinePatterns::markers
};

// All rows, and the markers of all rows in one list.
struct LinePatterns {
  std::vector<LinePattern> rows;
  std::vector<std::string_view> markers;  // lower case, of all rows
};
// The table, read on first use.
[[nodiscard]] const LinePatterns& line_patterns();

// Applies a pattern to `line`, which has no colours and prefixes. Empty if the line contains neither the time
// nor the rate of a step.
[[nodiscard]] std::optional<StepLine> patterned_line(const LinePattern& pattern, std::string_view line);

}  // namespace stepcast::detail
