// Collects the settings that a run prints, and converts them to the formats that describe/ reads. Blocks over
// several lines are opened by a line that announces them, and closed by their last bracket, by an end line or
// by the first foreign line. TorchTitan's settings become the TOML that formats/torchtitan.h reads.
#include "stepcast/logs/detail/settings_blocks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/json_writer.h"
#include "stepcast/base/text.h"
#include "stepcast/logs/detail/log_text.h"

namespace stepcast::detail {

namespace {

// Largest block, in lines and in bytes. A longer one is dropped, since it is not a block of settings.
constexpr std::size_t kMostLines = 20'000;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

// True for a name of a setting: letters, digits, '_', '-' and '.'.
bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || c == '-' || c == '.';
  });
}

bool is_letter(char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_'; }

// A section of TorchTitan's config and the keys to keep.
struct Section {
  std::string_view name;
  std::vector<std::string_view> keys;
};

// The keys of each section that formats/torchtitan.cpp reads. A dump contains many more.
const std::vector<Section>& sections() {
  static const std::vector<Section> all{
      {"model", {"name", "flavor", "converters"}},
      {"training",
       {"batch_size", "local_batch_size", "global_batch_size", "seq_len", "compile", "mixed_precision_param",
        "mixed_precision_reduce", "dtype", "enable_cpu_offload", "max_norm", "enable_fp8_linear",
        "data_parallel_degree", "data_parallel_replicate_degree", "data_parallel_shard_degree",
        "tensor_parallel_degree"}},
      {"parallelism",
       {"data_parallel_replicate_degree", "data_parallel_shard_degree", "tensor_parallel_degree",
        "pipeline_parallel_degree", "context_parallel_degree", "expert_parallel_degree",
        "expert_tensor_parallel_degree", "pipeline_parallel_schedule", "pipeline_parallel_microbatch_size",
        "pipeline_parallel_layers_per_stage", "fsdp_reshard_after_forward", "context_parallel_rotate_method",
        "enable_async_tensor_parallel", "pipeline_parallel_split_points"}},
      {"experimental",
       {"pipeline_parallel_degree", "context_parallel_degree", "pipeline_parallel_schedule",
        "pipeline_parallel_microbatches", "enable_async_tensor_parallel"}},
      {"optimizer", {"name", "implementation", "fused", "early_step_in_backward"}},
      {"activation_checkpoint", {"mode", "selective_ac_option"}},
      {"float8", {"enable_float8_linear", "enable_fsdp_float8_all_gather", "recipe_name", "filter_fqns"}},
      {"compile", {"enable"}},
  };
  return all;
}

// Adds `key = value` to a TOML text. Values that are neither scalars nor lists of texts are left out.
void add_value(std::string& toml, std::string_view key, const JsonValue& value) {
  if (value.is_bool()) {
    toml += fmt::format("{} = {}\n", key, value.truth());
  } else if (value.is_number()) {
    toml += fmt::format("{} = {}\n", key, value.number());
  } else if (value.is_text()) {
    toml += fmt::format("{} = ", key);
    append_json(toml, value.text());
    toml += '\n';
  } else if (value.is_array()) {
    std::string items;
    for (const JsonValue& item : value.items()) {
      if (!item.is_text()) return;
      if (!items.empty()) items += ", ";
      append_json(items, item.text());
    }
    toml += fmt::format("{} = [{}]\n", key, items);
  }
}

// Names and sizes of the dimensions of a device mesh. Reads both forms of TorchTitan: "pp=1, dp_shard=8, ..."
// and "['dp_shard', 'tp'], [4, 2]". A size that is not valid counts as 1.
std::vector<std::pair<std::string, std::int64_t>> mesh_of(std::string_view text) {
  std::vector<std::pair<std::string, std::int64_t>> mesh;
  constexpr std::size_t kMost = 16;
  const auto count = [](std::string_view digits) -> std::int64_t {
    const auto number = number_at(digits);
    constexpr double kMostGpus = 1e6;
    return number && number->value >= 1 && number->value <= kMostGpus
               ? static_cast<std::int64_t>(number->value)
               : 1;
  };
  if (text.find('=') != std::string_view::npos) {
    for (std::size_t at = text.find('='); at != std::string_view::npos && mesh.size() < kMost;
         at = text.find('=', at + 1)) {
      std::size_t from = at;
      while (from > 0 && (is_digit(text[from - 1]) || lower(text[from - 1]) != ' ')) --from;
      mesh.emplace_back(text.substr(from, at - from), count(text.substr(at + 1)));
    }
    return mesh;
  }
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return mesh;
  for (std::size_t at = text.find('\''); at < close && mesh.size() < kMost;) {
    const std::size_t end = text.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    mesh.emplace_back(text.substr(at + 1, end - at - 1), 1);
    at = text.find('\'', end + 1);
  }
  std::size_t from = text.find('[', close);
  for (auto& [name, size] : mesh) {
    if (from == std::string_view::npos || from + 1 >= text.size()) break;
    size = count(text.substr(from + 1));
    from = text.find(',', from + 1);
  }
  return mesh;
}

}  // namespace

// True for comments, list items and lines "key:" or "key: value".
bool is_yaml_line(std::string_view line) {
  std::string_view text = trimmed(line);
  while (text.starts_with("- ")) text = trimmed(text.substr(2));
  if (text.empty() || text == "-" || text.starts_with('#')) return !text.empty();
  if (trimmed(line).starts_with("- ") && text.find(": ") == std::string_view::npos) return true;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  if (colon + 1 < text.size() && text[colon + 1] != ' ') return false;
  return is_word(text.substr(0, colon));
}

void SettingsBlocks::open_megatron() {
  close();
  kind_ = Kind::megatron;
  block_ = {};
  lines_ = foreign_ = 0;
}

void SettingsBlocks::open_json(std::string_view line, std::string LoggedSettings::*to) {
  const std::size_t brace = line.find('{');
  if (brace == std::string_view::npos) return;
  close();
  kind_ = Kind::json;
  block_ = {};
  to_ = to;
  depth_ = 0;
  in_text_ = escaped_ = false;
  lines_ = 0;
  take_json(line.substr(brace));
}

void SettingsBlocks::open_yaml(std::string_view line) {
  close();
  kind_ = Kind::yaml;
  block_ = {};
  lines_ = foreign_ = 0;
  if (is_yaml_line(line)) take_yaml(line);
}

bool SettingsBlocks::take(std::string_view line) {
  if (kind_ == Kind::none) return false;
  if (++lines_ > kMostLines) {
    kind_ = Kind::none;
    return false;
  }
  switch (kind_) {
    case Kind::megatron: return take_argument(line);
    case Kind::json:
      take_json(line);
      if (kind_ == Kind::json) block_.*to_ += '\n';
      return true;
    case Kind::yaml: return take_yaml(line);
    case Kind::none: break;
  }
  return false;
}

// Megatron-LM: "  tensor_model_parallel_size ...................... 8". Text of the launcher may precede the
// key.
bool SettingsBlocks::take_argument(std::string_view line) {
  if (line.find("end of arguments") != std::string_view::npos || line.find("end of ") == 0) {
    close();
    return true;
  }
  const std::size_t dots = line.find(" .");
  if (dots == std::string_view::npos) return false;
  const std::size_t behind = line.find_first_not_of('.', dots + 1);
  if (behind == std::string_view::npos || line[behind] != ' ') return false;
  std::string_view key = trimmed(line.substr(0, dots));
  if (const std::size_t blank = key.rfind(' '); blank != std::string_view::npos) key = key.substr(blank + 1);
  if (!is_word(key)) return false;
  block_.megatron.emplace_back(key, trimmed(line.substr(behind)));
  return true;
}

// Takes text up to the bracket that closes the first one. Brackets inside of quotes do not count, neither in
// JSON quotes nor in single quotes of Python.
void SettingsBlocks::take_json(std::string_view text) {
  std::string& out = block_.*to_;
  for (const char c : text) {
    out += c;
    if (in_text_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else if (c == quote_)
        in_text_ = false;
      continue;
    }
    if (c == '"' || c == '\'') {
      in_text_ = true;
      quote_ = c;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
      close();
      return;
    }
  }
  if (out.size() > kMostBytes) kind_ = Kind::none;
}

// True if the line belongs to the YAML block.
bool SettingsBlocks::take_yaml(std::string_view line) {
  // The line that announces the block may come first, and up to three lines that are not YAML before the
  // block begins.
  const bool begun = !block_.yaml.empty();
  if (!is_yaml_line(line)) {
    constexpr std::size_t kMostForeign = 3;
    if (begun || ++foreign_ > kMostForeign) close();
    return false;
  }
  block_.yaml += line;
  block_.yaml += '\n';
  if (block_.yaml.size() > kMostBytes) kind_ = Kind::none;
  return true;
}

// Moves the complete block to the settings of the log. A block that differs from an earlier one marks the
// settings as changed: the steps before it ran under other settings.
void SettingsBlocks::keep() {
  LoggedSettings& all = log_.settings;
  const auto differs = [](const auto& before, const auto& now) { return !before.empty() && before != now; };
  if (!block_.megatron.empty()) {
    all.changed = all.changed || differs(all.megatron, block_.megatron);
    if (all.megatron != block_.megatron) all.at_record = log_.steps.size();
    all.megatron = std::move(block_.megatron);
  }
  for (std::string LoggedSettings::*text :
       {&LoggedSettings::torchtitan, &LoggedSettings::deepspeed, &LoggedSettings::model_config}) {
    if ((block_.*text).empty()) continue;
    all.changed = all.changed || differs(all.*text, block_.*text);
    if (all.*text != block_.*text) all.at_record = log_.steps.size();
    all.*text = std::move(block_.*text);
  }
  // Sections of one document follow each other without steps between them. A section after more steps belongs
  // to a later run and replaces the earlier text.
  if (!block_.yaml.empty()) {
    if (all.yaml.find(block_.yaml) == std::string::npos) {
      const bool later = log_.steps.size() > all.at_record && !all.yaml.empty();
      if (later) all.yaml.clear();
      all.changed = all.changed || later;
      all.at_record = log_.steps.size();
      if (all.yaml.size() < kMostBytes) all.yaml += block_.yaml;
    }
  }
}

void SettingsBlocks::close() {
  if (kind_ == Kind::none) return;
  // A JSON block without its last bracket is dropped.
  const bool broken = kind_ == Kind::json && depth_ > 0;
  kind_ = Kind::none;
  if (!broken) keep();
  block_ = {};
}

void SettingsBlocks::word(std::string_view name, std::string_view value) {
  constexpr std::size_t kLongest = 200;
  log_.settings.words.insert_or_assign(std::string{name}, std::string{value.substr(0, kLongest)});
}

void SettingsBlocks::begin_run() { ++log_.settings.times; }

// Unquoted words that are not constants become texts, tuples become lists.
std::string python_to_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      out += '"';
      for (++i; i < text.size() && text[i] != c; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) {
          if (text[i + 1] != '\'') out += text[i];
          out += text[++i];
        } else if (text[i] == '"') {
          out += "\\\"";
        } else {
          out += text[i];
        }
      }
      out += '"';
      ++i;
    } else if (is_letter(c)) {
      std::size_t end = i;
      while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]) || text[end] == '.')) ++end;
      const std::string_view word = text.substr(i, end - i);
      if (word == "True" || word == "true") {
        out += "true";
      } else if (word == "False" || word == "false") {
        out += "false";
      } else if (word == "None" || word == "null") {
        out += "null";
      } else {
        out += '"';
        out += word;
        out += '"';
      }
      i = end;
    } else if (is_digit(c) || c == '-' || c == '+') {  // a number with its exponent
      std::size_t end = i + 1;
      while (end < text.size() &&
             (is_digit(text[end]) || text[end] == '.' || text[end] == 'e' || text[end] == 'E' ||
              ((text[end] == '-' || text[end] == '+') && lower(text[end - 1]) == 'e')))
        ++end;
      out += text.substr(i, end - i);
      i = end;
    } else {
      out += c == '(' ? '[' : c == ')' ? ']' : c;
      ++i;
    }
  }
  return out;
}

// Some releases have the section `float8` below `quantize.linear`.
Result<std::string> torchtitan_toml(std::string_view dump, const std::string& file) {
  STEPCAST_ASSIGN(const JsonValue config, parse_json(python_to_json(dump), file + ": TorchTitan's config"));
  std::string toml;
  for (const Section& section : sections()) {
    const JsonValue* found = config.find(section.name);
    if (section.name == "float8" && found == nullptr) {
      const JsonValue* quantize = config.find("quantize");
      const JsonValue* linear = quantize == nullptr ? nullptr : quantize->find("linear");
      found = linear == nullptr ? nullptr : linear->find("float8");
    }
    if (found == nullptr || !found->is_object()) continue;
    toml += fmt::format("[{}]\n", section.name);
    for (const std::string_view key : section.keys)
      if (const JsonValue* value = found->find(key)) add_value(toml, key, *value);
  }
  return toml;
}

// Builds the config from single words of the log. Values that the log does not contain are left to the
// defaults of TorchTitan.
std::string torchtitan_toml_of_words(const std::map<std::string, std::string, std::less<>>& words) {
  const auto word = [&](std::string_view name) {
    const auto found = words.find(name);
    return found == words.end() ? std::string{} : found->second;
  };
  const std::string model = word("titan_model");
  const std::size_t blank = model.find(' ');
  std::string toml = "[model]\nname = ";
  append_json(toml, model.substr(0, blank));
  toml += "\nflavor = ";
  append_json(toml, blank == std::string::npos ? "" : model.substr(blank + 1));
  toml += "\n[training]\n";
  const auto number = [&](std::string_view key, std::string_view name) {
    if (const std::string value = word(name); !value.empty()) toml += fmt::format("{} = {}\n", key, value);
  };
  number("local_batch_size", "titan_local_batch");
  number("global_batch_size", "titan_global_batch");
  number("seq_len", "titan_seq_len");
  toml += "[parallelism]\n";
  constexpr std::pair<std::string_view, std::string_view> kDegrees[] = {
      {"dp_replicate", "data_parallel_replicate_degree"},
      {"dp_shard", "data_parallel_shard_degree"},
      {"tp", "tensor_parallel_degree"},
      {"pp", "pipeline_parallel_degree"},
      {"cp", "context_parallel_degree"},
      {"ep", "expert_parallel_degree"},
      {"etp", "expert_tensor_parallel_degree"},
      {"dp", "data_parallel_shard_degree"}};
  bool sharded = false;
  for (const auto& [name, size] : mesh_of(word("titan_mesh"))) {
    for (const auto& [dimension, key] : kDegrees) {
      if (dimension != name || (sharded && key == "data_parallel_shard_degree")) continue;
      sharded = sharded || key == "data_parallel_shard_degree";
      toml += fmt::format("{} = {}\n", key, size);
    }
  }
  if (!sharded) toml += "data_parallel_shard_degree = 1\n";
  const std::string recompute = word("titan_recompute");
  toml += fmt::format("[activation_checkpoint]\nmode = \"{}\"\n",
                      recompute == "full" || recompute == "selective" ? recompute : "none");
  if (recompute == "selective") toml += "selective_ac_option = \"op\"\n";
  if (!word("titan_compile").empty()) toml += "[compile]\nenable = true\n";
  if (const std::string recipe = word("titan_float8"); !recipe.empty())
    toml += fmt::format(
        "[float8]\nenable_float8_linear = true\nrecipe_name = \"{}\"\nfilter_fqns = [\"output\"]\n", recipe);
  return toml;
}

std::optional<std::int64_t> torchtitan_gpus(std::string_view mesh) {
  std::int64_t gpus = 1;
  bool any = false;
  constexpr std::int64_t kMost = 10'000'000;
  for (const auto& [name, size] : mesh_of(mesh)) {
    if (name == "ep" || name == "etp") continue;  // expert parallelism uses the ranks of the other dimensions
    any = true;
    if (gpus > kMost / size) return std::nullopt;
    gpus *= size;
  }
  if (!any) return std::nullopt;
  return gpus;
}

}  // namespace stepcast::detail
