// Takes the lines of a training log one by one and fills a TrainingLog.
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

class LogScanner {
 public:
  // `log` must outlive this.
  explicit LogScanner(TrainingLog& log);

  // Without its line break. `is_torn`: it has none, so that its last word may be half of one.
  void line(std::string_view raw, bool is_torn = false);
  void finish();
  // What cannot be read whatever follows: a CSV file without a unit.
  [[nodiscard]] Status status() const;

 private:
  void piece(std::string_view raw, bool begins_line);  // between carriage returns
  void step_of(const MultiPatternMatcher::Found& found, std::string_view line);
  void composer(std::string_view line);
  void flush_composer();
  void run_summary(std::string_view line);
  void settings_of(const MultiPatternMatcher::Found& found, std::string_view line);
  void titan_words(const MultiPatternMatcher::Found& found, std::string_view line);
  void add(StepLine told, std::string_view line);

  TrainingLog& log_;
  MultiPatternMatcher needles_;
  SettingsBlocks blocks_;
  CsvSteps csv_;
  std::vector<std::string> json_keys_;  // of a table whose rows are lines of JSON
  MlperfEvents mlperf_;
  FrameworkLines framework_lines_;
  std::optional<Error> csv_error_;
  std::string plain_;
  std::string prefix_;  // of the line, with the rank that it names
  std::optional<std::int32_t> rank_;
  std::uint8_t events_ = 0;
  std::optional<StepLine> composer_;  // the batch whose lines are being read
  std::uint32_t composer_step_ = 0;
  std::uint8_t composer_events_ = 0;
};

}  // namespace stepcast::detail
