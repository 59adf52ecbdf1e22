// The flags of Megatron-LM, from two tables. megatron_settings.csv lists flags that set a member of JobSettings;
// megatron_flags.csv lists all other known flags with the reason why they are ignored or not modelled.
#include "stepcast/formats/detail/megatron_flags.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/named_members.h"
#include "stepcast/base/names.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/setting_groups.h"
#include "stepcast/operation/optimizer_rule.h"

namespace stepcast::detail {
namespace {

using S = JobSettings;
// A value by its name in the table: "off", "bf16", "zero_bubble_h1". Nothing for an unknown name.
template <class Value>
std::optional<Value> value_of(std::string_view name) {
  if constexpr (std::is_same_v<Value, bool>) {
    if (name == "on" || name == "off") return name == "on";
  } else if constexpr (std::is_same_v<Value, OptimizerKind>) {
    return stepcast::find_optimizer(name);
  } else if constexpr (std::is_enum_v<Value>) {
    return value_named<Value>(name);
  }
  return std::nullopt;
}

// Translates the column "says" of a flag. Empty: the flag has a value. "words": it has several words.
// "uniform=off block=on": it has a word, and each word means a value (or is the value's name). "on" or
// "bf16": the flag without a value means this value. Nothing if the column is invalid for the type.
template <class Value>
std::optional<MegatronSetting> setting_of(SettingOf<Value> member, std::string_view says) {
  const auto if_there_is = [](const auto& setting) -> std::optional<MegatronSetting> {
    if constexpr (std::is_constructible_v<MegatronSetting, decltype(setting)>) return setting;
    return std::nullopt;
  };
  if (says.empty()) return if_there_is(member);
  if constexpr (std::is_same_v<Value, std::string>) {
    if (says == "words") return MegatronWordList{member};
  }
  if (says.find_first_of(" =") == std::string_view::npos) {
    const std::optional<Value> value = value_of<Value>(says);
    return value ? if_there_is(MegatronSwitch<Value>{member, *value}) : std::nullopt;
  }
  MegatronChoice<Value> choice{member, {}};
  const bool has_unknown = any_word(says, [&](std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::optional<Value> value = value_of<Value>(word.substr(equals + 1));
    if (value) choice.words.emplace_back(word.substr(0, equals), *value);
    return !value;
  });
  return has_unknown ? std::nullopt : if_there_is(choice);
}

// Reads megatron_settings.csv. A setting may have several rows: Megatron-LM's config files name some settings
// differently.
Result<std::vector<MegatronSettingFlag>> read_setting_flags() {
  const std::string file = "megatron_settings.csv";
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table(file), file));
  std::vector<MegatronSettingFlag> all;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return all;
    const std::optional<SettingMember> member = setting_named(rows.cell("setting"));
    if (!member) return rows.error("setting").expected("a member of JobSettings");
    const auto setting =
        std::visit([&](auto field) { return setting_of(field, rows.cell("says")); }, *member);
    if (!setting) return rows.error("says").expected("what a flag can say of this setting");
    (void)any_word(rows.cell("flags"), [&](std::string_view flag) {
      all.push_back({flag, *setting, rows.cell("printed_as"), rows.cell("only_with")});
      return false;
    });
  }
}

// Use of flags such as --no-X for a known X that is ignored.
constexpr MegatronFlagRow kSwitchedOff{MegatronFlagUse::passed_over, "switched off, the default", ""};

// The row of a flag that sets a member; null if there is none.
const MegatronSettingFlag* find_setting(std::string_view name) {
  const auto flags = megatron_setting_flags();
  const auto found = std::ranges::find(flags, name, &MegatronSettingFlag::name);
  return found == flags.end() ? nullptr : &*found;
}

// Reads megatron_flags.csv: one row per use and reason, with the names of all its flags.
Result<std::vector<MegatronFlagRow>> read_flag_rows() {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("megatron_flags.csv"), "megatron_flags.csv"));
  constexpr auto kUses =
      names<MegatronFlagUse::out_of_scope>({"understood", "passed_over", "not_modelled", "out_of_scope"});
  std::vector<MegatronFlagRow> all;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return all;
    const auto use = kUses.find(rows.cell("use"));
    if (!use) return rows.error("use").expected("not_modelled, out_of_scope or passed_over");
    all.push_back({*use, rows.cell("why"), rows.cell("names")});
  }
}

// The row of a flag that sets nothing. Exact names have precedence over patterns ending with `*`, longer
// patterns over shorter ones. Null: unknown.
const MegatronFlagRow* find_row(std::string_view name) {
  const MegatronFlagRow* best = nullptr;
  std::size_t length = 0;  // of the pattern
  for (const MegatronFlagRow& row : megatron_flag_rows()) {
    bool is_exact = false;
    each_name(row, [&](std::string_view known) {
      is_exact = is_exact || known == name;
      if (!known.ends_with('*') || known.size() <= length) return;
      if (!name.starts_with(known.substr(0, known.size() - 1))) return;
      best = &row;
      length = known.size();
    });
    if (is_exact) return &row;
  }
  return best;
}

// Whether the group contains this member. The lambda's template parameter works around g++ 12, which deduces
// another type for decltype of a captured variable.
template <class Group, class Field>
bool holds_member(const Group& group, Field field) {
  bool found = false;
  group.each([&]<class Member>(Member member) {
    if constexpr (std::is_same_v<Member, Field>) found = found || member == field;
  });
  return found;
}

// Part of the description that a setting belongs to, for the list of flags.
std::string_view part_of(const MegatronSetting& setting) {
  return with_member(setting, [](auto field) -> std::string_view {
    if (holds_member(setting_groups::kModel, field)) return "the model";
    if (holds_member(setting_groups::kKept, field)) return "how it is computed, batches and the optimizer";
    return "how it is spread over GPUs, and recomputation";
  });
}

}  // namespace

std::span<const MegatronSettingFlag> megatron_setting_flags() {
  static const std::vector<MegatronSettingFlag> kFlags = as_shipped(read_setting_flags());
  return kFlags;
}
std::span<const MegatronFlagRow> megatron_flag_rows() {
  static const std::vector<MegatronFlagRow> kRows = as_shipped(read_flag_rows());
  return kRows;
}

std::string argument_of(std::string_view flag) {
  const MegatronSettingFlag* setting = find_setting(flag);
  // Most arguments have the name of their flag with underscores.
  if (setting != nullptr && !setting->printed_as.empty()) return std::string{setting->printed_as};
  std::string argument{flag.substr(2)};
  std::replace(argument.begin(), argument.end(), '-', '_');
  return argument;
}

bool switches_off(std::string_view flag) {
  return flag == "--disable-bias-linear" || (flag.starts_with("--no-") && flag != "--no-persist-layer-norm");
}

// Order: the flag itself, a flag without setting, the opposite of a switch, the name that Megatron-LM prints,
// and finally an ignored flag with "no-".
FoundMegatronFlag find_megatron_flag(std::string_view flag) {
  if (const MegatronSettingFlag* setting = find_setting(flag)) return {.setting = setting};
  if (!flag.starts_with("--")) return {};
  const std::string_view name = flag.substr(2);
  const bool is_off = name.starts_with("no-");
  const std::string other = is_off ? "--" + std::string{name.substr(3)} : "--no-" + std::string{name};
  const MegatronFlagRow* row = find_row(name);
  if (row != nullptr) return {.row = row};
  if (const MegatronSettingFlag* setting = find_setting(other);
      setting != nullptr && std::holds_alternative<MegatronSwitch<bool>>(setting->setting)) {
    return {.setting = setting, .opposite = true};
  }
  const std::string argument = argument_of(flag);
  for (const MegatronSettingFlag& known : megatron_setting_flags())
    if (known.printed_as == argument) return {.setting = &known, .opposite = switches_off(known.name)};
  return {.row = find_row(std::string_view{other}.substr(2)) != nullptr ? &kSwitchedOff : nullptr};
}

}  // namespace stepcast::detail

namespace stepcast {

std::vector<MegatronFlag> megatron_flags() {
  std::vector<MegatronFlag> flags;
  for (const detail::MegatronSettingFlag& flag : detail::megatron_setting_flags()) {
    flags.push_back({std::string{flag.name}, MegatronFlagUse::understood, detail::part_of(flag.setting)});
  }
  for (const detail::MegatronFlagRow& row : detail::megatron_flag_rows()) {
    detail::each_name(row, [&](std::string_view name) {
      flags.push_back({"--" + std::string{name}, row.use, row.why});
    });
  }
  return flags;
}

std::optional<MegatronFlagUse> use_of_megatron_flag(std::string_view flag) {
  const detail::FoundMegatronFlag found = detail::find_megatron_flag(flag);
  if (found.setting != nullptr) return MegatronFlagUse::understood;
  return found.row != nullptr ? std::optional{found.row->use} : std::nullopt;
}

}  // namespace stepcast
