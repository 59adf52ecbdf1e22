#include "stepcast/describe/detail/huggingface_families.h"

#include "stepcast/describe/detail/huggingface_readers.h"

namespace stepcast::detail {
namespace {

constexpr HuggingfaceFamily kFamilies[] = {
    {"gpt2", read_gpt2},
    {"gpt_neox", read_gpt_neox},
    {"bert", read_bert},
    {"opt", read_opt},
    {"mpt", read_mpt},
    {"bloom", read_bloom},
    {"falcon", read_falcon},
    {"gptj", read_gptj},
    {"phi", read_phi},
    {"starcoder2", read_starcoder2},
    {"roberta", read_roberta},
    {"xlm-roberta", read_roberta},
    {"xlnet", read_xlnet},
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
    {"phi3", read_phi3},
    {"olmo2", read_olmo2},
    {"olmo3", read_olmo3},
    {"olmoe", read_olmoe},
    {"granite", read_llama},  // with factors that change no shape
    {"smollm3", read_smollm3},
    {"deepseek_v2", read_deepseek},
    {"deepseek_v3", read_deepseek},
    {"kimi_k2", read_deepseek},
    {"deepseek_v32", read_deepseek_sparse},
    {"glm_moe_dsa", read_deepseek_sparse},
    {"deepseek_v4", read_deepseek_v4},
    {"deepseek_ref", read_deepseek_v4},
    {"nemotron-nas", read_nemotron_nas},
    {"qwen3_vl_text", read_qwen3},
    {"qwen3_vl_moe_text", read_qwen3_moe},
    {"gpt_oss", read_gpt_oss},
    {"llama4_text", read_llama4_text},
    {"dbrx", read_dbrx},
    {"gpt_bigcode", read_gpt_bigcode},
    {"gpt_neo", read_gpt_neo},
    {"vaultgemma", read_vaultgemma},
    {"mamba2", read_mamba2},
    {"mamba", read_mamba1},
    {"falcon_mamba", read_mamba1},
    {"mllama_text_model", read_mllama_text},
    {"longcat_flash", read_longcat},
    // The same layers under other names.
    {"codegen", read_gptj},
    {"gpt-sw3", read_gpt2},
    {"camembert", read_roberta},
    {"flex_olmo", read_olmoe},
    {"minicpm3", read_deepseek},
    {"qwen2_5_omni_text", read_qwen2},
    {"qwen3_omni_moe_text", read_qwen3_moe},
    {"qwen2_vl_text", read_qwen2},
    {"qwen2_5_vl_text", read_qwen2},
    {"ministral3", read_mistral},
    {"exaone", read_llama},
    {"helium", read_llama},
    {"internlm3", read_llama},
    {"iquestcoder", read_llama},
    {"granite_docling_text", read_llama},
    {"granite4_vision_text", read_llama},
    {"glm4_moe_lite", read_deepseek},
    {"sarvam_mla", read_deepseek},
    {"youtu", read_deepseek},
    {"mistral4", read_deepseek},
};

// Names, files and versions; ids of tokens; how the model was initialised or generates; scales of positions and losses;
// tasks that share the config; hints for inference.
constexpr std::string_view kHarmless =
    "_name_or_path model_type architectures auto_map transformers_version torch_dtype dtype name "
    "framework _attn_implementation attn_implementation _attn_implementation_autoset bos_token_id "
    "eos_token_id pad_token_id sep_token_id decoder_start_token_id tokenizer_class tokenizer_name "
    "prefix init_device init_config initializer_range initializer_factor init_std "
    "initializer_cutoff_factor use_cache cache_implementation return_dict output_attentions "
    "output_hidden_states output_router_logits output_past gradient_checkpointing layer_norm_eps "
    "layer_norm_epsilon rms_norm_eps norm_eps norm_epsilon rope_theta rope_scaling rope_parameters "
    "rope_interleave rope_local_base_freq rotary_emb_base default_theta pretraining_tp "
    "task_specific_params summary_activation summary_first_dropout summary_proj_to_labels "
    "summary_type summary_use_proj classifier_dropout id2label label2id num_labels problem_type "
    "finetuning_task directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers "
    "pooler_size_per_head pooler_type n_ctx n_special predict_special_tokens embd_pdrop emb_pdrop "
    "embedding_fraction logit_scale verbose use_pad_tok_in_ffn fc_type scale_attn_weights "
    "scale_attn_by_inverse_layer_idx reorder_and_upcast_attn router_aux_loss_coef router_jitter_noise "
    "router_z_loss_coef norm_topk_prob aux_loss_alpha seq_aux scoring_func topk_group topk_method "
    "n_group routed_scaling_factor ep_size query_pre_attn_scalar do_sample max_length min_length "
    "temperature top_k top_p repetition_penalty length_penalty num_beams early_stopping "
    "no_repeat_ngram_size chunk_size_feed_forward is_encoder_decoder is_decoder tf_legacy_loss "
    "use_bfloat16 torchscript pruned_heads original_max_position_embeddings unsloth_fixed "
    "unsloth_version _commit_hash sliding_window_size use_return_dict cross_attention_hidden_size "
    "tie_encoder_decoder typical_p diversity_penalty encoder_no_repeat_ngram_size "
    "exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id suppress_tokens "
    "begin_suppress_tokens remove_invalid_values num_beam_groups num_return_sequences bad_words_ids "
    "output_scores return_dict_in_generate slow_but_exact offset_alibi masked_softmax_fusion "
    "bias_dropout_fusion attention_softmax_in_fp32 gelu_approximation skip_bias_add skip_bias_add_qkv "
    "unk_token_id hybridized_cache cache_config use_mrope full_attn_mod interpolate_factor "
    "embedding_dropout embed_dropout embedding_multiplier logits_scaling residual_multiplier "
    "attention_multiplier scale_attention_softmax_in_fp32 moe_router_scaling_factor route_scale "
    "router_scaling_factor moe_routed_scaling_factor swiglu_limit swiglu_limits swiglu_limits_shared "
    "swiglu_alpha moe_norm_min mup_enabled enable_moe_fp32_combine input_jitter_noise "
    "indexer_rope_interleave embedding_initializer_range scale_emb "
    "dim_model_base scale_depth num_image_tokens _flash_attn_2_enabled is_llama_config "
    "neftune_noise_alpha pixel_shuffle_factor rope_interleaved use_resampler perceiver_config "
    "model_max_length rope_ratio lm_head rm_head mtp_loss_scaling_factor compression_config";

}  // namespace

std::span<const HuggingfaceFamily> huggingface_families() { return kFamilies; }
std::string_view harmless_huggingface_keys() { return kHarmless; }

}  // namespace stepcast::detail
