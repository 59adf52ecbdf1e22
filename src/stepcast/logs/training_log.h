// Reads the log of a training run as frameworks print it: the time of each step, and the settings of the run.
//
//   STEPCAST_ASSIGN(const TrainingLog log, read_training_log("train.log"));
//   const LoggedTimes times = logged_times(log);             // logged_times.h: median, stalls, restarts, ...
//   STEPCAST_ASSIGN(const LoggedJob job, logged_job(log));   // logged_run.h: what it trained, and how
//
// The log is read line by line, so its size does not matter. Memory is needed for one record per line with a
// step time, and for the settings that the run printed. docs/logs.md lists the formats.
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

// The formats of log_formats.def. If a log has lines of several formats, the first one is preferred.
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
// The identifier of a format in JSON output: "megatron".
[[nodiscard]] std::string_view to_string(LogFormat format);
// The name of a format in messages: "Megatron-LM".
[[nodiscard]] std::string_view log_format_name(LogFormat format);

// Events between two lines with steps. The values are bits.
enum class LogEvent : std::uint8_t {
  none = 0,
  evaluation = 1,
  checkpoint = 2,
  evaluation_or_checkpoint = 3,
  start = 4
};

// A line with a step time, or with a rate from which a time follows.
struct LoggedStep {
  double time_ms = 0;  // time of one step; 0: not printed, or not yet known
  double wall_s = 0;   // when the line was written, in seconds since 1970; 0: not printed
  // TorchTitan: tokens/s per GPU. DeepSpeed and Composer: samples/s of the whole job. Progress bars: seconds
  // since their start.
  float rate = 0;
  float tokens_rate = 0;  // tokens/s per GPU in addition to a time; 0: not printed
  // TFLOP/s per GPU; 0: not printed.
  float tflops_per_gpu = 0;
  // Number of the step.
  std::uint32_t step = 0;
  std::uint32_t batch_sequences = 0;  // batch size of the step; 0: not printed
  std::uint32_t line = 0;             // line of the file, from 1
  std::uint32_t of_steps = 0;         // progress bars: the number they count to
  std::int16_t rank = -1;             // the rank in the prefix of the launcher; -1: none
  LogFormat format = LogFormat::megatron;
  std::uint8_t events = 0;  // LogEvent bits since the previous line
};

// What the run printed about itself, as text that describe/ can read.
struct LoggedSettings {
  std::vector<std::pair<std::string, std::string>> megatron;  // table of arguments, in printed order
  std::string torchtitan;                                     // dump of the config: JSON or a Python dict
  std::string deepspeed;                                      // JSON
  std::string model_config;                                   // a config of Hugging Face, JSON
  std::string yaml;                                           // NeMo 1, Megatron-Bridge, LLM Foundry
  std::string maxtext;                                        // parameters as YAML
  // Words of single lines, by internal names: "world_size", "vocab_size", "titan_model", "titan_mesh", ...
  std::map<std::string, std::string, std::less<>> words;
  std::uint64_t at_record = 0;  // number of records before the last table, dump or config
  std::uint64_t times = 0;      // how often a run started to print settings
  bool changed = false;         // the settings of several starts differ
  friend bool operator==(const LoggedSettings&, const LoggedSettings&) = default;
};

// A training log in memory.
struct TrainingLog {
  std::string file;
  // One record per line with a step, in the order of the file.
  std::vector<LoggedStep> steps;
  // [LogFormat] number of lines of this format.
  std::array<std::uint64_t, kLogFormats> n_of_format{};
  std::uint64_t n_lines = 0, n_bytes = 0;
  std::uint64_t broken_lines = 0;   // lines that begin like a step but do not contain its time
  double rounding_percent = 0;      // rounding of the last time or rate: half a unit of its last digit
  double peak_memory_GiB = 0;       // largest reserved or allocated memory that is printed; 0: none
  double tokens_per_s_per_gpu = 0;  // the last value printed; 0: none
  // Of the whole run, as Hugging Face's Trainer prints it at the end; 0: not printed.
  double runtime_s = 0, run_samples_per_s = 0, run_steps_per_s = 0;
  LoggedSettings settings;
};

// `progress` is called with the bytes read so far and the size of the file.
struct LogReadOptions {
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
};

// Reads a log file, plain or gzip. Errors: a file that cannot be read, a file without steps, a CSV file with
// a time column without a unit. The message names the kind of file that was recognised instead.
[[nodiscard]] Result<TrainingLog> read_training_log(const std::filesystem::path& file,
                                                    const LogReadOptions& options = {});
// The same from memory; `name` is used in errors.
[[nodiscard]] Result<TrainingLog> parse_training_log(std::string_view content, std::string name);

// Whether a file with these first bytes may be a training log: it is text, and neither JSON nor another known
// format. Used by `stepcast inspect`.
[[nodiscard]] bool may_be_training_log(std::string_view beginning);

}  // namespace stepcast
