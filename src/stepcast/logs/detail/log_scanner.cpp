// Reads a training log line by line. A multi-pattern search finds which known texts occur in a line; lines
// without any of them are dropped at once. The others go to the parser of their kind: table rows, patterns,
// multi-line frameworks, progress bars, named units, or settings.
#include "stepcast/logs/detail/log_scanner.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "stepcast/base/line_prefix.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/logs/detail/line_patterns.h"
#include "stepcast/logs/detail/log_text.h"
#include "stepcast/logs/detail/named_units.h"

namespace stepcast::detail {
namespace {

using Found = MultiPatternMatcher::Found;

// Names of the texts in log_needles.def. The markers of line_patterns.h follow them in the search.
enum Needle : unsigned {
#define STEPCAST_NEEDLE(name, text) name,
#include "stepcast/logs/detail/log_needles.def"
#undef STEPCAST_NEEDLE
};
constexpr std::string_view kNeedles[] = {
#define STEPCAST_NEEDLE(name, text) text,
#include "stepcast/logs/detail/log_needles.def"
#undef STEPCAST_NEEDLE
};
constexpr std::size_t kFirstMarker = std::size(kNeedles);

// All texts of the search: those of log_needles.def, then the markers.
std::vector<std::string_view> all_needles() {
  std::vector<std::string_view> all(std::begin(kNeedles), std::end(kNeedles));
  all.insert(all.end(), line_patterns().markers.begin(), line_patterns().markers.end());
  return all;
}

// True if one of the texts was found.
template <class... More>
bool holds(const Found& found, More... needles) {
  return (found.test(needles) || ...);
}

// The texts of names that may contain the unit of a step time.
const Found& of_units() {
  static const Found kUnits = [] {
    Found units;
    for (unsigned needle = units_first; needle <= units_last; ++needle) units.set(needle);
    return units;
  }();
  return kUnits;
}

// The texts of lines that may describe a step. All other texts are of settings and events.
const Found& of_steps() {
  static const Found kSteps = [] {
    Found steps = ~Found{} << kFirstMarker;
    for (const Needle needle : {composer_batch, composer_rate, bar_seconds, bar_steps, run_end, olmo_step,
                                running_total, litgpt, epoch, rl_step, rl_time})
      steps.set(needle);
    return steps | of_units();
  }();
  return kSteps;
}

// Lines with a number that is kept as a word of the log under `name`.
struct CountedWord {
  Needle needle;
  std::string_view name, key;  // the number follows the key
};
constexpr CountedWord kCountedWords[] = {{world_size, "world_size", "using world size:"},
                                         {dist_world_size, "world_size", "dist_world_size="},
                                         {padded_vocab, "vocab_size", "padded vocab (size:"},
                                         {padded_vocab, "vocab_size", "original vocab_size:"},
                                         {total_batch, "total_batch", "accumulation) ="},
                                         {device_batch, "device_batch", "per device"},
                                         {sequence_length, "titan_local_batch", "local batch size "},
                                         {sequence_length, "titan_global_batch", "global batch size "},
                                         {sequence_length, "titan_seq_len", "sequence length "}};

// The text up to the first character that is not part of a name.
std::string_view first_word(std::string_view text) {
  text = trimmed(text);
  const std::size_t end = text.find_first_of(" ,;()|");
  return text.substr(0, end);
}

// An incomplete last line without its last word, which may be cut: "(ms): 832" of 8322.0. Lines that end in a
// closing character are complete.
std::string_view without_torn_word(std::string_view line) {
  if (line.ends_with('|') || line.ends_with(']') || line.ends_with('}')) return line;
  const std::size_t blank = line.find_last_of(" \t\r");
  return line.substr(0, blank == std::string_view::npos ? 0 : blank + 1);
}

// MaxText: adds "Config param per_device_batch_size: 4" to the YAML text `parameters`. If a name occurs
// several times, the first value is kept.
void add_maxtext_parameter(std::string_view line, std::string& parameters) {
  constexpr std::size_t kMost = std::size_t{1} << 16;
  const auto pair = text_behind(line, "Config param ");
  if (!pair || parameters.size() >= kMost) return;
  const std::size_t colon = pair->find(": ");
  if (colon == std::string_view::npos || !is_yaml_line(*pair)) return;
  const std::string key = "\n" + std::string{pair->substr(0, colon + 2)};
  if (("\n" + parameters).find(key) == std::string::npos) parameters += std::string{trimmed(*pair)} + "\n";
}

}  // namespace

LogScanner::LogScanner(TrainingLog& log) : log_(log), needles_(all_needles()), blocks_(log) {}

Status LogScanner::status() const {
  if (!csv_error_) return Ok{};
  return Error{*csv_error_}.in_file(log_.file);
}

void LogScanner::line(std::string_view raw, bool is_torn) {
  ++log_.n_lines;
  if (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
  if (is_torn) raw = without_torn_word(raw);
  std::string row, plain;
  // The first line decides whether the file is a table: a CSV header, or JSON lines with the keys as columns.
  if (log_.n_lines == 1 || csv_.active()) raw = plain_line(raw, plain).text;
  if (log_.n_lines == 1) {
    const bool is_json = raw.starts_with('{') && json_row(raw, json_keys_).has_value();
    Result<bool> is_csv = csv_.header(is_json ? join(json_keys_, ",") : std::string{raw});
    if (!is_csv) csv_error_ = std::move(is_csv).error();
    if (csv_.active() && !is_json) return;
  }
  if (csv_.active()) {
    if (trimmed(raw).empty()) return;
    if (!json_keys_.empty()) row = json_row(raw, json_keys_).value_or("");
    if (std::optional<StepLine> told = csv_.row(json_keys_.empty() ? raw : row))
      add(*told, {});
    else
      ++log_.broken_lines;
    return;
  }
  // A progress bar rewrites its line with carriage returns. Each piece is read; the prefix of the launcher is
  // only in front of the first.
  if (raw.find('\r') != std::string_view::npos) {
    const PlainLine first = plain_line(raw.substr(0, raw.find('\r')), plain);
    rank_ = first.rank;
    prefix_.assign(first.prefix);
  }
  for (std::size_t from = 0;;) {
    const std::size_t end = raw.find('\r', from);
    if (const std::string_view part = raw.substr(from, end - from); !part.empty()) piece(part, from == 0);
    if (end == std::string_view::npos) return;
    from = end + 1;
  }
}

// Reads one piece of a line. Prefix and rank are kept from the first piece.
void LogScanner::piece(std::string_view raw, bool begins_line) {
  const Found found = needles_.found_in(raw);
  if (found.none() && !blocks_.is_open()) return;
  const PlainLine plain = plain_line(raw, plain_);
  const std::string_view line = plain.text;
  if (begins_line || !plain.prefix.empty()) {
    rank_ = plain.rank;
    prefix_.assign(plain.prefix);
  }
  if (blocks_.take(line)) return;
  if (holds(found, mlperf)) {
    if (std::optional<StepLine> told = mlperf_.take(line, blocks_, events_)) add(*told, {});
    return;
  }
  if ((found & of_steps()).any()) step_of(found, line);
  if ((found & ~of_steps()).any()) settings_of(found, line);
}

// Completes a step with line number, rank, time of day and the events since the previous step, and appends it
// to the log.
void LogScanner::add(StepLine told, std::string_view line) {
  LoggedStep& step = told.step;
  step.line = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(log_.n_lines, std::numeric_limits<std::uint32_t>::max()));
  if (rank_ && *rank_ <= std::numeric_limits<std::int16_t>::max())
    step.rank = static_cast<std::int16_t>(*rank_);
  if (step.wall_s == 0) step.wall_s = time_of_line(line).value_or(0);
  if (step.wall_s == 0 && step.of_steps == 0) step.wall_s = time_of_line(prefix_).value_or(0);
  step.events = events_;
  events_ = 0;
  ++log_.n_of_format[static_cast<std::size_t>(step.format)];
  constexpr double kPercent = 100;
  log_.rounding_percent = kPercent * told.half_digit_share;
  log_.peak_memory_GiB = std::max(log_.peak_memory_GiB, told.memory_GiB);
  if (told.tokens_per_s_per_gpu > 0) log_.tokens_per_s_per_gpu = told.tokens_per_s_per_gpu;
  step.tokens_rate = static_cast<float>(told.tokens_per_s_per_gpu);
  log_.steps.push_back(step);
}

// Tries the patterns first, then parsers with state, progress bars and named units. The first one that
// succeeds decides.
void LogScanner::step_of(const Found& found, std::string_view line) {
  const auto is_there = [&](std::string_view text) { return line.find(text) != std::string_view::npos; };
  bool is_broken = false;
  for (const LinePattern& pattern : line_patterns().rows) {
    if ((found >> kFirstMarker & pattern.markers).none() || !is_there(pattern.also)) continue;
    if (any_word(pattern.unless, is_there, '|')) return;
    if (std::optional<StepLine> told = patterned_line(pattern, line)) {
      if (told->mean_ms > 0) told = framework_lines_.since_line_before(*told);
      return told ? add(*told, line) : void();
    }
    is_broken = is_broken || !pattern.is_common;
  }
  if (is_broken) {
    ++log_.broken_lines;
    return;
  }
  if (holds(found, composer_rate, olmo_step, running_total, litgpt, epoch, units_first, rl_step, rl_time))
    if (std::optional<StepLine> told = framework_lines_.take(line)) return add(*told, line);
  if (holds(found, composer_batch, composer_rate)) composer(line);
  if (holds(found, run_end)) run_summary(line);
  if (holds(found, bar_seconds, bar_steps)) {
    std::optional<StepLine> told = progress_bar_line(line);
    if (!told) told = rich_bar_line(line);
    if (told) return add(*told, {});
  }
  if ((found & of_units()).any())
    if (std::optional<StepLine> told = line_with_units(line)) return add(*told, line);
}

// Composer: "[batch=3/20]:", followed by one line per metric. The step is complete when the next batch
// begins.
void LogScanner::composer(std::string_view line) {
  if (const auto batch = text_behind(line, "[batch=")) {
    flush_composer();
    composer_events_ = std::exchange(events_, std::uint8_t{0});
    const auto number = number_at(*batch);
    composer_step_ =
        number && number->value >= 0 ? static_cast<std::uint32_t>(std::min(number->value, 4e9)) : 0;
    return;
  }
  const auto figure = [&](std::string_view key) { return number_behind(line, key); };
  const auto current = [&]() -> StepLine& {
    if (!composer_) {
      composer_.emplace();
      composer_->step.format = LogFormat::composer;
      composer_->step.step = composer_step_;
    }
    return *composer_;
  };
  constexpr double kSecond = 1e3;
  if (const auto batches = figure("throughput/batches_per_sec:")) {
    StepLine& told = current();
    if (batches->value <= 0) return;
    told.step.time_ms = kSecond / batches->value;
    told.half_digit_share = batches->half_digit / batches->value;
  } else if (const auto tokens = figure("throughput/device/tokens_per_sec:")) {
    current().tokens_per_s_per_gpu = std::max(0.0, tokens->value);
  } else if (const auto samples = figure("throughput/samples_per_sec:")) {
    current().step.rate = static_cast<float>(std::clamp(samples->value, 0.0, 1e12));
  }
}

void LogScanner::flush_composer() {
  if (composer_ &&
      (composer_->step.time_ms > 0 || composer_->step.rate > 0 || composer_->tokens_per_s_per_gpu > 0)) {
    // Events after the "[batch=" line belong to the next batch.
    const std::uint8_t since = std::exchange(events_, composer_events_);
    add(*composer_, {});
    events_ = since;
  }
  composer_.reset();
}

// Hugging Face Trainer, at the end of a run: {'train_runtime': 8418.1136, 'train_samples_per_second': 2.298,
// ...}. Some releases print the values as text.
void LogScanner::run_summary(std::string_view line) {
  const auto figure = [&](std::string_view key) {
    const auto number = number_behind(line, key);
    return number && number->value > 0 ? number->value : 0;
  };
  const double runtime = figure("'train_runtime'");
  if (runtime <= 0) return;
  log_.runtime_s = runtime;
  log_.run_samples_per_s = figure("'train_samples_per_second'");
  log_.run_steps_per_s = figure("'train_steps_per_second'");
  ++log_.n_of_format[static_cast<std::size_t>(LogFormat::huggingface)];
}

// Lines about settings and events: evaluation, checkpoint, memory, and the start of blocks with settings
// (settings_blocks.h).
void LogScanner::settings_of(const Found& found, std::string_view line) {
  if (holds(found, event_evaluation, event_validation, event_huggingface))
    events_ |= static_cast<std::uint8_t>(LogEvent::evaluation);
  if (holds(found, event_checkpoint) && !holds(found, activation_checkpointing))
    events_ |= static_cast<std::uint8_t>(LogEvent::checkpoint);
  if (holds(found, memory_megatron)) {
    constexpr double kMiBPerGiB = 1024;
    if (const auto reserved = number_behind(line, "max reserved"); reserved && reserved->value > 0)
      log_.peak_memory_GiB = std::max(log_.peak_memory_GiB, reserved->value / kMiBPerGiB);
  }
  if (holds(found, memory_composer)) {
    if (const auto peak = number_behind(line, "memory/peak_reserved_mem:"); peak && peak->value > 0)
      log_.peak_memory_GiB = std::max(log_.peak_memory_GiB, peak->value);
  }
  if (holds(found, arguments) && line.find("end of arguments") == std::string_view::npos) {
    blocks_.begin_run();
    events_ |= static_cast<std::uint8_t>(LogEvent::start);
    return blocks_.open_megatron();
  }
  for (const auto& [needle, name, key] : kCountedWords)
    if (holds(found, needle))
      if (const auto number = count_behind(line, key)) blocks_.word(name, std::to_string(*number));
  if (holds(found, deepspeed_json)) {
    blocks_.begin_run();
    return blocks_.open_json(line, &LoggedSettings::deepspeed);
  }
  if (holds(found, model_config)) return blocks_.open_json(line, &LoggedSettings::model_config);
  if (holds(found, titan_dump, titan_dump_old)) {
    blocks_.begin_run();
    return blocks_.open_json(line, &LoggedSettings::torchtitan);
  }
  if (holds(found, experiment, logging_config)) {
    blocks_.begin_run();
    return blocks_.open_yaml({});
  }
  if (holds(found, yaml_model, yaml_train, yaml_trainer, yaml_foundry)) {
    const std::string_view text = trimmed(line);
    if (text == "model:" || text == "train:" || text == "trainer:" || text.starts_with("max_seq_len: "))
      return blocks_.open_yaml(line);
  }
  if (holds(found, maxtext_parameter)) add_maxtext_parameter(line, log_.settings.maxtext);
  titan_words(found, line);
}

// TorchTitan: settings in single lines, for logs without a dump of the whole config.
void LogScanner::titan_words(const Found& found, std::string_view line) {
  if (holds(found, building)) {
    if (line.find("BERT model") != std::string_view::npos) blocks_.word("is_bert", "1");
    // "Building llama3 8B with ..."
    const std::string_view rest = text_behind(line, "uilding ").value_or(std::string_view{});
    constexpr std::size_t kLongestName = 60;
    if (const std::size_t with = rest.find(" with "); with < kLongestName) {
      const std::string_view model = rest.substr(0, with);
      if (model.find("mesh") == std::string_view::npos && model.find(' ') != std::string_view::npos)
        blocks_.word("titan_model", model);
    }
  }
  // "Model llama3 8B size: 8,030,261,248 total parameters"
  if (holds(found, model_size)) {
    if (const auto rest = text_behind(line, "Model ")) {
      const std::string_view model = rest->substr(0, rest->find(" size: "));
      if (model.find(' ') != std::string_view::npos) blocks_.word("titan_model", model);
    }
  }
  if (holds(found, device_mesh)) {
    if (const auto mesh = text_behind(line, "mesh with ")) {
      blocks_.begin_run();
      blocks_.word("titan_mesh", trimmed(*mesh));
      events_ |= static_cast<std::uint8_t>(LogEvent::start);
    }
  }
  if (holds(found, activation_checkpointing)) {
    if (const auto mode = text_behind(line, "Applied ")) blocks_.word("titan_recompute", first_word(*mode));
  }
  if (holds(found, float8) && (line.find("Float8") != std::string_view::npos) &&
      (line.find("training active") != std::string_view::npos ||
       line.find("Swapped to") != std::string_view::npos)) {
    blocks_.word("titan_float8", line.find("rowwise") != std::string_view::npos ? "rowwise" : "tensorwise");
  }
  if (holds(found, compiling) && line.find("torch.compile") != std::string_view::npos)
    blocks_.word("titan_compile", "1");
  if (holds(found, cuda_capacity)) {
    if (const auto gpu = text_behind(line, "CUDA capacity: "))
      blocks_.word("gpu", trimmed(gpu->substr(0, gpu->find(" with "))));
  }
}

void LogScanner::finish() {
  flush_composer();
  blocks_.close();
}

}  // namespace stepcast::detail
