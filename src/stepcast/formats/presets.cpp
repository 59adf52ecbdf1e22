// Named models. Most are rows of presets.csv with a family; models with different kinds of layers are stored
// as the relevant part of their config.json (config_presets.json). Names that are not found get suggestions.
#include "stepcast/formats/presets.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/json_value.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/object_reader.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/network_presets.h"
#include "stepcast/formats/detail/transformer_features.h"
#include "stepcast/formats/huggingface.h"

namespace stepcast {
namespace {

// A model with all its names, the main one first. `config`: for models with different layers, the keys of the published
// config.json that shape the model, without those of quantised checkpoints, with modelled towers; else empty.
struct Row {
  std::vector<std::string> names;
  std::string published;
  Transformer model;
  std::string config;
};

// The name and its aliases, which are separated by blanks.
std::vector<std::string> names_of(std::string_view name, std::string_view others) {
  std::vector<std::string> names{std::string{name}};
  (void)any_word(others, [&](std::string_view other) {
    names.emplace_back(other);
    return false;
  });
  return names;
}

// Common properties of the models of a family: {"qwen3": {"like": "llama", "qk_norm": true}}. `like` inherits
// from a family above.
Result<std::map<std::string, Transformer, std::less<>>> read_families() {
  const std::string file = "preset_families.json";
  STEPCAST_ASSIGN(const JsonValue table, parse_json(shipped_table(file), file));
  std::map<std::string, Transformer, std::less<>> families;
  for (const JsonValue::Member& member : table.members()) {
    STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(member.value, member.key, file));
    std::string like;
    STEPCAST_TRY(keys.optional("like", like));
    if (!like.empty() && !families.contains(like)) return keys.wrong("like", like, "a family above");
    Transformer& family = families[member.key];
    if (!like.empty()) family = families[like];
    STEPCAST_TRY(detail::read_features(keys, family));
    keys.ignore("why");
    STEPCAST_TRY(keys.finish());
  }
  return families;
}

// Reads presets.csv. A size of 0 is the default of Transformer. Experts are as wide as the dense FFN unless
// the family has another width.
Status read_sized(std::vector<Row>& out) {
  STEPCAST_ASSIGN(const auto families, read_families());
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("presets.csv"), "presets.csv"));
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    const auto family = families.find(rows.cell("family"));
    if (family == families.end()) return rows.error("family").expected("one of preset_families.json");
    Row row{names_of(rows.cell("name"), rows.cell("also")),
            std::string{rows.cell("published")},
            family->second,
            {}};
    Transformer& model = row.model;
    model.name = row.names.front();
    STEPCAST_TRY(rows.extents({{"n_layers", &model.n_layers},
                               {"hidden_size", &model.hidden_size},
                               {"ffn_hidden_size", &model.ffn_hidden_size},
                               {"n_heads", &model.n_heads},
                               {"n_kv_heads", &model.n_kv_heads, 0},
                               {"head_dim", &model.head_dim, 0},
                               {"vocab_size", &model.vocab_size},
                               {"max_position", &model.max_position}}));
    if (model.moe && model.moe->expert_ffn_hidden_size == 0)
      model.moe->expert_ffn_hidden_size = model.ffn_hidden_size;
    out.push_back(std::move(row));
  }
}

// Reads config_presets.json.
Status read_configs(std::vector<Row>& out) {
  const std::string file = "config_presets.json";
  STEPCAST_ASSIGN(const JsonValue table, parse_json(shipped_table(file), file));
  for (const JsonValue& item : table.items()) {
    STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(item, "", file));
    std::string name, others;
    Row row;
    STEPCAST_TRY(keys.optional("name", name));
    STEPCAST_TRY(keys.optional("also", others));
    STEPCAST_TRY(keys.optional("published", row.published));
    const JsonValue* config = keys.take("config");
    if (name.empty() || config == nullptr) return keys.error("").expected("a name and a config");
    STEPCAST_TRY(keys.finish());
    row.names = names_of(name, others);
    row.config = compact_json(*config);
    out.push_back(std::move(row));
  }
  return Ok{};
}

// All rows, read on the first call. A test reads all tables, so errors are bugs.
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = [] {
    std::vector<Row> all;
    (void)as_shipped(read_sized(all));
    (void)as_shipped(read_configs(all));
    return all;
  }();
  return kRows;
}

// The model of a row with a config.
Result<Transformer> read_config(const Row& row, const VisionSettings& vision,
                                std::vector<std::string>* notes) {
  return parse_huggingface_config(row.config, row.names.front(), {}, notes, vision);
}

// All presets as models; used only for lists, because it parses all configs.
std::vector<Preset> build() {
  std::vector<Preset> all;
  for (const Row& row : rows()) {
    const std::vector<std::string> aliases{row.names.begin() + 1, row.names.end()};
    const bool of_config = !row.config.empty();
    auto model = of_config ? read_config(row, {}, nullptr) : Result<Transformer>{row.model};
    if (model) all.push_back({std::move(*model), row.published, aliases, of_config});
  }
  return all;
}

// Digits and single letters next to them, without units of sizes: "3ne4" for "gemma-3n-e4b". Names that
// differ here are different sizes or generations.
std::string digits_of(std::string_view name) {
  const std::string low = lower(name);
  // '-' also before the first character.
  const auto at = [&](std::size_t i) { return i < low.size() ? low[i] : '-'; };
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  std::string digits;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const char before = at(i - 1), after = at(i + 1);
    const bool alone = is_letter(low[i]) && !is_letter(before) && !is_letter(after);
    const bool is_unit = is_digit(before) && (low[i] == 'b' || low[i] == 'm');
    if (is_digit(low[i]) || (alone && !is_unit && (is_digit(before) || is_digit(after)))) digits += low[i];
  }
  return digits;
}

// Leading letters: "llama" for "Llama-3 8B".
std::string first_letters(std::string_view name) {
  const std::string low = lower(name);
  const auto end = std::ranges::find_if(low, [](char c) { return c < 'a' || c > 'z'; });
  return {low.begin(), end};
}

// Whether two names have the same family name. One typing error is accepted, except in short names: T5 is not
// MT5, BERT is not DeiT.
bool is_of_family(std::string_view known, std::string_view name) {
  const std::string one = first_letters(known), other = first_letters(name);
  constexpr std::size_t kShort = 4;
  if (one == other || std::min(one.size(), other.size()) < kShort) return one == other;
  return nearest_word(other, {one}, 1).has_value();
}

// Adds names of models from preset tables of other modules, for suggestions.
void add_listed_names(std::vector<std::string>& known) {
  for (const std::string_view table : shipped_tables("_presets.json")) {
    const JsonValue rows = as_shipped(parse_json(table, "a table of presets"));
    for (const JsonValue& row : rows.items())
      if (const std::string& name = row.find("name")->text(); std::ranges::find(known, name) == known.end())
        known.push_back(name);
  }
}

// The preset of a name after removing endings that do not change shapes: further training, and storage of weights.
std::optional<std::string> preset_of_stem(std::string name) {
  constexpr std::string_view kEnds[] = {"instruct", "base",    "hf",   "chat",    "it",   "pt",   "thinking",
                                        "preview",  "unsloth", "fp8",  "bf16",    "bnb",  "4bit", "dynamic",
                                        "awq",      "gptq",    "int4", "int8",    "v0.1", "1m",   "v0.2",
                                        "v0.3",     "v1.0",    "sft",  "mixture", "dpo"};
  for (;;) {
    if (const auto preset = find_preset(name)) return preset->name;
    // Dots of version numbers may be written as underscores: "llama3_1_8b" is llama-3.1-8b. All combinations
    // of up to four are tried.
    std::vector<std::size_t> between;
    for (std::size_t i = 1; i + 1 < name.size() && between.size() < 4; ++i)
      if (name[i] == '_' && is_digit(name[i - 1]) && is_digit(name[i + 1])) between.push_back(i);
    for (unsigned chosen = 1; chosen < 1U << between.size(); ++chosen) {
      std::string pointed = name;
      for (std::size_t i = 0; i < between.size(); ++i)
        if ((chosen >> i & 1U) != 0) pointed[between[i]] = '.';
      if (const auto preset = find_preset(pointed)) return preset->name;
    }
    const std::size_t cut = name.find_last_of("-_");
    if (cut == std::string::npos) return std::nullopt;
    const std::string_view end = std::string_view{name}.substr(cut + 1);
    constexpr std::size_t kDate = 4;  // a date such as 2507
    if (std::ranges::find(kEnds, end) == std::end(kEnds) &&
        !(end.size() == kDate && std::ranges::all_of(end, is_digit)))
      return std::nullopt;
    name.erase(cut);
  }
}

// Whether `known` has the same family and contains all parts of `name` between hyphens: "llama-3.3-70b"
// contains those of "llama-70b".
bool has_parts_of(std::string_view known, std::string_view name) {
  if (!is_of_family(known, name)) return false;
  const std::string parts = lower(known) + "-";
  for (std::size_t at = first_letters(name).size(); at < name.size();) {
    const std::size_t end = std::min(name.find('-', at), name.size());
    const std::string part = lower(name.substr(at, end - at));
    if (!part.empty() && parts.find("-" + part + "-") == std::string::npos) return false;
    at = end + 1;
  }
  return true;
}

// Advice for an unknown name: names with the same beginning; if there are none, names of the family that
// contain all its parts.
std::string advice_on(const std::vector<std::string>& known, std::string_view name) {
  const std::string wanted = spelling_core(name);
  std::vector<std::string> found;
  std::ranges::copy_if(known, std::back_inserter(found), [&](const std::string& other) {
    return !wanted.empty() && spelling_core(other).starts_with(wanted);
  });
  if (found.empty() && !first_letters(name).empty())
    std::ranges::copy_if(known, std::back_inserter(found),
                         [&](const std::string& other) { return has_parts_of(other, name); });
  if (found.empty()) return "`stepcast models` lists the names; or give the path of a config.json";
  if (found.size() == 1) return fmt::format("did you mean `{}`?", found.front());
  constexpr std::size_t kMostShown = 9;
  const std::size_t shown = std::min(found.size(), kMostShown);
  std::string text =
      fmt::format("did you mean one of {}",
                  fmt::join(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (found.size() > shown)
    text += fmt::format(" ({} more: `stepcast models {}`)", found.size() - shown, first_letters(name));
  return text + "?";
}

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> kPresets = build();
  return kPresets;
}

Result<Transformer> find_preset(std::string_view name, const VisionSettings& vision,
                                std::vector<std::string>* notes) {
  const std::string wanted = spelling_core(name);
  std::vector<std::string> known;
  // Other rows are compared by name only, because parsing their configs takes longer and a process usually
  // needs one model.
  for (const Row& row : rows()) {
    known.insert(known.end(), row.names.begin(), row.names.end());
    if (std::ranges::any_of(row.names, [&](const std::string& n) { return spelling_core(n) == wanted; }))
      return row.config.empty() ? Result<Transformer>{row.model} : read_config(row, vision, notes);
  }
  add_listed_names(known);
  Error error{fmt::format("no model is named `{}`", name)};
  const std::vector<std::string> networks = network_names();
  known.insert(known.end(), networks.begin(), networks.end());
  // Typing errors: candidates must have the same digits, because other digits mean another size or generation.
  const auto begins_so = [&](const std::string& other) { return spelling_core(other).starts_with(wanted); };
  std::vector<std::string> alike = known;
  std::erase_if(alike, [&](const std::string& other) {
    return digits_of(other) != digits_of(name) || !is_of_family(other, name);
  });
  const auto meant = nearest_word(name, alike, 1 + wanted.size() / 8);
  if (meant && (begins_so(*meant) || std::ranges::none_of(known, begins_so)))
    return std::move(error).advice(fmt::format("did you mean `{}`?", *meant));
  return std::move(error).advice(advice_on(known, name));
}

std::optional<std::string> preset_of_hub_name(std::string_view hub) {
  std::string name = lower(hub.substr(hub.rfind('/') + 1));
  if (name.starts_with("torchtune.")) name.erase(0, name.rfind('.') + 1);
  for (const std::string_view prefix :
       {"meta-", "qlora_", "lora_", "deepseek-r1-distill-", "deepseek-r1-0528-"})
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  if (auto preset = preset_of_stem(name)) return preset;
  // Models distilled from DeepSeek-R1 are Qwen 2.5 and Llama 3 models.
  if (name.starts_with("qwen-")) name.insert(4, "2.5");
  if (name == "llama-8b" || name == "llama-70b") name.insert(5, name == "llama-8b" ? "-3.1" : "-3.3");
  if (auto preset = preset_of_stem(name)) return preset;
  // Models that were trained further have the same shapes.
  for (const std::string_view middle : {"-coder", "-math", "-moe"})
    if (const std::size_t at = name.find(middle); at != std::string::npos && at > 0)
      name.erase(at, middle.size());
  return preset_of_stem(name);
}

}  // namespace stepcast
