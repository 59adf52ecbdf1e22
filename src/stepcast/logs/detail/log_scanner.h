// Reads the lines of a training log one by one and fills a TrainingLog.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/logs/detail/framework_lines.h"
#include "stepcast/logs/detail/log_text.h"
#include "stepcast/logs/detail/settings_blocks.h"
#include "stepcast/logs/detail/step_lines.h"
#include "stepcast/logs/training_log.h"

namespace stepcast::detail {

// Call line() for each line in order, then finish().
class LogScanner {
 public:
  // `log` must outlive this.
  explicit LogScanner(TrainingLog& log);

  // Reads a line without its line break. `is_torn`: the file ends without a line break, so the last word may
  // be cut.
  void line(std::string_view raw, bool is_torn = false);
  // Call after the last line: completes the last step and the open settings block.
  void finish();
  // The error that makes the file unusable: a CSV table with a time column without a unit.
  [[nodiscard]] Status status() const;

 private:
  void piece(std::string_view raw, bool begins_line);  // a part of a line between carriage returns
  // Reads a line that may describe a step.
  void step_of(const MultiPatternMatcher::Found& found, std::string_view line);
  // Lines of Composer, see log_scanner.cpp; flush_composer() completes the step that is being collected.
  void composer(std::string_view line);
  void flush_composer();
  // The summary at the end of a run of Hugging Face's Trainer.
  void run_summary(std::string_view line);
  // Settings, and events between steps.
  void settings_of(const MultiPatternMatcher::Found& found, std::string_view line);
  // Settings of TorchTitan in single lines.
  void titan_words(const MultiPatternMatcher::Found& found, std::string_view line);
  // Appends a step to the log. `line` is searched for the time of day.
  void add(StepLine told, std::string_view line);

  TrainingLog& log_;
  MultiPatternMatcher needles_;
  SettingsBlocks blocks_;
  CsvSteps csv_;
  std::vector<std::string> json_keys_;  // columns of a table with one JSON object per line
  MlperfEvents mlperf_;
  FrameworkLines framework_lines_;
  std::optional<Error> csv_error_;
  // Buffer for a line without colours.
  std::string plain_;
  std::string prefix_;  // prefix of the current line, which may contain a time of day
  // The rank that the prefix names.
  std::optional<std::int32_t> rank_;
  // Bits of LogEvent since the last step.
  std::uint8_t events_ = 0;
  std::optional<StepLine> composer_;  // the step of Composer that is being collected
  std::uint32_t composer_step_ = 0;
  // Bits of LogEvent before the lines of this step.
  std::uint8_t composer_events_ = 0;
};

}  // namespace stepcast::detail
