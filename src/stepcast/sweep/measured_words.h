// A step that was measured, in words beside a job: "gpus=64 tp=8 pp=2=4120".
#pragma once

#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

struct SaidStep {
  Job job;
  double step_time_ms = 0;
  bool is_asked = true;  // no words: the step that is asked for
};

// `text`: words of a layout as keys of sweeps have them (sweep_keys.h), `key=value` or a key alone, with blanks between them,
// and behind the last `=` the time, in milliseconds unless it ends in `s`; that alone is of the step that is asked for. What
// it does not say is as `asked` has it. Errors: no time, a key that is none, one that says nothing of a step (another
// platform, what-ifs, prices).
[[nodiscard]] Result<SaidStep> parse_measured_words(std::string_view text, const Job& asked);

}  // namespace stepcast
