#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/describe/detail/huggingface_readers.h"

namespace stepcast::detail {

Status read_gpt2(ObjectReader& keys, Transformer& model) {
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

Status read_gpt_bigcode(ObjectReader& keys, Transformer& model) {
  bool multi_query = true;
  STEPCAST_TRY(keys.optional("multi_query", multi_query));
  if (multi_query) model.n_kv_heads = 1;
  keys.ignore("num_key_value_heads");  // says it again
  return read_gpt2(keys, model);
}

// Layers with windows and without take turns.
Status read_gpt_neo(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(keys.required("num_layers", model.n_layers));
  STEPCAST_TRY(keys.required("hidden_size", model.hidden_size));
  STEPCAST_TRY(keys.required("num_heads", model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.required("max_position_embeddings", model.max_position));
  constexpr std::int64_t kLargest = 100'000'000;
  model.ffn_hidden_size = 4 * std::min(model.hidden_size, kLargest);
  STEPCAST_TRY(keys.optional("intermediate_size", model.ffn_hidden_size));
  model.qkv_bias = false;
  model.sliding_window_tokens = 256;
  STEPCAST_TRY(keys.optional("window_size", model.sliding_window_tokens));
  std::vector<std::string> layers;
  STEPCAST_TRY(keys.optional("attention_layers", layers));
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer] == (layer % 2 == 0 ? "global" : "local")) continue;
    return keys.error("attention_layers", "not understood").expected("global and local in turn");
  }
  model.global_attention_every_n_layers = 2;
  STEPCAST_TRY(read_activation(keys, "activation_function", model.activation));
  STEPCAST_TRY(keys.optional("resid_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  keys.ignore("attention_types");
  return keys.optional("tie_word_embeddings", model.tied_embeddings);
}

Status read_gpt_neox(ObjectReader& keys, Transformer& model) {
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
  STEPCAST_TRY(keys.optional("hidden_dropout_prob", model.hidden_dropout));  // of the first releases
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  return keys.optional("attention_probs_dropout_prob", model.attention_dropout);
}

Status read_opt(ObjectReader& keys, Transformer& model) {
  model.activation = Activation::relu;
  model.hidden_dropout = 0.1;
  STEPCAST_TRY(keys.required("num_hidden_layers", model.n_layers));
  STEPCAST_TRY(keys.required("hidden_size", model.hidden_size));
  STEPCAST_TRY(keys.required("ffn_dim", model.ffn_hidden_size));
  STEPCAST_TRY(keys.required("num_attention_heads", model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.required("max_position_embeddings", model.max_position));
  model.unused_positions = 2;  // in front of those that the config counts
  model.max_position += model.unused_positions;
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
  double layer_drop = 0, activation_dropout = 0;
  STEPCAST_TRY(keys.optional("layerdrop", layer_drop));
  STEPCAST_TRY(keys.optional("activation_dropout", activation_dropout));
  if (activation_dropout != 0)
    return keys.error("activation_dropout", "dropout between the two products of an FFN is not modelled");
  if (layer_drop != 0) return keys.error("layerdrop", "layers that are left out at random are not supported");
  return Ok{};
}

namespace {

Status read_mpt_attention(ObjectReader& attention, Transformer& model) {
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
    return attention.wrong("attn_type", type,
                           "multihead_attention, multiquery_attention or grouped_query_attention");
  }
  STEPCAST_TRY(refuse_if_true(attention, "qk_ln", "norms over all queries and keys are not supported"));
  STEPCAST_TRY(refuse_if_true(attention, "prefix_lm", "prefix language models are not supported"));
  if (const JsonValue* window = attention.take("sliding_window_size");
      window != nullptr && window->is_number() && window->number() > 0) {
    return attention.error("sliding_window_size", "not supported");
  }
  attention.ignore(
      "attn_impl clip_qkv softmax_scale attn_uses_sequence_id alibi_bias_max rope_theta rope_impl "
      "rope_dail_config rope_hf_config");
  attention.ignore(huggingface_keys("harmless"));
  return attention.finish();
}

// The first of these keys that is there.
Status read_first(ObjectReader& keys, std::initializer_list<std::string_view> names, std::int64_t& out) {
  for (const std::string_view name : names) {
    if (!keys.has(name)) continue;
    for (const std::string_view other : names) keys.ignore(other);
    return keys.optional(name, out);
  }
  return keys.required(*names.begin(), out);
}

}  // namespace

Status read_mpt(ObjectReader& keys, Transformer& model) {
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
    return keys.wrong("norm_type", norm, "a layernorm or rmsnorm");
  }
  if (no_bias) model.norm_bias = model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  STEPCAST_ASSIGN(auto ffn, keys.section("ffn_config"));
  if (ffn) {
    std::string type = "mptmlp";
    STEPCAST_TRY(ffn->optional("ffn_type", type));
    if (type != "mptmlp") {
      return ffn->wrong("ffn_type", type, "mptmlp");
    }
    ffn->ignore("fc_type");
    STEPCAST_TRY(ffn->finish());
  }
  return Ok{};
}

Status read_bloom(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_first(keys, {"n_layer", "num_hidden_layers"}, model.n_layers));
  STEPCAST_TRY(read_first(keys, {"hidden_size", "n_embed"}, model.hidden_size));
  STEPCAST_TRY(read_first(keys, {"n_head", "num_attention_heads"}, model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  constexpr std::int64_t kLargest = 100'000'000;
  model.ffn_hidden_size = 4 * std::min(model.hidden_size, kLargest);
  model.position = PositionEncoding::alibi;
  model.embedding_norm = true;
  model.max_position = 2048;
  STEPCAST_TRY(keys.optional("seq_length", model.max_position));
  STEPCAST_TRY(keys.optional("hidden_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  return refuse_if_true(keys, "apply_residual_connection_post_layernorm",
                        "residuals behind the norm are not supported");
}

Status read_falcon(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_first(keys, {"num_hidden_layers", "n_layer"}, model.n_layers));
  STEPCAST_TRY(keys.required("hidden_size", model.hidden_size));
  STEPCAST_TRY(read_first(keys, {"num_attention_heads", "n_head"}, model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  constexpr std::int64_t kLargest = 100'000'000;
  model.ffn_hidden_size = 4 * std::min(model.hidden_size, kLargest);
  STEPCAST_TRY(keys.optional("ffn_hidden_size", model.ffn_hidden_size));
  bool alibi = false, multi_query = true, grouped = false, bias = false;
  STEPCAST_TRY(keys.optional("alibi", alibi));
  STEPCAST_TRY(keys.optional("multi_query", multi_query));
  STEPCAST_TRY(keys.optional("new_decoder_architecture", grouped));
  STEPCAST_TRY(keys.optional("bias", bias));
  model.parallel_residual = true;
  STEPCAST_TRY(keys.optional("parallel_attn", model.parallel_residual));
  std::int64_t kv_heads = model.n_heads;
  if (keys.has("num_kv_heads") || keys.has("n_head_kv")) {
    STEPCAST_TRY(read_first(keys, {"num_kv_heads", "n_head_kv"}, kv_heads));
  }
  model.n_kv_heads = grouped ? kv_heads : multi_query ? 1 : model.n_heads;
  // Attention and FFN read one norm; in the newer ones a norm each, unless the file says that they share one.
  std::int64_t norms = grouped ? 2 : 1;
  STEPCAST_TRY(keys.optional("num_ln_in_parallel_attn", norms));
  model.norms_per_layer = model.parallel_residual ? norms : 2;
  model.position = alibi ? PositionEncoding::alibi : PositionEncoding::rotary;
  model.qkv_bias = model.attention_output_bias = model.ffn_bias = bias;
  model.max_position = 2048;
  STEPCAST_TRY(keys.optional("max_position_embeddings", model.max_position));
  STEPCAST_TRY(read_activation(keys, "activation", model.activation));
  STEPCAST_TRY(keys.optional("hidden_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  return refuse_if_true(keys, "apply_residual_connection_post_layernorm",
                        "residuals behind the norm are not supported");
}

Status read_gptj(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(keys.required("n_layer", model.n_layers));
  STEPCAST_TRY(keys.required("n_embd", model.hidden_size));
  STEPCAST_TRY(keys.required("n_head", model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.required("n_positions", model.max_position));
  constexpr std::int64_t kLargest = 100'000'000;
  std::int64_t width = 0, rotary = 64;
  STEPCAST_TRY(keys.optional("n_inner", width));
  model.ffn_hidden_size = width > 0 ? width : 4 * std::min(model.hidden_size, kLargest);
  STEPCAST_TRY(keys.optional("rotary_dim", rotary));
  STEPCAST_TRY(refuse_if_false(keys, "rotary", "of GPT-J only rotated positions are modelled"));
  model.position = PositionEncoding::rotary;
  const std::int64_t head = model.n_heads > 0 ? model.hidden_size / model.n_heads : 0;
  model.rotary_fraction =
      head > 0 ? std::min(1.0, static_cast<double>(rotary) / static_cast<double>(head)) : 1;
  model.parallel_residual = true;
  model.norms_per_layer = 1;
  model.qkv_bias = model.attention_output_bias = false;
  model.tied_embeddings = false;
  model.head_bias = true;
  STEPCAST_TRY(read_activation(keys, "activation_function", model.activation));
  STEPCAST_TRY(keys.optional("resid_pdrop", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attn_pdrop", model.attention_dropout));
  return keys.optional("tie_word_embeddings", model.tied_embeddings);
}

// Phi-1 to Phi-2: attention and FFN beside each other behind one norm.
Status read_phi(ObjectReader& keys, Transformer& model) {
  model.position = PositionEncoding::rotary;
  model.rotary_fraction = 0.5;
  model.parallel_residual = true;
  model.norms_per_layer = 1;
  model.tied_embeddings = false;
  model.head_bias = true;
  STEPCAST_TRY(read_sizes(keys, model));
  STEPCAST_TRY(read_activation(keys, "hidden_act", model.activation));
  STEPCAST_TRY(keys.optional("num_key_value_heads", model.n_kv_heads));
  STEPCAST_TRY(keys.optional("partial_rotary_factor", model.rotary_fraction));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("resid_pdrop", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  return refuse_if_true(keys, "qk_layernorm", "layer norms of queries and keys are not modelled");
}

Status read_starcoder2(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  model.position = PositionEncoding::rotary;
  STEPCAST_TRY(read_sizes(keys, model));
  STEPCAST_TRY(read_activation(keys, "hidden_act", model.activation));
  STEPCAST_TRY(keys.optional("num_key_value_heads", model.n_kv_heads));
  bool bias = true;
  STEPCAST_TRY(keys.optional("use_bias", bias));
  model.qkv_bias = model.attention_output_bias = model.ffn_bias = bias;
  STEPCAST_TRY(keys.optional("sliding_window", model.sliding_window_tokens));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("residual_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  // The released files say these beside what counts: hidden_act, layer norms, an FFN of two matrices.
  for (const auto& [key, only] : {std::pair{"mlp_type", "default"}, std::pair{"norm_type", "layer_norm"}}) {
    std::string kind = only;
    STEPCAST_TRY(keys.optional(key, kind));
    if (kind != only) return keys.wrong(key, kind, only);
  }
  (void)keys.take("activation_function");
  return Ok{};
}

}  // namespace stepcast::detail
