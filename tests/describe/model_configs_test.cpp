// Families whose layers differ in more than windows and experts, and every published config of the measured data.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/describe/huggingface.h"
#include "stepcast/workload/memory.h"
#include "stepcast/workload/step_work.h"

#include "tests/support/data.h"

namespace stepcast::model_configs_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

Transformer read(const std::string& text, std::vector<std::string>* notes = nullptr) {
  const auto model = parse_huggingface_config(text, "config.json", {}, notes);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message());
  return model.ok() ? *model : Transformer{};
}

std::string message_of(const std::string& text) {
  const auto model = parse_huggingface_config(text, "config.json");
  return model.ok() ? "no error" : model.error().message();
}

// What the ranks of a pipeline hold is what the model has.
void expect_all_parameters_in_step(const Transformer& model) {
  Layout layout;
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 2, .seq_len_tokens = 64};
  layout.software.framework = Framework::fsdp;  // pads no vocabulary
  const auto work = step_work(model, layout);
  ASSERT_TRUE(work.ok()) << work.error().message();
  double sum = 0;
  for (const ChunkWork& chunk : work->chunks) sum += chunk.dense_parameters + chunk.expert_parameters;
  const double further = static_cast<double>(model.n_multi_token_prediction_layers) *
                         static_cast<double>(layer_parameter_count(model, model.n_layers - 1).total());
  const double all = static_cast<double>(parameter_count(model).total()) + further;
  EXPECT_NEAR(sum, all, 0.001 * all) << model.name;
  EXPECT_TRUE(memory_forecast(model, layout, Bytes{1e12}).ok());
}

const std::string kDelta =
    R"({"model_type": "qwen3_next", "attention_bias": false, "full_attention_interval": 2,
  "head_dim": 8, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4,
  "linear_conv_kernel_dim": 4, "linear_key_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
  "linear_value_head_dim": 8, "max_position_embeddings": 64, "moe_intermediate_size": 16, "num_experts": 4,
  "num_experts_per_tok": 2, "shared_expert_intermediate_size": 16, "tie_word_embeddings": false,
  "vocab_size": 100})";

TEST(ModelConfigs, GatedDeltaLayers) {
  const Transformer model = read(kDelta);
  ASSERT_EQ(model.layer_kinds.size(), 2U);
  EXPECT_THAT(model.kind_of_layer, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(model.layer_kinds[0].mixer, Mixer::gated_delta);
  // Queries, keys (16 each), values, gates (32 each) and two numbers per head; convolution of 64 channels; two vectors
  // of heads and a norm of 8; the way out.
  EXPECT_EQ(layer_parameter_count(model, 0).attention, 32 * (96 + 8) + 64 * 4 + 2 * 4 + 8 + 32 * 32);
  // Queries with their gates, keys and values, norms of queries and keys, the way out.
  EXPECT_EQ(layer_parameter_count(model, 1).attention, 32 * (2 * 32 + 2 * 16) + 2 * 8 + 32 * 32);
  EXPECT_EQ(layer_parameter_count(model, 1).routed_experts, 4 * 3 * 32 * 16);
  EXPECT_EQ(layer_parameter_count(model, 1).router, 32 * 4 + 32);
  expect_all_parameters_in_step(model);
}

const std::string kMamba = R"({"model_type": "nemotron_h", "attention_bias": false, "chunk_size": 16,
  "conv_kernel": 4, "head_dim": 8, "hidden_size": 32, "hybrid_override_pattern": "ME*-", "intermediate_size": 48,
  "mamba_head_dim": 8, "mamba_num_heads": 4, "mamba_proj_bias": false, "max_position_embeddings": 64,
  "mlp_hidden_act": "relu2", "moe_intermediate_size": 24, "moe_shared_expert_intermediate_size": 40,
  "moe_latent_size": 16, "n_groups": 2, "n_routed_experts": 4, "n_shared_experts": 1, "num_attention_heads": 4,
  "num_experts_per_tok": 2, "num_hidden_layers": 4, "num_key_value_heads": 2, "ssm_state_size": 8,
  "tie_word_embeddings": false, "time_step_limit": [0.0, Infinity], "use_bias": false, "use_conv_bias": true,
  "vocab_size": 100})";

TEST(ModelConfigs, MambaLayersOfOnePartEach) {
  const Transformer model = read(kMamba);
  ASSERT_EQ(model.layer_kinds.size(), 4U);
  const auto layer = [&](std::int64_t i) { return layer_parameter_count(model, i); };
  // Values and gates (32 each), both vectors of the state (16 each), a step per head; 64 channels with bias; three
  // vectors of heads and a norm of 32; the way out; the layer's norm.
  EXPECT_EQ(layer(0).total(), 32 * (2 * 32 + 2 * 16 + 4) + 64 * 5 + 3 * 4 + 32 + 32 * 32 + 32);
  // Experts of 16 x 24 both ways; to 16 and back; the router; one shared expert.
  EXPECT_EQ(layer(1).total(), 4 * 2 * 16 * 24 + 2 * 32 * 16 + 32 * 4 + 2 * 32 * 40 + 32);
  EXPECT_EQ(layer(2).total(), 32 * (4 + 2 * 2) * 8 + 32 * 32 + 32);
  EXPECT_EQ(layer(3).total(), 2 * 32 * 48 + 32);
  expect_all_parameters_in_step(model);
  EXPECT_THAT(message_of(with(kMamba, "ME*-", "ME*X")),
              AllOf(HasSubstr("hybrid_override_pattern: layer 3 is of a kind that is not modelled"),
                    HasSubstr("`X`")));
  EXPECT_THAT(message_of(with(kMamba, "ME*-", "ME*")), HasSubstr("as many as num_hidden_layers, 4"));
  EXPECT_THAT(message_of(with(kMamba, "\"use_bias\": false", "\"use_bias\": true")),
              HasSubstr("use_bias: this part is not modelled"));
}

// What predicts a further token is attention and experts, whatever the last layer is.
TEST(ModelConfigs, FurtherTokensArePredictedByLayersOfTheirOwnPattern) {
  const std::string text = with(kMamba, "\"use_bias\": false",
                                R"("use_bias": false, "num_nextn_predict_layers": 1,
                                "mtp_hybrid_override_pattern": "*E")");
  const Transformer model = read(text);
  EXPECT_EQ(layers_of_further_prediction(model), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(multi_token_prediction_parameters(model), layer_parameter_count(model, 2).total() +
                                                          layer_parameter_count(model, 1).total() +
                                                          2 * 32 * 32 + 3 * 32);
  EXPECT_THAT(message_of(with(text, "\"*E\"", "\"*X\"")),
              HasSubstr("letters of layers that hybrid_override_pattern has"));
}

TEST(ModelConfigs, RefusesSizesOfNoModel) {
  for (const char* size : {"\"mamba_num_heads\": 4", "\"mamba_head_dim\": 8", "\"ssm_state_size\": 8"}) {
    const std::string huge = std::string{size}.substr(0, std::string{size}.find(':')) + ": 999999999999";
    EXPECT_THAT(message_of(with(kMamba, size, huge)),
                AllOf(HasSubstr("state_mixer."), HasSubstr("found 999999999999")));
  }
  EXPECT_THAT(message_of(with(kMamba, "\"moe_latent_size\": 16", "\"moe_latent_size\": 999999999999")),
              HasSubstr("moe.latent_size"));
}

TEST(ModelConfigs, AdaptersOfStatesAreRefused) {
  const Transformer model = read(kMamba);
  Layout layout;
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 2, .seq_len_tokens = 64};
  layout.layer.adapters.rank = 8;
  const Status status = check(layout, model);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr("adapters are not modelled"));
}

TEST(ModelConfigs, ContextParallelismOfStatesIsRefused) {
  const Transformer model = read(kMamba);
  Layout layout;
  layout.degrees.context = 2;
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 2, .seq_len_tokens = 64};
  const Status status = check(layout, model);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr("mamba2 layers are not modelled with context_parallel 2"));
}

// Layers with windows have other heads than those that see all.
TEST(ModelConfigs, WindowsWithHeadsOfTheirOwn) {
  const Transformer model = read(R"({"model_type": "mimo_v2_flash", "hidden_size": 32, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 12, "v_head_dim": 8, "intermediate_size": 64,
    "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 12, "swa_v_head_dim": 8,
    "add_swa_attention_sink_bias": true, "sliding_window": 16, "hybrid_layer_pattern": [0, 1, 0],
    "moe_layer_freq": [0, 1, 1], "moe_intermediate_size": 16, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "n_shared_experts": null, "max_position_embeddings": 64, "vocab_size": 100, "tie_word_embeddings": false})");
  EXPECT_EQ(layer_parameter_count(model, 0).attention, 32 * (4 * 12 + 12 + 8) + 4 * 8 * 32);
  EXPECT_EQ(layer_parameter_count(model, 1).attention, 32 * (4 * 12 + 2 * 12 + 2 * 8) + 4 * 8 * 32 + 4);
  EXPECT_EQ(model.window_tokens(1), 16);
  EXPECT_EQ(model.window_tokens(2), 0);
  EXPECT_FALSE(model.has_experts(0));
  EXPECT_TRUE(model.has_experts(2));
  EXPECT_EQ(model.n_moe_layers(), 2);
  expect_all_parameters_in_step(model);
}

// Keys are values in layers that see all; the dense FFN runs beside the experts.
TEST(ModelConfigs, LanguageModelBesideATower) {
  const std::string text = R"({"model_type": "gemma4", "image_token_id": 7, "vision_config": {"depth": 2},
    "tie_word_embeddings": true, "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    "text_config": {"model_type": "gemma4_text", "attention_k_eq_v": true, "enable_moe_block": true,
    "global_head_dim": 16, "head_dim": 8, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 32,
    "intermediate_size": 24, "layer_types": ["sliding_attention", "full_attention"], "max_position_embeddings": 64,
    "moe_intermediate_size": 16, "num_attention_heads": 4, "num_experts": 4, "num_global_key_value_heads": 1,
    "num_hidden_layers": 2, "num_key_value_heads": 2, "num_kv_shared_layers": 0, "sliding_window": 16,
    "top_k_experts": 2, "vocab_size": 100}})";
  std::vector<std::string> notes;
  const Transformer model = read(text, &notes);
  EXPECT_THAT(notes, Contains(HasSubstr("towers for pictures and sound are not counted")));
  EXPECT_THAT(notes, Contains(HasSubstr("the checkpoint is quantized")));
  EXPECT_EQ(layer_parameter_count(model, 0).attention, 32 * (4 + 2 * 2) * 8 + 2 * 8 + 32 * 32);
  EXPECT_EQ(layer_parameter_count(model, 1).attention, 32 * (4 + 1) * 16 + 2 * 16 + 64 * 32);
  EXPECT_EQ(layer_parameter_count(model, 1).shared_experts, 3 * 32 * 24);
  // In front of and behind attention, dense part and experts, and behind their sum; scales of elements and of experts.
  EXPECT_EQ(layer_parameter_count(model, 1).norms, 7 * 32);
  EXPECT_EQ(layer_parameter_count(model, 1).router, 32 * 4 + 32 + 4);
  EXPECT_TRUE(model.tied_embeddings);
  expect_all_parameters_in_step(model);
  EXPECT_THAT(message_of(with(text, "\"num_kv_shared_layers\": 0", "\"num_kv_shared_layers\": 1")),
              HasSubstr("text_config.num_kv_shared_layers: this part is not modelled"));
  EXPECT_THAT(message_of(with(text, "\"image_token_id\"", "\"streams\"")), HasSubstr("streams: unknown key"));
}

TEST(ModelConfigs, LayersThatASearchChose) {
  const std::string text = R"({"model_type": "nemotron-nas", "hidden_size": 96, "num_attention_heads": 4,
    "num_hidden_layers": 2, "max_position_embeddings": 64, "vocab_size": 100, "tie_word_embeddings": false,
    "block_configs": [{"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 1.0}},
                      {"attention": {"no_op": true}, "ffn": {"ffn_mult": 5.0}}]})";
  const Transformer model = read(text);
  // 2 x 96 / 3 and 5 x that, in steps of 256.
  EXPECT_EQ(layer_parameter_count(model, 0).total(), 96 * (4 + 2 * 2) * 24 + 96 * 96 + 3 * 96 * 256 + 2 * 96);
  EXPECT_EQ(layer_parameter_count(model, 1).total(), 3 * 96 * 512 + 96);
  expect_all_parameters_in_step(model);
  EXPECT_THAT(message_of(with(text, "\"no_op\": true", "\"replace_with_linear\": true")),
              HasSubstr("attention that is one matrix is not modelled"));
}

TEST(ModelConfigs, IndexerOfSparseAttention) {
  const std::string text = R"({"model_type": "deepseek_v32", "hidden_size": 32, "index_head_dim": 8,
    "index_n_heads": 4, "index_topk": 16, "intermediate_size": 64, "kv_lora_rank": 8, "max_position_embeddings": 64,
    "num_attention_heads": 4, "num_hidden_layers": 2, "q_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 8, "vocab_size": 100, "tie_word_embeddings": false,
    "indexer_types": ["full", "full"]})";
  const Transformer sparse = read(text);
  Transformer dense = sparse;
  dense.sparse_indexer.reset();
  // Queries of all heads, a key with its norm of weights and biases, a weight per head.
  EXPECT_EQ(layer_parameter_count(sparse, 0).total() - layer_parameter_count(dense, 0).total(),
            16 * 4 * 8 + 32 * 8 + 2 * 8 + 32 * 4);
  expect_all_parameters_in_step(sparse);
  EXPECT_THAT(message_of(with(text, "\"full\", \"full\"", "\"full\", \"shared\"")),
              HasSubstr("indexer_types: layer 1 is of a kind that is not modelled"));
}

// A window, chosen compressed keys, all compressed keys; two streams around the layers.
TEST(ModelConfigs, CompressedKeysAndResidualStreams) {
  const std::string text = R"({"model_type": "deepseek_v4", "compress_ratios": [0, 4, 128, 0], "head_dim": 16,
    "hc_mult": 2, "hidden_size": 32, "index_head_dim": 8, "index_n_heads": 4, "index_topk": 8,
    "max_position_embeddings": 64, "moe_intermediate_size": 16, "n_routed_experts": 4, "n_shared_experts": 1,
    "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 3, "num_key_value_heads": 1,
    "num_nextn_predict_layers": 1, "o_groups": 2, "o_lora_rank": 8, "q_lora_rank": 12, "qk_rope_head_dim": 8,
    "sliding_window": 16, "tie_word_embeddings": false, "vocab_size": 100})";
  const Transformer model = read(text);
  const auto layer = [&](std::int64_t i) { return layer_parameter_count(model, i); };
  // Queries, one key, the way out in two groups, sinks.
  const std::int64_t plain = 32 * 12 + 12 + 12 * 64 + 32 * 16 + 16 + 8 * 64 + 16 * 32 + 4;
  EXPECT_EQ(layer(0).attention, plain);
  // Twice the columns for overlapping keys, and an indexer with such keys of width 8.
  EXPECT_EQ(layer(1).attention,
            plain + 2 * 16 * (2 * 32 + 4) + 16 + 12 * 4 * 8 + 32 * 4 + 2 * 8 * (2 * 32 + 4) + 8);
  EXPECT_EQ(layer(2).attention, plain + 16 * (2 * 32 + 128) + 16);
  // Two norms, and twice 4 x 2 weights of both streams.
  EXPECT_EQ(layer(0).norms, 2 * 32 + 2 * (8 * (2 * 32 + 1) + 3));
  EXPECT_EQ(model.kinds_of_further_layer, (std::vector<std::uint8_t>{0}));
  EXPECT_EQ(model.rotary_fraction, 0.5);
  EXPECT_THAT(message_of(with(text, "128, 0]", "64, 0]")),
              HasSubstr("layer 2 is of a kind that is not modelled"));
  EXPECT_THAT(message_of(with(text, "128, 0]", "128, 0, 0, 0]")),
              HasSubstr("does not say what each layer is"));
  EXPECT_THAT(message_of(with(text, "\"o_groups\": 2", "\"o_groups\": 3")), HasSubstr("output_groups"));
  Layout layout;
  layout.degrees.tensor = 2;
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 2, .seq_len_tokens = 64};
  const Status status = check(layout, model);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr("compressed keys is not modelled with tensor_parallel 2"));
  layout.degrees.tensor = 1;
  EXPECT_TRUE(memory_forecast(model, layout, Bytes{1e12}).ok());
}

// Totals by hand, in billions, from the widths in the files: embeddings and output, attention, FFN or experts.
struct Total {
  const char* file;  // begins so, behind the maker's name
  double billions;
};
const Total kTotals[] = {
    // 2 x 200064 x 3072 + 62 x (3072 x 8192 + 6144 x 3072 + 256 x 3 x 3072 x 1536)
    {"MiniMax-M2", 1.229 + 62 * (0.02517 + 0.01887 + 256 * 0.014156)},
    // 2 x 151936 x 6144 + 62 x (6144 x 14336 + 12288 x 6144 + 160 x 3 x 6144 x 2560), and so on
    {"Qwen3-Coder-480B", 1.867 + 62 * (0.16358 + 160 * 0.047186)},
    {"Qwen3-235B", 1.2447 + 94 * (0.071303 + 128 * 0.018874)},
    {"Qwen3-30B", 0.6223 + 48 * (0.018874 + 128 * 0.0047186)},
    {"Qwen3-0.6B", 0.15558 + 28 * (0.0062915 + 0.0094372)},
    {"Qwen3-1.7B", 0.31116 + 28 * (0.012583 + 0.037749)},
    {"Qwen3-8B", 1.2447 + 36 * (0.041943 + 0.150995)},
    {"Qwen3-VL-235B", 1.2447 + 94 * (0.071303 + 128 * 0.018874)},
    {"Qwen3-VL-30B", 0.6223 + 48 * (0.018874 + 128 * 0.0047186)},
    {"Qwen3-VL-2B", 0.31116 + 28 * (0.012583 + 0.037749)},
    {"Qwen3-VL-4B", 0.38896 + 36 * (0.026214 + 0.074711)},
    {"Qwen3-VL-8B", 1.2447 + 36 * (0.041943 + 0.150995)},
    {"Qwen3-32B", 32.8},
    // 2 x 248320 x 5120 + 64 x 3 x 5120 x 17408 + 48 x 5120 x (16480 + 6144) + 16 x 5120 x (14336 + 6144)
    {"Qwen3.5-27B", 2.543 + 17.113 + 48 * 0.11584 + 16 * 0.10486},
    // 2 x 248320 x 2048 + 40 x 257 x 3 x 2048 x 512 + 30 x 2048 x (12352 + 4096) + 10 x 2048 x (9216 + 4096)
    {"Qwen3.5-35B", 1.017 + 40 * 257 * 0.0031457 + 30 * 0.033685 + 10 * 0.027263},
    {"Qwen3.5-122B", 1.5257 + 48 * 257 * 0.0094372 + 36 * 0.08847 + 12 * 0.078643},
    {"MiMo-V2-Flash", 309},
    // DeepSeek-V3 (671.03) and 61 x (1536 x 8192 + 7168 x 192)
    {"DeepSeek-V3.2", 671.03 + 61 * 0.013959},
    // 2 x 202048 x 5120 + 48 x (5120 x 7168 + 5120 x 5120 + 17 x 3 x 5120 x 8192)
    {"Llama-4-Scout", 2.069 + 48 * (0.062915 + 17 * 0.125829)},
    // 2 x 163840 x 7168 + 61 x latent attention + 60 x 385 x 3 x 7168 x 2048 + 3 x 7168 x 18432
    {"Kimi-K2", 2.3488 + 61 * 0.10112 + 60 * 385 * 0.0440402 + 0.3964},
    {"GLM-5", 744},
    {"Gemma-4-26B", 25.2},
    {"Llama-3_3-Nemotron-Super-49B", 49.9},
    // 2 x 131072 x 2688 + 23 x 2688 x (10304 + 4096) + 6 x 2688 x (4608 + 4096) + 23 x (128 x 2 x 2688 x 1856 +
    // 2 x 2688 x 3712)
    {"NVIDIA-Nemotron-3-Nano", 0.7047 + 23 * 0.038707 + 6 * 0.023396 + 23 * (128 * 0.0099779 + 0.019956)},
    // 2 x 131072 x 4096 + 40 x 4096 x (18560 + 8192) + 8 x 4096 x (4608 + 4096) + 40 x (512 x 2 x 1024 x 2688 +
    // 2 x 4096 x 5376 + 2 x 4096 x 1024)
    {"NVIDIA-Nemotron-3-Super",
     1.0737 + 40 * 0.109576 + 8 * 0.035652 + 40 * (512 * 0.0055050 + 0.04404 + 0.008389)},
    // 2 x 128896 x 4096 + 45 x 4096 x (10240 + 8192) + 42 x 289 x 3 x 4096 x 1280 + 3 x 3 x 4096 x 11264
    {"Step-3.7-Flash", 1.0559 + 45 * 0.075497 + 42 * 289 * 0.0157286 + 0.41524},
    // Exactly what the class of transformers 5.24 holds: 284,332,230,231.
    {"DeepSeek-V4-Flash", 284.332},
    // As their makers state them.
    {"DeepSeek-V3", 671},
    {"DeepSeek-R1", 671},
    {"Meta-Llama-3.1-405B", 405.85},
    {"Meta-Llama-3.1-70B", 70.55},
    {"Llama-3.1-70B", 70.55},
    {"Meta-Llama-3.1-8B", 8.03},
    {"Mixtral-8x22B", 140.6},
    {"Mixtral-8x7B", 46.7},
    {"gpt-oss-120b", 116.8},
    {"gpt-oss-20b", 20.9},
};

TEST(ModelConfigs, PublishedOnesAreReadWithTheirTotals) {
  SKIP_WITHOUT_DATA();
  const std::filesystem::path folder = *test::measured_data() / "field" / "model_configs";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no published configs";
  std::size_t n_files = 0, n_read = 0, n_compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    ++n_files;
    const auto model = read_huggingface_config(entry.path());
    const std::string file = entry.path().filename().string();
    if (!model.ok()) {
      std::cout << model.error().message() << "\n";
      continue;
    }
    ++n_read;
    const std::string name = file.substr(std::min(file.size(), file.find("--") + 2));
    const auto* total = std::find_if(std::begin(kTotals), std::end(kTotals),
                                     [&](const Total& t) { return name.starts_with(t.file); });
    if (total == std::end(kTotals)) continue;
    ++n_compared;
    const double billions = static_cast<double>(parameter_count(*model).total()) / 1e9;
    EXPECT_NEAR(billions, total->billions, 0.01 * total->billions) << file;
    if (name.starts_with("DeepSeek-V4-Flash")) {
      EXPECT_EQ(parameter_count(*model).total(), 284'332'230'231) << file;
    }
  }
  std::cout << n_read << " of " << n_files << " published configs read, " << n_compared << " compared\n";
  // Files that are added to the folder may be refused; those that were read stay so.
  EXPECT_GE(n_read, 60U);
  EXPECT_GE(n_compared, 60U);
}

}  // namespace
}  // namespace stepcast::model_configs_test
