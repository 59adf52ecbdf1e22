// The flags of Megatron-LM in one table: which setting each one is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "stepcast/describe/job.h"

namespace stepcast::detail {

// A flag without a value that stands for one.
template <class Value>
struct MegatronSwitch {
  std::optional<Value> JobSettings::*field;
  Value value;
};
// A flag with a word out of a list.
template <class Value>
struct MegatronChoice {
  std::optional<Value> JobSettings::*field;
  std::span<const std::pair<std::string_view, Value>> words;
};
// One word or several, kept as text with blanks between them.
struct MegatronWordList {
  std::optional<std::string> JobSettings::*field;
};
// A number or text is its member alone.
using MegatronSetting =
    std::variant<std::optional<std::int64_t> JobSettings::*, std::optional<double> JobSettings::*,
                 std::optional<std::string> JobSettings::*, MegatronSwitch<bool>, MegatronSwitch<DType>,
                 MegatronChoice<bool>, MegatronChoice<PositionEncoding>, MegatronChoice<NormKind>,
                 MegatronChoice<Fp8Scaling>, MegatronChoice<AttentionMethod>,
                 MegatronChoice<ContextParallelKind>, MegatronChoice<Recompute>, MegatronChoice<Sharding>,
                 MegatronChoice<PipelineSchedule>, MegatronChoice<OptimizerKind>, MegatronChoice<DType>,
                 MegatronChoice<TokenDispatcher>, MegatronSwitch<TokenDispatcher>, MegatronWordList>;

struct MegatronSettingFlag {
  std::string_view name;
  MegatronSetting setting;
};
// Every setting has at least one flag; of several, the first is the one that errors name.
[[nodiscard]] std::span<const MegatronSettingFlag> megatron_setting_flags();
[[nodiscard]] std::span<const std::string_view> megatron_flags_not_modelled();  // with any number of values
[[nodiscard]] std::span<const std::string_view> megatron_flags_passed_over();   // likewise

// Calls f(member) with the member of JobSettings that a flag sets.
template <class F>
auto with_member(const MegatronSetting& setting, F&& f) {
  return std::visit(
      [&](const auto& s) {
        if constexpr (requires { s.field; }) {
          return f(s.field);
        } else {
          return f(s);
        }
      },
      setting);
}

}  // namespace stepcast::detail
