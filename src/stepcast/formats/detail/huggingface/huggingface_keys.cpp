// Normalises the keys of config.json before reading: renames keys to their usual names, flattens sections,
// and afterwards decides whether unknown keys may be ignored.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/words.h"
#include "stepcast/formats/detail/foreign_words.h"
#include "stepcast/formats/detail/huggingface/huggingface_readers.h"
#include "stepcast/formats/detail/huggingface/huggingface_rows.h"

namespace stepcast::detail {
namespace {

// Keys that may be lists with one entry per layer, in models with equal layers (Hunyuan).
constexpr std::string_view kPerLayer = "moe_topk moe_intermediate_size num_shared_expert";

// The text under a key; empty if there is none.
std::string text_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value != nullptr && value->is_text() ? value->text() : std::string{};
}

// A list of equal numbers as that number; any other value unchanged.
JsonValue without_repetition(const JsonValue& value) {
  const auto numbers = value.numbers();
  if (!numbers || numbers->empty() || std::ranges::count(*numbers, numbers->front()) != std::ssize(*numbers))
    return value;
  JsonValue one{numbers->front()};
  one.set_line(value.line());
  return one;
}

// Kimi Linear lists the numbers of its attention layers, starting at 1. Returns the usual list with a word
// for each layer.
JsonValue words_of_layers(const JsonValue& attending, std::size_t n_layers) {
  JsonValue::Array words(n_layers, JsonValue{"linear_attention"});
  if (const auto numbers = attending.numbers()) {
    for (const double layer : *numbers)
      if (layer >= 1 && layer <= static_cast<double>(n_layers))
        words[static_cast<std::size_t>(layer) - 1] = JsonValue{"full_attention"};
  }
  return JsonValue{std::move(words)};
}

// Adds the members of Kimi Linear's `linear_attn_config` under their usual names, unless the config has those.
void add_linear_attention(const JsonValue& config, const JsonValue& section, JsonValue::Object& members) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"num_heads", "linear_num_heads"},
      {"head_dim", "linear_head_dim"},
      {"short_conv_kernel_size", "linear_conv_kernel_dim"}};
  for (const auto& [inner, outer] : kNames)
    if (const JsonValue* size = section.find(inner); size != nullptr && config.find(outer) == nullptr)
      members.push_back({std::string{outer}, *size});
  const JsonValue* full = section.find("full_attn_layers");
  const JsonValue* linear = section.find("kda_layers");
  if (config.find("layer_types") == nullptr && full != nullptr && linear != nullptr && full->is_array() &&
      linear->is_array())
    members.push_back({"layer_types", words_of_layers(*full, full->items().size() + linear->items().size())});
}

// Adds the members of a section under "section.member". Harmless keys are dropped.
void add_section(const JsonValue::Member& section, JsonValue::Object& members) {
  for (const JsonValue::Member& member : section.value.members())
    if (!is_among(member.key, huggingface_keys("harmless")))
      members.push_back({section.key + "." + member.key, member.value});
}

// The usual name of a key: the spelling of the family, else of any family. Empty if the key already has its usual name.
std::string_view usual_name(const FamilyRow& row, std::string_view key) {
  if (const JsonValue* usual = row.spelled == nullptr ? nullptr : row.spelled->find(key))
    return usual->text();
  const auto spellings = foreign_words("key_spellings");
  const auto spelling =
      std::ranges::find_if(spellings, [&](const ForeignWord& others) { return is_among(key, others.word); });
  return spelling == spellings.end() ? std::string_view{} : spelling->says;
}

// The config with usual keys, for families in the table; unchanged for others.
JsonValue of_row(const JsonValue& config) {
  const FamilyRow* row = huggingface_row(text_of(config, "model_type"));
  if (row == nullptr) return config;
  JsonValue::Object members, flat;
  for (const JsonValue::Member& member : config.members()) {
    if (is_among(member.key, row->sections) && member.value.is_object())
      add_section(member, flat);
    else
      flat.push_back(member);
  }
  for (const JsonValue::Member& member : flat) {
    if (member.key == "linear_attn_config") {
      add_linear_attention(config, member.value, members);
      continue;
    }
    const std::string_view name = usual_name(*row, member.key);
    const JsonValue value = is_among(member.key, kPerLayer) ? without_repetition(member.value) : member.value;
    if (name.empty() || value.is_null()) {
      members.push_back({member.key, value});
      continue;
    }
    const JsonValue* said = config.find(name);
    if (said == nullptr || said->is_null()) {
      const auto before = std::ranges::find_if(members, [&](const auto& m) { return m.key == name; });
      said = before != members.end() ? &before->value : nullptr;
    }
    // The value is there under both names. A different value is kept under its own name, so that it is
    // noticed as unknown. Maximum lengths may differ, because inference software adds its own.
    if (said == nullptr)
      members.push_back({std::string{name}, value});
    else if (name != "max_position_embeddings" && !(*said == value))
      members.push_back({member.key, value});
  }
  // A null is dropped if the key occurs with a value too.
  std::erase_if(members, [&](const JsonValue::Member& member) {
    return member.value.is_null() && std::ranges::count(members, member.key, &JsonValue::Member::key) > 1;
  });
  JsonValue result{std::move(members)};
  result.set_line(config.line());
  return result;
}

// Whether the key contains one of these parts.
bool has_any(std::string_view key, std::string_view parts) {
  return any_word(parts, [&](std::string_view part) { return key.find(part) != std::string_view::npos; });
}

// Parts of key names for switches that only select an implementation.
constexpr std::string_view kWays = "fused kernel backend impl flash compile cache determin iteration";
// Texts are usually not sizes; under a key with one of these parts they describe layers.
constexpr std::string_view kOfLayers = "pattern layer block mixer attention_type attn_type arch kind";
// A fractional number under a key with one of these parts determines a size.
constexpr std::string_view kOfSizes = "ratio expan mult frac width";

// Whether a value means "off": false, 0, an empty text, list or object.
bool is_off(const JsonValue& value) {
  if (value.is_bool()) return !value.truth();
  if (value.is_number()) return value.number() == 0;
  if (value.is_text()) return value.text().empty() || value.text() == "none";
  if (value.is_array()) return value.items().empty();
  return value.is_object() && value.members().empty();
}

// Whether an unknown key can be ignored, judged by its name and value. The lists above say which cannot.
bool shapes_nothing(std::string_view key, const JsonValue& value) {
  if (is_off(value)) return true;
  if (value.is_text()) return !has_any(key, kOfLayers);
  if (value.is_bool()) return has_any(key, kWays);
  return value.is_number() && value.number() != std::floor(value.number()) && !has_any(key, kOfSizes);
}

}  // namespace

JsonValue with_usual_keys(const JsonValue& config, std::vector<std::string>& notes) {
  if (!config.is_object()) return config;
  // Grok 2 was published with the model type of another model.
  if (text_of(config, "model_type") == "git" && config.find("residual_moe") != nullptr) {
    JsonValue::Object members;  // Grok 2, published with the model type of another model
    for (const JsonValue::Member& member : config.members())
      members.push_back({member.key, member.key == "model_type" ? JsonValue{"grok"} : member.value});
    JsonValue grok{std::move(members)};
    grok.set_line(config.line());
    return of_row(grok);
  }
  // Omni models: only the language part that "thinks" is modelled.
  if (const JsonValue* thinker = config.find("thinker_config"); thinker != nullptr && thinker->is_object()) {
    notes.emplace_back("only the thinker (thinker_config); the talker is not counted");
    return with_usual_keys(*thinker, notes);
  }
  JsonValue::Object members;
  for (const JsonValue::Member& member : config.members()) {
    const bool is_text =
        is_among(member.key, "text_config llm_config language_config") && member.value.is_object();
    members.push_back({is_text ? "text_config" : member.key, is_text ? of_row(member.value) : member.value});
  }
  JsonValue result{std::move(members)};
  result.set_line(config.line());
  return of_row(result);
}

// See the header. Newer configs often have additional keys that do not affect the shape of the model. Keys
// that might are errors.

Status finish_with_unknown_keys(ObjectReader& keys, std::vector<std::string>& notes) {
  std::string passed;
  for (const std::string& key : keys.left()) {
    if (has_any(key, huggingface_keys("never_shapes")) || key.starts_with("rope_")) {
      keys.ignore(key);
      continue;
    }
    const JsonValue& value = *keys.take(key);
    if (shapes_nothing(key, value)) {
      passed +=
          fmt::format("{}`{}` ({})", passed.empty() ? "" : ", ", key.substr(0, 60), describe_value(value));
      continue;
    }
    const auto parts = foreign_words("key_parts");
    const auto said =
        std::ranges::find_if(parts, [&](const ForeignWord& part) { return has_any(key, part.word); });
    return keys
        .error(key, said == parts.end() ? std::string{"unknown key"}
                                        : fmt::format("unknown key, by its name part of {}", said->says))
        .found(describe_value(value))
        .advice(
            "it may change the shape of the model, so it is not ignored; use --ignore-key NAME if it does "
            "not");
  }
  if (!passed.empty())
    notes.push_back(
        fmt::format("unknown keys that, by their values, do not change the shape of the model: {}", passed));
  return Ok{};
}

}  // namespace stepcast::detail
