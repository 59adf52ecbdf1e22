// Names files that are not training logs, from their first bytes or a text in them, and reads event files of
// TensorBoard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/logs/training_log.h"

namespace stepcast::detail {

// Name of a binary file from its first bytes: "an archive (zip, or weights of PyTorch)". "binary data" if it
// is unknown.
[[nodiscard]] std::string_view name_of_binary(std::string_view beginning);
// Name of a text file: "the output of nvidia-smi". Empty if it is unknown.
[[nodiscard]] std::string_view name_of_text(std::string_view beginning);

// True if the bytes begin with the first record of a TensorBoard event file. Such a file is a sequence of
// TFRecord records, each with an Event (tensorflow/core/util/event.proto).
[[nodiscard]] bool begins_event_file(std::string_view beginning);

// Reads an event file in pieces. The steps are added to `log`.
class EventFile {
 public:
  // `log` must outlive this.
  explicit EventFile(TrainingLog& log) : log_(log) {}

  // Decodes the complete records at the start of `bytes` and returns their length in bytes. The caller passes
  // the rest again with more data. An incomplete last record is normal for a run that is still writing. Empty
  // if the bytes are not TFRecord records.
  [[nodiscard]] std::optional<std::size_t> take(std::string_view bytes);
  // Call after the last record. If no scalar contains step times, the steps get the wall times at which they
  // were written.
  void finish();

 private:
  // Decodes one record.
  void event(std::string_view message);
  // Uses one scalar value with its tag, for the step and time of the current event.
  void scalar(std::string_view tag, double value);

  TrainingLog& log_;
  // Of the current event: wall time in seconds since 1970, step, and the last batch size that was written.
  double wall_s_ = 0;
  std::uint32_t step_ = 0, batch_ = 0;
  std::string time_tag_;           // the first tag with step times; only this one is used
  std::vector<LoggedStep> clock_;  // wall time of the first scalar of each step
};

}  // namespace stepcast::detail
