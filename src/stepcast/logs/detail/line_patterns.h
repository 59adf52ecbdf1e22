// Lines that tell a step by names and figures: a row for the line of each framework, in the words of that line
// (tables/line_patterns.json).
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

// The texts of a line. Its number stands behind a text, or before it where the text begins with '#' ("# ms"). "A*B" is the last
// A before the first B. Of several texts with '|' between them the first one with a number that can be counts.
struct LinePattern {
  LogFormat format{};
  std::string_view marker{};  // in lower case; a line that holds one of these is such a line,
  std::string_view also{};    // if it holds this,
  std::string_view unless{};  // and tells no step with one of these
  std::string_view step{};    // number of the step; empty: the line has none
  std::string_view epoch{},
      of{};  // where steps begin anew with every epoch: its number, and the steps in one
  // What a step takes: one of these, or without them one of the two rates. tqdm prints "1.2s/it" or "1.3it/s"; `work` is the
  // tokens of a step and `work_per_s` their rate; `mean` and `mean_per_s` are over all steps of the run until then.
  std::string_view ms{}, seconds{}, tqdm{}, per_second{}, work{}, work_per_s{}, mean_seconds{}, mean_per_s{};
  std::string_view tokens_per_s_per_gpu{}, samples_per_s{};
  std::string_view batch{}, tflops{}, memory{};  // sequences; of a GPU; GiB or bytes
  bool has_letters = false;                      // thousands as in "2.17K", numbers as in "np.float64(51.2)"
  bool is_common = false;  // other lines hold the marker, too: one without these numbers is not broken

  MultiPatternMatcher::Found markers{};  // bit i: it has marker i of all patterns
};

struct LinePatterns {
  std::vector<LinePattern> rows;
  std::vector<std::string_view> markers;  // of all rows
};
[[nodiscard]] const LinePatterns& line_patterns();

// `line` without colours and prefixes. Nothing where it does not tell the time or rate of a step.
[[nodiscard]] std::optional<StepLine> patterned_line(const LinePattern& pattern, std::string_view line);

}  // namespace stepcast::detail
