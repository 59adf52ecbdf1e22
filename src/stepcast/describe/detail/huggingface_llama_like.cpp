#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "stepcast/describe/detail/huggingface_readers.h"
#include "stepcast/describe/detail/hybrid_layers.h"

namespace stepcast::detail {
namespace {

Status read_attention_bias(ObjectReader& keys, Transformer& model) {
  bool bias = false;
  STEPCAST_TRY(keys.optional("attention_bias", bias));
  model.qkv_bias = model.attention_output_bias = bias;
  return Ok{};
}

// Qwen: a window counts from layer max_window_layers on, and only if use_sliding_window.
Status read_qwen_window(ObjectReader& keys, Transformer& model) {
  bool uses_window = false;
  std::int64_t window = 0, first = model.n_layers;
  STEPCAST_TRY(keys.optional("use_sliding_window", uses_window));
  STEPCAST_TRY(keys.optional("sliding_window", window));
  STEPCAST_TRY(keys.optional("max_window_layers", first));
  if (uses_window && first < model.n_layers) {
    if (first > 0) {
      return keys.error("max_window_layers", "windows in the upper layers alone are not supported")
          .found(fmt::format("{}", first))
          .expected("0 or num_hidden_layers");
    }
    model.sliding_window_tokens = window;
  }
  return read_layer_types(keys, model);
}

Status read_softcaps(ObjectReader& keys, Transformer& model) {
  double attention = 0, logits = 0;
  STEPCAST_TRY(keys.optional("attn_logit_softcapping", attention));
  STEPCAST_TRY(keys.optional("final_logit_softcapping", logits));
  model.attention_softcap = attention > 0;
  model.logit_softcap = logits > 0;
  return Ok{};
}

}  // namespace

Status read_llama(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_llama_like(keys, model));
  STEPCAST_TRY(refuse_if_true(keys, "qk_layer_norms", "norms of queries and keys are not in this family"));
  STEPCAST_TRY(read_attention_bias(keys, model));
  return keys.optional("mlp_bias", model.ffn_bias);
}

// Llama 3.2 Vision: layers of a list look at images; at how many vectors, the tower says.
Status read_mllama_text(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_llama(keys, model));
  const JsonValue* list = keys.take("cross_attention_layers");
  const auto cross = list == nullptr ? std::nullopt : list->numbers();
  if (!cross) return keys.error("cross_attention_layers").expected("a list of numbers of layers");
  keys.ignore("dropout");
  for (std::int64_t layer = 0; layer < model.n_layers && layer < 10'000; ++layer) {
    const bool looks = std::ranges::count(*cross, static_cast<double>(layer)) > 0;
    append_layer(model, {.cross_tokens = looks ? 1 : 0});
  }
  return Ok{};
}

Status read_mistral(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  STEPCAST_TRY(read_llama_like(keys, model));
  return keys.optional("sliding_window", model.sliding_window_tokens);
}

Status read_qwen2(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  STEPCAST_TRY(read_llama_like(keys, model));
  model.qkv_bias = true;
  return read_qwen_window(keys, model);
}

Status read_qwen3(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  model.head_dim = 128;
  STEPCAST_TRY(read_llama_like(keys, model));
  STEPCAST_TRY(read_attention_bias(keys, model));
  model.qk_norm = true;
  return read_qwen_window(keys, model);
}

Status read_gemma(ObjectReader& keys, Transformer& model) {
  if (model.n_kv_heads == 0) STEPCAST_TRY(require_kv_heads(keys));
  model.head_dim = 256;
  STEPCAST_TRY(read_llama_like(keys, model));
  model.activation = Activation::gelu;  // the first configs said gelu in hidden_act and meant its tanh form
  STEPCAST_TRY(read_activation(keys, "hidden_activation", model.activation));
  if (!keys.has("tie_word_embeddings")) model.tied_embeddings = true;
  STEPCAST_TRY(read_attention_bias(keys, model));
  keys.ignore("use_bidirectional_attention");  // to images in front of the text (PaliGemma)
  return Ok{};
}

Status read_gemma2(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_gemma(keys, model));
  model.norms_per_layer = 4;
  model.sliding_window_tokens = 4096;
  model.global_attention_every_n_layers = 2;
  STEPCAST_TRY(keys.optional("sliding_window", model.sliding_window_tokens));
  STEPCAST_TRY(read_layer_types(keys, model));
  return read_softcaps(keys, model);
}

// Gemma 2 without the norms behind its parts.
Status read_vaultgemma(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_gemma2(keys, model));
  model.norms_per_layer = 2;
  return Ok{};
}

Status read_gemma3_text(ObjectReader& keys, Transformer& model) {
  // The released files leave out what is the library's default.
  model.n_layers = 26;
  model.hidden_size = 2304;
  model.ffn_hidden_size = 9216;
  model.n_heads = 8;
  model.n_kv_heads = 4;
  model.vocab_size = 262208;
  model.max_position = 131072;
  STEPCAST_TRY(read_gemma(keys, model));
  model.norms_per_layer = 4;
  model.qk_norm = true;
  model.sliding_window_tokens = 4096;
  model.global_attention_every_n_layers = 6;
  STEPCAST_TRY(keys.optional("sliding_window", model.sliding_window_tokens));
  STEPCAST_TRY(keys.optional("sliding_window_pattern", model.global_attention_every_n_layers));
  STEPCAST_TRY(keys.optional("_sliding_window_pattern", model.global_attention_every_n_layers));
  STEPCAST_TRY(read_layer_types(keys, model));
  STEPCAST_TRY(refuse_if_true(keys, "use_bidirectional_attention", "only causal attention is supported"));
  return read_softcaps(keys, model);
}

Status read_phi3(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_llama_like(keys, model));
  STEPCAST_TRY(keys.optional("resid_pdrop", model.hidden_dropout));
  STEPCAST_TRY(read_attention_bias(keys, model));
  STEPCAST_TRY(keys.optional("mlp_bias", model.ffn_bias));
  STEPCAST_TRY(keys.optional("lm_head_bias", model.head_bias));
  return keys.optional("sliding_window", model.sliding_window_tokens);
}

// Norms behind attention and FFN, none in front; one norm over all heads of queries, and one of keys.
Status read_olmo2(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_llama(keys, model));
  model.qk_norm = model.qk_norm_spans_heads = true;
  return Ok{};
}

Status read_olmo3(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_olmo2(keys, model));
  model.sliding_window_tokens = 4096;
  model.global_attention_every_n_layers = 4;
  STEPCAST_TRY(keys.optional("sliding_window", model.sliding_window_tokens));
  return read_layer_types(keys, model);
}

Status read_smollm3(ObjectReader& keys, Transformer& model) {
  const bool says_tied = keys.has("tie_word_embeddings");
  STEPCAST_TRY(read_llama(keys, model));
  if (!says_tied) model.tied_embeddings = true;
  bool uses_window = false;
  STEPCAST_TRY(keys.optional("use_sliding_window", uses_window));
  if (uses_window) STEPCAST_TRY(keys.optional("sliding_window", model.sliding_window_tokens));
  // Which layers do not rotate, and Qwen's way to say where windows begin.
  keys.ignore("no_rope_layers no_rope_layer_interval max_window_layers sliding_window");
  return read_layer_types(keys, model);
}

}  // namespace stepcast::detail
