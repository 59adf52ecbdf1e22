#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/describe/detail/huggingface_readers.h"
#include "stepcast/describe/detail/hybrid_layers.h"

namespace stepcast::detail {

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
