// Collects what a run prints about its settings: blocks over several lines (tables of arguments, JSON, YAML)
// and words of single lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/logs/training_log.h"

namespace stepcast::detail {

// Reads the blocks of one log, one line at a time. At most one block is open.
class SettingsBlocks {
 public:
  explicit SettingsBlocks(TrainingLog& log) : log_(log) {}

  // Call with every line while a block is open. Returns true if the line belongs to the block. Closes the
  // block if this line ends it.
  bool take(std::string_view line);
  // True while a block is being read; every line must then be passed to take().
  [[nodiscard]] bool is_open() const { return kind_ != Kind::none; }

  // Open a block: a table of arguments of Megatron-LM, a JSON object that begins in `line` and is stored in
  // the member `to`, or YAML that begins in or after `line`. An open block is closed first.
  void open_megatron();
  void open_json(std::string_view line, std::string LoggedSettings::*to);
  void open_yaml(std::string_view line);
  // Closes the open block and keeps its contents.
  void close();

  // Stores a word of a single line under `name`. A later word with the same name replaces it.
  void word(std::string_view name, std::string_view value);
  // Call for each line that announces the settings of a run. Counts how often a run started.
  void begin_run();

 private:
  // The form of the open block.
  enum class Kind : unsigned char { none, megatron, json, yaml };
  // Add one line to the open block, by kind.
  bool take_argument(std::string_view line);
  void take_json(std::string_view text);
  bool take_yaml(std::string_view line);
  // Moves the contents of the closed block to the settings of the log.
  void keep();

  TrainingLog& log_;
  Kind kind_ = Kind::none;
  LoggedSettings block_;  // contents of the open block so far
  // Of an open JSON block: the member it is stored in, the number of open brackets, and whether the position
  // is inside a text or after a backslash; `quote_` is the quote that opened the text.
  std::string LoggedSettings::*to_ = nullptr;
  int depth_ = 0;
  bool in_text_ = false, escaped_ = false;
  char quote_ = '"';
  // Lines of the open block, and lines that did not belong to it.
  std::size_t lines_ = 0, foreign_ = 0;
};

// Whether a line can be part of a YAML document.
[[nodiscard]] bool is_yaml_line(std::string_view line);

// Converts a Python dict to JSON: quotes, True, False, None and tuples. JSON is returned unchanged.
[[nodiscard]] std::string python_to_json(std::string_view text);

// TorchTitan's settings as the TOML that formats/torchtitan.h reads, from a dump of the whole config (JSON or
// a Python dict). Keys that affect neither time nor memory are left out. `file` is named in errors. Error:
// the dump cannot be parsed.
[[nodiscard]] Result<std::string> torchtitan_toml(std::string_view dump, const std::string& file);

// The same from the words of single lines ("titan_model", "titan_mesh", "titan_local_batch", ...).
[[nodiscard]] std::string torchtitan_toml_of_words(
    const std::map<std::string, std::string, std::less<>>& words);

// The number of GPUs: the degrees of a mesh multiplied, without those of expert parallelism. Forms:
// "['dp_shard', 'tp'], [4, 2]" and "parallelism: pp=1, dp_replicate=1, dp_shard=8, ...". Empty if there is no
// mesh.
[[nodiscard]] std::optional<std::int64_t> torchtitan_gpus(std::string_view mesh);

}  // namespace stepcast::detail
