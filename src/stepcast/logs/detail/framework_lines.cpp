// Parsers for frameworks that print a step over several lines, or print totals from which the time of a step
// is a difference. A parser keeps what earlier lines said in the members of FrameworkLines.
#include "stepcast/logs/detail/framework_lines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/logs/detail/log_text.h"

namespace stepcast::detail {

namespace {

constexpr double kSecondInMs = 1e3;
constexpr double kMostMlperf = 1e15;  // largest count or time that is accepted

// The positive finite number in `value`, or 0 if it is missing, not a number or out of range.
double figure_of(const JsonValue* value) {
  return value != nullptr && value->is_number() && value->number() > 0 && value->number() < kMostMlperf
             ? value->number()
             : 0;
}

// The first member of `object`, in the order of `names`, with a positive number; 0 if there is none.
template <std::size_t N>
double first_figure(const JsonValue& object, const std::array<std::string_view, N>& names) {
  for (const std::string_view name : names)
    if (const double figure = figure_of(object.find(name)); figure > 0) return figure;
  return 0;
}

}  // namespace

// Dispatches on a text that is typical for the line of each framework.
std::optional<StepLine> FrameworkLines::take(std::string_view line) {
  const auto has = [&](std::string_view text) { return line.find(text) != std::string_view::npos; };
  if (has("train_time:")) return running_total(line);
  if (has("iter time:")) return litgpt(line);
  if (has("s/step") || line.starts_with("Epoch ")) return keras(line);
  if (has("= Step ") || has("Total step time:")) return nemo_rl(line);
  return olmo(line);
}

// `told.mean_ms` is the mean over all steps so far, so mean times step is a running total.
std::optional<StepLine> FrameworkLines::since_line_before(const StepLine& told) {
  const double total_ms = told.mean_ms * told.step.step;
  std::optional<StepLine> since =
      since_total(told.step.format, told.step.step, total_ms, total_ms * told.half_digit_share);
  if (since) since->memory_GiB = told.memory_GiB;
  return since;
}

// The difference of two totals loses digits. It is used only after it has at least kDigits units of the last
// printed digit; until then the older total is kept and more steps are summed.
std::optional<StepLine> FrameworkLines::since_total(LogFormat format, std::uint32_t step, double total_ms,
                                                    double half_ms) {
  constexpr double kDigits = 500;  // least difference, in units of the last digit
  std::optional<StepLine> told;
  if (total_ms_ && step > total_step_ && total_ms >= *total_ms_) {
    const double passed = total_ms - *total_ms_;
    if (passed < kDigits * 2 * half_ms) return told;
    told.emplace();
    told->step.format = format;
    told->step.step = step;
    told->step.time_ms = passed / (step - total_step_);
    told->half_digit_share = 2 * half_ms / passed;
  } else if (total_ms_ && step == total_step_ && total_ms >= *total_ms_) {
    return told;  // the validation after a step repeats its number
  }
  total_ms_ = total_ms;
  total_step_ = step;
  return told;
}

// modded-nanogpt prints the total training time, in ms or s, without validation.
std::optional<StepLine> FrameworkLines::running_total(std::string_view line) {
  const auto step = number_behind(line, "step:");
  const auto total = number_behind(line, "train_time:");
  if (!step || !total || step->value < 0 || total->value < 0 || total->value > 1e12) return std::nullopt;
  const std::string_view unit = *text_behind(line, "train_time:");
  const std::size_t letter = unit.find_first_not_of("0123456789.,");
  const double scale = unit.substr(std::min(letter, unit.size())).starts_with("ms") ? 1 : kSecondInMs;
  return since_total(LogFormat::modded_nanogpt, step_number(step->value), total->value * scale,
                     total->half_digit * scale);
}

// `share` is the number of iterations per step: between two lines, or from the start for the first line.
std::optional<StepLine> FrameworkLines::litgpt(std::string_view line) {
  const auto iteration = number_behind(line, "iter "), step = number_behind(line, " step "),
             time = number_behind(line, "iter time:");
  const auto unit = text_behind(line, "iter time:");
  if (!iteration || !step || !time || !is_figure(iteration->value) || step->value < 1 ||
      !is_figure(time->value) || unit->find(" ms") > 16)
    return std::nullopt;
  // A log may leave out iterations. Each is assumed to take as long as the printed one, so step time =
  // iteration time x iterations per step.
  const double iterations = iteration->value - litgpt_iteration_, steps = step->value - litgpt_step_;
  const bool follows = litgpt_step_ > 0 && iterations > 0 && steps > 0;
  const bool is_first = litgpt_step_ == 0;
  if (!is_first && iterations > 0 && steps <= 0) return std::nullopt;  // not the end of a step
  litgpt_iteration_ = iteration->value;
  litgpt_step_ = step->value;
  const double share = follows ? iterations / steps : iteration->value / step->value;
  StepLine told;
  told.step.format = LogFormat::litgpt;
  told.step.step = step_number(step->value);
  told.step.time_ms = time->value * std::max(1.0, share);
  told.half_digit_share = time->half_digit / time->value;
  return told;
}

// The time per step is printed with one or two digits ("2s/step"). The remaining or elapsed time of the
// epoch, divided by its number of steps, is more precise if its rounding error is smaller.
std::optional<StepLine> FrameworkLines::keras(std::string_view line) {
  const std::size_t unit = line.find("s/step");
  if (unit == std::string_view::npos) {
    if (const auto epoch = number_behind(line, "Epoch "); epoch && line.find('/') != std::string_view::npos)
      keras_epoch_ = std::clamp(epoch->value, 0.0, 1e5);
    return std::nullopt;
  }
  const std::string_view text = trimmed(line.substr(0, unit));
  if (text.empty()) return std::nullopt;
  const auto step = number_at(text);
  const std::size_t slash = text.find('/');
  const double
      number = step ? step->value : 0,
      all = number_at(text.substr(std::min(slash, text.size() - 1) + 1)).value_or(LoggedNumber{}).value;
  std::size_t from = text.find_last_of(" \t");
  if (number < 1 || all < number || from == std::string_view::npos) return std::nullopt;
  // The time of a step with its unit, and its scale to ms.
  const std::string_view own = text.substr(from + 1);
  const auto time = number_at(own);
  if (!time || !is_figure(time->value)) return std::nullopt;
  const double scale = own.ends_with('m') ? 1 : own.ends_with('u') ? 1e-3 : kSecondInMs;
  LoggedNumber ms{time->value * scale, time->half_digit * scale};
  // "30:37" is the remaining time of the epoch, or "2043s" at the end of an epoch is its total time.
  std::string_view before = trimmed(text.substr(0, from));
  if (before.ends_with('-')) before = trimmed(before.substr(0, before.size() - 1));
  const std::string_view span = before.substr(before.find_last_of(" \t") + 1);
  double seconds = 0, part = 0;
  bool is_span = !span.empty();
  for (std::size_t i = 0; i < span.size(); ++i) {
    const char c = span[i];
    if (c >= '0' && c <= '9') {
      part = part * 10 + (c - '0');
    } else if (c == ':') {
      seconds = (seconds + part) * 60;
      part = 0;
    } else {
      is_span = is_span && c == 's' && i + 1 == span.size();
    }
  }
  const double steps = span.ends_with('s') ? number : all - number;
  if (is_span && steps > 0 && kSecondInMs / steps / 2 < ms.half_digit)
    ms = {kSecondInMs * (seconds + part) / steps, kSecondInMs / steps / 2};
  if (!is_figure(ms.value)) return std::nullopt;
  StepLine told;
  told.step.format = LogFormat::keras;
  told.step.step = step_number(keras_epoch_ * all + number);
  told.step.time_ms = ms.value;
  told.half_digit_share = ms.half_digit / ms.value;
  return told;
}

// NeMo RL prints a header with the step number and the total time in a later line.
std::optional<StepLine> FrameworkLines::nemo_rl(std::string_view line) {
  if (const auto step = number_behind(line, "= Step ")) {
    rl_step_ = step_number(step->value);
    return std::nullopt;
  }
  const auto time = number_behind(line, "Total step time:");
  if (!time || !is_figure(time->value)) return std::nullopt;
  StepLine told;
  told.step.format = LogFormat::nemo_rl;
  told.step.step = rl_step_;
  told.step.time_ms = time->value * kSecondInMs;
  told.half_digit_share = time->half_digit / time->value;
  return told;
}

// OLMo prints the step in one line, and batches per second of a device in a later one. The time of day is
// that of the first.
std::optional<StepLine> FrameworkLines::olmo(std::string_view line) {
  if (const auto step = number_behind(line, "[step=")) {
    olmo_step_ = step_number(step->value);
    olmo_wall_s_ = time_of_line(line).value_or(0);
    return std::nullopt;
  }
  constexpr double kSecond = 1e3;
  for (const std::string_view key : {"throughput/device/BPS=", "throughput/device/batches_per_second="}) {
    const auto rate = number_behind(line, key);
    if (!rate || !is_figure(rate->value)) continue;
    StepLine told;
    told.step.format = LogFormat::olmo;
    told.step.step = olmo_step_;
    told.step.time_ms = kSecond / rate->value;
    told.step.wall_s = olmo_wall_s_;
    told.half_digit_share = rate->half_digit / rate->value;
    return told;
  }
  return std::nullopt;
}

// MLPerf events are JSON after ":::MLLOG". Start events open a stretch of training, stop events close it. The
// time of a step is the length of the stretch over the samples trained in it. Statistics events with a time
// or rate take precedence.
std::optional<StepLine> MlperfEvents::take(std::string_view line, SettingsBlocks& blocks,
                                           std::uint8_t& events) {
  const auto text = text_behind(line, ":::MLLOG");
  if (!text) return std::nullopt;
  const Result<JsonValue> event =
      parse_json(*text, "", {.max_bytes = 1U << 16, .max_values = 1000, .max_depth = 8});
  if (!event || !event->is_object()) return std::nullopt;
  const JsonValue* const key_value = event->find("key");
  const JsonValue* const value = event->find("value");
  const double time_ms = figure_of(event->find("time_ms"));
  if (key_value == nullptr || !key_value->is_text() || value == nullptr || time_ms <= 0) return std::nullopt;
  const std::string_view key = key_value->text();
  const JsonValue* const metadata = event->find("metadata");
  const std::optional<double> samples = metadata == nullptr ? std::nullopt : samples_of(*metadata);
  if (key == "tracked_stats" || key == "throughput" || key == "train_throughput")
    return statistics(*value, samples, time_ms, events);
  if (key == "eval_start" || key == "block_stop" || key == "epoch_stop" || key == "run_stop") {
    if (key == "eval_start") {
      events |= static_cast<std::uint8_t>(LogEvent::evaluation);
      evaluated_ = has_evaluations_ = true;
    }
    return stretch(samples, time_ms);
  }
  if (key == "run_start" || key == "epoch_start" || key == "block_start" || key == "eval_stop") {
    if (!since_ms_ || key == "block_start") since_ms_ = time_ms;
    return std::nullopt;
  }
  if (key == "eval_accuracy" && !has_evaluations_) {  // end of an evaluation that has no other events
    std::optional<StepLine> told = stretch(samples, time_ms);
    since_ms_ = time_ms;
    return told;
  }
  setting(key, *value, blocks);
  return std::nullopt;
}

std::optional<double> MlperfEvents::samples_of(const JsonValue& metadata) {
  // `epoch_num` means samples in some benchmarks, tokens in others, and epochs (less than one batch) in
  // others.
  if (const double count = first_figure<1>(metadata, {"samples_count"}); count > 0) return count;
  if (const double steps = first_figure<1>(metadata, {"step_num"}); steps > 0 && batch_ > 0)
    return steps * batch_;
  const double epochs = figure_of(metadata.find("epoch_num")), step = figure_of(metadata.find("step"));
  // `step` counts samples (or tokens) if all values are multiples of the batch size; otherwise it counts
  // steps.
  if (epochs <= 0 && batch_ > 0 && std::fmod(step, batch_) != 0) counts_steps_ = true;
  if (epochs <= 0 && counts_steps_) return step * batch_;
  const double count = epochs > 0 ? epochs : step;
  if (count <= 0) return std::nullopt;
  if (counts_tokens_) return sequence_ > 0 ? std::optional{count / sequence_} : std::nullopt;
  if (count < batch_ && train_samples_ > 0) return count * train_samples_;
  return count;
}

// Settings are kept as words of the log (training_log.h); logged_run.cpp translates them. The batch and
// sequence sizes are also used here.
void MlperfEvents::setting(std::string_view key, const JsonValue& value, SettingsBlocks& blocks) {
  const double number = figure_of(&value);
  if (number > 0 && number < 1e12) {
    if (key == "global_batch_size") {
      batch_ = number;
      blocks.word("total_batch", fmt::format("{:.0f}", number));
    }
    constexpr std::string_view kCounts =
        "global_batch_size micro_batch_size max_sequence_length num_layers num_heads hidden_size "
        "ffn_hidden_size lora_rank "
        "number_of_nodes number_of_ranks tensor_model_parallel_size pipeline_model_parallel_size "
        "context_parallel_size "
        "expert_model_parallel_size";
    if (is_among(key, kCounts)) blocks.word(fmt::format("mlperf.{}", key), fmt::format("{:.0f}", number));
    if (key == "max_sequence_length") sequence_ = number;
    if (key == "train_samples") train_samples_ = number;
  }
  if (!value.is_text()) return;
  if (key == "submission_benchmark") {
    counts_tokens_ = value.text().starts_with("gpt3");
  }
  if (key == "opt_name") blocks.word("mlperf.opt_name", value.text());
  if (key == "submission_platform") blocks.word("gpu", value.text());  // "64xNVIDIA DGX H100"
  if (key == "submission_org" || key == "submission_benchmark") blocks.word(key, value.text());
}

std::optional<StepLine> MlperfEvents::statistics(const JsonValue& value, std::optional<double> samples,
                                                 double time_ms, std::uint8_t& events) {
  const double seconds = first_figure<3>(value, {"train_step_timing", "train_step_time", "step_time"});
  const double rate = value.is_number()
                          ? figure_of(&value)
                          : first_figure<3>(value, {"throughput", "samples_per_sec", "train_throughput"});
  if (seconds <= 0 && rate <= 0) {
    if (value.find("validation_step_timing") != nullptr)
      events |= static_cast<std::uint8_t>(LogEvent::evaluation);
    return std::nullopt;
  }
  // A rate measured over a stretch that includes an evaluation is not the rate of training.
  const bool evaluated = std::exchange(evaluated_, !since_ms_.has_value());
  if (seconds <= 0 && ((evaluated && !since_ms_) || batch_ <= 0)) return std::nullopt;
  told_ = true;
  const double total = samples.value_or(samples_);
  return step(total, seconds > 0 ? kSecondInMs * seconds : kSecondInMs * batch_ / rate, time_ms, 0);
}

// No step results if a statistics event already covered this stretch, or if less than one batch was trained.
std::optional<StepLine> MlperfEvents::stretch(std::optional<double> samples, double time_ms) {
  const std::optional<double> since = std::exchange(since_ms_, std::nullopt);
  const bool told = std::exchange(told_, false);
  if (!since || !samples) return std::nullopt;
  const double trained = *samples - std::exchange(samples_, *samples);
  if (told || batch_ <= 0 || trained < batch_ || time_ms <= *since) return std::nullopt;
  constexpr double kHalfMs = 0.5;
  return step(*samples, (time_ms - *since) * batch_ / trained, time_ms, kHalfMs / (time_ms - *since));
}

StepLine MlperfEvents::step(double samples, double step_ms, double time_ms, double half_digit_share) const {
  StepLine told;
  constexpr double kMostSteps = 4e9;
  told.step.format = LogFormat::mlperf;
  told.step.time_ms = std::min(step_ms, 1e12);
  told.step.wall_s = time_ms / kSecondInMs;
  if (batch_ > 0) {
    told.step.step = static_cast<std::uint32_t>(std::clamp(std::round(samples / batch_), 0.0, kMostSteps));
    told.step.batch_sequences = static_cast<std::uint32_t>(std::min(batch_, kMostSteps));
  }
  told.half_digit_share = half_digit_share;
  return told;
}

}  // namespace stepcast::detail
