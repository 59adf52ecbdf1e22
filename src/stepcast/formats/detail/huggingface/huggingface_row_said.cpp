// Columns of tables/huggingface_families.json about single keys: values that they must have, words that set
// parts of the model, and attention windows.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/words.h"
#include "stepcast/formats/detail/huggingface/huggingface_readers.h"
#include "stepcast/formats/detail/huggingface/huggingface_rows.h"
#include "stepcast/formats/detail/hybrid_layers.h"
#include "stepcast/formats/detail/transformer_features.h"

namespace stepcast::detail {
namespace {

// Errors: a key of the column must_be_off that is not off. Off means false, 0, null or an empty list.
Status refuse_what_is_on(const FamilyRow& row, ObjectReader& keys) {
  Status status = Ok{};
  (void)any_word(row.must_be_off, [&](std::string_view key) {
    const JsonValue* value = keys.take(key);
    if (value == nullptr || value->is_null() || (value->is_array() && value->items().empty())) return false;
    const std::string said = describe_value(*value);
    if (said == "false" || said == "0" || said == "0.0") return false;
    status = keys.error(key, "this part is not modelled").found(said).expected("nothing, false or 0");
    return true;
  });
  return status;
}

// Compares a value with the table: a value, a list of allowed values, or "=key" for the value of another key.
// For a list, all items are compared. Returns null if it matches, else the value that does not match.
const JsonValue* what_is_not(const JsonValue& value, const JsonValue& said, const ObjectReader& keys) {
  if (value.is_array() && !value.items().empty()) {
    for (const JsonValue& item : value.items())
      if (const JsonValue* other = what_is_not(item, said, keys)) return other;
    return nullptr;
  }
  if (said.is_array()) return std::ranges::find(said.items(), value) != said.items().end() ? nullptr : &value;
  if (!said.is_text() || !said.text().starts_with('=')) return said == value ? nullptr : &value;
  const JsonValue* same = keys.value().find(said.text().substr(1));
  return same == nullptr || *same == value ? nullptr : &value;
}

// Errors: a value that differs from the column must_be.
Status check_values(const FamilyRow& row, ObjectReader& keys) {
  if (row.must_be == nullptr) return Ok{};
  for (const JsonValue::Member& member : row.must_be->members()) {
    const JsonValue* value = keys.take(member.key);
    if (value == nullptr) continue;
    const JsonValue* other = what_is_not(*value, member.value, keys);
    if (other == nullptr) continue;
    const bool is_key = member.value.is_text() && member.value.text().starts_with('=');
    return keys.error(member.key, "anything else is not modelled")
        .found(describe_value(*other))
        .expected(is_key ? fmt::format("what `{}` says", keys.path_of(member.value.text().substr(1)))
                         : compact_json(member.value));
  }
  return Ok{};
}

// Whether `word` is one of the cases: words separated by blanks, where "*b" matches all words that end with b.
bool is_case(std::string_view word, std::string_view cases) {
  return any_word(cases, [&](std::string_view one) {
    return one.starts_with('*') ? word.ends_with(one.substr(1)) : word == one;
  });
}

// Applies the features that the table gives for the value of a key. Cases are words, or "true" and "false".
// Errors: a word without a case.
Status read_case(ObjectReader& keys, const JsonValue::Member& cases, Transformer& model) {
  const JsonValue* value = keys.take(cases.key);
  if (value != nullptr && value->is_array() && cases.key == "architectures")
    value = value->items().size() == 1 ? &value->items()[0] : nullptr;
  if (value == nullptr) return Ok{};
  const bool is_switch = cases.value.find("true") != nullptr || cases.value.find("false") != nullptr;
  if (is_switch ? !value->is_bool() : !value->is_text())
    return keys.wrong_kind(cases.key, *value, is_switch ? "true or false" : "a text");
  const std::string word = is_switch ? describe_value(*value) : value->text();
  std::string expected;
  for (const JsonValue::Member& one : cases.value.members()) {
    if (!is_case(word, one.key)) {
      expected += fmt::format("{}{}", expected.empty() ? "" : ", ", one.key);
      continue;
    }
    static const std::string kTable = "huggingface_families.json";
    STEPCAST_ASSIGN(ObjectReader features, ObjectReader::of(one.value, cases.key, kTable));
    STEPCAST_TRY(read_features(features, model));
    return features.finish();
  }
  return is_switch ? Status{Ok{}} : keys.wrong(cases.key, word, expected);
}

// Windows by `layer_types`: full attention in every N-th layer sets a period; any other pattern gives each layer a kind.
Status read_turns(ObjectReader& keys, Transformer& model) {
  const JsonValue* types = keys.take("layer_types");
  if (types == nullptr) return Ok{};
  const auto wrong = [&] {
    return keys.error("layer_types", "not understood")
        .expected(
            "`sliding_attention` everywhere but in the last of every n layers, which are `full_attention`");
  };
  if (!types->is_array() || static_cast<std::int64_t>(types->items().size()) != model.n_layers)
    return wrong();
  std::vector<bool> is_global;
  std::int64_t n_global = 0, every = 0;
  for (const JsonValue& type : types->items()) {
    if (!type.is_text() || (type.text() != "full_attention" && type.text() != "sliding_attention"))
      return wrong();
    is_global.push_back(type.text() == "full_attention");
    if (!is_global.back()) continue;
    if (++n_global == 1) every = static_cast<std::int64_t>(is_global.size());
  }
  model.global_attention_every_n_layers = 0;
  if (n_global == model.n_layers) model.sliding_window_tokens = 0;
  if (n_global == model.n_layers || n_global == 0) return Ok{};
  bool regular = true;
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer)
    regular = regular && is_global[static_cast<std::size_t>(layer)] == ((layer + 1) % every == 0);
  if (!regular) {
    for (const bool global : is_global) {
      append_layer(
          model, {.feed_forward = model.moe ? LayerKind::FeedForward::experts : LayerKind::FeedForward::dense,
                  .window_tokens = global ? 0 : model.sliding_window_tokens,
                  .attention_sinks = model.attention_sinks});
    }
    model.sliding_window_tokens = 0;
    return Ok{};
  }
  model.global_attention_every_n_layers = every;
  return Ok{};
}

}  // namespace

Status require(ObjectReader& keys, std::string_view key) {
  if (keys.has(key)) return Ok{};
  return keys.error("", fmt::format("`{}` is missing", keys.path_of(key))).expected("a whole number");
}

// Errors then show the spelling of the file instead of the usual name.
void show_spellings(const FamilyRow& row, ObjectReader& keys) {
  if (row.spelled == nullptr) return;
  for (const JsonValue::Member& member : row.spelled->members())
    keys.show_as(member.value.text(), member.key);
}

Status check_said(const FamilyRow& row, ObjectReader& keys) {
  Status status = Ok{};
  (void)any_word(row.must_say, [&](std::string_view key) {
    status = require(keys, key);
    return !status.ok();
  });
  STEPCAST_TRY(status);
  STEPCAST_TRY(check_values(row, keys));
  return refuse_what_is_on(row, keys);
}

Status read_said(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  if (row.says == nullptr) return Ok{};
  for (const JsonValue::Member& cases : row.says->members()) STEPCAST_TRY(read_case(keys, cases, model));
  return Ok{};
}

// See FamilyRow::window for the values. "upper" is supported only if all layers have windows, or none.
Status read_windows(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  if (row.window.empty()) return Ok{};
  const bool is_upper = row.window == "upper";
  bool on = !is_upper && row.window != "switched";
  std::int64_t window = model.sliding_window_tokens, first = model.n_layers;
  if (!on) STEPCAST_TRY(keys.optional("use_sliding_window", on));
  STEPCAST_TRY(keys.optional("sliding_window", window));
  if (is_upper) {
    STEPCAST_TRY(keys.optional("max_window_layers", first));
    on = on && first < model.n_layers;
    if (on && first > 0) {
      return keys.error("max_window_layers", "windows in only the upper layers are not supported")
          .found(fmt::format("{}", first))
          .expected("0 or num_hidden_layers");
    }
  }
  if (on) model.sliding_window_tokens = window;
  if (row.window == "everywhere") return Ok{};
  STEPCAST_TRY(keys.optional(row.interval, model.global_attention_every_n_layers));
  STEPCAST_TRY(read_turns(keys, model));
  if (model.layer_kinds.empty() || !model.moe) return Ok{};
  STEPCAST_ASSIGN(const std::vector<bool> experts, read_expert_layers(keys, row.experts, model));
  if (std::ranges::count(experts, false) == 0) return Ok{};
  return keys.error("layer_types", "windows in some layers, and experts in others, are not modelled");
}

}  // namespace stepcast::detail
