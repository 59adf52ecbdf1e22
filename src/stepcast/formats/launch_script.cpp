// Launch scripts: reading their text with sourced files, and recognising command lines that have the keys of
// a framework's config as arguments.
#include "stepcast/formats/launch_script.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_writer.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/detail/job_format.h"
#include "stepcast/formats/detail/shell/script.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/formats/resolve_job.h"

namespace stepcast {

namespace {

// Limits of the text with sourced files, and of nested `source` commands.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
constexpr int kDeepestSource = 4;

// The file that a line such as `source "$DIR/../env.sh"` or `. $(dirname $0)/../env.sh` reads, relative to
// the script's folder. Leading variables and commands are assumed to be that folder. Empty for other lines.
std::string sourced_file(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with("source ") && !line.starts_with(". ")) return {};
  line.remove_prefix(line.find(' ') + 1);
  std::string path{line};
  std::erase_if(path, [](char c) { return c == '"' || c == '\'' || c == '\r'; });
  if (path.starts_with("$("))
    path.erase(0, path.rfind(')') + 1);
  else if (path.starts_with('$'))
    path.erase(0, std::min(path.find('/'), path.size()));
  if (path.size() < line.size()) path.erase(0, path.find_first_not_of('/'));
  path.resize(std::min(path.find_first_of(" ;&|"), path.size()));
  return path.find_first_of("$`") == std::string::npos ? path : std::string{};
}

// The text of a script with existing sourced files in place of their `source` lines.
Result<std::string> with_sources(const std::filesystem::path& file, int depth) {
  STEPCAST_ASSIGN(const std::string text, read_file(file, kMostBytes));
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::filesystem::path other = file.parent_path() / sourced_file(line);
    std::error_code ignored;
    if (depth < kDeepestSource && std::filesystem::is_regular_file(other, ignored)) {
      STEPCAST_ASSIGN(const std::string inner, with_sources(other, depth + 1));
      out += inner;
      if (out.size() > kMostBytes)
        return Error::at(file.string(), "", "reads files that include each other in a circle");
      continue;
    }
    out += std::string{line} + "\n";
  }
  return out;
}

// How a framework with config keys as arguments writes them.
struct ArgumentStyle {
  std::string_view shown_by;  // beginnings of words, separated by blanks, that must all occur
  bool has_dashes;            // true: --key value; false: key=value
};
constexpr ArgumentStyle kStyles[] = {{"--model_name_or_path", true},                 // Hugging Face's Trainer
                                     {"swift --model", true},                        // ms-swift
                                     {"model_name= per_device_batch_size=", false},  // MaxText
                                     {"model.partial_pretrain= data.", false}};  // verl's supervised training

// The style of a command line; null if it is none of these.
const ArgumentStyle* style_of(const std::vector<std::string>& words) {
  const auto is_missing = [&](std::string_view beginning) {
    return std::ranges::none_of(words, [&](const std::string& word) { return word.starts_with(beginning); });
  };
  const auto* const found = std::ranges::find_if(
      kStyles, [&](const ArgumentStyle& style) { return !any_word(style.shown_by, is_missing); });
  return found == std::end(kStyles) ? nullptr : found;
}

// The number of GPUs from `NNODES=2 NPROC_PER_NODE=8` before a command that starts its processes itself.
// Nothing without NPROC_PER_NODE.
std::optional<std::int64_t> gpus_of_environment(std::string_view script) {
  const auto said = [&](std::string_view name) -> std::optional<std::int64_t> {
    const std::size_t at = script.find(name);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = script.substr(at + name.size());
    return scan<std::int64_t>(rest.substr(0, rest.find_first_not_of("0123456789")));
  };
  constexpr std::int64_t kMost = 1 << 20;
  const std::optional<std::int64_t> processes = said("NPROC_PER_NODE=");
  const std::int64_t nodes = said("NNODES=").value_or(1);
  if (!processes || *processes < 1 || *processes > kMost || nodes < 1 || nodes > kMost) return std::nullopt;
  return *processes * nodes;
}

}  // namespace

Result<std::string> read_launch_script(const std::filesystem::path& file) { return with_sources(file, 0); }

Result<std::vector<std::string>> words_of_launch_script(std::string_view script) {
  return detail::launch_words(script);
}

std::optional<Job> config_of_command_line(const Job& said) {
  if (!said.command_line) return std::nullopt;
  const auto words = words_of_launch_script(*said.command_line);
  if (!words) return std::nullopt;
  const ArgumentStyle* const style = style_of(*words);
  if (style == nullptr) return std::nullopt;
  const bool is_trainer = style->has_dashes;
  // Keys with their values. A key without values is a switch.
  std::vector<std::pair<std::string, std::vector<std::string>>> keys;
  for (const std::string& word : *words) {
    const std::string_view text = std::string_view{word}.substr(is_trainer && word.starts_with("--") ? 2 : 0);
    const std::size_t equals = text.find('=');
    if (word.ends_with(".py")) {
      keys.clear();  // keys before the script belong to the launcher
    } else if (is_trainer ? word.starts_with("--")
                          : equals != std::string_view::npos && !word.starts_with('-')) {
      keys.emplace_back(text.substr(0, equals), 0);
      std::ranges::replace(keys.back().first, '-', '_');
      if (equals != std::string_view::npos) keys.back().second.emplace_back(text.substr(equals + 1));
    } else if (!keys.empty() && is_trainer && !word.starts_with('$')) {
      keys.back().second.push_back(word);
    }
  }
  if (const auto swift = std::ranges::find(*words, "swift");
      swift != words->end() && swift + 1 != words->end()) {
    // ms-swift trains adapters by default.
    const auto has = [&](std::string_view key) {
      return std::ranges::any_of(keys, [&](const auto& one) { return one.first == key; });
    };
    if (!has("train_type") && !has("tuner_type")) keys.push_back({"train_type", {"lora"}});
    keys.push_back({"swift", {*(swift + 1)}});
  }
  if (std::ranges::any_of(keys, [](const auto& one) { return one.first == "model.partial_pretrain"; }))
    keys.push_back({"verl_sft", {}});  // identifies the framework, because the other keys are paths
  // Written as JSON, so that the config reader handles it like a file.
  JsonWriter json;
  json.begin_object();
  for (const auto& [key, values] : keys) {
    json.key(key);
    if (values.size() > 1) json.begin_array();
    if (values.empty()) json.value(true);
    for (const std::string& value : values) {
      const std::string word = lower(value);
      if (word == "true" || word == "false")
        json.value(word == "true");
      else
        json.value(value);
    }
    if (values.size() > 1) json.end_array();
  }
  json.end_object();
  Job job = said;
  job.command_line.reset();
  job.config = ConfigText{std::move(json).text(), "--command-line"};
  if (!job.n_gpus) job.n_gpus = launched_gpus(*words);
  if (!job.n_gpus && is_trainer) job.n_gpus = gpus_of_environment(*said.command_line);
  // accelerate's options before the script are in a separate file.
  for (std::size_t i = 0; i + 1 < words->size() && !(*words)[i].ends_with(".py"); ++i)
    if ((*words)[i] == "--config_file")
      job.not_modelled.push_back(fmt::format("--config_file {}: not read; give its sharding with --sharding",
                                             (*words)[i + 1].substr(0, 80)));
  return job;
}

namespace detail {

JobFormat arguments_format() {
  return {.flag = "--command-line",
          .is = [](const Job& job) { return config_of_command_line(job).has_value(); },
          .excludes = {},
          .resolve = [](const Job& job) { return stepcast::resolve(*config_of_command_line(job)); }};
}

}  // namespace detail
}  // namespace stepcast
