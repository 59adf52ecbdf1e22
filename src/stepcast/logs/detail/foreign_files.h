// What a file is that is no log of a training run, by how it begins and what its lines hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/logs/training_log.h"

namespace stepcast::detail {

// "an archive (zip, or weights of PyTorch)"; "binary data" where nothing is known.
[[nodiscard]] std::string_view name_of_binary(std::string_view beginning);
// "the output of nvidia-smi"; empty where nothing is known.
[[nodiscard]] std::string_view name_of_text(std::string_view beginning);

// TensorBoard's event files: records of TFRecord with an Event (tensorflow/core/util/event.proto) each.
// Whether the bytes are the first record of one.
[[nodiscard]] bool begins_event_file(std::string_view beginning);

class EventFile {
 public:
  // `log` must outlive this.
  explicit EventFile(TrainingLog& log) : log_(log) {}

  // Takes whole records from the begin of the bytes; returns how many bytes they were. A last record that is cut off is
  // what a run leaves that still writes. Nothing: no records of TFRecord.
  [[nodiscard]] std::optional<std::size_t> take(std::string_view bytes);
  // Steps by the clock where no scalar tells their times.
  void finish();

 private:
  void event(std::string_view message);
  void scalar(std::string_view tag, double value);

  TrainingLog& log_;
  double wall_s_ = 0;
  std::uint32_t step_ = 0, batch_ = 0;
  std::string time_tag_;           // the first that tells times
  std::vector<LoggedStep> clock_;  // when each step was first told
};

}  // namespace stepcast::detail
