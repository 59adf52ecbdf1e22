#include "stepcast/sweep/sweep_keys.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/spelled_number.h"
#include "stepcast/base/text.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/sweep/option_table.h"

namespace stepcast {
namespace {

// An option that is a key of sweeps. `option` points into option_table(), which lives for the whole program.
struct OwnKey {
  std::string key;
  const Option* option;
};

// The keys from all rows of the option table, made once. One key appears several times if its option has
// several rows.
const std::vector<OwnKey>& own_keys() {
  static const std::vector<OwnKey> kKeys = [] {
    std::vector<OwnKey> all;
    for (const Option& option : option_table())
      if (option.sweep != SweepValue::none) all.push_back({option.sweep_key(), &option});
    return all;
  }();
  return kKeys;
}

// The first row with this key that applies to one of `questions`. A null pointer if there is none.
const Option* find_own(std::string_view key, QuestionSet questions = kPredictQuestions | kPlanQuestions) {
  for (const OwnKey& own : own_keys())
    if (own.key == key && (own.option->of & questions) != 0) return own.option;
  return nullptr;
}

// The type of the key's value. Keys of Megatron-LM's flags are text: its parser checks them.
SweepValue value_of(std::string_view key) {
  const Option* own = find_own(key);
  return own != nullptr ? own->sweep : SweepValue::text;
}

// The name of the option in Megatron-LM: "--tensor-model-parallel-size". Empty if it has no second spelling.
std::string_view megatron_name(const Option& option) {
  const std::size_t comma = option.flags.find(',');
  return comma == std::string_view::npos ? std::string_view{} : option.flags.substr(comma + 1);
}

// `text` in lower case, without leading dashes, with underscores for dashes.
std::string underscored(std::string_view text) {
  while (text.starts_with('-')) text.remove_prefix(1);
  std::string key = lower(text);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

}  // namespace

QuestionSet questions_of(SweepMode mode) {
  return mode == SweepMode::plan ? bit(Question::plan) : kPredictQuestions;
}

std::string sweep_key(std::string_view spelled) {
  std::string key = underscored(spelled);
  for (const OwnKey& own : own_keys())
    if (const std::string_view name = megatron_name(*own.option); !name.empty() && key == underscored(name))
      return own.key;
  return key;
}

std::string flag_of_key(std::string_view key) {
  const Option* own = find_own(key);
  if (own != nullptr && !megatron_name(*own).empty()) return std::string{megatron_name(*own)};
  std::string text = fmt::format("--{}", key);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool is_sweep_key(std::string_view key, SweepMode mode) {
  if (find_own(key) != nullptr) return find_own(key, questions_of(mode)) != nullptr;
  return use_of_megatron_flag(flag_of_key(key)).has_value();
}

std::vector<std::string> own_sweep_keys(SweepMode mode) {
  std::vector<std::string> all;
  for (const OwnKey& own : own_keys())
    if ((own.option->of & questions_of(mode)) != 0) all.push_back(own.key);
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
  if (value_of(key) == SweepValue::whole && !(is_positive && value.number() == std::floor(value.number())))
    return "a whole number from 1 on";
  if (value_of(key) == SweepValue::number && !is_positive) return "a number above 0";
  return {};
}

JsonValue spelled_out(std::string_view key, const JsonValue& value) {
  if (!value.is_text()) return value;
  std::string text = value.text();
  // A count that is all digits stays text, because the ids of points were made from that text. Only counts
  // with a suffix, such as "8k", become numbers.
  const SweepValue kind = value_of(key);
  const bool is_count = kind == SweepValue::count && !text.empty() && !is_digit(text.back());
  const bool is_whole = kind == SweepValue::whole || is_count;
  if (!is_whole && kind != SweepValue::number) return value;
  if (!(is_whole ? spell_out_whole(text) : spell_out_number(text)).empty()) return value;
  const std::optional<double> number = scan<double>(text);
  if (!number) return value;
  JsonValue result{*number};
  result.set_line(value.line());
  return result;
}

bool names_file(std::string_view key) { return value_of(key) == SweepValue::file; }

}  // namespace stepcast
