// The log of a training run, as frameworks print it: which steps took how long, and what the run was.
//
//   STEPCAST_ASSIGN(const TrainingLog log, read_training_log("train.log"));
//   const LoggedTimes times = logged_times(log);             // logged_times.h: median, stalls, restarts, ...
//   STEPCAST_ASSIGN(const LoggedJob job, logged_job(log));   // logged_run.h: what it trained, and how
//
// Read line by line, whatever the size: what stays in memory is one record per line that tells a step time, and what
// the run printed about its settings. docs/logs.md names the formats.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// log_formats.def, in the order of preference where a log has lines of several.
enum class LogFormat : std::uint8_t {
#define STEPCAST_LOG_FORMAT(word, name) word,
#include "stepcast/logs/log_formats.def"
#undef STEPCAST_LOG_FORMAT
};
inline constexpr std::size_t kLogFormats = 0
#define STEPCAST_LOG_FORMAT(word, name) +1
#include "stepcast/logs/log_formats.def"
#undef STEPCAST_LOG_FORMAT
    ;
[[nodiscard]] std::string_view to_string(LogFormat format);
// As people call it: "Megatron-LM".
[[nodiscard]] std::string_view log_format_name(LogFormat format);

// What happened between two lines that tell steps.
enum class LogEvent : std::uint8_t {
  none = 0,
  evaluation = 1,
  checkpoint = 2,
  evaluation_or_checkpoint = 3,
  start = 4
};

// A line that tells a step time, or a rate that a time follows from.
struct LoggedStep {
  double time_ms = 0;  // of one step; 0: not told, or not yet
  double wall_s = 0;   // when the line was written, since 1970; 0: not told
  float rate =
      0;  // TorchTitan: tokens/s per GPU; DeepSpeed, Composer: samples/s of all; bars: seconds since their begin
  float tokens_rate = 0;  // tokens/s per GPU, beside a time; 0: not told
  float tflops_per_gpu = 0;
  std::uint32_t step = 0;
  std::uint32_t batch_sequences = 0;  // of the step; 0: not told
  std::uint32_t line = 0;             // from 1
  std::uint32_t of_steps = 0;         // progress bars: what they count up to
  std::int16_t rank = -1;             // that the launcher put before the line
  LogFormat format = LogFormat::megatron;
  std::uint8_t events = 0;  // LogEvent: since the line before
};

// What the run printed about itself, as text that describe/ reads.
struct LoggedSettings {
  std::vector<std::pair<std::string, std::string>> megatron;  // its table of arguments, in the order printed
  std::string torchtitan;                                     // the config dump: JSON, or a Python dict
  std::string deepspeed;                                      // JSON
  std::string model_config;                                   // a Hugging Face config, JSON
  std::string yaml;                                           // NeMo 1, Megatron-Bridge, LLM Foundry
  std::string maxtext;                                        // its parameters, as YAML
  // Words of single lines, by a name of ours: "world_size", "vocab_size", "titan_model", "titan_mesh", ...
  std::map<std::string, std::string, std::less<>> words;
  std::uint64_t at_record = 0;  // records that came before the last table, dump or config
  std::uint64_t times = 0;      // how often a run began to print settings
  bool changed = false;         // and not all of these were the same
  friend bool operator==(const LoggedSettings&, const LoggedSettings&) = default;
};

struct TrainingLog {
  std::string file;
  std::vector<LoggedStep> steps;
  std::array<std::uint64_t, kLogFormats> n_of_format{};
  std::uint64_t n_lines = 0, n_bytes = 0;
  std::uint64_t broken_lines = 0;   // that begin as a step's line and do not tell its time
  double rounding_percent = 0;      // of the last time or rate: half a unit of its last digit
  double peak_memory_GiB = 0;       // reserved or allocated, the largest that is told; 0: none
  double tokens_per_s_per_gpu = 0;  // the last that is told; 0: none
  // Of the whole run, as Hugging Face's Trainer prints it at the end; 0: not told.
  double runtime_s = 0, run_samples_per_s = 0, run_steps_per_s = 0;
  LoggedSettings settings;
};

struct LogReadOptions {
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
};

// Plain or gzip. Errors: a file that cannot be read; one without a line that tells a step; a CSV file whose time has no
// unit. They name what the file looks like instead.
[[nodiscard]] Result<TrainingLog> read_training_log(const std::filesystem::path& file,
                                                    const LogReadOptions& options = {});
[[nodiscard]] Result<TrainingLog> parse_training_log(std::string_view content, std::string name);

// Whether the file is text, and neither JSON nor one of the CSV formats of other verbs: what inspect then tries.
[[nodiscard]] bool may_be_training_log(std::string_view beginning);

}  // namespace stepcast
