#include "stepcast/logs/detail/framework_lines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/logs/detail/log_text.h"

namespace stepcast::detail {

namespace {

constexpr double kSecondInMs = 1e3;
constexpr double kMostMlperf = 1e15;  // of a count or a time

double figure_of(const JsonValue* value) {
  return value != nullptr && value->is_number() && value->number() > 0 && value->number() < kMostMlperf
             ? value->number()
             : 0;
}

template <std::size_t N>
double first_figure(const JsonValue& object, const std::array<std::string_view, N>& names) {
  for (const std::string_view name : names)
    if (const double figure = figure_of(object.find(name)); figure > 0) return figure;
  return 0;
}

}  // namespace

std::optional<StepLine> FrameworkLines::take(std::string_view line) {
  return line.find("train_time:") != std::string_view::npos ? running_total(line) : olmo(line);
}

std::optional<StepLine> FrameworkLines::running_total(std::string_view line) {
  constexpr double kSecond = 1e3, kDigits = 500;  // at least so many units of the last digit
  const auto step = number_behind(line, "step:");
  const auto total = number_behind(line, "train_time:");
  if (!step || !total || step->value < 0 || total->value < 0 || total->value > 1e12) return std::nullopt;
  const std::string_view unit = *text_behind(line, "train_time:");
  const std::size_t letter = unit.find_first_not_of("0123456789.,");
  const double scale = unit.substr(std::min(letter, unit.size())).starts_with("ms") ? 1 : kSecond;
  const double total_ms = total->value * scale, half_ms = total->half_digit * scale;
  const std::uint32_t number = step_number(step->value);
  std::optional<StepLine> told;
  if (total_ms_ && number > total_step_ && total_ms >= *total_ms_) {
    const double passed = total_ms - *total_ms_;
    if (passed < kDigits * 2 * half_ms) return told;
    told.emplace();
    told->step.format = LogFormat::modded_nanogpt;
    told->step.step = number;
    told->step.time_ms = passed / (number - total_step_);
    told->half_digit_share = 2 * half_ms / passed;
  } else if (total_ms_ && number == total_step_ && total_ms >= *total_ms_) {
    return told;  // the validation behind a step
  }
  total_ms_ = total_ms;
  total_step_ = number;
  return told;
}

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
  if (key == "eval_accuracy" && !has_evaluations_) {  // the end of an evaluation that nothing else tells of
    std::optional<StepLine> told = stretch(samples, time_ms);
    since_ms_ = time_ms;
    return told;
  }
  setting(key, *value, blocks);
  return std::nullopt;
}

std::optional<double> MlperfEvents::samples_of(const JsonValue& metadata) {
  // `epoch_num` is samples in some benchmarks, tokens or epochs (less than a batch) in others.
  if (const double count = first_figure<1>(metadata, {"samples_count"}); count > 0) return count;
  if (const double steps = first_figure<1>(metadata, {"step_num"}); steps > 0 && batch_ > 0)
    return steps * batch_;
  const double epochs = figure_of(metadata.find("epoch_num")), step = figure_of(metadata.find("step"));
  // `step` is samples (tokens), too, where all of them are whole batches.
  if (epochs <= 0 && batch_ > 0 && std::fmod(step, batch_) != 0) counts_steps_ = true;
  if (epochs <= 0 && counts_steps_) return step * batch_;
  const double count = epochs > 0 ? epochs : step;
  if (count <= 0) return std::nullopt;
  if (counts_tokens_) return sequence_ > 0 ? std::optional{count / sequence_} : std::nullopt;
  if (count < batch_ && train_samples_ > 0) return count * train_samples_;
  return count;
}

void MlperfEvents::setting(std::string_view key, const JsonValue& value, SettingsBlocks& blocks) {
  const double number = figure_of(&value);
  if (number > 0 && number < 1e12) {
    if (key == "global_batch_size") {
      batch_ = number;
      blocks.word("total_batch", fmt::format("{:.0f}", number));
    }
    if (key == "max_sequence_length") sequence_ = number;
    if (key == "train_samples") train_samples_ = number;
  }
  if (!value.is_text()) return;
  if (key == "submission_benchmark") {
    counts_tokens_ = value.text().starts_with("gpt3");
  }
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
  // A rate over a stretch with evaluations in it is none of training.
  const bool evaluated = std::exchange(evaluated_, !since_ms_.has_value());
  if (seconds <= 0 && ((evaluated && !since_ms_) || batch_ <= 0)) return std::nullopt;
  told_ = true;
  const double total = samples.value_or(samples_);
  return step(total, seconds > 0 ? kSecondInMs * seconds : kSecondInMs * batch_ / rate, time_ms, 0);
}

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
