#include "stepcast/describe/megatron_writer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "stepcast/describe/detail/megatron_flags.h"

namespace stepcast {
namespace {

// What stands behind the flag: nothing where the flag cannot say the value, an empty text where it has none.
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

}  // namespace

std::string megatron_flags_of(const JobSettings& settings) {
  JobSettings left = settings;
  std::string text;
  for (const detail::MegatronSettingFlag& flag : detail::megatron_setting_flags()) {
    // The formats of Transformer Engine: hybrid is the one that people train with.
    const std::optional<std::string> value = flag.name == "--fp8-format" && left.fp8 == true
                                                 ? std::optional<std::string>{" hybrid"}
                                                 : std::visit(FlagValue{left}, flag.setting);
    if (!value) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", flag.name, *value);
    // Only one flag of several that mean the same.
    detail::with_member(flag.setting, [&](auto field) { (left.*field).reset(); });
  }
  // Of three names for sharded weights, today's.
  constexpr std::string_view kOld = "--use-torch-fsdp2", kNew = "--use-megatron-fsdp";
  if (const std::size_t at = text.find(kOld); at != std::string::npos) text.replace(at, kOld.size(), kNew);
  return text;
}

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

}  // namespace stepcast
