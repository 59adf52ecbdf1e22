// Keys of config.json: under the names that most families give them, and those that no reader asked for.
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

// Sizes of every layer of models whose layers are all alike (Hunyuan).
constexpr std::string_view kPerLayer = "moe_topk moe_intermediate_size num_shared_expert";

std::string text_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value != nullptr && value->is_text() ? value->text() : std::string{};
}

// The one number of a list that repeats it.
JsonValue without_repetition(const JsonValue& value) {
  const auto numbers = value.numbers();
  if (!numbers || numbers->empty() || std::ranges::count(*numbers, numbers->front()) != std::ssize(*numbers))
    return value;
  JsonValue one{numbers->front()};
  one.set_line(value.line());
  return one;
}

// Kimi Linear: numbers of layers from 1, by what they are.
JsonValue words_of_layers(const JsonValue& attending, std::size_t n_layers) {
  JsonValue::Array words(n_layers, JsonValue{"linear_attention"});
  if (const auto numbers = attending.numbers()) {
    for (const double layer : *numbers)
      if (layer >= 1 && layer <= static_cast<double>(n_layers))
        words[static_cast<std::size_t>(layer) - 1] = JsonValue{"full_attention"};
  }
  return JsonValue{std::move(words)};
}

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

// The members of objects that the family names, as "object.member" next to the others.
void add_section(const JsonValue::Member& section, JsonValue::Object& members) {
  for (const JsonValue::Member& member : section.value.members())
    if (!is_among(member.key, huggingface_keys("harmless")))
      members.push_back({section.key + "." + member.key, member.value});
}

// The usual name of a key: as the family has it, or as other families do; empty if it has that name already.
std::string_view usual_name(const FamilyRow& row, std::string_view key) {
  if (const JsonValue* usual = row.spelled == nullptr ? nullptr : row.spelled->find(key))
    return usual->text();
  const auto spellings = foreign_words("key_spellings");
  const auto spelling =
      std::ranges::find_if(spellings, [&](const ForeignWord& others) { return is_among(key, others.word); });
  return spelling == spellings.end() ? std::string_view{} : spelling->says;
}

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
    // Said twice; what differs is a key of its own, but for the lengths that software was run with.
    if (said == nullptr)
      members.push_back({std::string{name}, value});
    else if (name != "max_position_embeddings" && !(*said == value))
      members.push_back({member.key, value});
  }
  std::erase_if(members, [&](const JsonValue::Member& member) {
    return member.value.is_null() && std::ranges::count(members, member.key, &JsonValue::Member::key) > 1;
  });
  JsonValue result{std::move(members)};
  result.set_line(config.line());
  return result;
}

bool has_any(std::string_view key, std::string_view parts) {
  return any_word(parts, [&](std::string_view part) { return key.find(part) != std::string_view::npos; });
}

// What is on under such a name is a way to compute the same.
constexpr std::string_view kWays = "fused kernel backend impl flash compile cache determin iteration";
// A text is no size; under such a name it says what layers are.
constexpr std::string_view kOfLayers = "pattern layer block mixer attention_type attn_type arch kind";
// A fraction under such a name is one of a size.
constexpr std::string_view kOfSizes = "ratio expan mult frac width";

bool is_off(const JsonValue& value) {
  if (value.is_bool()) return !value.truth();
  if (value.is_number()) return value.number() == 0;
  if (value.is_text()) return value.text().empty() || value.text() == "none";
  if (value.is_array()) return value.items().empty();
  return value.is_object() && value.members().empty();
}

bool shapes_nothing(std::string_view key, const JsonValue& value) {
  if (is_off(value)) return true;
  if (value.is_text()) return !has_any(key, kOfLayers);
  if (value.is_bool()) return has_any(key, kWays);
  return value.is_number() && value.number() != std::floor(value.number()) && !has_any(key, kOfSizes);
}

}  // namespace

JsonValue with_usual_keys(const JsonValue& config, std::vector<std::string>& notes) {
  if (!config.is_object()) return config;
  if (text_of(config, "model_type") == "git" && config.find("residual_moe") != nullptr) {
    JsonValue::Object members;  // Grok 2 as it was published, under the name of another model
    for (const JsonValue::Member& member : config.members())
      members.push_back({member.key, member.key == "model_type" ? JsonValue{"grok"} : member.value});
    JsonValue grok{std::move(members)};
    grok.set_line(config.line());
    return of_row(grok);
  }
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

// Keys that no reader asked for. Newer files of a family have some: most say nothing of a shape.

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
