#include "stepcast/formats/huggingface.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"

#include "tests/support/paths.h"

namespace stepcast::huggingface_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Config {
  std::string preset;  // the model it is, by its other description
  std::string text;
};

// Configs as models are published with, shortened by keys that say nothing.
const Config kConfigs[] = {
    {"gpt2", R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
      "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
      "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
      "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
      "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257})"},
    {"gpt-neox-20b", R"({"architectures": ["GPTNeoXForCausalLM"], "attention_probs_dropout_prob": null,
      "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "gelu_fast", "hidden_size": 6144, "initializer_range": 0.02,
      "intermediate_size": 24576, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox",
      "num_attention_heads": 64, "num_hidden_layers": 44, "rotary_emb_base": 10000, "rotary_pct": 0.25,
      "tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true, "vocab_size": 50432})"},
    {"bert-large",
     R"({"architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
      "hidden_dropout_prob": 0.1, "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 4096,
      "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 16,
      "num_hidden_layers": 24, "pad_token_id": 0, "position_embedding_type": "absolute", "type_vocab_size": 2,
      "vocab_size": 30522})"},
    {"opt-13b",
     R"({"_remove_final_layer_norm": false, "activation_dropout": 0.0, "activation_function": "relu", "attention_dropout": 0.0,
      "do_layer_norm_before": true, "dropout": 0.1, "ffn_dim": 20480, "hidden_size": 5120, "init_std": 0.02,
      "layerdrop": 0.0, "max_position_embeddings": 2048, "model_type": "opt", "num_attention_heads": 40,
      "num_hidden_layers": 40, "prefix": "</s>", "vocab_size": 50272, "word_embed_proj_dim": 5120})"},
    {"mosaicml-mpt-7b",
     R"({"architectures": ["MPTForCausalLM"], "attn_config": {"alibi": true, "alibi_bias_max": 8,
      "attn_impl": "torch", "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false,
      "clip_qkv": null, "prefix_lm": false, "qk_ln": false, "softmax_scale": null}, "d_model": 4096, "emb_pdrop": 0,
      "embedding_fraction": 1.0, "expansion_ratio": 4, "init_config": {"name": "kaiming_normal_"},
      "init_device": "cpu", "learned_pos_emb": true, "logit_scale": null, "max_seq_len": 2048, "model_type": "mpt",
      "n_heads": 32, "n_layers": 32, "no_bias": true, "norm_type": "low_precision_layernorm", "resid_pdrop": 0,
      "use_cache": false, "verbose": 0, "vocab_size": 50432})"},
    {"llama-3.1-405b",
     R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
      "hidden_act": "silu", "hidden_size": 16384, "intermediate_size": 53248, "max_position_embeddings": 131072,
      "mlp_bias": false, "model_type": "llama", "num_attention_heads": 128, "num_hidden_layers": 126,
      "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0},
      "rope_theta": 500000.0, "tie_word_embeddings": false, "vocab_size": 128256})"},
    {"llama-3.2-1b",
     R"({"model_type": "llama", "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192,
      "max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 16,
      "num_key_value_heads": 8, "tie_word_embeddings": true, "vocab_size": 128256})"},
    {"mistral-7b",
     R"({"model_type": "mistral", "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
      "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
      "sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 32000})"},
    {"mixtral-8x7b", R"({"model_type": "mixtral", "hidden_act": "silu", "hidden_size": 4096,
      "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32,
      "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
      "output_router_logits": false, "router_aux_loss_coef": 0.02, "sliding_window": null,
      "tie_word_embeddings": false, "vocab_size": 32000})"},
    {"qwen2.5-7b",
     R"({"model_type": "qwen2", "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944,
      "max_position_embeddings": 131072, "max_window_layers": 28, "num_attention_heads": 28, "num_hidden_layers": 28,
      "num_key_value_heads": 4, "sliding_window": 131072, "tie_word_embeddings": false, "use_mrope": null,
      "use_sliding_window": false, "vocab_size": 152064})"},
    {"qwen1.5-moe-a2.7b", R"({"model_type": "qwen2_moe", "decoder_sparse_step": 1, "hidden_act": "silu",
      "hidden_size": 2048, "intermediate_size": 5632, "max_position_embeddings": 8192, "max_window_layers": 21,
      "moe_intermediate_size": 1408, "norm_topk_prob": false, "num_attention_heads": 16, "num_experts": 60,
      "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 16,
      "shared_expert_intermediate_size": 5632, "sliding_window": 32768, "use_sliding_window": false,
      "vocab_size": 151936})"},
    {"qwen3-8b", R"({"model_type": "qwen3", "attention_bias": false, "head_dim": 128, "hidden_act": "silu",
      "hidden_size": 4096, "intermediate_size": 12288, "max_position_embeddings": 40960, "max_window_layers": 36,
      "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "rope_scaling": null,
      "sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936})"},
    {"qwen3-30b-a3b", R"({"model_type": "qwen3_moe", "attention_bias": false, "decoder_sparse_step": 1,
      "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144,
      "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [], "moe_intermediate_size": 768,
      "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
      "num_hidden_layers": 48, "num_key_value_heads": 4, "use_sliding_window": false, "vocab_size": 151936})"},
    {"gpt-oss-20b", R"({"model_type": "gpt_oss", "attention_bias": true, "attention_dropout": 0.0,
      "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880,
      "initial_context_length": 4096, "intermediate_size": 2880, "max_position_embeddings": 131072,
      "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
      "num_local_experts": 32, "output_router_logits": false, "router_aux_loss_coef": 0.9, "sliding_window": 128,
      "swiglu_limit": 7.0, "tie_word_embeddings": false, "vocab_size": 201088,
      "quantization_config": {"quant_method": "mxfp4"}})"},
    {"gpt-oss-120b", R"({"model_type": "gpt_oss", "attention_bias": true, "attention_dropout": 0.0,
      "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880,
      "initial_context_length": 4096, "intermediate_size": 2880, "max_position_embeddings": 131072,
      "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 36, "num_key_value_heads": 8,
      "num_local_experts": 128, "output_router_logits": false, "router_aux_loss_coef": 0.9, "sliding_window": 128,
      "swiglu_limit": 7.0, "tie_word_embeddings": false, "vocab_size": 201088,
      "quantization_config": {"quant_method": "mxfp4"}})"},
    {"glm-4.5", R"({"model_type": "glm4_moe", "attention_bias": true, "first_k_dense_replace": 3,
      "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 12288,
      "max_position_embeddings": 131072, "moe_intermediate_size": 1536, "n_group": 1, "n_routed_experts": 160,
      "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 96, "num_experts_per_tok": 8,
      "num_hidden_layers": 92, "num_key_value_heads": 8, "num_nextn_predict_layers": 1,
      "partial_rotary_factor": 0.5, "routed_scaling_factor": 2.5, "tie_word_embeddings": false, "topk_group": 1,
      "use_qk_norm": true, "vocab_size": 151552})"},
    {"kimi-k2", R"({"model_type": "kimi_k2", "attention_bias": false, "ep_size": 1,
      "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432,
      "kv_lora_rank": 512, "max_position_embeddings": 131072, "moe_intermediate_size": 2048, "moe_layer_freq": 1,
      "n_group": 1, "n_routed_experts": 384, "n_shared_experts": 1, "norm_topk_prob": true,
      "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 64,
      "num_nextn_predict_layers": 0, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
      "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
      "routed_scaling_factor": 2.827, "scoring_func": "sigmoid", "seq_aux": true, "tie_word_embeddings": false,
      "topk_group": 1, "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 163840})"},
    {"llama-4-scout",
     R"({"model_type": "llama4_text", "attention_bias": false, "attention_chunk_size": 8192,
      "for_llm_compressor": false, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "interleave_moe_layer_step": 1,
      "intermediate_size": 8192, "intermediate_size_mlp": 16384, "max_position_embeddings": 10485760,
      "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8,
      "num_local_experts": 16, "router_aux_loss_coef": 0.001, "tie_word_embeddings": false,
      "use_qk_norm": true, "vocab_size": 202048})"},
    {"glm-4.5-air", R"({"model_type": "glm4_moe", "attention_bias": true, "first_k_dense_replace": 1,
      "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 10944,
      "max_position_embeddings": 131072, "moe_intermediate_size": 1408, "n_group": 1, "n_routed_experts": 128,
      "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 96, "num_experts_per_tok": 8,
      "num_hidden_layers": 46, "num_key_value_heads": 8, "num_nextn_predict_layers": 1,
      "partial_rotary_factor": 0.5, "routed_scaling_factor": 1.0, "tie_word_embeddings": false, "topk_group": 1,
      "use_qk_norm": false, "vocab_size": 151552})"},
    {"llama-4-maverick",
     R"({"model_type": "llama4_text", "attention_bias": false, "attention_chunk_size": 8192,
      "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "interleave_moe_layer_step": 2,
      "intermediate_size": 8192, "intermediate_size_mlp": 16384, "max_position_embeddings": 1048576,
      "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8,
      "num_local_experts": 128, "router_aux_loss_coef": 0.001, "tie_word_embeddings": false,
      "use_qk_norm": false, "vocab_size": 202048})"},
    {"dbrx", R"({"model_type": "dbrx", "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "rope_theta": 500000},
      "d_model": 6144, "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4,
      "moe_loss_weight": 0.05, "ffn_act_fn": {"name": "silu"}, "moe_jitter_eps": 0},
      "emb_pdrop": 0.0, "max_seq_len": 32768, "n_heads": 48, "n_layers": 40, "resid_pdrop": 0.0,
      "tie_word_embeddings": false, "vocab_size": 100352})"},
    {"gemma-7b", R"({"model_type": "gemma", "attention_bias": false, "head_dim": 256, "hidden_act": "gelu",
      "hidden_activation": null, "hidden_size": 3072, "intermediate_size": 24576, "max_position_embeddings": 8192,
      "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 16, "vocab_size": 256000})"},
    {"gemma-2-9b",
     R"({"model_type": "gemma2", "attn_logit_softcapping": 50.0, "cache_implementation": "hybrid",
      "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
      "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 3584, "intermediate_size": 14336,
      "max_position_embeddings": 8192, "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8,
      "query_pre_attn_scalar": 256, "sliding_window": 4096, "sliding_window_size": null, "vocab_size": 256000})"},
    {"gemma-3-1b",
     R"({"model_type": "gemma3_text", "attn_logit_softcapping": null, "final_logit_softcapping": null,
      "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "intermediate_size": 6912,
      "max_position_embeddings": 32768, "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1,
      "query_pre_attn_scalar": 256, "rope_local_base_freq": 10000, "sliding_window": 512,
      "sliding_window_pattern": 6, "vocab_size": 262144})"},
    {"nemotron-4-15b", R"({"model_type": "nemotron", "attention_bias": false, "hidden_act": "relu2",
      "hidden_size": 6144, "intermediate_size": 24576, "max_position_embeddings": 4096, "mlp_bias": false,
      "norm_eps": 1e-05, "num_attention_heads": 48, "num_hidden_layers": 32, "num_key_value_heads": 8,
      "partial_rotary_factor": 0.5, "vocab_size": 256000})"},
    {"deepseek-v2-lite", R"({"model_type": "deepseek_v2", "aux_loss_alpha": 0.001, "first_k_dense_replace": 1,
      "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
      "max_position_embeddings": 163840, "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1,
      "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 16,
      "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "routed_scaling_factor": 1.0, "scoring_func": "softmax",
      "seq_aux": true, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy", "v_head_dim": 128,
      "vocab_size": 102400})"},
    {"deepseek-v3", R"({"model_type": "deepseek_v3", "attention_bias": false, "ep_size": 1,
      "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432,
      "kv_lora_rank": 512, "max_position_embeddings": 163840, "moe_intermediate_size": 2048, "moe_layer_freq": 1,
      "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true,
      "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
      "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
      "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}, "routed_scaling_factor": 2.5,
      "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
      "v_head_dim": 128, "vocab_size": 129280})"},
};

std::string config_of(std::string_view preset) {
  for (const Config& config : kConfigs) {
    if (config.preset == preset) return config.text;
  }
  ADD_FAILURE() << preset;
  return {};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string message_of(const std::string& text) {
  const auto model = parse_huggingface_config(text, "config.json");
  return model.ok() ? "no error" : model.error().message();
}

TEST(HuggingfaceConfig, IsTheModelThatThePresetDescribes) {
  for (const Config& config : kConfigs) {
    auto model = parse_huggingface_config(config.text, "config.json");
    ASSERT_TRUE(model.ok()) << config.preset << ": " << model.error().message();
    Transformer preset = find_preset(config.preset).value();
    EXPECT_EQ(parameter_count(*model), parameter_count(preset)) << config.preset;
    // The same but for the name and what both say by leaving it out.
    model->name = preset.name;
    for (Transformer* t : {&*model, &preset}) {
      t->n_kv_heads = t->kv_heads();
      t->head_dim = t->qk_head_dim();
    }
    EXPECT_EQ(*model, preset) << config.preset;
  }
}

TEST(HuggingfaceConfig, ReadsTheGroupsThatRoutingIsLimitedTo) {
  const auto moe = [](const std::string& text) {
    return parse_huggingface_config(text, "c").value().moe.value();
  };
  EXPECT_EQ(moe(config_of("deepseek-v3")).n_groups, 8);
  EXPECT_EQ(moe(config_of("deepseek-v3")).groups_per_token, 4);
  EXPECT_EQ(moe(config_of("kimi-k2")).groups_per_token, 1);
  // Greedy routing looks at no group.
  const std::string greedy = replaced(config_of("deepseek-v3"), "noaux_tc", "greedy");
  EXPECT_EQ(moe(greedy).n_groups, 1);
  EXPECT_THAT(message_of(replaced(config_of("deepseek-v3"), "\"n_group\": 8", "\"n_group\": 7")),
              HasSubstr("256 experts are not divisible into 7 groups"));
}

TEST(HuggingfaceConfig, ExpertsMayBeInAnyLayers) {
  const auto model = parse_huggingface_config(
      replaced(config_of("qwen3-30b-a3b"), "\"mlp_only_layers\": []", "\"mlp_only_layers\": [3]"), "c");
  ASSERT_TRUE(model.ok());
  EXPECT_FALSE(model->has_experts(3));
  EXPECT_EQ(model->n_moe_layers(), 47);
}

TEST(HuggingfaceConfig, BertHeadsFollowTheArchitecture) {
  const std::string base = config_of("bert-large");
  EXPECT_EQ(parameter_count(parse_huggingface_config(base, "c").value()).total(), 335'141'888);
  const std::string masked = replaced(base, "BertModel", "BertForMaskedLM");
  EXPECT_EQ(parameter_count(parse_huggingface_config(masked, "c").value()).total(), 335'174'458);
  EXPECT_THAT(message_of(replaced(base, "BertModel", "BertForTokenClassification")),
              HasSubstr("BertForPreTraining"));
}

TEST(HuggingfaceConfig, IgnoresKeysThatAreNamed) {
  const std::string base =
      replaced(config_of("dbrx"), "\"moe_top_k\": 4,", "\"moe_top_k\": 4, \"streams\": 2,");
  EXPECT_THAT(message_of(base), AllOf(HasSubstr("ffn_config.streams"), HasSubstr("--ignore-key")));
  const std::string inner[] = {"ffn_config.streams"};
  EXPECT_TRUE(parse_huggingface_config(base, "config.json", inner).ok());
  const std::string window[] = {"sliding_window"};
  EXPECT_EQ(parse_huggingface_config(config_of("mistral-7b"), "c", window).value().sliding_window_tokens, 0);
  for (const char* key : {"streams", "ffn_config.stream", "", "."}) {
    const std::string none[] = {key};
    const auto read = parse_huggingface_config(base, "config.json", none);
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_THAT(read.error().message(), HasSubstr("found no such key"));
  }
}

// OLMo 2 norms all query heads together and all key heads together; others norm every head by itself.
TEST(HuggingfaceConfig, NormsOverAllHeadsOrEach) {
  const auto read = [](const char* name) {
    return read_huggingface_config(test::source_dir() / "tests/formats/configs" / name).value();
  };
  EXPECT_TRUE(read("olmo-2-32b.json").qk_norm_spans_heads);
  EXPECT_FALSE(read("qwen3-32b.json").qk_norm_spans_heads);
  EXPECT_EQ(read("xlnet-base.json").position, PositionEncoding::relative);
}

TEST(HuggingfaceConfig, RefusesUnknownArchitectures) {
  EXPECT_THAT(message_of(R"({"model_type": "strange"})"),
              AllOf(HasSubstr("line 1: model_type: unknown architecture"), HasSubstr("`strange`"),
                    HasSubstr("that docs/models.md lists")));
  EXPECT_THAT(message_of(R"({"model_type": "rwkv"})"), HasSubstr("state-space"));
  EXPECT_THAT(message_of(R"({"model_type": "led"})"), HasSubstr("encoder-decoder is not modelled"));
  EXPECT_THAT(message_of(R"({"model_type": "swin"})"), HasSubstr("vision models are not modelled"));
  EXPECT_THAT(message_of(R"({"model_type": "lama"})"), HasSubstr("did you mean `llama`?"));
  EXPECT_THAT(message_of(R"({"model_type": "gemma3"})"), HasSubstr("text_config"));
  EXPECT_THAT(message_of(R"({"hidden_size": 4})"), HasSubstr("`model_type` is missing"));
  EXPECT_THAT(message_of("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(message_of("{"), HasSubstr("expected a key in double quotes"));
}

TEST(HuggingfaceConfig, RefusesKeysItDoesNotKnow) {
  const std::string base = config_of("llama-3.2-1b");
  EXPECT_THAT(message_of(replaced(base, "\"head_dim\"", "\"num_streams\": 2,\n\"head_dim\"")),
              AllOf(HasSubstr("line 1: num_streams: unknown key"), HasSubstr("may change the shape")));
  EXPECT_EQ(message_of(replaced(base, "\"head_dim\"", "\"num_streams\": null, \"head_dim\"")), "no error");
  // How released weights are stored is not how they are trained.
  std::vector<std::string> notes;
  const auto stored = parse_huggingface_config(
      replaced(base, "\"head_dim\"", "\"quantization_config\": {\"quant_method\": \"awq\"}, \"head_dim\""),
      "config.json", {}, &notes);
  EXPECT_EQ(*stored, *parse_huggingface_config(base, "config.json"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("quantized (awq)")));
}

TEST(HuggingfaceConfig, RefusesShapesItCannotRepresent) {
  EXPECT_THAT(message_of(replaced(config_of("opt-13b"), "\"activation_dropout\": 0.0",
                                  "\"activation_dropout\": 0.1")),
              HasSubstr("activation_dropout: this part is not modelled"));
  EXPECT_THAT(message_of(replaced(config_of("opt-13b"), "\"word_embed_proj_dim\": 5120",
                                  "\"word_embed_proj_dim\": 512")),
              HasSubstr("word_embed_proj_dim"));
  EXPECT_THAT(message_of(replaced(config_of("mosaicml-mpt-7b"), "\"qk_ln\": false", "\"qk_ln\": true")),
              HasSubstr("attn_config.qk_ln"));
  EXPECT_THAT(
      message_of(replaced(config_of("qwen3-30b-a3b"), "\"mlp_only_layers\": []", "\"mlp_only_layers\": 3")),
      HasSubstr("mlp_only_layers"));
  EXPECT_THAT(message_of(replaced(config_of("qwen2.5-7b"), "\"use_sliding_window\": false, ",
                                  "\"use_sliding_window\": true, ")),
              "no error");  // from layer 28 of 28 on: never
  EXPECT_THAT(message_of(replaced(replaced(config_of("qwen2.5-7b"), "\"use_sliding_window\": false",
                                           "\"use_sliding_window\": true"),
                                  "\"max_window_layers\": 28", "\"max_window_layers\": 14")),
              HasSubstr("max_window_layers"));
  EXPECT_THAT(
      message_of(replaced(config_of("deepseek-v3"), "\"moe_layer_freq\": 1", "\"moe_layer_freq\": 2")),
      HasSubstr("moe_layer_freq"));
  EXPECT_THAT(message_of(replaced(config_of("mistral-7b"), "\"num_key_value_heads\": 8,", "")),
              HasSubstr("`num_key_value_heads` is missing"));
  EXPECT_THAT(message_of(replaced(config_of("gpt2"), "\"n_embd\": 768", "\"n_embd\": 768.5")),
              AllOf(HasSubstr("n_embd"), HasSubstr("a whole number")));
  EXPECT_THAT(message_of(replaced(config_of("gpt2"), "gelu_new", "mish")), HasSubstr("activation_function"));
  EXPECT_THAT(message_of(replaced(config_of("gpt2"), "\"n_head\": 12", "\"n_head\": 13")),
              HasSubstr("hidden_size 768 is not divisible by n_heads 13"));
}

TEST(HuggingfaceConfig, ReadsThePatternOfLayerTypes) {
  const std::string base = config_of("gemma-3-1b");
  std::string types;
  for (int layer = 0; layer < 26; ++layer) {
    types += layer % 6 == 5 ? "\"full_attention\"," : "\"sliding_attention\",";
  }
  types.pop_back();
  const auto with = [&](const std::string& list) {
    return replaced(base, "\"sliding_window_pattern\": 6", "\"layer_types\": [" + list + "]");
  };
  EXPECT_EQ(parse_huggingface_config(with(types), "c").value().global_attention_every_n_layers, 6);
  // Any other order is a list of kinds.
  const auto other = parse_huggingface_config(with(replaced(types, "\"sliding", "\"full")), "c").value();
  EXPECT_EQ(other.layer_kinds.size(), 2U);
  EXPECT_EQ(other.window_tokens(0), 0);
  EXPECT_EQ(other.window_tokens(1), 512);
  EXPECT_THAT(message_of(with("\"full_attention\"")), HasSubstr("layer_types"));
}

TEST(HuggingfaceConfig, NamesTheModelAfterItsFolder) {
  std::string pattern = (std::filesystem::temp_directory_path() / "stepcast_model_XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path folder = std::filesystem::path{pattern} / "My-Model";
  std::filesystem::create_directory(folder);
  std::ofstream{folder / "config.json"} << config_of("gpt2");
  EXPECT_EQ(read_huggingface_config(folder).value().name, "My-Model");
  EXPECT_EQ(read_huggingface_config(folder / "config.json").value().name, "My-Model");
  EXPECT_EQ(read_huggingface_config(folder / "." / "config.json").value().name, "My-Model");
  const auto missing = read_huggingface_config(folder / "other.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message(), HasSubstr("other.json"));
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace stepcast::huggingface_test
