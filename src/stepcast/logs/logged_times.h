// Robust step times of a training log, and what interrupted the steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/logs/training_log.h"

namespace stepcast {

// The amount of work per step, which converts rates to times. Known from settings or flags.
struct LoggedWork {
  // A value is only a default, so it must not be used to contradict the times of the log.
  bool is_assumed = false;
  // Sequences and tokens of a step of the whole job.
  std::optional<double> samples_per_step, tokens_per_step;
  std::optional<double> n_gpus;
  std::optional<std::int64_t> evaluation_interval, checkpoint_interval;  // in steps
};

// A stretch that took longer than the steps around it.
struct LoggedStall {
  std::uint32_t step = 0;  // the step that stalled, or the step after the gap
  // Line of the log, from 1.
  std::uint32_t line = 0;
  double lost_ms = 0;               // time beyond the usual length of the steps
  LogEvent cause = LogEvent::none;  // likely cause; none: unknown
  bool between_steps = false;       // between steps, seen on the clock only
};

// A restart: the last step before it, the first step after it, and the line of the latter.
struct LoggedRestart {
  std::uint32_t last_step = 0, next_step = 0;  // before and after the restart
  std::uint32_t line = 0;
};

// A lasting change of the step time. It is valid until the next change.
struct LoggedChange {
  std::uint32_t step = 0, line = 0;
  double before_ms = 0, after_ms = 0;  // medians of the stretches before and after it
};

// Two step times in one log that differ by more than 10 %.
struct LoggedContradiction {
  // Step time in ms by the lines, and by the other source.
  double lines_ms = 0, other_ms = 0;
  std::string other;  // the other source: "the times of day of the lines"
};

// The result for one log. Times are in milliseconds per step.
struct LoggedTimes {
  LogFormat format = LogFormat::megatron;
  bool from_clock = false;  // step times are differences of the times of day
  // The times of day of the lines, or the clock of a progress bar, agree with the step times within 10 %.
  bool confirmed = false;
  // The step time is then that of the clock. If tokens per second contradict it, there is no step time,
  // because the log does not show which of the two is wrong.
  std::optional<LoggedContradiction> contradiction;
  bool whole_run = false;  // one mean over the run, which includes evaluation and saving
  // If not empty, the reason why there are rates but no times (median_ms and the other times are 0): the work
  // per step is not known, and the lines have no time of day.
  std::string why_no_time;
  std::uint64_t n = 0;  // number of step times used: without warm-up and stalls
  // First and last step of the log.
  std::uint32_t first_step = 0, last_step = 0;
  double steps_per_line = 1;  // number of steps that one time is the mean of
  // Over the steps of the longest stretch without warm-up and stalls.
  double median_ms = 0, p10_ms = 0, p90_ms = 0;
  double mean_ms = 0;  // mean over all steps except warm-up, with stalls
  // How much slower the end of the stretch is than its start, in percent of the median (Theil-Sen slope).
  // Empty if there are too few times.
  std::optional<double> trend_percent;
  // Numbers of records left out, by reason.
  std::uint64_t warm_up = 0, duplicates = 0, other_batches = 0, earlier_settings = 0;
  // Lasting changes of the step time. The reported times are those of the longest stretch between changes.
  std::vector<LoggedChange> changes;
  std::uint32_t stretch_first_step = 0, stretch_last_step = 0;
  std::uint64_t other_stretches = 0;  // number of times in other stretches, left out
  std::vector<LoggedRestart> restarts;
  std::vector<LoggedStall> stalls;  // in the order of the log
  // Medians; 0: not printed and not known.
  double tflops_per_gpu = 0, tokens_per_s_per_gpu = 0, samples_per_s = 0;
  std::uint32_t batch_sequences = 0;  // batch size of the steps used; 0: not printed
};

// Analyses the steps of a log. Error: no step is left after leaving out warm-up.
[[nodiscard]] Result<LoggedTimes> logged_times(const TrainingLog& log, const LoggedWork& work = {});

// The name of a cause in JSON output; "unknown" for none.
[[nodiscard]] std::string_view to_string(LogEvent cause);
// The text for messages: "the lines say 2.5 ms a step, the times of day of the lines 2,500.0 ms: the clock
// counts".
[[nodiscard]] std::string contradiction_text(const LoggedContradiction& contradiction);

}  // namespace stepcast
