// Which function reads which family, and what they share.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/describe/detail/huggingface_readers.h"
#include "stepcast/describe/detail/hybrid_layers.h"

namespace stepcast::detail {
namespace {

constexpr HuggingfaceFamily kFamilies[] = {
    {"gpt2 gpt-sw3", read_gpt2},
    {"gpt_neox", read_gpt_neox},
    {"bert", read_bert},
    {"opt", read_opt},
    {"mpt", read_mpt},
    {"bloom", read_bloom},
    {"falcon", read_falcon},
    {"gptj codegen", read_gptj},
    {"phi", read_phi},
    {"starcoder2", read_starcoder2},
    {"roberta xlm-roberta camembert", read_roberta},
    {"xlnet", read_xlnet},
    {"llama granite exaone helium internlm3 iquestcoder granite_docling_text granite4_vision_text",
     read_llama},
    {"mistral ministral3", read_mistral},
    {"mixtral", read_mixtral},
    {"qwen2 qwen2_5_omni_text qwen2_vl_text qwen2_5_vl_text", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3 qwen3_vl_text", read_qwen3},
    {"qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text", read_qwen3_moe},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3_text},
    {"phi3", read_phi3},
    {"olmo2", read_olmo2},
    {"olmo3", read_olmo3},
    {"olmoe flex_olmo", read_olmoe},
    {"smollm3", read_smollm3},
    {"deepseek_v2 deepseek_v3 kimi_k2 minicpm3 glm4_moe_lite sarvam_mla youtu mistral4", read_deepseek},
    {"deepseek_v32 glm_moe_dsa", read_deepseek_sparse},
    {"deepseek_v4 deepseek_ref", read_deepseek_v4},
    {"nemotron-nas", read_nemotron_nas},
    {"gpt_oss", read_gpt_oss},
    {"llama4_text", read_llama4_text},
    {"dbrx", read_dbrx},
    {"gpt_bigcode", read_gpt_bigcode},
    {"gpt_neo", read_gpt_neo},
    {"vaultgemma", read_vaultgemma},
    {"mamba2", read_mamba2},
    {"mamba falcon_mamba", read_mamba1},
    {"mllama_text_model", read_mllama_text},
    {"longcat_flash", read_longcat},
};

using KeyList = std::pair<std::string_view, std::string_view>;

Result<std::vector<KeyList>> read_lists() {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("huggingface_keys.csv"), "huggingface_keys.csv"));
  std::vector<KeyList> lists;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return lists;
    lists.emplace_back(rows.cell("list"), rows.cell("keys"));
  }
}

}  // namespace

std::span<const HuggingfaceFamily> huggingface_families() { return kFamilies; }

std::string_view huggingface_keys(std::string_view list) {
  static const std::vector<KeyList> kLists = as_shipped(read_lists());
  return std::ranges::find(kLists, list, &KeyList::first)->second;
}

Status read_activation(ObjectReader& keys, std::string_view key, Activation& out) {
  std::string text;
  STEPCAST_TRY(keys.optional(key, text));
  if (text.empty()) return Ok{};
  constexpr struct {
    std::string_view name;
    Activation activation;
  } kNames[] = {{"gelu", Activation::gelu},      {"gelu_new", Activation::gelu},
                {"gelu_fast", Activation::gelu}, {"gelu_pytorch_tanh", Activation::gelu},
                {"relu", Activation::relu},      {"relu2", Activation::squared_relu},
                {"xielu", Activation::gelu},     {"silu", Activation::silu},
                {"swish", Activation::silu}};
  for (const auto& known : kNames) {
    if (known.name != text) continue;
    out = known.activation;
    return Ok{};
  }
  return keys.wrong(key, text, "gelu, relu, relu2 or silu");
}

Status refuse_if_true(ObjectReader& keys, std::string_view key, std::string_view why) {
  bool on = false;
  STEPCAST_TRY(keys.optional(key, on));
  if (on) return keys.error(key, std::string{why}).found("true").expected("false");
  return Ok{};
}
Status refuse_if_false(ObjectReader& keys, std::string_view key, std::string_view why) {
  bool on = true;
  STEPCAST_TRY(keys.optional(key, on));
  if (!on) return keys.error(key, std::string{why}).found("false").expected("true");
  return Ok{};
}

Status read_sizes(ObjectReader& keys, Transformer& model) {
  const std::pair<std::string_view, std::int64_t*> sizes[] = {
      {"num_hidden_layers", &model.n_layers},
      {"hidden_size", &model.hidden_size},
      {"intermediate_size", &model.ffn_hidden_size},
      {"num_attention_heads", &model.n_heads},
      {"vocab_size", &model.vocab_size},
      {"max_position_embeddings", &model.max_position}};
  for (const auto& [key, size] : sizes) {
    STEPCAST_TRY(*size > 0 ? keys.optional(key, *size) : keys.required(key, *size));
  }
  return Ok{};
}

Status read_llama_like(ObjectReader& keys, Transformer& model) {
  model.norm = NormKind::rms_norm;
  model.norm_bias = false;
  model.activation = Activation::silu;
  model.gated_ffn = true;
  model.position = PositionEncoding::rotary;
  model.tied_embeddings = false;
  model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  STEPCAST_TRY(read_sizes(keys, model));
  STEPCAST_TRY(read_activation(keys, "hidden_act", model.activation));
  for (const auto& [key, size] :
       {std::pair{"num_key_value_heads", &model.n_kv_heads}, std::pair{"head_dim", &model.head_dim}}) {
    const bool is_given = keys.has(key);
    STEPCAST_TRY(keys.optional(key, *size));
    if (is_given && *size == 0 && keys.take(key)->is_number() && !keys.has("kv_lora_rank")) {
      return keys.error(key).found("0").expected("1 or more, or nothing");
    }
  }
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  STEPCAST_TRY(keys.optional("partial_rotary_factor", model.rotary_fraction));
  return Ok{};
}

Status require_kv_heads(ObjectReader& keys) {
  if (keys.has("num_key_value_heads")) return Ok{};
  return keys.error("", "`num_key_value_heads` is missing").expected("a whole number");
}

Status read_layer_types(ObjectReader& keys, Transformer& model) {
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

}  // namespace stepcast::detail
