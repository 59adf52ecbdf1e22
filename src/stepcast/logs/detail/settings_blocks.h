// What a run prints about its settings over many lines: tables of arguments, JSON, YAML; and words of single lines.
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

class SettingsBlocks {
 public:
  explicit SettingsBlocks(TrainingLog& log) : log_(log) {}

  // Every line while a block is open; returns whether the line belongs to it. Closes blocks that end.
  bool take(std::string_view line);
  [[nodiscard]] bool is_open() const { return kind_ != Kind::none; }

  // Lines that open one.
  void open_megatron();
  void open_json(std::string_view line, std::string LoggedSettings::*to);
  void open_yaml(std::string_view line);
  void close();

  // Words of a line, under a name; the first of a run holds.
  void word(std::string_view name, std::string_view value);
  // Every later line that says where a run begins.
  void begin_run();

 private:
  enum class Kind : unsigned char { none, megatron, json, yaml };
  bool take_argument(std::string_view line);
  void take_json(std::string_view text);
  bool take_yaml(std::string_view line);
  void keep();

  TrainingLog& log_;
  Kind kind_ = Kind::none;
  LoggedSettings block_;  // what the open block has so far
  std::string LoggedSettings::*to_ = nullptr;
  int depth_ = 0;
  bool in_text_ = false, escaped_ = false;
  char quote_ = '"';
  std::size_t lines_ = 0, foreign_ = 0;
};

// Whether a line may begin or go on with YAML, and its indent.
[[nodiscard]] bool is_yaml_line(std::string_view line);

// A Python dict as JSON: quotes, True, False, None and tuples. JSON stays as it is.
[[nodiscard]] std::string python_to_json(std::string_view text);

// TorchTitan's settings out of its log, as the TOML that formats/torchtitan.h reads.
// From the dump of the whole config, JSON or a Python dict; keys that change neither time nor memory are left out.
[[nodiscard]] Result<std::string> torchtitan_toml(std::string_view dump, const std::string& file);

// From what single lines say ("titan_model", "titan_mesh", "titan_local_batch", ...).
[[nodiscard]] std::string torchtitan_toml_of_words(
    const std::map<std::string, std::string, std::less<>>& words);

// "['dp_shard', 'tp'], [4, 2]" or "parallelism: pp=1, dp_replicate=1, dp_shard=8, ...": the product of all degrees.
[[nodiscard]] std::optional<std::int64_t> torchtitan_gpus(std::string_view mesh);

}  // namespace stepcast::detail
