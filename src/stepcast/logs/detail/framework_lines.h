// Lines of frameworks that tell a step together with a line before them. Those that need none are line_patterns.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/logs/detail/settings_blocks.h"
#include "stepcast/logs/detail/step_lines.h"

namespace stepcast::detail {

class FrameworkLines {
 public:
  // `line` without colours and prefixes. Nothing where it tells no step.
  [[nodiscard]] std::optional<StepLine> take(std::string_view line);
  // Of a line that tells a mean over all steps: what a step has taken since the line before.
  [[nodiscard]] std::optional<StepLine> since_line_before(const StepLine& told);

 private:
  // The mean time of the steps since the last total, once it has enough digits.
  [[nodiscard]] std::optional<StepLine> since_total(LogFormat format, std::uint32_t step, double total_ms,
                                                    double half_ms);
  // "step:20/1390 train_time:2846ms".
  [[nodiscard]] std::optional<StepLine> running_total(std::string_view line);
  // "Epoch 1 | iter 32 step 4 | ... | iter time: 345.67 ms (step)" (LitGPT): a step is several iterations.
  [[nodiscard]] std::optional<StepLine> litgpt(std::string_view line);
  // "Epoch 2/5", then "100/1000 ... 30:37 2s/step": what is left of the epoch has more digits than the time of a step.
  [[nodiscard]] std::optional<StepLine> keras(std::string_view line);
  // "==== Step 5/100 ====", and below it "Total step time: 51.20s" (NeMo RL).
  [[nodiscard]] std::optional<StepLine> nemo_rl(std::string_view line);
  // "[step=20/1000,epoch=1]", then a line for every figure (OLMo, OLMo-core).
  [[nodiscard]] std::optional<StepLine> olmo(std::string_view line);

  std::optional<double> total_ms_;
  std::uint32_t total_step_ = 0, olmo_step_ = 0, rl_step_ = 0;
  double keras_epoch_ = 0, litgpt_iteration_ = 0, litgpt_step_ = 0;
  double olmo_wall_s_ = 0;
};

// MLPerf's result logs: ":::MLLOG {...}" events, of which some tell a step or a rate, and others how many samples were
// trained until when.
class MlperfEvents {
 public:
  // `line` holds ":::MLLOG". A step where the event tells one: its own time, the rate since the event before, or the
  // time of training between two events over the samples between them. What other ranks repeat tells none. `events`
  // gets evaluations.
  [[nodiscard]] std::optional<StepLine> take(std::string_view line, SettingsBlocks& blocks,
                                             std::uint8_t& events);

 private:
  // In sequences (samples), whatever the benchmark counts.
  [[nodiscard]] std::optional<double> samples_of(const JsonValue& metadata);
  void setting(std::string_view key, const JsonValue& value, SettingsBlocks& blocks);
  [[nodiscard]] std::optional<StepLine> statistics(const JsonValue& value, std::optional<double> samples,
                                                   double time_ms, std::uint8_t& events);
  // Ends the stretch of training that is open.
  [[nodiscard]] std::optional<StepLine> stretch(std::optional<double> samples, double time_ms);
  [[nodiscard]] StepLine step(double samples, double step_ms, double time_ms, double half_digit_share) const;

  double batch_ = 0, sequence_ = 0, train_samples_ = 0;
  bool counts_tokens_ = false, counts_steps_ = false;
  std::optional<double> since_ms_;  // training goes on since
  double samples_ = 0;              // that were trained until then
  bool told_ = false;               // a statistic told of the stretch already
  bool evaluated_ = false;          // since the last statistic
  bool has_evaluations_ = false;    // with their begin and end
};

}  // namespace stepcast::detail
