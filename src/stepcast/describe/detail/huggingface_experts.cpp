#include <string>

#include <fmt/format.h>

#include "stepcast/describe/detail/huggingface_readers.h"

namespace stepcast::detail {

Status read_mixtral(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_mistral(keys, model));
  MixtureOfExperts moe;
  STEPCAST_TRY(keys.required("num_local_experts", moe.n_experts));
  STEPCAST_TRY(keys.required("num_experts_per_tok", moe.experts_per_token));
  moe.expert_ffn_hidden_size = model.ffn_hidden_size;
  model.moe = moe;
  return Ok{};
}

namespace {

Status read_qwen_experts(ObjectReader& keys, Transformer& model) {
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
    if (!layers)
      return keys.error("mlp_only_layers").found(describe_value(*dense)).expected("a list of numbers");
    moe.first_dense_layers = static_cast<std::int64_t>(layers->size());
    if (moe.moe_every_n_layers > 1 && moe.first_dense_layers % moe.moe_every_n_layers != 0) {
      return keys.error("mlp_only_layers", "does not fit decoder_sparse_step");
    }
  }
  model.moe = moe;
  return Ok{};
}

}  // namespace

Status read_qwen2_moe(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_qwen2(keys, model));
  STEPCAST_TRY(keys.optional("qkv_bias", model.qkv_bias));
  STEPCAST_TRY(read_qwen_experts(keys, model));
  STEPCAST_TRY(keys.required("shared_expert_intermediate_size", model.moe->shared_ffn_hidden_size));
  model.moe->n_shared_experts = 1;
  model.moe->shared_expert_gate = true;
  return Ok{};
}

Status read_qwen3_moe(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_qwen3(keys, model));
  return read_qwen_experts(keys, model);
}

Status read_deepseek(ObjectReader& keys, Transformer& model) {
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

}  // namespace stepcast::detail
