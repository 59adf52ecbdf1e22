// The flags of Megatron-LM in one table: which setting each one is.
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
  std::vector<std::pair<std::string_view, Value>> words;
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
  std::string_view printed_as;  // its argument, where that is not called as the flag is
  // Which other arguments that Megatron-LM prints give it a meaning, words that all have to hold: "num_experts" is said,
  // "a|b" one of them is, "cpu_offloading=True" has this value, "!a" is not so; "never" of what says the same twice or goes
  // without saying.
  std::string_view only_with;
};
// Of tables/megatron_settings.csv. Every setting has at least one flag; of several, the first is the one that errors name.
[[nodiscard]] std::span<const MegatronSettingFlag> megatron_setting_flags();

// Flags of one class for one reason, with any number of values: names without hyphens in front and with blanks
// between them; `*` at the end of a name stands for any rest.
struct MegatronFlagRow {
  MegatronFlagUse use;
  std::string_view why, names;
};
[[nodiscard]] std::span<const MegatronFlagRow> megatron_flag_rows();
// Calls f(name) for each of them.
template <class F>
void each_name(const MegatronFlagRow& row, F&& f) {
  for (std::string_view rest = row.names; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    f(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// Where a flag stands: one of both, or neither of a flag that is not known. `opposite`: it says the contrary of the
// switch (`--no-swiglu`, `--add-bias-linear`).
struct FoundMegatronFlag {
  const MegatronSettingFlag* setting = nullptr;
  const MegatronFlagRow* row = nullptr;
  bool opposite = false;
};
[[nodiscard]] FoundMegatronFlag find_megatron_flag(std::string_view flag);

// Its name in what Megatron-LM prints: "--fp8-format" is "fp8".
[[nodiscard]] std::string argument_of(std::string_view flag);
// Whether it switches off what its argument says is on: --disable-bias-linear, --no-rope-fusion.
[[nodiscard]] bool switches_off(std::string_view flag);

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
