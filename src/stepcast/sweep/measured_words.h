// Parses a measured step time that is given together with its layout, as in `--measured "gpus=64 tp=8
// pp=2=4120"`.
#pragma once

#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// A measured step: the job that was measured and its step time in milliseconds.
struct SaidStep {
  Job job;
  double step_time_ms = 0;
  // True if the text gives no layout: the time belongs to the job that is being forecast.
  bool is_asked = true;
};

// Parses `text`: a layout, then `=`, then the measured time. The layout is a list of sweep keys
// (sweep_keys.h) separated by blanks, each `key=value` or a key alone (a switch). The time is in milliseconds
// unless it ends in `s`. Without a layout, the time belongs to `asked`. Settings that the text leaves out are
// taken from `asked`. Errors: no time or a time that is not above 0, an unknown key, a key that does not
// describe a layout (another platform, a what-if, prices).
[[nodiscard]] Result<SaidStep> parse_measured_words(std::string_view text, const Job& asked);

}  // namespace stepcast
