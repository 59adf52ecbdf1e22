// Parsers for log lines that describe a step only together with earlier lines. Lines that are complete on
// their own are described by patterns (line_patterns.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/logs/detail/settings_blocks.h"
#include "stepcast/logs/detail/step_lines.h"

namespace stepcast::detail {

// State of these parsers. One object reads one log, in order.
class FrameworkLines {
 public:
  // Reads a line without colours and prefixes. Empty if the line does not complete the time of a step.
  [[nodiscard]] std::optional<StepLine> take(std::string_view line);
  // For a line with the mean over all steps so far: the mean time of the steps since the previous line of
  // this kind.
  [[nodiscard]] std::optional<StepLine> since_line_before(const StepLine& told);

 private:
  // Mean time in ms of the steps since the last total. `total_ms` is the total so far, `half_ms` half a unit
  // of its last digit. Empty until the difference has enough digits.
  [[nodiscard]] std::optional<StepLine> since_total(LogFormat format, std::uint32_t step, double total_ms,
                                                    double half_ms);
  // modded-nanogpt: "step:20/1390 train_time:2846ms", a running total.
  [[nodiscard]] std::optional<StepLine> running_total(std::string_view line);
  // LitGPT: "Epoch 1 | iter 32 step 4 | ... | iter time: 345.67 ms (step)". One step is several iterations.
  [[nodiscard]] std::optional<StepLine> litgpt(std::string_view line);
  // Keras: "Epoch 2/5", then "100/1000 ... 30:37 2s/step". The remaining time of the epoch has more digits
  // than the step time.
  [[nodiscard]] std::optional<StepLine> keras(std::string_view line);
  // NeMo RL: "==== Step 5/100 ====", followed by "Total step time: 51.20s".
  [[nodiscard]] std::optional<StepLine> nemo_rl(std::string_view line);
  // OLMo and OLMo-core: "[step=20/1000,epoch=1]", followed by one line per metric.
  [[nodiscard]] std::optional<StepLine> olmo(std::string_view line);

  // The last running total in ms, and its step.
  std::optional<double> total_ms_;
  std::uint32_t total_step_ = 0, olmo_step_ = 0, rl_step_ = 0;
  double keras_epoch_ = 0, litgpt_iteration_ = 0, litgpt_step_ = 0;
  // Seconds since 1970 of the last "[step=" line; 0: not printed.
  double olmo_wall_s_ = 0;
};

// Reads result logs of MLPerf: ":::MLLOG {...}" events. Some contain a step time or a rate; others say how
// many samples were trained until a point in time.
class MlperfEvents {
 public:
  // `line` contains ":::MLLOG". Returns a step if the event gives one: an explicit time, the rate since the
  // previous event, or the time between two events over the samples between them. Repetitions by other ranks
  // return nothing. Settings are added to `blocks`. Evaluations are added to `events` (bits of LogEvent).
  [[nodiscard]] std::optional<StepLine> take(std::string_view line, SettingsBlocks& blocks,
                                             std::uint8_t& events);

 private:
  // Samples (sequences) trained so far, converted from the unit that the benchmark uses: samples, tokens,
  // steps or epochs. Empty if it cannot be determined.
  [[nodiscard]] std::optional<double> samples_of(const JsonValue& metadata);
  // Keeps a setting that the event states, such as the global batch size.
  void setting(std::string_view key, const JsonValue& value, SettingsBlocks& blocks);
  // A statistics event: a step from its time in seconds or its rate in samples/s. `samples` are those trained
  // so far.
  [[nodiscard]] std::optional<StepLine> statistics(const JsonValue& value, std::optional<double> samples,
                                                   double time_ms, std::uint8_t& events);
  // Closes the open stretch of training at `time_ms` and returns its mean step time.
  [[nodiscard]] std::optional<StepLine> stretch(std::optional<double> samples, double time_ms);
  // Assembles a step. `step_ms` is its duration, `time_ms` the time of day in ms since 1970.
  [[nodiscard]] StepLine step(double samples, double step_ms, double time_ms, double half_digit_share) const;

  // Samples per batch, tokens per sequence, samples of the data set; 0: not known.
  double batch_ = 0, sequence_ = 0, train_samples_ = 0;
  // Whether progress is counted in tokens (gpt3) or in steps instead of samples.
  bool counts_tokens_ = false, counts_steps_ = false;
  std::optional<double> since_ms_;  // start of the open stretch of training; none: no stretch is open
  double samples_ = 0;              // samples trained at the last event with a count
  bool told_ = false;               // a statistics event already covered the open stretch
  bool evaluated_ = false;          // an evaluation took place since the last statistics event
  bool has_evaluations_ = false;    // the log marks the start and end of evaluations
};

}  // namespace stepcast::detail
