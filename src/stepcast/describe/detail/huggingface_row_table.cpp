// The families that rows describe: what each always has, and which keys say the rest.
#include <algorithm>
#include <utility>
#include <vector>

#include "stepcast/describe/detail/huggingface_rows.h"

namespace stepcast::detail {
namespace {

constexpr std::string_view kMiniMaxNoShape =
    "rotary_dim qk_norm_type use_routing_bias use_mtp mtp_transformer_layers "
    "layernorm_full_attention_beta";
constexpr std::string_view kMiniMaxOff = "shared_intermediate_size";
constexpr std::string_view kMiMoNoShape =
    "swa_rope_theta sliding_window_size attention_chunk_size attention_value_scale layernorm_epsilon "
    "topk_method";
constexpr std::string_view kStepNoShape =
    "use_moe_router_bias yarn_only_types max_seq_len use_moe moe_layer_offset norm_expert_weight "
    "moe_router_activation att_impl_type need_fp32_gate use_rope_layers partial_rotary_factors "
    "zero_centered mtp_layer_types mtp_mlp_layer_types";
constexpr std::string_view kStepOff = "use_mfa sink attention_bias";
constexpr std::string_view kGemma4NoShape = "use_bidirectional_attention";
constexpr std::string_view kAfmoeOff = "attention_bias";
constexpr std::string_view kQwen35NoShape = "full_attention_interval mamba_ssm_dtype";
constexpr std::string_view kQwen35Off = "mtp_use_dedicated_embeddings";
constexpr std::string_view kNemotronHNoShape =
    "mamba_hidden_act mamba_ssm_cache_dtype num_logits_to_keep rescale_prenorm_residual "
    "residual_in_fp32 time_step_floor time_step_max time_step_min time_step_limit use_mamba_kernels "
    "sliding_window expand moe_shared_expert_overlap";
constexpr std::string_view kNemotronHOff = "use_bias mamba_proj_bias attention_bias tie_word_embeddings";
constexpr std::string_view kGraniteHybridNoShape =
    "mamba_expand position_embedding_type init_method time_step_limit time_step_max time_step_min";
constexpr std::string_view kGraniteHybridOff = "mamba_proj_bias";
constexpr std::string_view kWindowNoShape =
    "sliding_window_pattern global_attn_every_n_layers max_window_layers use_sliding_window";
constexpr std::string_view kCohereNoShape =
    "sliding_window_pattern order_of_interleaved_layers position_embedding_type rotary_pct "
    "use_embedding_sharing use_gated_activation use_parallel_block use_parallel_embedding";
constexpr std::string_view kOlmoHybridNoShape =
    "linear_a_log_max linear_a_log_min linear_allow_neg_eigval linear_dt_init_floor linear_dt_max "
    "linear_dt_min";
constexpr std::string_view kErnieNoShape =
    "moe_layer_interval moe_layer_end_index moe_capacity moe_use_aux_free moe_gate compression_ratio";
constexpr std::string_view kGraniteSwaNoShape = "layer_rope_theta";
constexpr std::string_view kHunyuanNoShape = "eod_token_id mlp_layer_types";

constexpr StateKeys kDeltaKeys{.n_heads = "linear_num_value_heads",
                               .head_dim = "linear_value_head_dim",
                               .n_key_heads = "linear_num_key_heads",
                               .key_head_dim = "linear_key_head_dim",
                               .conv_kernel = "linear_conv_kernel_dim"};

constexpr StateKeys kChannelKeys{.n_heads = "linear_num_heads",
                                 .head_dim = "linear_head_dim",
                                 .n_key_heads = "linear_num_heads",
                                 .key_head_dim = "linear_head_dim",
                                 .conv_kernel = "linear_conv_kernel_dim",
                                 .mixer = Mixer::channel_delta};
constexpr StateKeys kLowRankKeys = [] {
  StateKeys keys = kChannelKeys;
  keys.low_rank = true;
  return keys;
}();
constexpr StateKeys kConvolutionKeys{.conv_kernel = "conv_L_cache", .mixer = Mixer::short_convolution};
constexpr std::string_view kMiniMax01NoShape =
    "block_size full_attn_alpha_factor full_attn_beta_factor linear_attn_alpha_factor "
    "linear_attn_beta_factor "
    "mlp_alpha_factor mlp_beta_factor layernorm_full_attention_alpha layernorm_full_attention_beta "
    "layernorm_linear_attention_alpha layernorm_linear_attention_beta layernorm_mlp_alpha layernorm_mlp_beta "
    "postnorm shared_moe_mode rotary_dim sliding_window";
constexpr std::string_view kBailingNoShape =
    "norm_head norm_softmax router_dtype max_window_layers sliding_window "
    "rotary_dim score_function use_rmsnorm moe_router_enable_expert_bias mtp_loss_scaling_factor "
    "output_dropout expert_capacity_factor group_norm_size linear_silu use_linear_silu";
constexpr std::string_view kKimiLinearNoShape =
    "mla_use_nope moe_renormalize moe_router_activation_func use_grouped_topk kda_safe_gate "
    "kda_lower_bound short_conv_kernel_size head_dim layer_group_size linear_lower_bound";
constexpr std::string_view kFalconH1NoShape =
    "attention_in_multiplier attention_out_multiplier key_multiplier lm_head_multiplier mlp_multipliers "
    "ssm_in_multiplier ssm_multipliers ssm_out_multiplier mamba_expand mamba_d_ssm mamba_norm_before_gate "
    "mamba_use_mlp mlp_expansion_factor num_logits_to_keep time_step_limit time_step_floor time_step_max "
    "time_step_min time_step_rank layers_block_type layer_types sliding_window";
constexpr std::string_view kLfmNoShape =
    "block_dim block_mlp_init_scale block_norm_eps block_out_init_scale block_use_swiglu "
    "block_use_xavier_init conv_dim conv_dim_out conv_use_xavier_init theta use_pos_enc use_expert_bias "
    "num_heads full_attn_idxs";
constexpr std::string_view kHunyuanMoeNoShape =
    "add_classification_head class_num dense_list im_end_id im_start_id im_newline_id image_token_id "
    "mask_init_id text_start_id text_end_id video_start_id video_end_id moe_drop_tokens "
    "moe_random_routing_dropped_token norm_type num_media_embeds pool_type "
    "skip_cls_token use_mixed_mlp_moe use_rotary_pos_emb vit_mapping_type vit_norm_type vit_type "
    "vit_path cla_share_factor eod_token_id group_limited_greedy anyres_pooling_size "
    "anyres_vit_max_image_size "
    "anyres_vit_two_views capacity_factor vit_add_patchemb_bias vit_input_resolution vit_patch "
    "vit_remove_prenorm vit_token vit_used_rms_norm xattn_fullattn moe_intermediate_size num_shared_expert";

std::vector<FamilyRow> recurrent_rows() {
  const Transformer each_head{.qk_norm = true};
  const FamilyRow lfm2{.model_type = "lfm2",
                       .model = each_head,
                       .pattern = "layer_types",
                       .attending = "full_attn_idxs",
                       .state = kConvolutionKeys,
                       .tied_otherwise = true,
                       .must_be_off = "conv_bias",
                       .no_shape = kLfmNoShape};
  FamilyRow lfm2_moe = lfm2, lfm3 = lfm2;
  lfm2_moe.model_type = "lfm2_moe";
  lfm3.model_type = "lfm3";
  lfm3.model = {.norms_per_layer = 4, .qk_norm = true, .attention_output_gate = true, .gate_per_head = true};
  const FamilyRow minimax{.model_type = "minimax",
                          .model = {},
                          .pattern = "layer_types",
                          .experts = {.width = "intermediate_size"},
                          .state = {.mixer = Mixer::decayed_linear},
                          .no_shape = kMiniMax01NoShape};
  FamilyRow minimax_01 = minimax, minimax_m1 = minimax;
  minimax_01.model_type = "minimax_text_01";
  minimax_m1.model_type = "minimax_m1";
  minimax_01.pattern = minimax_m1.pattern = "attn_type_list";
  const FamilyRow kimi{.model_type = "kimi_linear",
                       .model = {.position = PositionEncoding::none},
                       .pattern = "layer_types",
                       .state = kLowRankKeys,
                       .latent = true,
                       .no_shape = kKimiLinearNoShape};
  return {
      lfm2,
      lfm2_moe,
      lfm3,
      minimax,
      minimax_01,
      minimax_m1,
      kimi,
      {.model_type = "bailing_hybrid",
       .model = {.attention_output_gate = true, .gate_per_head = true},
       .pattern = "layer_types",
       .interval = "layer_group_size",
       .state = kChannelKeys,
       .latent = true,
       .no_shape = kKimiLinearNoShape},
      {.model_type = "jamba",
       .model = {.position = PositionEncoding::none},
       .pattern = "layer_types",
       .experts = {.width = "intermediate_size"},
       .state = {.key_head_dim = "mamba_d_state",
                 .conv_kernel = "mamba_d_conv",
                 .conv_bias = "mamba_conv_bias",
                 .mixer = Mixer::mamba1},
       .must_be_off = "mamba_proj_bias",
       .no_shape = "num_logits_to_keep use_mamba_kernels use_mambapy use_associative_scan layers_block_type "
                   "layer_types sliding_window"},
      {.model_type = "falcon_h1",
       .model = {.attends_beside = true, .mixer = Mixer::mamba2},
       .state = {"mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv",
                 "mamba_conv_bias", "mamba_chunk_size", Mixer::mamba2, "mamba_rms_norm"},
       .must_be_off = "mamba_proj_bias projectors_bias attn_layer_indices",
       .no_shape = kFalconH1NoShape}};
}

// Latent attention to keys that an indexer chooses.
std::vector<FamilyRow> indexed_rows() {
  const FamilyRow hunyuan{
      .model_type = "hy_v4",
      .model = {.attention_sinks = true, .attention_output_gate = true},
      .pattern = "layer_types",
      .latent = true,
      .further_tokens = "num_nextn_predict_layers",
      .no_shape = "hc_magnitude hc_eps learnable_sink_init",
      .left_out =
          "sinks of attention; mixes of residual streams are counted as DeepSeek-V4's, three times as many"};
  FamilyRow hunyuan_sees = hunyuan;
  hunyuan_sees.model_type = "hy_v4_vl_text";
  return {
      hunyuan,
      hunyuan_sees,
      {.model_type = "glm5_next_text",
       .model = {},
       .pattern = "layer_types",
       .state = kLowRankKeys,
       .latent = true,
       .further_tokens = "num_nextn_predict_layers",
       .no_shape = "hc_eps hc_sinkhorn_iters linear_lower_bound index_kpool index_kpool_always_select_tail",
       .left_out = "the pooling of the keys that an indexer scores, which are counted one by one"},
      {.model_type = "mistral_large4_text",
       .model = {},
       .pattern = "layer_types",
       .latent = true,
       .further_tokens = "num_nextn_predict_layers",
       .no_shape = "no_rope_layers no_rope_layer_interval",
       .left_out = "scales of the scores; layers without rotation are counted as those with it"}};
}

std::vector<FamilyRow> linear_attention_rows() {
  // The output of attention is gated, a layer with linear attention has gates of its own; experts need no dense width.
  const Transformer qwen{.ffn_hidden_size = 1,
                         .head_dim = 256,
                         .qk_norm = true,
                         .rotary_fraction = 0.25,
                         .attention_output_gate = true};
  const FamilyRow qwen35{.model_type = "qwen3_5_text",
                         .model = qwen,
                         .pattern = "layer_types",
                         .experts = {.shared_gate = true},
                         .state = kDeltaKeys,
                         .further_tokens = "mtp_num_hidden_layers",
                         .must_be_off = kQwen35Off,
                         .no_shape = kQwen35NoShape};
  FamilyRow qwen35_moe = qwen35, qwen3_next = qwen35;
  qwen35_moe.model_type = "qwen3_5_moe_text";
  qwen3_next.model_type = "qwen3_next";
  return {qwen35,
          qwen35_moe,
          qwen3_next,
          {.model_type = "olmo_hybrid",
           .model = {.qk_norm = true, .qk_norm_spans_heads = true},
           .pattern = "layer_types",
           .state = kDeltaKeys,
           .no_shape = kOlmoHybridNoShape},
          {.model_type = "lara_mini",
           .model = {.ffn_hidden_size = 1, .head_dim = 128, .qk_norm = true},
           .pattern = "layer_types",
           .state = kDeltaKeys}};
}

// Some layers see a window, without experts.
std::vector<FamilyRow> window_rows() {
  const Transformer each_head{.qk_norm = true};
  return {
      {.model_type = "exaone4",
       .model = each_head,
       .pattern = "layer_types",
       .interval = "sliding_window_pattern",
       .no_shape = kWindowNoShape},
      {.model_type = "flint",
       .model = {.head_dim = 128, .qk_norm = true, .attention_sinks = true},
       .pattern = "layer_types"},
      {.model_type = "cwm", .model = {}, .pattern = "layer_types"},
      {.model_type = "muse_glimmer_text",
       .model = {.norms_per_layer = 4, .attention_output_gate = true},
       .pattern = "layer_types",
       .activation = "hidden_activation",
       .no_shape = "layer_rope_theta qk_scale_factor output_multiplier"},
      {.model_type = "granite_swa",
       .model = {.attention_sinks = true},
       .pattern = "layer_types",
       .tied_otherwise = true,
       .no_shape = kGraniteSwaNoShape},
      {.model_type = "ministral", .model = {}, .pattern = "layer_types"},
      {.model_type = "cohere2",
       .model = {.norms_per_layer = 1, .parallel_residual = true},
       .pattern = "layer_types",
       .interval = "sliding_window_pattern",
       .norm = NormKind::layer_norm,
       .tied_otherwise = true,
       .no_shape = kCohereNoShape},
  };
}

// The same with experts.
std::vector<FamilyRow> routed_window_rows() {
  const Transformer each_head{.qk_norm = true};
  const Transformer all_heads{.qk_norm = true, .qk_norm_spans_heads = true};
  const Transformer experts_alone{.ffn_hidden_size = 1, .head_dim = 128, .qk_norm = true};
  FamilyRow step{.model_type = "step3p7",
                 .model = {.qk_norm = true, .attention_output_gate = true, .gate_per_head = true},
                 .pattern = "layer_types",
                 .interval = "",
                 .sliding = {"num_sliding_attention_heads", {}, {}, {}, {}, {}},
                 .further_tokens = "num_nextn_predict_layers",
                 .must_be_off = kStepOff,
                 .no_shape = kStepNoShape};
  FamilyRow step35 = step;
  step35.model_type = "step3p5";
  return {
      {.model_type = "minimax_m2",
       .model = all_heads,
       .experts = {.width = "intermediate_size"},
       .further_tokens = "num_mtp_modules",
       .must_be_off = kMiniMaxOff,
       .no_shape = kMiniMaxNoShape},
      {.model_type = "mimo_v2_flash",
       .model = {},
       .pattern = "hybrid_layer_pattern",
       .experts = {.layers = "moe_layer_freq"},
       .sliding = {"swa_num_attention_heads",
                   "swa_num_key_value_heads",
                   "swa_head_dim",
                   "swa_v_head_dim",
                   "add_swa_attention_sink_bias",
                   {}},
       .full = {.v_head_dim = "v_head_dim", .sinks = "add_full_attention_sink_bias"},
       .sliding_kv_factor = 2,
       .no_shape = kMiMoNoShape},
      step,
      step35,
      {.model_type = "exaone_moe",
       .model = each_head,
       .pattern = "layer_types",
       .interval = "sliding_window_pattern",
       .further_tokens = "num_nextn_predict_layers",
       .no_shape = kWindowNoShape},
      {.model_type = "afmoe",
       .model = {.norms_per_layer = 4, .qk_norm = true, .attention_output_gate = true},
       .pattern = "layer_types",
       .interval = "global_attn_every_n_layers",
       .experts = {.router_bias = true},
       .must_be_off = kAfmoeOff,
       .no_shape = kWindowNoShape},
      {.model_type = "mellum",
       .model = experts_alone,
       .pattern = "layer_types",
       .further_tokens = "num_nextn_predict_layers",
       .no_shape = kStepNoShape},
      {.model_type = "kolibri1",
       .model = {.ffn_hidden_size = 1, .head_dim = 128, .norms_per_layer = 4, .qk_norm = true},
       .pattern = "layer_types"},
      {.model_type = "muse_spark_text",
       .model = {.norms_per_layer = 4, .attention_output_gate = true},
       .pattern = "layer_types",
       .experts = {.latent_size = "moe_hidden_size"},
       .no_shape = "layer_rope_theta qk_scale_factor output_multiplier residual_gate_temperature",
       .left_out = "two norms around the experts, and one of two gates of the residual"},
      {.model_type = "granitemoe_swa",
       .model = {.attention_sinks = true},
       .pattern = "layer_types",
       .experts = {.width = "intermediate_size"},
       .no_shape = "layer_rope_theta"},
      {.model_type = "laguna",
       .model = {.head_dim = 128, .qk_norm = true, .attention_output_gate = true, .gate_per_head = true},
       .pattern = "layer_types",
       .experts = {.router_bias = true},
       .must_be_off = "moe_apply_router_weight_on_input moe_router_logit_softcapping"},
      {.model_type = "cohere2_moe",
       .model = {.norms_per_layer = 1, .parallel_residual = true},
       .pattern = "layer_types",
       .interval = "sliding_window_pattern",
       .experts = {.width = "intermediate_size"},
       .norm = NormKind::layer_norm,
       .tied_otherwise = true,
       .must_be_off = "prefix_dense_intermediate_size",
       .no_shape = "sliding_window_pattern expert_selection_fn shared_expert_combination_strategy "
                   "prefix_dense_sliding_window_pattern"},
      {.model_type = "minimax_m3_vl_text",
       .model = {.head_dim = 128, .qk_norm = true},
       .pattern = "layer_types",
       .experts = {.width = "intermediate_size"},
       .further_tokens = "num_mtp_modules",
       .no_shape = kMiniMaxNoShape},
  };
}

std::vector<FamilyRow> mixed_rows() {
  return {
      {.model_type = "bamba",
       .model = {},
       .pattern = "layer_types",
       .attending = "attn_layer_indices",
       .state = {"mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv",
                 "mamba_conv_bias", "mamba_chunk_size", Mixer::mamba2},
       .must_be_off = kGraniteHybridOff,
       .no_shape = "mamba_expand num_logits_to_keep z_loss_coefficient time_step_limit attn_rotary_emb"},
      {.model_type = "gemma4_text",
       .model = {.norms_per_layer = 4, .qk_norm = true, .activation = Activation::gelu},
       .pattern = "layer_types",
       .experts = {.dense_beside = true, .switch_key = "enable_moe_block"},
       .full = {.n_kv_heads = "num_global_key_value_heads",
                .head_dim = "global_head_dim",
                .values_are_keys = "attention_k_eq_v"},
       .tied_otherwise = true,
       .activation = "hidden_activation",
       .no_shape = kGemma4NoShape},
      {.model_type = "nemotron_h",
       .model = {.activation = Activation::squared_relu, .position = PositionEncoding::none},
       .pattern = "hybrid_override_pattern",
       .interval = "",
       .experts = {.latent_size = "moe_latent_size"},
       .state = {"mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel",
                 "use_conv_bias", "chunk_size", Mixer::mamba2},
       .gated_ffn = false,
       .activation = "mlp_hidden_act",
       .further_tokens = "num_nextn_predict_layers",
       .further_pattern = "mtp_hybrid_override_pattern",
       .must_be_off = kNemotronHOff,
       .no_shape = kNemotronHNoShape},
      // The dense FFN of those without experts goes by the name of the shared one.
      {.model_type = "granitemoehybrid",
       .model = {},
       .pattern = "layer_types",
       .experts = {.width = "intermediate_size"},
       .state = {"mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv",
                 "mamba_conv_bias", "mamba_chunk_size", Mixer::mamba2},
       .must_be_off = kGraniteHybridOff,
       .no_shape = kGraniteHybridNoShape},
  };
}

// One kind of attention, no experts; layer norms, or an activation without a gate.
std::vector<FamilyRow> other_norm_rows() {
  return {
      {.model_type = "stablelm",
       .model = {.rotary_fraction = 0.25},
       .qkv_bias = {"use_qkv_bias"},
       .output_bias = {},
       .ffn_bias = {},
       .norm = NormKind::layer_norm,
       .norm_bias = true,
       .must_be_off = "qk_layernorm"},
      {.model_type = "nemotron",
       .model = {.activation = Activation::squared_relu, .rotary_fraction = 0.5},
       .own_keys = true,
       .norm = NormKind::layer_norm,
       .norm_bias = true,
       .gated_ffn = false},
      {.model_type = "olmo",
       .model = {.norm_weights = false},
       .norm = NormKind::layer_norm,
       .no_shape = "clip_qkv"},
      {.model_type = "nanochat",
       .model = {.norm_weights = false,
                 .embedding_norm = true,
                 .qk_norm = true,
                 .activation = Activation::squared_relu},
       .gated_ffn = false},
      {.model_type = "apertus", .model = {.qk_norm = true, .activation_parameters = 2}, .gated_ffn = false},
      {.model_type = "apertus1p5_text",
       .model = {.qk_norm = true, .activation_parameters = 2},
       .gated_ffn = false},
      {.model_type = "arcee", .model = {.activation = Activation::squared_relu}, .gated_ffn = false},
      {.model_type = "cosmos3_edge_text",
       .model = {.activation = Activation::squared_relu},
       .gated_ffn = false},
      {.model_type = "jais2",
       .model = {.activation = Activation::squared_relu},
       .qkv_bias = {"attention_bias", true},
       .output_bias = {"attention_bias", true},
       .ffn_bias = {"mlp_bias", true},
       .norm = NormKind::layer_norm,
       .norm_bias = true,
       .gated_ffn = false},
      {.model_type = "cohere",
       .model = {.norms_per_layer = 1, .qk_norm_spans_heads = true, .parallel_residual = true},
       .norm = NormKind::layer_norm,
       .tied_otherwise = true},
  };
}

// The same with RMS norms and gates.
std::vector<FamilyRow> dense_rows() {
  const Transformer each_head{.qk_norm = true};
  return {
      {.model_type = "hyperclovax", .model = {}},
      {.model_type = "seed_oss",
       .model = {.head_dim = 128},
       .qkv_bias = {"attention_bias", true},
       .output_bias = {"attention_out_bias"}},
      {.model_type = "glm",
       .model = {.head_dim = 128},
       .qkv_bias = {"attention_bias", true},
       .output_bias = {}},
      {.model_type = "glm4",
       .model = {.head_dim = 128, .norms_per_layer = 4},
       .qkv_bias = {"attention_bias", true},
       .output_bias = {}},
      {.model_type = "glm4v_text",
       .model = {.norms_per_layer = 4},
       .qkv_bias = {"attention_bias", true},
       .output_bias = {}},
      {.model_type = "ernie4_5",
       .model = {.head_dim = 128},
       .qkv_bias = {"use_bias"},
       .output_bias = {"use_bias"},
       .ffn_bias = {"use_bias"},
       .tied_otherwise = true},
      {.model_type = "hunyuan_v1_dense", .model = each_head, .no_shape = kHunyuanNoShape},
      {.model_type = "hunyuan_vl_text",
       .model = each_head,
       .tied_otherwise = true,
       .no_shape = kHunyuanNoShape},
      {.model_type = "paddleocr_vl_text",
       .model = {},
       .qkv_bias = {"use_bias"},
       .output_bias = {"use_bias"},
       .ffn_bias = {"use_bias"},
       .tied_otherwise = true},
      {.model_type = "glm_ocr_text", .model = {.norms_per_layer = 4}},
      {.model_type = "mimo",
       .model = {},
       .qkv_bias = {"attention_bias", true},
       .output_bias = {},
       .further_tokens = "num_nextn_predict_layers",
       .must_be_off = "use_sliding_window",
       .no_shape = "max_window_layers sliding_window"},
      {.model_type = "deepseek_ocr2_text", .model = {}, .pattern = "layer_types"},
  };
}

// Families of code that stands beside their weights.
std::vector<FamilyRow> remote_code_rows() {
  return {
      {.model_type = "internlm2", .model = {}, .qkv_bias = {"bias"}, .output_bias = {"bias"}},
      {.model_type = "baichuan",
       .model = {},
       .own_keys = true,
       .no_shape = "z_loss_weight _from_model_config"},
      {.model_type = "minicpm",
       .model = {},
       .tied_otherwise = true,
       .must_be_off = "sparse_config",
       .no_shape = "mup_denominator use_mup"},
      {.model_type = "chatglm",
       .model = {.rotary_fraction = 0.5},
       .qkv_bias = {"add_qkv_bias"},
       .output_bias = {"add_bias_linear"},
       .ffn_bias = {"add_bias_linear"},
       .must_be_off = "apply_residual_connection_post_layernorm",
       .no_shape = "apply_query_key_layer_scaling bias_dropout_fusion fp32_residual_connection "
                   "layernorm_epsilon multi_query_attention original_rope rope_ratio post_layer_norm rmsnorm "
                   "pre_seq_len prefix_projection quantization_bit"},
  };
}

// One kind of attention; experts behind the dense layers.
std::vector<FamilyRow> routed_rows() {
  const Transformer each_head{.qk_norm = true};
  const FamilyRow glm{
      .model_type = "glm4_moe", .model = {}, .output_bias = {}, .further_tokens = "num_nextn_predict_layers"};
  FamilyRow glm_text = glm;
  glm_text.model_type = "glm4v_moe_text";
  const FamilyRow bailing{.model_type = "bailing_moe",
                          .model = {},
                          .qkv_bias = {"use_qkv_bias"},
                          .output_bias = {"use_bias"},
                          .further_tokens = "num_nextn_predict_layers",
                          .must_be_off = "multi_gate use_sliding_window",
                          .no_shape = kBailingNoShape};
  FamilyRow bailing_v2 = bailing, bailing_linear = bailing;
  bailing_v2.model_type = "bailing_moe_v2";
  bailing_linear.model_type = "bailing_moe_linear";
  bailing_v2.model = bailing_linear.model = each_head;
  bailing_linear.pattern = "layer_types";
  bailing_linear.interval = "layer_group_size";
  bailing_linear.state.mixer = Mixer::decayed_linear;
  return {
      {.model_type = "ernie4_5_moe",
       .model = {},
       .experts = {.router_bias = true},
       .qkv_bias = {"use_bias"},
       .output_bias = {"use_bias"},
       .ffn_bias = {"use_bias"},
       .tied_otherwise = true,
       .no_shape = kErnieNoShape},
      {.model_type = "hy_v3",
       .model = {.head_dim = 128, .qk_norm = true},
       .further_tokens = "num_nextn_predict_layers"},
      {.model_type = "dots1", .model = each_head, .pattern = "layer_types", .no_shape = kWindowNoShape},
      {.model_type = "solar_open", .model = {.ffn_hidden_size = 1, .head_dim = 128}, .output_bias = {}},
      {.model_type = "sarvam_moe",
       .model = each_head,
       .output_bias = {},
       .further_tokens = "num_nextn_predict_layers"},
      {.model_type = "hunyuan_v1_moe",
       .model = each_head,
       .experts = {.width = "intermediate_size", .one_shared = true},
       .must_be_off = "use_cla use_mla moe_layer_num_skipped",
       .no_shape = kHunyuanMoeNoShape},
      glm,
      glm_text,
      bailing,
      bailing_v2,
      bailing_linear,
      // A dense FFN beside the experts, whose sums are added: as a shared expert of another width.
      {.model_type = "arctic",
       .model = {},
       .experts = {.width = "intermediate_size", .one_shared = true, .one_shared_width = "hidden_size"},
       .no_shape =
           "enable_expert_tensor_parallelism enc_index moe_eval_capacity_factor moe_min_capacity "
           "moe_token_dropping moe_train_capacity_factor parallel_attn_mlp_res use_residual sliding_window",
       .left_out = "one norm of three in a layer"},
      {.model_type = "grok",
       .model = {.norms_per_layer = 4, .attention_softcap = true},
       .experts = {.one_shared = true, .one_shared_width = "intermediate_size"},
       .no_shape = "embedding_multiplier_scale output_multiplier_scale attn_temperature_len "
                   "attn_logit_softcapping router_logit_softcapping residual_moe"},
      {.model_type = "granitemoe", .model = {}, .experts = {.width = "intermediate_size"}},
      {.model_type = "granitemoeshared", .model = {}, .experts = {.width = "intermediate_size"}},
      {.model_type = "axk1",
       .model = {},
       .latent = true,
       .further_tokens = "num_nextn_predict_layers",
       .left_out = "norms behind the experts"},
      {.model_type = "phimoe",
       .model = {},
       .experts = {.width = "intermediate_size"},
       .norm = NormKind::layer_norm,
       .norm_bias = true},
  };
}

std::vector<FamilyRow> make_rows() {
  std::vector<FamilyRow> rows = window_rows();
  for (const auto& more :
       {routed_window_rows(), indexed_rows(), mixed_rows(), linear_attention_rows(), recurrent_rows(),
        other_norm_rows(), dense_rows(), remote_code_rows(), routed_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  // The same layers under other names.
  constexpr std::pair<std::string_view, std::string_view> kAlike[] = {{"gemma4_text", "gemma4_unified_text"},
                                                                      {"mimo_v2_flash", "mimo_v2"}};
  for (const auto& [one, other] : kAlike) {
    rows.push_back(*std::ranges::find(rows, one, &FamilyRow::model_type));
    rows.back().model_type = other;
  }
  return rows;
}

}  // namespace

std::span<const FamilyRow> huggingface_rows() {
  static const std::vector<FamilyRow> rows = make_rows();
  return rows;
}

}  // namespace stepcast::detail
