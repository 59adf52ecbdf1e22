// Writes settings as flags of Megatron-LM, from the same table with which they are read.
#include "stepcast/formats/megatron_writer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/detail/megatron_flags.h"

namespace stepcast {

namespace {

// The text after a flag for the settings `s`: empty for flags without value, nothing if the flag cannot
// express the setting. One overload per kind of flag.
struct FlagValue {
  const JobSettings& s;

  template <class Number>
    requires std::is_arithmetic_v<Number>
  std::optional<std::string> operator()(std::optional<Number> JobSettings::*field) const {
    if (!(s.*field)) return std::nullopt;
    return fmt::format(" {}", *(s.*field));
  }
  std::optional<std::string> operator()(std::optional<std::string> JobSettings::*field) const {
    if (!(s.*field)) return std::nullopt;
    return fmt::format(" \"{}\"", *(s.*field));
  }
  template <class Value>
  std::optional<std::string> operator()(const detail::MegatronSwitch<Value>& flag) const {
    if (s.*flag.field != flag.value) return std::nullopt;
    return std::string{};
  }
  template <class Value>
  std::optional<std::string> operator()(const detail::MegatronChoice<Value>& flag) const {
    for (const auto& [word, value] : flag.words) {
      if (s.*flag.field == value) return fmt::format(" {}", word);
    }
    return std::nullopt;
  }
  std::optional<std::string> operator()(const detail::MegatronWordList& flag) const {
    if (!(s.*flag.field)) return std::nullopt;
    return fmt::format(" {}", *(s.*flag.field));
  }
};

// Names and values of printed arguments.
using Arguments = std::map<std::string_view, std::string_view>;

// Unmodelled flags that are on by default and would only clutter the command line.
constexpr std::string_view kWithoutSaying =
    "align-grad-reduce no-align-grad-reduce enable-gloo-process-groups";

// Converts a printed Python value to the words of a flag: "['core_attn', 'moe_act']", "[<CudaGraphScope.attn:
// 1>]", "AttnBackend.auto", "torch.float32".
std::string plain(std::string_view value) {
  std::string out;
  std::string word;
  const auto end_word = [&] {
    if (const std::size_t dot = word.rfind('.');
        dot != std::string::npos && !std::all_of(word.begin(), word.end(), [](char c) {
          return is_digit(c) || c == '.' || c == '-' || c == 'e';
        }))
      word.erase(0, dot + 1);
    if (word == "float32") word = "fp32";
    if (word == "bfloat16") word = "bf16";
    if (word == "float16") word = "fp16";
    if (!word.empty()) out += (out.empty() ? "" : " ") + word;
    word.clear();
  };
  bool in_enum_value = false;
  for (const char c : value) {
    if (c == ':') in_enum_value = true;
    if (c == '>' || c == ',') in_enum_value = false;
    if (std::string_view{"[]()<>'\", :"}.find(c) != std::string_view::npos) {
      end_word();
    } else if (!in_enum_value) {
      word += c;
    }
  }
  end_word();
  return out;
}

// The word in single quotes, without single quotes inside.
std::string in_quotes(std::string_view word) {
  std::string out = "'";
  for (const char c : word) {
    if (c != '\'') out += c;
  }
  return out + "'";
}

// Builds a command line from the table of arguments that Megatron-LM prints.
class Line {
 public:
  explicit Line(const Arguments& arguments) : arguments_(arguments) {}

  // The printed value of an argument (empty if it was not printed); whether it is True; and whether it has a
  // value other than Python's empty ones.
  [[nodiscard]] std::string_view value(std::string_view argument) const {
    const auto at = arguments_.find(argument);
    return at == arguments_.end() ? std::string_view{} : at->second;
  }
  [[nodiscard]] bool on(std::string_view argument) const { return value(argument) == "True"; }
  [[nodiscard]] bool said(std::string_view argument) const {
    const std::string_view v = value(argument);
    return !v.empty() && v != "None" && v != "False" && v != "[]";
  }

  // Appends a flag with its value, if the arguments contain one.
  void add(const detail::MegatronSettingFlag& flag) {
    const std::string argument = detail::argument_of(flag.name);
    const std::string_view v = value(argument);
    if (v.empty()) return;
    const bool is_switch =
        std::visit([](const auto& setting) { return requires { setting.value; }; }, flag.setting);
    if (is_switch) {
      if (v == (detail::switches_off(flag.name) ? "False" : "True")) text_ += " " + std::string{flag.name};
      return;
    }
    if (!said(argument) || v == "True") return;
    if (flag.name == "--window-size" || flag.name == "--pipeline-model-parallel-layout" ||
        flag.name == "--tokenizer-type" || flag.name == "--tokenizer-model" ||
        flag.name == "--moe-layer-freq" || flag.name == "--linear-attention-freq") {
      std::string word{v};
      std::erase(word, ' ');
      text_ += " " + std::string{flag.name} + " " + in_quotes(word);
      return;
    }
    std::string words = plain(v);
    const bool takes_several = std::holds_alternative<detail::MegatronWordList>(flag.setting);
    if (!takes_several) words = words.substr(0, words.find(' '));
    // Forks of Megatron-LM declare some integers as floating-point numbers: "1.0".
    const bool whole = std::holds_alternative<std::optional<std::int64_t> JobSettings::*>(flag.setting);
    if (whole && words.ends_with(".0")) words.resize(words.size() - 2);
    if (words.empty() || words == "None") return;
    text_ += " " + std::string{flag.name};
    for (std::size_t from = 0; from < words.size();) {
      const std::size_t end = std::min(words.find(' ', from), words.size());
      text_ += " " + in_quotes(std::string_view{words}.substr(from, end - from));
      from = end + 1;
    }
  }

  // Appends a flag that is not modelled, if it is on, so that the forecast lists it.
  void add_not_modelled(std::string_view flag) {
    const std::string argument = detail::argument_of(flag);
    if (on(argument)) text_ += " " + std::string{flag};
    if (flag == "--rampup-batch-size" && said(argument))
      text_ += " " + std::string{flag} + " " + in_quotes(plain(value(argument)));
  }

  // Whether all conditions in `only_with` are true (detail/megatron_flags.h).
  [[nodiscard]] bool holds(std::string_view only_with) const {
    return !any_word(only_with, [&](std::string_view word) {
      const bool is_wanted = !word.starts_with('!');
      const auto is_so = [&](std::string_view one) {
        const std::size_t equals = one.find('=');
        return equals == std::string_view::npos ? said(one)
                                                : value(one.substr(0, equals)) == one.substr(equals + 1);
      };
      return any_word(word.substr(is_wanted ? 0 : 1), is_so, '|') != is_wanted;
    });
  }

  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  const Arguments& arguments_;
  std::string text_;
};

}  // namespace

// Each setting is written once: after its first flag it is removed from `left`.
std::string megatron_flags_of(const JobSettings& settings) {
  JobSettings left = settings;
  std::string text;
  for (const detail::MegatronSettingFlag& flag : detail::megatron_setting_flags()) {
    // fp8 formats of Transformer Engine: hybrid is the usual one for training.
    const std::optional<std::string> value = flag.name == "--fp8-format" && left.fp8 == true
                                                 ? std::optional<std::string>{" hybrid"}
                                                 : std::visit(FlagValue{left}, flag.setting);
    if (!value) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", flag.name, *value);
    // Only one of several flags with the same meaning.
    detail::with_member(flag.setting, [&](auto field) { (left.*field).reset(); });
  }
  // Weights can be sharded by three flags; the current one is written.
  constexpr std::string_view kOld = "--use-torch-fsdp2", kNew = "--use-megatron-fsdp";
  if (const std::size_t at = text.find(kOld); at != std::string::npos) text.replace(at, kOld.size(), kNew);
  return text;
}

// Equal neighbouring stages are written as a group with a factor.
std::string pipeline_layout_string(std::span<const std::int64_t> layers_per_stage,
                                   std::int64_t n_multi_token_prediction_layers) {
  const auto repeated = [](char letter, std::int64_t times) {
    if (times <= 0) return std::string{};
    return times == 1 ? std::string{letter} : fmt::format("{}*{}", letter, times);
  };
  std::vector<std::string> stages;
  for (const std::int64_t n : layers_per_stage) stages.push_back(repeated('t', n));
  if (stages.empty()) return {};
  stages.front().insert(0, "E");
  stages.back() += repeated('m', n_multi_token_prediction_layers) + "L";
  std::string text;
  for (std::size_t i = 0; i < stages.size();) {
    const bool is_last = i + 1 == stages.size();
    std::size_t end = i + 1;
    while (end + 1 < stages.size() && stages[end] == stages[i]) ++end;
    if (is_last) {
      text += stages[i];
    } else if (end - i == 1) {
      text += stages[i] + "|";
    } else {
      text += fmt::format("({}|)*{}{}", stages[i], end - i,
                          end + 1 == stages.size() && stages[end].starts_with('t') ? "," : "");
    }
    i = end;
  }
  return text;
}

std::string command_line_of_arguments(std::span<const std::pair<std::string, std::string>> arguments,
                                      bool is_bert) {
  Arguments known;
  for (const auto& [name, value] : arguments) known.insert_or_assign(name, value);
  Line line{known};
  for (const detail::MegatronSettingFlag& flag : detail::megatron_setting_flags()) {
    if (line.holds(flag.only_with)) line.add(flag);
  }
  for (const detail::MegatronFlagRow& row : detail::megatron_flag_rows()) {
    if (row.use != MegatronFlagUse::not_modelled) continue;
    detail::each_name(row, [&](std::string_view name) {
      const bool is_of_hybrid = name.starts_with("mamba-") || name.starts_with("hybrid-");
      if (is_among(name, kWithoutSaying) ||
          (is_of_hybrid && !line.holds("is_hybrid_model=True|hybrid_layer_pattern")))
        return;
      line.add_not_modelled(fmt::format("--{}", name));
    });
  }
  return (is_bert ? "pretrain_bert.py" : "pretrain_gpt.py") + std::move(line).text();
}

}  // namespace stepcast
