// Tables of the flags of Megatron-LM: which setting each flag means.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stepcast/describe/job.h"
#include "stepcast/formats/megatron.h"

namespace stepcast::detail {

// A flag without a value, which sets `field` to `value`.
template <class Value>
struct MegatronSwitch {
  std::optional<Value> JobSettings::*field;
  Value value;
};
// A flag with one word from a list, each with its value.
template <class Value>
struct MegatronChoice {
  std::optional<Value> JobSettings::*field;
  std::vector<std::pair<std::string_view, Value>> words;
};
// A flag with one or more words, stored as a text separated by blanks.
struct MegatronWordList {
  std::optional<std::string> JobSettings::*field;
};
// What a flag sets. Flags with a number or a text only need the member.
using MegatronSetting =
    std::variant<std::optional<std::int64_t> JobSettings::*, std::optional<double> JobSettings::*,
                 std::optional<std::string> JobSettings::*, MegatronSwitch<bool>, MegatronSwitch<DType>,
                 MegatronChoice<bool>, MegatronChoice<PositionEncoding>, MegatronChoice<NormKind>,
                 MegatronChoice<Fp8Scaling>, MegatronChoice<AttentionMethod>,
                 MegatronChoice<ContextParallelKind>, MegatronChoice<Recompute>, MegatronChoice<Sharding>,
                 MegatronChoice<PipelineSchedule>, MegatronChoice<OptimizerKind>, MegatronChoice<DType>,
                 MegatronChoice<TokenDispatcher>, MegatronSwitch<TokenDispatcher>, MegatronWordList>;

// A flag that sets a member of JobSettings.
struct MegatronSettingFlag {
  std::string_view name;
  MegatronSetting setting;
  std::string_view printed_as;  // name of the argument in printed logs, if it differs from the flag
  // Conditions on other arguments that Megatron-LM prints; without them the argument has no effect. Words
  // that must all be true: "num_experts" (has a value), "a|b" (one of them), "cpu_offloading=True" (has this
  // value), "!a" (not). "never": the argument repeats another one or is implied.
  std::string_view only_with;
};
// All flags in tables/megatron_settings.csv. Each setting has at least one flag; errors name the first one.
[[nodiscard]] std::span<const MegatronSettingFlag> megatron_setting_flags();

// Flags with the same use and reason, and any number of values. `names`: without leading hyphens, separated
// by blanks; a trailing `*` matches any rest.
struct MegatronFlagRow {
  MegatronFlagUse use;
  std::string_view why, names;
};
// All rows of tables/megatron_flags.csv.
[[nodiscard]] std::span<const MegatronFlagRow> megatron_flag_rows();
// Calls f(name) for each name of the row.
template <class F>
void each_name(const MegatronFlagRow& row, F&& f) {
  for (std::string_view rest = row.names; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    f(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// The meaning of a flag: a setting, or a row of flags without setting. Both are null for unknown flags.
// `opposite`: it is the negation of the switch in `setting` (`--no-swiglu`, `--add-bias-linear`).
struct FoundMegatronFlag {
  const MegatronSettingFlag* setting = nullptr;
  const MegatronFlagRow* row = nullptr;
  bool opposite = false;
};
[[nodiscard]] FoundMegatronFlag find_megatron_flag(std::string_view flag);

// The name of the argument in Megatron-LM's printed output: "fp8" for "--fp8-format".
[[nodiscard]] std::string argument_of(std::string_view flag);
// Whether the flag turns off what its argument turns on: --disable-bias-linear, --no-rope-fusion.
[[nodiscard]] bool switches_off(std::string_view flag);

// Calls f(member) with the member of JobSettings that a flag sets, and returns the result.
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
