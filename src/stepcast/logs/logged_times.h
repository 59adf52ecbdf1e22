// What the steps of a training log took: robustly, and what was no step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/logs/training_log.h"

namespace stepcast {

// What a log does not say of its steps, where somebody else knows: rates become times by it.
struct LoggedWork {
  bool is_assumed = false;  // neither settings nor flags say it: it contradicts no time
  std::optional<double> samples_per_step, tokens_per_step;
  std::optional<double> n_gpus;
  std::optional<std::int64_t> evaluation_interval, checkpoint_interval;  // in steps
};

// A stretch that took longer than the steps around it.
struct LoggedStall {
  std::uint32_t step = 0;  // that it belongs to, or before which it lies
  std::uint32_t line = 0;
  double lost_ms = 0;               // beyond steps of the usual length
  LogEvent cause = LogEvent::none;  // the likely one; none: not known
  bool between_steps = false;       // the times of steps do not hold it: the clock does
};

struct LoggedRestart {
  std::uint32_t last_step = 0, next_step = 0;  // before and behind
  std::uint32_t line = 0;
};

// From here on steps take another time than before, until the next change.
struct LoggedChange {
  std::uint32_t step = 0, line = 0;
  double before_ms = 0, after_ms = 0;  // medians
};

// Two times of a step that a log tells, more than 10 % from each other.
struct LoggedContradiction {
  double lines_ms = 0, other_ms = 0;
  std::string other;  // what tells the other: "the times of day of the lines"
};

struct LoggedTimes {
  LogFormat format = LogFormat::megatron;
  bool from_clock = false;  // times are the distances of the lines in time
  bool confirmed = false;   // the times of day of the lines (the clock of a bar) say the same within 10 %
  // The step is the one of the clock then. Of tokens per second, which leave open which of the two is wrong, there is no time.
  std::optional<LoggedContradiction> contradiction;
  bool whole_run = false;  // one mean of all, evaluation and saving included
  // Not empty: why there are rates alone and no times (median_ms and the like are 0): nothing says how much work a step
  // is, and the lines carry no time of day.
  std::string why_no_time;
  std::uint64_t n = 0;  // times that count: neither warm-up nor stalls
  std::uint32_t first_step = 0, last_step = 0;
  double steps_per_line = 1;  // a time is the mean of so many steps
  double median_ms = 0, p10_ms = 0, p90_ms = 0;
  double mean_ms = 0;  // of all steps but warm-up, stalls included
  // How much slower the end is than the begin, of the median (Theil and Sen); nothing: too few times to tell.
  std::optional<double> trend_percent;
  std::uint64_t warm_up = 0, duplicates = 0, other_batches = 0, earlier_settings = 0;  // left out
  // Where a run changes its speed for good. The times are those of its longest stretch.
  std::vector<LoggedChange> changes;
  std::uint32_t stretch_first_step = 0, stretch_last_step = 0;
  std::uint64_t other_stretches = 0;  // times of the other ones, left out
  std::vector<LoggedRestart> restarts;
  std::vector<LoggedStall> stalls;                                         // in the order of the log
  double tflops_per_gpu = 0, tokens_per_s_per_gpu = 0, samples_per_s = 0;  // medians; 0: not told
  std::uint32_t batch_sequences = 0;  // of the steps that count; 0: not told
};

// Errors: no step is left.
[[nodiscard]] Result<LoggedTimes> logged_times(const TrainingLog& log, const LoggedWork& work = {});

[[nodiscard]] std::string_view to_string(LogEvent cause);
// "the lines say 2.5 ms a step, the times of day of the lines 2,500.0 ms: the clock counts".
[[nodiscard]] std::string contradiction_text(const LoggedContradiction& contradiction);

}  // namespace stepcast
