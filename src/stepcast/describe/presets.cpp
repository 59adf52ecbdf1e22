#include "stepcast/describe/presets.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/base/text.h"
#include "stepcast/describe/dlrm_presets.h"
#include "stepcast/describe/huggingface.h"
#include "stepcast/describe/network_presets.h"

namespace stepcast {
namespace {

// What all models of a family share. The sizes are in presets.def.
Transformer gpt2() { return {.hidden_dropout = 0.1, .attention_dropout = 0.1}; }

Transformer bert() {
  return {.architecture = Architecture::encoder,
          .final_norm = false,
          .embedding_norm = true,
          .hidden_dropout = 0.1,
          .attention_dropout = 0.1,
          .n_token_types = 2,
          .pooler = true};
}

// Norms behind the parts, vectors of distances instead of positions, no biases on queries, keys and values.
Transformer xlnet() {
  Transformer model = bert();
  model.position = PositionEncoding::relative;
  model.embedding_norm = model.pooler = model.qkv_bias = model.attention_output_bias = false;
  return model;
}

Transformer gpt_neox() {
  return {.position = PositionEncoding::rotary,
          .rotary_fraction = 0.25,
          .parallel_residual = true,
          .tied_embeddings = false};
}

Transformer bloom() { return {.embedding_norm = true, .position = PositionEncoding::alibi}; }

Transformer opt() { return {.unused_positions = 2, .activation = Activation::relu, .hidden_dropout = 0.1}; }

Transformer mpt() { return {}; }

Transformer mpt_alibi() {
  return {.norm_bias = false,
          .position = PositionEncoding::alibi,
          .qkv_bias = false,
          .attention_output_bias = false,
          .ffn_bias = false};
}

Transformer llama() {
  return {.norm = NormKind::rms_norm,
          .norm_bias = false,
          .activation = Activation::silu,
          .gated_ffn = true,
          .position = PositionEncoding::rotary,
          .tied_embeddings = false,
          .qkv_bias = false,
          .attention_output_bias = false,
          .ffn_bias = false};
}

Transformer llama_tied() {
  Transformer model = llama();
  model.tied_embeddings = true;
  return model;
}

Transformer mistral() {
  Transformer model = llama();
  model.sliding_window_tokens = 4096;
  return model;
}

Transformer mixtral() {
  Transformer model = llama();
  model.moe = MixtureOfExperts{.n_experts = 8, .experts_per_token = 2};  // as wide as ffn_hidden_size
  return model;
}

Transformer nemotron() {
  Transformer model = llama();
  model.norm = NormKind::layer_norm;
  model.norm_bias = true;
  model.activation = Activation::squared_relu;
  model.gated_ffn = false;
  model.rotary_fraction = 0.5;
  return model;
}

Transformer grok() {
  Transformer model = mixtral();
  model.activation = Activation::gelu;
  model.norms_per_layer = 4;
  model.tied_embeddings = true;
  model.attention_softcap = true;
  return model;
}

Transformer deepseek(std::int64_t q_lora_rank, const MixtureOfExperts& moe) {
  Transformer model = llama();
  model.latent_attention = LatentAttention{.q_lora_rank = q_lora_rank,
                                           .kv_lora_rank = 512,
                                           .qk_nope_head_dim = 128,
                                           .qk_rope_head_dim = 64,
                                           .v_head_dim = 128};
  model.moe = moe;
  return model;
}

Transformer deepseek_v2() {
  return deepseek(1536, {.n_experts = 160,
                         .experts_per_token = 6,
                         .expert_ffn_hidden_size = 1536,
                         .n_shared_experts = 2,
                         .shared_ffn_hidden_size = 1536,
                         .n_groups = 8,
                         .groups_per_token = 3,
                         .first_dense_layers = 1});
}

Transformer deepseek_v2_lite() {
  return deepseek(0, {.n_experts = 64,
                      .experts_per_token = 6,
                      .expert_ffn_hidden_size = 1408,
                      .n_shared_experts = 2,
                      .shared_ffn_hidden_size = 1408,
                      .first_dense_layers = 1});
}

Transformer deepseek_v3() {
  Transformer model = deepseek(1536, {.n_experts = 256,
                                      .experts_per_token = 8,
                                      .expert_ffn_hidden_size = 2048,
                                      .n_shared_experts = 1,
                                      .shared_ffn_hidden_size = 2048,
                                      .n_groups = 8,
                                      .groups_per_token = 4,
                                      .first_dense_layers = 3});
  model.n_multi_token_prediction_layers = 1;
  return model;
}

Transformer qwen2() {
  Transformer model = llama();
  model.qkv_bias = true;
  return model;
}

Transformer qwen2_tied() {
  Transformer model = qwen2();
  model.tied_embeddings = true;
  return model;
}

Transformer qwen15_moe() {
  Transformer model = qwen2();
  model.moe = MixtureOfExperts{.n_experts = 60,
                               .experts_per_token = 4,
                               .expert_ffn_hidden_size = 1408,
                               .n_shared_experts = 1,
                               .shared_ffn_hidden_size = 5632,
                               .shared_expert_gate = true};
  return model;
}

Transformer qwen2_moe() {
  Transformer model = qwen2();
  model.moe = MixtureOfExperts{.n_experts = 64,
                               .experts_per_token = 8,
                               .expert_ffn_hidden_size = 2560,
                               .n_shared_experts = 1,
                               .shared_ffn_hidden_size = 20480,
                               .shared_expert_gate = true};
  return model;
}

Transformer qwen3() {
  Transformer model = llama();
  model.qk_norm = true;
  return model;
}

Transformer qwen3_tied() {
  Transformer model = qwen3();
  model.tied_embeddings = true;
  return model;
}

Transformer qwen3_moe(std::int64_t expert_ffn_hidden_size) {
  Transformer model = qwen3();
  model.moe = MixtureOfExperts{
      .n_experts = 128, .experts_per_token = 8, .expert_ffn_hidden_size = expert_ffn_hidden_size};
  return model;
}
Transformer qwen3_moe_768() { return qwen3_moe(768); }
Transformer qwen3_moe_1536() { return qwen3_moe(1536); }

Transformer gpt_oss(std::int64_t n_experts) {
  Transformer model = llama();
  model.qkv_bias = model.attention_output_bias = model.ffn_bias = true;
  model.sliding_window_tokens = 128;
  model.global_attention_every_n_layers = 2;
  model.attention_sinks = true;
  model.moe = MixtureOfExperts{.n_experts = n_experts, .experts_per_token = 4, .router_bias = true};
  return model;
}
Transformer gpt_oss_32() { return gpt_oss(32); }
Transformer gpt_oss_128() { return gpt_oss(128); }

Transformer kimi_k2() {
  return deepseek(1536, {.n_experts = 384,
                         .experts_per_token = 8,
                         .expert_ffn_hidden_size = 2048,
                         .n_shared_experts = 1,
                         .shared_ffn_hidden_size = 2048,
                         .first_dense_layers = 1});
}

Transformer glm(const MixtureOfExperts& moe, bool qk_norm) {
  Transformer model = llama();
  model.qkv_bias = true;
  model.qk_norm = qk_norm;
  model.rotary_fraction = 0.5;
  model.moe = moe;
  model.n_multi_token_prediction_layers = 1;
  return model;
}
Transformer glm_4_5() {
  return glm({.n_experts = 160,
              .experts_per_token = 8,
              .expert_ffn_hidden_size = 1536,
              .n_shared_experts = 1,
              .shared_ffn_hidden_size = 1536,
              .first_dense_layers = 3},
             true);
}
Transformer glm_4_5_air() {
  return glm({.n_experts = 128,
              .experts_per_token = 8,
              .expert_ffn_hidden_size = 1408,
              .n_shared_experts = 1,
              .shared_ffn_hidden_size = 1408,
              .first_dense_layers = 1},
             false);
}

Transformer llama4(std::int64_t n_experts, std::int64_t every) {
  Transformer model = llama();
  model.moe = MixtureOfExperts{.n_experts = n_experts,
                               .experts_per_token = 1,
                               .expert_ffn_hidden_size = 8192,
                               .n_shared_experts = 1,
                               .shared_ffn_hidden_size = 8192,
                               .moe_every_n_layers = every};
  // Chunks of the text that attention does not leave, but in every fourth layer; like a window half as long.
  model.sliding_window_tokens = 8192;
  model.global_attention_every_n_layers = 4;
  return model;
}
Transformer llama4_scout() { return llama4(16, 1); }
Transformer llama4_maverick() { return llama4(128, 2); }

Transformer dbrx() {
  Transformer model = llama();
  model.norm = NormKind::layer_norm;
  model.moe = MixtureOfExperts{.n_experts = 16, .experts_per_token = 4};
  return model;
}

Transformer gemma() {
  Transformer model = llama();
  model.activation = Activation::gelu;
  model.tied_embeddings = true;
  return model;
}

Transformer gemma2() {
  Transformer model = gemma();
  model.norms_per_layer = 4;
  model.sliding_window_tokens = 4096;
  model.global_attention_every_n_layers = 2;
  model.attention_softcap = true;
  model.logit_softcap = true;
  return model;
}

Transformer gemma3() {
  Transformer model = gemma();
  model.norms_per_layer = 4;
  model.qk_norm = true;
  model.sliding_window_tokens = 512;
  model.global_attention_every_n_layers = 6;
  return model;
}

Transformer gemma3_1024() {
  Transformer model = gemma3();
  model.sliding_window_tokens = 1024;
  return model;
}

struct Row {
  std::string_view name;
  Transformer (*family)();
  std::int64_t n_layers, hidden_size, ffn_hidden_size, n_heads, n_kv_heads, head_dim, vocab_size,
      max_position;
  std::string_view published;
};
struct PublishedRow {
  std::string_view name, published, text;
};
struct AliasRow {
  std::string_view alias, name;
};

#define PRESET(name, family, layers, hidden, ffn, heads, kv_heads, head_dim, vocab, positions, published) \
  Row{name, family, layers, hidden, ffn, heads, kv_heads, head_dim, vocab, positions, published},
#define ALIAS(alias, name)
const Row kRows[] = {
#include "stepcast/describe/presets.def"
};
#undef PRESET
#undef ALIAS
#define PRESET(...)
#define ALIAS(alias, name) AliasRow{alias, name},
constexpr AliasRow kAliases[] = {
#include "stepcast/describe/presets.def"
};
#undef PRESET
#undef ALIAS

#define CONFIG(name, published, text) PublishedRow{name, published, text},
constexpr PublishedRow kConfigs[] = {
#include "stepcast/describe/config_presets.def"
};
#undef CONFIG

// The texts are ours: a test reads them all.
Result<Transformer> read_config(std::string_view name, std::string_view text, const VisionSettings& vision,
                                std::vector<std::string>* notes) {
  return parse_huggingface_config(text, std::string{name}, {}, notes, vision);
}

Transformer model_of(const Row& row) {
  Transformer model = row.family();
  model.name = row.name;
  model.n_layers = row.n_layers;
  model.hidden_size = row.hidden_size;
  model.ffn_hidden_size = row.ffn_hidden_size;
  model.n_heads = row.n_heads;
  model.n_kv_heads = row.n_kv_heads;
  model.head_dim = row.head_dim;
  model.vocab_size = row.vocab_size;
  model.max_position = row.max_position;
  if (model.moe && model.moe->expert_ffn_hidden_size == 0)
    model.moe->expert_ffn_hidden_size = row.ffn_hidden_size;
  return model;
}

std::vector<std::string> aliases_of(std::string_view name) {
  std::vector<std::string> aliases;
  for (const AliasRow& alias : kAliases)
    if (alias.name == name) aliases.emplace_back(alias.alias);
  return aliases;
}

std::vector<Preset> build() {
  std::vector<Preset> all;
  for (const Row& row : kRows)
    all.push_back({model_of(row), std::string{row.published}, aliases_of(row.name)});
  for (const PublishedRow& row : kConfigs) {
    if (auto model = read_config(row.name, row.text, {}, nullptr))
      all.push_back({std::move(*model), std::string{row.published}, aliases_of(row.name), true});
  }
  return all;
}

// Digits, and letters that stand alone beside them, "3ne4" of "gemma-3n-e4b", but for the unit of a size.
std::string digits_of(std::string_view name) {
  const std::string low = lower(name);
  const auto at = [&](std::size_t i) { return i < low.size() ? low[i] : '-'; };  // what lies in front, too
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

// Letters in front: "llama" of "Llama-3 8B".
std::string first_letters(std::string_view name) {
  const std::string low = lower(name);
  const auto end = std::ranges::find_if(low, [](char c) { return c < 'a' || c > 'z'; });
  return {low.begin(), end};
}

// One slip in a family's name, none in a short one: T5 is not MT5, BERT is not DeiT.
bool is_of_family(std::string_view known, std::string_view name) {
  const std::string one = first_letters(known), other = first_letters(name);
  constexpr std::size_t kShort = 4;
  if (one == other || std::min(one.size(), other.size()) < kShort) return one == other;
  return nearest_word(other, {one}, 1).has_value();
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
  // Of all others not more than the names is looked at: a process asks for one.
  const auto is_wanted = [&](std::string_view preset) {
    std::vector<std::string> names = aliases_of(preset);
    names.insert(names.begin(), std::string{preset});
    known.insert(known.end(), names.begin(), names.end());
    return std::ranges::any_of(names, [&](const std::string& n) { return spelling_core(n) == wanted; });
  };
  for (const Row& row : kRows)
    if (is_wanted(row.name)) return model_of(row);
  for (const PublishedRow& row : kConfigs)
    if (is_wanted(row.name)) return read_config(row.name, row.text, vision, notes);
  const std::vector<std::string> recommendation = dlrm_preset_names();
  known.insert(known.end(), recommendation.begin(), recommendation.end());
  Error error{fmt::format("no model is named `{}`", name)};
  const std::vector<std::string> networks = network_names();
  known.insert(known.end(), networks.begin(), networks.end());
  // A slip of the keyboard: whatever has other digits is of another size or generation, and not what was meant.
  const auto begins_so = [&](const std::string& other) { return spelling_core(other).starts_with(wanted); };
  std::vector<std::string> alike = known;
  std::erase_if(alike, [&](const std::string& other) {
    return digits_of(other) != digits_of(name) || !is_of_family(other, name);
  });
  const auto meant = nearest_word(name, alike, 1 + wanted.size() / 8);
  if (meant && (begins_so(*meant) || std::ranges::none_of(known, begins_so)))
    return std::move(error).advice(fmt::format("did you mean `{}`?", *meant));
  std::erase_if(known, [&](const std::string& other) { return !begins_so(other); });
  constexpr std::size_t kMostShown = 9;
  if (wanted.empty() || known.empty() || known.size() > kMostShown)
    return std::move(error).advice(
        "`stepcast models` lists the names; the path of a config.json does as well");
  return std::move(error).advice(fmt::format("names that begin so: {}", fmt::join(known, ", ")));
}

std::optional<std::string> preset_of_hub_name(std::string_view hub) {
  std::string name = lower(hub.substr(hub.rfind('/') + 1));
  if (name.starts_with("torchtune.")) name.erase(0, name.rfind('.') + 1);
  for (const std::string_view prefix : {"meta-", "qlora_", "lora_", "deepseek-r1-distill-"})
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  // Distilled from DeepSeek-R1 are others' models: of Qwen 2.5 and Llama 3.
  if (name.starts_with("qwen-")) name.insert(4, "2.5");
  if (name == "llama-8b" || name == "llama-70b") name.insert(5, name == "llama-8b" ? "-3.1" : "-3.3");
  // What was trained further, and how weights are stored, has the same shapes.
  for (const std::string_view middle : {"-coder", "-math", "-moe"})
    if (const std::size_t at = name.find(middle); at != std::string::npos && at > 0)
      name.erase(at, middle.size());
  constexpr std::string_view kEnds[] = {"instruct", "base",    "hf",      "chat", "it",   "pt",
                                        "thinking", "preview", "unsloth", "fp8",  "bf16", "bnb",
                                        "4bit",     "dynamic", "awq",     "gptq", "int4", "int8",
                                        "v0.1",     "v0.2",    "v0.3",    "v1.0"};
  for (;;) {
    if (const auto preset = find_preset(name)) return preset->name;
    // "llama3_1_8b" is llama-3.1-8b: of numbers, points are lost.
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
    constexpr std::size_t kDate = 4;  // 2507
    if (std::ranges::find(kEnds, end) == std::end(kEnds) &&
        !(end.size() == kDate && std::ranges::all_of(end, is_digit)))
      return std::nullopt;
    name.erase(cut);
  }
}

}  // namespace stepcast
