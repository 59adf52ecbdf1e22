#include "stepcast/describe/detail/transformer_features.h"

namespace stepcast::detail {
namespace {

Status read_moe(ObjectReader& keys, std::optional<MixtureOfExperts>& out) {
  STEPCAST_ASSIGN(auto section, keys.section("moe"));
  if (!section) return Ok{};
  MixtureOfExperts& moe = out.emplace();
  STEPCAST_TRY(section->optional("n_experts", moe.n_experts));
  STEPCAST_TRY(section->optional("experts_per_token", moe.experts_per_token));
  STEPCAST_TRY(section->optional("expert_ffn_hidden_size", moe.expert_ffn_hidden_size));
  STEPCAST_TRY(section->optional("n_shared_experts", moe.n_shared_experts));
  STEPCAST_TRY(section->optional("shared_ffn_hidden_size", moe.shared_ffn_hidden_size));
  STEPCAST_TRY(section->optional("shared_expert_gate", moe.shared_expert_gate));
  STEPCAST_TRY(section->optional("router_bias", moe.router_bias));
  STEPCAST_TRY(section->optional("n_groups", moe.n_groups));
  STEPCAST_TRY(section->optional("groups_per_token", moe.groups_per_token));
  STEPCAST_TRY(section->optional("first_dense_layers", moe.first_dense_layers));
  STEPCAST_TRY(section->optional("moe_every_n_layers", moe.moe_every_n_layers));
  return section->finish();
}

Status read_latent(ObjectReader& keys, std::optional<LatentAttention>& out) {
  STEPCAST_ASSIGN(auto section, keys.section("latent_attention"));
  if (!section) return Ok{};
  LatentAttention& latent = out.emplace();
  STEPCAST_TRY(section->optional("q_lora_rank", latent.q_lora_rank));
  STEPCAST_TRY(section->optional("kv_lora_rank", latent.kv_lora_rank));
  STEPCAST_TRY(section->optional("qk_nope_head_dim", latent.qk_nope_head_dim));
  STEPCAST_TRY(section->optional("qk_rope_head_dim", latent.qk_rope_head_dim));
  STEPCAST_TRY(section->optional("v_head_dim", latent.v_head_dim));
  return section->finish();
}

}  // namespace

Status read_features(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_word<Architecture::encoder>(keys, "architecture", model.architecture));
  STEPCAST_TRY(read_word<NormKind::group_norm>(keys, "norm", model.norm));
  STEPCAST_TRY(read_word<Activation::silu>(keys, "activation", model.activation));
  STEPCAST_TRY(read_word<PositionEncoding::relative>(keys, "position", model.position));
  STEPCAST_TRY(read_word<Mixer::none>(keys, "mixer", model.mixer));
  STEPCAST_TRY(keys.optional("ffn_hidden_size", model.ffn_hidden_size));
  STEPCAST_TRY(keys.optional("head_dim", model.head_dim));
  STEPCAST_TRY(keys.optional("unused_positions", model.unused_positions));
  STEPCAST_TRY(keys.optional("norm_bias", model.norm_bias));
  STEPCAST_TRY(keys.optional("norm_weights", model.norm_weights));
  STEPCAST_TRY(keys.optional("norms_per_layer", model.norms_per_layer));
  STEPCAST_TRY(keys.optional("final_norm", model.final_norm));
  STEPCAST_TRY(keys.optional("embedding_norm", model.embedding_norm));
  STEPCAST_TRY(keys.optional("qk_norm", model.qk_norm));
  STEPCAST_TRY(keys.optional("qk_norm_spans_heads", model.qk_norm_spans_heads));
  STEPCAST_TRY(keys.optional("gated_ffn", model.gated_ffn));
  STEPCAST_TRY(keys.optional("activation_parameters", model.activation_parameters));
  STEPCAST_TRY(keys.optional("rotary_fraction", model.rotary_fraction));
  STEPCAST_TRY(keys.optional("parallel_residual", model.parallel_residual));
  STEPCAST_TRY(keys.optional("tied_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("qkv_bias", model.qkv_bias));
  STEPCAST_TRY(keys.optional("attention_output_bias", model.attention_output_bias));
  STEPCAST_TRY(keys.optional("ffn_bias", model.ffn_bias));
  STEPCAST_TRY(keys.optional("sliding_window_tokens", model.sliding_window_tokens));
  STEPCAST_TRY(keys.optional("global_attention_every_n_layers", model.global_attention_every_n_layers));
  STEPCAST_TRY(keys.optional("attention_sinks", model.attention_sinks));
  STEPCAST_TRY(keys.optional("attention_output_gate", model.attention_output_gate));
  STEPCAST_TRY(keys.optional("gate_per_head", model.gate_per_head));
  STEPCAST_TRY(keys.optional("attends_beside", model.attends_beside));
  STEPCAST_TRY(keys.optional("attention_softcap", model.attention_softcap));
  STEPCAST_TRY(keys.optional("logit_softcap", model.logit_softcap));
  STEPCAST_TRY(keys.optional("hidden_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  STEPCAST_TRY(keys.optional("n_token_types", model.n_token_types));
  STEPCAST_TRY(keys.optional("pooler", model.pooler));
  STEPCAST_TRY(keys.optional("n_multi_token_prediction_layers", model.n_multi_token_prediction_layers));
  STEPCAST_TRY(read_moe(keys, model.moe));
  return read_latent(keys, model.latent_attention);
}

}  // namespace stepcast::detail
