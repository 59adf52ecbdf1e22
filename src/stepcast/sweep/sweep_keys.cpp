#include "stepcast/sweep/sweep_keys.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/spelled_number.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/megatron.h"

namespace stepcast {
namespace {

// A row of tables/sweep_keys.csv. `flag` is that of Megatron-LM which the key is short for. `value`: "file", what may name
// one; "whole" and "number", what is one; "count", a number of Megatron-LM that people write with letters.
struct SweepKey {
  std::string_view name, modes, value, flag;
};

Result<std::vector<SweepKey>> read_keys() {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("sweep_keys.csv"), "sweep_keys.csv"));
  std::vector<SweepKey> keys;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return keys;
    keys.push_back({rows.cell("key"), rows.cell("modes"), rows.cell("value"), rows.cell("flag")});
  }
}

const std::vector<SweepKey>& own_keys() {
  static const std::vector<SweepKey> kKeys = as_shipped(read_keys());
  return kKeys;
}

const SweepKey* find_own(std::string_view key) {
  const auto found = std::ranges::find(own_keys(), key, &SweepKey::name);
  return found == own_keys().end() ? nullptr : &*found;
}

std::string_view value_of(std::string_view key) {
  const SweepKey* own = find_own(key);
  return own != nullptr ? own->value : std::string_view{};
}

std::string underscored(std::string_view text) {
  while (text.starts_with('-')) text.remove_prefix(1);
  std::string key = lower(text);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

}  // namespace

std::string sweep_key(std::string_view spelled) {
  std::string key = underscored(spelled);
  for (const SweepKey& own : own_keys())
    if (!own.flag.empty() && key == own.flag) return std::string{own.name};
  return key;
}

std::string flag_of_key(std::string_view key) {
  const SweepKey* own = find_own(key);
  std::string text = fmt::format("--{}", own != nullptr && !own->flag.empty() ? own->flag : key);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool is_sweep_key(std::string_view key, SweepMode mode) {
  if (const SweepKey* own = find_own(key)) return is_among(to_string(mode), own->modes);
  return use_of_megatron_flag(flag_of_key(key)).has_value();
}

std::vector<std::string> own_sweep_keys(SweepMode mode) {
  std::vector<std::string> all;
  for (const SweepKey& key : own_keys())
    if (is_among(to_string(mode), key.modes)) all.emplace_back(key.name);
  return all;
}

std::string advice_for_key(std::string_view key, SweepMode mode) {
  const SweepMode other = mode == SweepMode::plan ? SweepMode::predict : SweepMode::plan;
  if (is_sweep_key(key, other)) return fmt::format("it belongs to mode = \"{}\"", to_string(other));
  std::vector<std::string> all = own_sweep_keys(mode);
  for (const MegatronFlag& flag : megatron_flags()) all.push_back(underscored(flag.name));
  if (const std::optional<std::string> nearest = nearest_word(key, all))
    return fmt::format("did you mean {}?", *nearest);
  return fmt::format("known: mode, {}, and the flags of Megatron-LM", join(own_sweep_keys(mode)));
}

std::string_view expected_instead(std::string_view key, const JsonValue& value) {
  const bool is_positive = value.is_number() && value.number() > 0;
  if (value_of(key) == "whole" && !(is_positive && value.number() == std::floor(value.number())))
    return "a whole number from 1 on";
  if (value_of(key) == "number" && !is_positive) return "a number above 0";
  return {};
}

JsonValue spelled_out(std::string_view key, const JsonValue& value) {
  if (!value.is_text()) return value;
  std::string text = value.text();
  // Digits of a flag of Megatron-LM stay the text that ids were made of.
  const std::string_view kind = value_of(key);
  const bool is_count = kind == "count" && !text.empty() && !is_digit(text.back());
  const bool is_whole = kind == "whole" || is_count;
  if (!is_whole && kind != "number") return value;
  if (!(is_whole ? spell_out_whole(text) : spell_out_number(text)).empty()) return value;
  const std::optional<double> number = scan<double>(text);
  if (!number) return value;
  JsonValue result{*number};
  result.set_line(value.line());
  return result;
}

bool names_file(std::string_view key) { return value_of(key) == "file"; }

}  // namespace stepcast
