#include "stepcast/describe/detail/huggingface_families.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

Status read_activation(ConfigKeys& keys, std::string_view key, Activation& out) {
  std::string text;
  STEPCAST_TRY(keys.optional(key, text));
  if (text.empty()) return Ok{};
  constexpr struct {
    std::string_view name;
    Activation activation;
  } kNames[] = {{"gelu", Activation::gelu},      {"gelu_new", Activation::gelu},
                {"gelu_fast", Activation::gelu}, {"gelu_pytorch_tanh", Activation::gelu},
                {"relu", Activation::relu},      {"relu2", Activation::squared_relu},
                {"silu", Activation::silu},      {"swish", Activation::silu}};
  for (const auto& known : kNames) {
    if (known.name != text) continue;
    out = known.activation;
    return Ok{};
  }
  return keys.error(key).found(fmt::format("`{}`", text.substr(0, 60))).expected("gelu, relu, relu2 or silu");
}

// Features that no Transformer has: refused unless they are off.
Status refuse_if_true(ConfigKeys& keys, std::string_view key, std::string_view why) {
  bool on = false;
  STEPCAST_TRY(keys.optional(key, on));
  if (on) return keys.error(key, std::string{why}).found("true").expected("false");
  return Ok{};
}
Status refuse_if_false(ConfigKeys& keys, std::string_view key, std::string_view why) {
  bool on = true;
  STEPCAST_TRY(keys.optional(key, on));
  if (!on) return keys.error(key, std::string{why}).found("false").expected("true");
  return Ok{};
}

// num_hidden_layers and so on, as most families name them.
Status read_sizes(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(keys.required("num_hidden_layers", model.n_layers));
  STEPCAST_TRY(keys.required("hidden_size", model.hidden_size));
  STEPCAST_TRY(keys.required("intermediate_size", model.ffn_hidden_size));
  STEPCAST_TRY(keys.required("num_attention_heads", model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.required("max_position_embeddings", model.max_position));
  return Ok{};
}

// RMS norm, rotary positions, gated FFN, no biases.
Status read_llama_like(ConfigKeys& keys, Transformer& model) {
  model.norm = NormKind::rms_norm;
  model.norm_bias = false;
  model.activation = Activation::silu;
  model.gated_ffn = true;
  model.position = PositionEncoding::rotary;
  model.tied_embeddings = false;
  model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  STEPCAST_TRY(read_sizes(keys, model));
  STEPCAST_TRY(read_activation(keys, "hidden_act", model.activation));
  STEPCAST_TRY(keys.optional("num_key_value_heads", model.n_kv_heads));
  STEPCAST_TRY(keys.optional("head_dim", model.head_dim));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  STEPCAST_TRY(keys.optional("partial_rotary_factor", model.rotary_fraction));
  return Ok{};
}

// These families have a default number of key-value heads that is not num_attention_heads.
Status require_kv_heads(ConfigKeys& keys) {
  if (keys.has("num_key_value_heads")) return Ok{};
  return keys.error("", "`num_key_value_heads` is missing").expected("a whole number");
}

// "layer_types": which layers see all tokens. Must be a pattern of which the last of every n does.
Status read_layer_types(ConfigKeys& keys, Transformer& model) {
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
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer) {
    if (is_global[static_cast<std::size_t>(layer)] != ((layer + 1) % every == 0)) return wrong();
  }
  model.global_attention_every_n_layers = every;
  return Ok{};
}

Status read_gpt2(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(keys.required("n_layer", model.n_layers));
  STEPCAST_TRY(keys.required("n_embd", model.hidden_size));
  STEPCAST_TRY(keys.required("n_head", model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.required("n_positions", model.max_position));
  model.ffn_hidden_size = 4 * model.hidden_size;
  STEPCAST_TRY(keys.optional("n_inner", model.ffn_hidden_size));
  STEPCAST_TRY(read_activation(keys, "activation_function", model.activation));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  model.hidden_dropout = model.attention_dropout = 0.1;
  STEPCAST_TRY(keys.optional("resid_pdrop", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attn_pdrop", model.attention_dropout));
  return refuse_if_true(keys, "add_cross_attention", "decoders with an encoder are not supported");
}

Status read_gpt_neox(ConfigKeys& keys, Transformer& model) {
  model.position = PositionEncoding::rotary;
  model.rotary_fraction = 0.25;
  model.parallel_residual = true;
  model.tied_embeddings = false;
  STEPCAST_TRY(read_sizes(keys, model));
  STEPCAST_TRY(read_activation(keys, "hidden_act", model.activation));
  STEPCAST_TRY(keys.optional("rotary_pct", model.rotary_fraction));
  STEPCAST_TRY(keys.optional("partial_rotary_factor", model.rotary_fraction));
  STEPCAST_TRY(keys.optional("use_parallel_residual", model.parallel_residual));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  bool attention_bias = true;
  STEPCAST_TRY(keys.optional("attention_bias", attention_bias));
  model.qkv_bias = model.attention_output_bias = attention_bias;
  STEPCAST_TRY(keys.optional("hidden_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  return Ok{};
}

Status read_bert(ConfigKeys& keys, Transformer& model) {
  model.architecture = Architecture::encoder;
  model.final_norm = false;
  model.embedding_norm = true;
  model.hidden_dropout = model.attention_dropout = 0.1;
  model.n_token_types = 2;
  STEPCAST_TRY(read_sizes(keys, model));
  STEPCAST_TRY(read_activation(keys, "hidden_act", model.activation));
  STEPCAST_TRY(keys.optional("type_vocab_size", model.n_token_types));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("hidden_dropout_prob", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_probs_dropout_prob", model.attention_dropout));
  std::string positions = "absolute";
  STEPCAST_TRY(keys.optional("position_embedding_type", positions));
  if (positions != "absolute") {
    return keys.error("position_embedding_type")
        .found(fmt::format("`{}`", positions.substr(0, 60)))
        .expected("`absolute`");
  }
  STEPCAST_TRY(refuse_if_true(keys, "is_decoder", "only encoders are supported"));
  STEPCAST_TRY(refuse_if_true(keys, "add_cross_attention", "only encoders are supported"));
  // BertModel has a pooler and no head; the models for training have a head.
  std::string kind = "BertModel";
  if (const JsonValue* names = keys.take("architectures"); names != nullptr && names->is_array() &&
                                                           names->items().size() == 1 &&
                                                           names->items().front().is_text()) {
    kind = names->items().front().text();
  }
  model.mlm_head = model.head_bias = kind == "BertForMaskedLM" || kind == "BertForPreTraining";
  model.pooler = kind == "BertModel" || kind == "BertForPreTraining";
  if (!model.mlm_head && !model.pooler) {
    return keys.error("architectures")
        .found(fmt::format("`{}`", kind.substr(0, 60)))
        .expected("BertModel, BertForMaskedLM or BertForPreTraining");
  }
  return Ok{};
}

Status read_opt(ConfigKeys& keys, Transformer& model) {
  model.activation = Activation::relu;
  model.hidden_dropout = 0.1;
  STEPCAST_TRY(keys.required("num_hidden_layers", model.n_layers));
  STEPCAST_TRY(keys.required("hidden_size", model.hidden_size));
  STEPCAST_TRY(keys.required("ffn_dim", model.ffn_hidden_size));
  STEPCAST_TRY(keys.required("num_attention_heads", model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.required("max_position_embeddings", model.max_position));
  model.max_position += 2;  // its table of positions begins with two unused rows
  std::int64_t projection = model.hidden_size;
  STEPCAST_TRY(keys.optional("word_embed_proj_dim", projection));
  if (projection != model.hidden_size) {
    return keys.error("word_embed_proj_dim", "embeddings of another width are not supported")
        .found(fmt::format("{}", projection))
        .expected(fmt::format("hidden_size {}", model.hidden_size));
  }
  STEPCAST_TRY(read_activation(keys, "activation_function", model.activation));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  STEPCAST_TRY(keys.optional("do_layer_norm_before", model.final_norm));
  bool has_bias = true, removes_final_norm = false;
  STEPCAST_TRY(keys.optional("enable_bias", has_bias));
  model.qkv_bias = model.attention_output_bias = model.ffn_bias = has_bias;
  STEPCAST_TRY(keys.optional("_remove_final_layer_norm", removes_final_norm));
  model.final_norm = model.final_norm && !removes_final_norm;
  STEPCAST_TRY(
      refuse_if_false(keys, "layer_norm_elementwise_affine", "norms without weights are not supported"));
  double layer_drop = 0;
  STEPCAST_TRY(keys.optional("layerdrop", layer_drop));
  if (layer_drop != 0) return keys.error("layerdrop", "layers that are left out at random are not supported");
  return Ok{};
}

Status read_mpt_attention(ConfigKeys& attention, Transformer& model) {
  bool alibi = false, rope = false;
  STEPCAST_TRY(attention.optional("alibi", alibi));
  STEPCAST_TRY(attention.optional("rope", rope));
  if (alibi) model.position = PositionEncoding::alibi;
  if (rope) model.position = PositionEncoding::rotary;
  STEPCAST_TRY(attention.optional("attn_pdrop", model.attention_dropout));
  STEPCAST_TRY(attention.optional("kv_n_heads", model.n_kv_heads));
  std::string type = "multihead_attention";
  STEPCAST_TRY(attention.optional("attn_type", type));
  if (type == "multiquery_attention") {
    model.n_kv_heads = 1;
  } else if (type != "multihead_attention" && type != "grouped_query_attention") {
    return attention.error("attn_type")
        .found(fmt::format("`{}`", type.substr(0, 60)))
        .expected("multihead_attention, multiquery_attention or grouped_query_attention");
  }
  STEPCAST_TRY(refuse_if_true(attention, "qk_ln", "norms over all queries and keys are not supported"));
  STEPCAST_TRY(refuse_if_true(attention, "prefix_lm", "prefix language models are not supported"));
  if (const JsonValue* window = attention.take("sliding_window_size");
      window != nullptr && window->is_number() && window->number() > 0) {
    return attention.error("sliding_window_size", "not supported");
  }
  constexpr std::array<std::string_view, 9> kHarmless{
      "attn_impl",  "clip_qkv",  "softmax_scale",    "attn_uses_sequence_id", "alibi_bias_max",
      "rope_theta", "rope_impl", "rope_dail_config", "rope_hf_config"};
  attention.ignore(kHarmless);
  return attention.finish();
}

Status read_mpt(ConfigKeys& keys, Transformer& model) {
  std::int64_t expansion = 4;
  STEPCAST_TRY(keys.required("n_layers", model.n_layers));
  STEPCAST_TRY(keys.required("d_model", model.hidden_size));
  STEPCAST_TRY(keys.required("n_heads", model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.required("max_seq_len", model.max_position));
  STEPCAST_TRY(keys.optional("expansion_ratio", expansion));
  constexpr std::int64_t kLargest = 1'000'000;
  model.ffn_hidden_size = std::min(expansion, kLargest) * std::min(model.hidden_size, kLargest * 100);
  bool no_bias = false, learned = true;
  STEPCAST_TRY(keys.optional("no_bias", no_bias));
  STEPCAST_TRY(keys.optional("learned_pos_emb", learned));
  model.position = learned ? PositionEncoding::learned : PositionEncoding::none;
  STEPCAST_TRY(keys.optional("resid_pdrop", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_ASSIGN(auto attention, keys.section("attn_config"));
  if (attention) STEPCAST_TRY(read_mpt_attention(*attention, model));
  std::string norm = "low_precision_layernorm";
  STEPCAST_TRY(keys.optional("norm_type", norm));
  if (norm == "rmsnorm" || norm == "low_precision_rmsnorm" || norm == "triton_rmsnorm") {
    model.norm = NormKind::rms_norm;
    model.norm_bias = false;
  } else if (norm != "layernorm" && norm != "low_precision_layernorm") {
    return keys.error("norm_type")
        .found(fmt::format("`{}`", norm.substr(0, 60)))
        .expected("a layernorm or rmsnorm");
  }
  if (no_bias) model.norm_bias = model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  STEPCAST_ASSIGN(auto ffn, keys.section("ffn_config"));
  if (ffn) {
    std::string type = "mptmlp";
    STEPCAST_TRY(ffn->optional("ffn_type", type));
    if (type != "mptmlp") {
      return ffn->error("ffn_type").found(fmt::format("`{}`", type.substr(0, 60))).expected("mptmlp");
    }
    constexpr std::array<std::string_view, 1> kHarmless{"fc_type"};
    ffn->ignore(kHarmless);
    STEPCAST_TRY(ffn->finish());
  }
  return Ok{};
}

Status read_llama(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(read_llama_like(keys, model));
  bool attention_bias = false;
  STEPCAST_TRY(keys.optional("attention_bias", attention_bias));
  model.qkv_bias = model.attention_output_bias = attention_bias;
  return keys.optional("mlp_bias", model.ffn_bias);
}

Status read_mistral(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  STEPCAST_TRY(read_llama_like(keys, model));
  return keys.optional("sliding_window", model.sliding_window_tokens);
}

Status read_mixtral(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(read_mistral(keys, model));
  MixtureOfExperts moe;
  STEPCAST_TRY(keys.required("num_local_experts", moe.n_experts));
  STEPCAST_TRY(keys.required("num_experts_per_tok", moe.experts_per_token));
  moe.expert_ffn_hidden_size = model.ffn_hidden_size;
  model.moe = moe;
  return Ok{};
}

// Qwen: a window counts from layer max_window_layers on, and only if use_sliding_window.
Status read_qwen_window(ConfigKeys& keys, Transformer& model) {
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

Status read_qwen2(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  STEPCAST_TRY(read_llama_like(keys, model));
  model.qkv_bias = true;
  return read_qwen_window(keys, model);
}

Status read_qwen3(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  model.head_dim = 128;
  STEPCAST_TRY(read_llama_like(keys, model));
  bool attention_bias = false;
  STEPCAST_TRY(keys.optional("attention_bias", attention_bias));
  model.qkv_bias = model.attention_output_bias = attention_bias;
  model.qk_norm = true;
  return read_qwen_window(keys, model);
}

Status read_qwen_experts(ConfigKeys& keys, Transformer& model) {
  MixtureOfExperts moe;
  STEPCAST_TRY(keys.required("num_experts", moe.n_experts));
  STEPCAST_TRY(keys.required("num_experts_per_tok", moe.experts_per_token));
  STEPCAST_TRY(keys.required("moe_intermediate_size", moe.expert_ffn_hidden_size));
  STEPCAST_TRY(keys.optional("decoder_sparse_step", moe.moe_every_n_layers));
  if (const JsonValue* dense = keys.take("mlp_only_layers")) {
    const auto layers = dense->numbers();
    for (std::size_t i = 0; layers && i < layers->size(); ++i) {
      if ((*layers)[i] != static_cast<double>(i)) {
        return keys.error("mlp_only_layers", "only layers in front can be without experts");
      }
    }
    if (!layers) return keys.error("mlp_only_layers").found(shown(*dense)).expected("a list of numbers");
    moe.first_dense_layers = static_cast<std::int64_t>(layers->size());
    if (moe.moe_every_n_layers > 1 && moe.first_dense_layers % moe.moe_every_n_layers != 0) {
      return keys.error("mlp_only_layers", "does not fit decoder_sparse_step");
    }
  }
  model.moe = moe;
  return Ok{};
}

Status read_qwen2_moe(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(read_qwen2(keys, model));
  STEPCAST_TRY(keys.optional("qkv_bias", model.qkv_bias));
  STEPCAST_TRY(read_qwen_experts(keys, model));
  STEPCAST_TRY(keys.required("shared_expert_intermediate_size", model.moe->shared_ffn_hidden_size));
  model.moe->n_shared_experts = 1;
  model.moe->shared_expert_gate = true;
  return Ok{};
}

Status read_qwen3_moe(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(read_qwen3(keys, model));
  return read_qwen_experts(keys, model);
}

Status read_gemma(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  model.head_dim = 256;
  STEPCAST_TRY(read_llama_like(keys, model));
  model.activation = Activation::gelu;  // the first configs said gelu in hidden_act and meant its tanh form
  STEPCAST_TRY(read_activation(keys, "hidden_activation", model.activation));
  if (!keys.has("tie_word_embeddings")) model.tied_embeddings = true;
  bool attention_bias = false;
  STEPCAST_TRY(keys.optional("attention_bias", attention_bias));
  model.qkv_bias = model.attention_output_bias = attention_bias;
  return Ok{};
}

Status read_softcaps(ConfigKeys& keys, Transformer& model) {
  double attention = 0, logits = 0;
  STEPCAST_TRY(keys.optional("attn_logit_softcapping", attention));
  STEPCAST_TRY(keys.optional("final_logit_softcapping", logits));
  model.attention_softcap = attention > 0;
  model.logit_softcap = logits > 0;
  return Ok{};
}

Status read_gemma2(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(read_gemma(keys, model));
  model.norms_per_layer = 4;
  model.sliding_window_tokens = 4096;
  model.global_attention_every_n_layers = 2;
  STEPCAST_TRY(keys.optional("sliding_window", model.sliding_window_tokens));
  STEPCAST_TRY(read_layer_types(keys, model));
  return read_softcaps(keys, model);
}

Status read_gemma3_text(ConfigKeys& keys, Transformer& model) {
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

Status read_nemotron(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  model.rotary_fraction = 0.5;
  STEPCAST_TRY(read_llama_like(keys, model));
  if (!keys.has("hidden_act")) model.activation = Activation::squared_relu;
  model.norm = NormKind::layer_norm;
  model.norm_bias = true;
  model.gated_ffn = false;
  bool attention_bias = false;
  STEPCAST_TRY(keys.optional("attention_bias", attention_bias));
  model.qkv_bias = model.attention_output_bias = attention_bias;
  return keys.optional("mlp_bias", model.ffn_bias);
}

Status read_deepseek(ConfigKeys& keys, Transformer& model) {
  STEPCAST_TRY(read_llama_like(keys, model));
  model.n_kv_heads = model.head_dim = 0;  // as latent attention has it; head_dim there is the rotated part
  STEPCAST_TRY(refuse_if_true(keys, "attention_bias", "biases of latent attention are not supported"));
  LatentAttention latent;
  STEPCAST_TRY(keys.optional("q_lora_rank", latent.q_lora_rank));
  STEPCAST_TRY(keys.required("kv_lora_rank", latent.kv_lora_rank));
  STEPCAST_TRY(keys.required("qk_nope_head_dim", latent.qk_nope_head_dim));
  STEPCAST_TRY(keys.required("qk_rope_head_dim", latent.qk_rope_head_dim));
  STEPCAST_TRY(keys.required("v_head_dim", latent.v_head_dim));
  std::int64_t qk_head_dim = latent.qk_nope_head_dim + latent.qk_rope_head_dim;
  STEPCAST_TRY(keys.optional("qk_head_dim", qk_head_dim));
  if (qk_head_dim != latent.qk_nope_head_dim + latent.qk_rope_head_dim) {
    return keys.error("qk_head_dim")
        .found(fmt::format("{}", qk_head_dim))
        .expected("qk_nope_head_dim + qk_rope_head_dim");
  }
  model.latent_attention = latent;
  STEPCAST_TRY(keys.optional("num_nextn_predict_layers", model.n_multi_token_prediction_layers));
  if (!keys.has("n_routed_experts")) return Ok{};
  MixtureOfExperts moe;
  STEPCAST_TRY(keys.required("n_routed_experts", moe.n_experts));
  STEPCAST_TRY(keys.required("num_experts_per_tok", moe.experts_per_token));
  STEPCAST_TRY(keys.required("moe_intermediate_size", moe.expert_ffn_hidden_size));
  STEPCAST_TRY(keys.optional("n_shared_experts", moe.n_shared_experts));
  if (moe.n_shared_experts > 0) moe.shared_ffn_hidden_size = moe.expert_ffn_hidden_size;
  STEPCAST_TRY(keys.optional("first_k_dense_replace", moe.first_dense_layers));
  std::int64_t frequency = 1;
  STEPCAST_TRY(keys.optional("moe_layer_freq", frequency));
  if (frequency != 1) return keys.error("moe_layer_freq").found(fmt::format("{}", frequency)).expected("1");
  model.moe = moe;
  return Ok{};
}

constexpr HuggingfaceFamily kFamilies[] = {
    {"gpt2", read_gpt2},
    {"gpt_neox", read_gpt_neox},
    {"bert", read_bert},
    {"opt", read_opt},
    {"mpt", read_mpt},
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"qwen2", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3_text},
    {"nemotron", read_nemotron},
    {"deepseek_v2", read_deepseek},
    {"deepseek_v3", read_deepseek},
};

// Names, files and versions; ids of tokens; how the model was initialised or generates; scales of positions
// and losses; tasks that share the config; hints for inference. None changes a shape or a kernel of training.
constexpr std::string_view kHarmless[] = {
    "_name_or_path",
    "model_type",
    "architectures",
    "auto_map",
    "transformers_version",
    "torch_dtype",
    "dtype",
    "name",
    "framework",
    "_attn_implementation",
    "attn_implementation",
    "_attn_implementation_autoset",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "decoder_start_token_id",
    "tokenizer_class",
    "tokenizer_name",
    "prefix",
    "init_device",
    "init_config",
    "initializer_range",
    "initializer_factor",
    "init_std",
    "initializer_cutoff_factor",
    "use_cache",
    "cache_implementation",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "output_past",
    "gradient_checkpointing",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "rms_norm_eps",
    "norm_eps",
    "norm_epsilon",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "rope_interleave",
    "rope_local_base_freq",
    "rotary_emb_base",
    "default_theta",
    "pretraining_tp",
    "task_specific_params",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "classifier_dropout",
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "finetuning_task",
    "directionality",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "n_ctx",
    "n_special",
    "predict_special_tokens",
    "embd_pdrop",
    "emb_pdrop",
    "embedding_fraction",
    "logit_scale",
    "verbose",
    "use_pad_tok_in_ffn",
    "fc_type",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "reorder_and_upcast_attn",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "router_z_loss_coef",
    "norm_topk_prob",
    "aux_loss_alpha",
    "seq_aux",
    "scoring_func",
    "topk_group",
    "topk_method",
    "n_group",
    "routed_scaling_factor",
    "ep_size",
    "query_pre_attn_scalar",
    "do_sample",
    "max_length",
    "min_length",
    "temperature",
    "top_k",
    "top_p",
    "repetition_penalty",
    "length_penalty",
    "num_beams",
    "early_stopping",
    "no_repeat_ngram_size",
    "chunk_size_feed_forward",
    "is_encoder_decoder",
    "tf_legacy_loss",
    "use_bfloat16",
    "torchscript",
    "pruned_heads",
    "original_max_position_embeddings",
};

}  // namespace

std::span<const HuggingfaceFamily> huggingface_families() { return kFamilies; }
std::span<const std::string_view> harmless_huggingface_keys() { return kHarmless; }

}  // namespace stepcast::detail
