// Families whose layers differ in more than windows and experts, and every published config of the measured data.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/formats/huggingface.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/memory.h"
#include "stepcast/workload/network.h"
#include "stepcast/workload/step_work.h"

#include "tests/support/data.h"
#include "tests/support/paths.h"

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

// Products of every part of a step, by the names of its forward pass.
std::vector<std::string> names_of(const Transformer& model, std::size_t kind) {
  Layout layout;
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 2, .seq_len_tokens = 64};
  std::vector<std::string> names;
  const auto work = step_work(model, layout).value();
  for (const WorkItem& item : work.layer_kinds[kind]->forward) names.emplace_back(item.name);
  return names;
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
  EXPECT_THAT(message_of(with(kMamba, "ME*-", "ME*")), HasSubstr("num_hidden_layers entries, 4"));
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
              HasSubstr("letters of layers of hybrid_override_pattern"));
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

// Four heads in two groups: each of four ranks has a head, and two of them the same group.
TEST(ModelConfigs, ContextParallelismDealsOutTheHeadsOfStates) {
  const Transformer model = read(kMamba);
  Layout layout;
  layout.degrees.context = 4;
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 2, .seq_len_tokens = 64};
  ASSERT_TRUE(check(layout, model).ok());
  double bytes = 0;
  const auto work = step_work(model, layout).value();
  for (const WorkItem& item : work.layer_kinds[0]->forward)
    if (const Transfer* transfer = item.transfer()) bytes += transfer->message.value();
  // 16 tokens of a rank: values, gates, keys, queries and steps there, values back.
  EXPECT_EQ(bytes, 16 * (2 * 32 + 2 * 16 + 4 + 32) * 2);
  layout.degrees.context = 8;
  const Status status = check(layout, model);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(),
              HasSubstr("4 heads and 2 key heads of mamba2 layers on a tensor-parallel rank do not divide"));
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
  EXPECT_THAT(notes, Contains(HasSubstr("vision and audio towers are not counted")));
  EXPECT_THAT(notes, Contains(HasSubstr("the checkpoint is quantized")));
  EXPECT_EQ(layer_parameter_count(model, 0).attention, 32 * (4 + 2 * 2) * 8 + 2 * 8 + 32 * 32);
  EXPECT_EQ(layer_parameter_count(model, 1).attention, 32 * (4 + 1) * 16 + 2 * 16 + 64 * 32);
  EXPECT_EQ(layer_parameter_count(model, 1).shared_experts, 3 * 32 * 24);
  // In front of and behind attention, dense part and experts, and behind their sum; scales of elements and of experts.
  EXPECT_EQ(layer_parameter_count(model, 1).norms, 7 * 32);
  EXPECT_EQ(layer_parameter_count(model, 1).router, 32 * 4 + 32 + 4);
  EXPECT_TRUE(model.tied_embeddings);
  expect_all_parameters_in_step(model);
  notes.clear();
  EXPECT_EQ(read(with(text, "\"image_token_id\"", "\"streams\""), &notes), model);
  EXPECT_THAT(notes, Contains(HasSubstr("unknown keys next to `text_config`: `streams`")));
}

// Newer files have keys that no reader knows.
TEST(ModelConfigs, UnknownKeysAreReadByNameAndValue) {
  const auto with_key = [](const std::string& member) {
    return with(kDelta, "\"head_dim\": 8", member + ", \"head_dim\": 8");
  };
  const Transformer model = read(kDelta);
  std::vector<std::string> notes;
  const auto quiet =
      read(with_key(R"("audio_pad_token_id": 7, "z_loss_weight": 0.1, "rope_flavour": {"a": 1})"), &notes);
  EXPECT_EQ(quiet, model);
  EXPECT_THAT(notes, ::testing::Each(::testing::Not(HasSubstr("not known"))));
  EXPECT_EQ(
      read(with_key(R"("use_latent_moe": false, "router_speed": 0.01, "gate_flavour": "swish")"), &notes),
      model);
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("`use_latent_moe` (false)"), HasSubstr("`router_speed` (0.01)"),
                                    HasSubstr("`gate_flavour` (`swish`)"))));
  for (const auto& [member, part] :
       {std::pair{R"("use_latent_moe": true)", "use_latent_moe: unknown key, by its name part of experts"},
        {R"("hc_rank": 4)", "several residual streams"},
        {R"("mlp_ratio": 2.5)", "feed-forward parts"},
        {R"("block_kinds": "AB")", "block_kinds: unknown key"},
        {R"("nope_rope_dim": 4)", "nope_rope_dim: unknown key"}})
    EXPECT_THAT(message_of(with_key(member)), AllOf(HasSubstr(part), HasSubstr("--ignore-key"))) << member;
  const std::string next = message_of(R"({"model_type": "qwen3_6_text", "linear_num_value_heads": 8})");
  EXPECT_THAT(next, AllOf(HasSubstr("nearest supported family is qwen3_next"),
                          HasSubstr("of another generation, `qwen3_5_text`"),
                          ::testing::Not(HasSubstr("did you mean"))));
  EXPECT_THAT(
      message_of(R"({"model_type": "gemma3n_text", "altup_num_inputs": 4, "sliding_window": 8})"),
      AllOf(HasSubstr("predicted residual streams"), HasSubstr("nearest supported family is gemma3_text"),
            ::testing::Not(HasSubstr("did you"))));
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
              HasSubstr("attention as a single matrix is not modelled"));
}

// GLM 5 Next: linear attention and latent attention behind an indexer, both between several residual streams.
TEST(ModelConfigs, LatentAndLinearLayersBetweenStreams) {
  const std::string text =
      R"({"model_type": "glm5_next_text", "hc_mult": 2, "hidden_size": 32, "index_head_dim": 8,
    "index_n_heads": 2, "index_topk": 16, "indexer_types": ["full", "full", "full"], "intermediate_size": 48,
    "kv_lora_rank": 8, "layer_types": ["linear_attention", "indexed_attention", "linear_attention"],
    "linear_conv_kernel_dim": 4, "linear_head_dim": 8, "linear_num_heads": 4, "max_position_embeddings": 64,
    "mlp_layer_types": ["dense", "sparse", "sparse"], "moe_intermediate_size": 16, "n_routed_experts": 4,
    "n_shared_experts": 1, "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 3,
    "num_key_value_heads": 4, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 0, "head_dim": 0,
    "tie_word_embeddings": false, "v_head_dim": 8, "vocab_size": 100, "index_kpool": 4})";
  std::vector<std::string> notes;
  const Transformer model = read(text, &notes);
  EXPECT_THAT(notes, Contains(HasSubstr("left out: the pooling of the keys")));
  // Queries, keys and values with their convolution; both gates through vectors of a head; steps; decays and a norm; out.
  EXPECT_EQ(layer_parameter_count(model, 0).attention,
            3 * 32 * 32 + 3 * 32 * 4 + 2 * (32 * 8 + 8 * 32) + 32 * 4 + 32 + 4 + 8 + 32 * 32);
  // Queries of a vector of 16, keys and values of one of 8, their norms, the way out; the indexer.
  EXPECT_EQ(layer_parameter_count(model, 1).attention,
            16 * (32 + 32) + 16 + 32 * 8 + 8 + 8 * 64 + 32 * 32 + 16 * 16 + 32 * (8 + 2) + 2 * 8);
  EXPECT_EQ(layer_parameter_count(model, 1).norms, 2 * 32 + 2 * (4 * 2 * (2 * 32 + 1) + 3));
  EXPECT_THAT(names_of(model, model.kind(1)), Contains("index_scores"));
  EXPECT_THAT(names_of(model, model.kind(0)),
              AllOf(Contains("chunked_scan"), ::testing::Not(Contains("index_scores"))));
  expect_all_parameters_in_step(model);
  EXPECT_THAT(message_of(with(text, "\"index_kpool\": 4", "\"kv_source_layers\": [0, 1, 1]")),
              HasSubstr("latent vectors that layers share are not modelled"));
}

// Files of GLM-5.2 say how often an indexer runs, as a list, as letters or as a distance.
TEST(ModelConfigs, LayersThatShareAnIndexer) {
  const std::string text = R"({"model_type": "glm_moe_dsa", "hidden_size": 32, "index_head_dim": 8,
    "index_n_heads": 4, "index_topk": 16, "intermediate_size": 64, "kv_lora_rank": 8, "max_position_embeddings": 64,
    "num_attention_heads": 4, "num_hidden_layers": 5, "q_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 8, "vocab_size": 100, "index_topk_freq": 2})";
  const Transformer every = read(text);
  EXPECT_THAT(every.kind_of_layer, ElementsAre(0, 0, 1, 0, 1));
  EXPECT_TRUE(every.layer_kinds.at(1).shares_chosen_keys);
  const auto said = [&](const std::string& member) {
    return read(with(text, "\"index_topk_freq\": 2", member));
  };
  EXPECT_EQ(said(R"("index_topk_pattern": "FFSFS")"), every);
  EXPECT_EQ(said(R"("indexer_types": ["full", "full", "shared", "full", "shared"])"), every);
  EXPECT_TRUE(said("\"index_topk_freq\": 1").kind_of_layer.empty());
  EXPECT_THAT(message_of(with(text, "\"index_topk_freq\": 2", "\"index_topk_pattern\": \"FS\"")),
              HasSubstr("a letter for each layer"));
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
  EXPECT_THAT(message_of(with(text, "\"full\", \"full\"", "\"full\", \"half\"")),
              HasSubstr("indexer_types: layer 1 is of a kind that is not modelled"));
  const Transformer shared = read(with(text, "\"full\", \"full\"", "\"full\", \"shared\""));
  EXPECT_EQ(layer_parameter_count(shared, 0), layer_parameter_count(sparse, 0));
  EXPECT_EQ(layer_parameter_count(shared, 1), layer_parameter_count(dense, 1));
  expect_all_parameters_in_step(shared);
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
              HasSubstr("does not give the kind of each layer"));
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

// Small configs of families as transformers writes them (tools/family_parameters.py): parameters of the modules that its
// classes build of them, all and those that a token meets.
TEST(ModelConfigs, FamiliesHaveTheParametersOfTheirModules) {
  const auto text = read_file(test::source_dir() / "tests/formats/family_parameters.jsonl");
  ASSERT_TRUE(text.ok());
  std::istringstream lines{*text};
  std::size_t n_lines = 0;
  for (std::string line; std::getline(lines, line); ++n_lines) {
    const auto document = parse_json(line, "family_parameters.jsonl");
    ASSERT_TRUE(document.ok()) << document.error().message();
    const auto end = line.rfind(", \"total\"");
    ASSERT_NE(end, std::string::npos);
    const std::string config = line.substr(line.find('{', 1), end - line.find('{', 1));
    const Transformer model = read(config);
    EXPECT_EQ(static_cast<double>(parameter_count(model).total()), document->find("total")->number())
        << config;
    EXPECT_EQ(static_cast<double>(active_parameter_count(model)), document->find("active")->number())
        << config;
    if (model.state_mixer && model.n_multi_token_prediction_layers == 0) expect_all_parameters_in_step(model);
  }
  EXPECT_GE(n_lines, 255U);
}

// Models whose classes are not in transformers, or whose files spell sizes in their own way, against the billions that their
// makers state. The keys are those of the published files, written down from memory.
TEST(ModelConfigs, StatedTotals) {
  const auto text = read_file(test::source_dir() / "tests/formats/stated_parameters.jsonl");
  ASSERT_TRUE(text.ok());
  std::istringstream lines{*text};
  std::size_t n_lines = 0;
  for (std::string line; std::getline(lines, line); ++n_lines) {
    const auto document = parse_json(line, "stated_parameters.jsonl");
    ASSERT_TRUE(document.ok()) << document.error().message();
    const Transformer model = read(compact_json(*document->find("config")));
    const double stated = document->find("stated")->number() * 1e9;
    EXPECT_NEAR(static_cast<double>(parameter_count(model).total()), stated, 0.01 * stated)
        << document->find("name")->text();
  }
  EXPECT_EQ(n_lines, 28U);
}

const std::string kConvolutions =
    R"({"model_type": "lfm2", "conv_L_cache": 3, "conv_bias": false, "hidden_size": 32,
  "block_auto_adjust_ff_dim": true, "block_ff_dim": 120, "block_multiple_of": 16, "full_attn_idxs": [1],
  "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
  "tie_embedding": true, "vocab_size": 100})";

Status status_of(const Transformer& model, std::int64_t tensor, std::int64_t context) {
  Layout layout;
  layout.degrees.tensor = tensor;
  layout.degrees.context = context;
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 2, .seq_len_tokens = 64};
  return check(layout, model);
}

TEST(ModelConfigs, ShortConvolutions) {
  const Transformer model = read(kConvolutions);
  EXPECT_EQ(model.layer_kinds[model.kind(0)].mixer, Mixer::short_convolution);
  EXPECT_EQ(model.layer_kinds[model.kind(1)].mixer, Mixer::attention);
  EXPECT_EQ(model.ffn_hidden_size, 80);  // two thirds of 120 in steps of 16
  // Two gates and what they gate, three weights of every channel, the way out.
  EXPECT_EQ(layer_parameter_count(model, 0).attention, 32 * 3 * 32 + 3 * 32 + 32 * 32);
  EXPECT_TRUE(model.tied_embeddings);
  const auto names = names_of(model, 0);
  EXPECT_THAT(names, Contains("gate_input"));
  EXPECT_THAT(names, Contains("causal_convolution"));
  EXPECT_THAT(names, ::testing::Not(Contains("chunked_scan")));
  EXPECT_THAT(status_of(model, 2, 1).error().message(),
              AllOf(HasSubstr("splits short_convolution layers by tensor_parallel 2"),
                    HasSubstr("tensor_parallel 1")));
  EXPECT_THAT(status_of(model, 1, 2).error().message(), HasSubstr("context_parallel 1"));
  EXPECT_THAT(message_of(with(kConvolutions, "\"conv_bias\": false", "\"conv_bias\": true")),
              HasSubstr("conv_bias: this part is not modelled"));
}

TEST(ModelConfigs, AttentionBesideAState) {
  const Transformer model = read(R"({"model_type": "falcon_h1", "attention_bias": false, "head_dim": 8,
    "hidden_size": 32, "intermediate_size": 48, "mamba_chunk_size": 16, "mamba_conv_bias": true, "mamba_d_conv": 4,
    "mamba_d_head": 8, "mamba_d_ssm": 32, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_n_heads": 4,
    "mamba_proj_bias": false, "mamba_rms_norm": false, "max_position_embeddings": 64, "num_attention_heads": 4,
    "num_hidden_layers": 2, "num_key_value_heads": 2, "projectors_bias": false, "tie_word_embeddings": false,
    "vocab_size": 100})");
  const std::int64_t attention = 32 * (4 + 2 * 2) * 8 + 32 * 32;
  // Values and gates (32 each), both vectors of the state (8 each), a step per head; 48 channels with bias; three vectors
  // of heads, no norm; the way out.
  const std::int64_t state = 32 * (2 * 32 + 2 * 8 + 4) + 48 * 5 + 3 * 4 + 32 * 32;
  EXPECT_EQ(layer_parameter_count(model, 0).attention, attention + state);
  const auto names = names_of(model, 0);
  for (const char* part : {"chunked_scan", "attention", "add_mixers"}) EXPECT_THAT(names, Contains(part));
  expect_all_parameters_in_step(model);
  const auto kept = [](const Transformer& m) {
    Layout layout;
    layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 2, .seq_len_tokens = 64};
    return memory_forecast(m, layout, Bytes{1e12}).value().stages[0].activations.value();
  };
  Transformer alone = model;
  alone.attends_beside = false;
  EXPECT_GT(kept(model), kept(alone));
}

// Channels of Mamba-1 have a state each and share its keys; gates of Kimi Linear come from a vector as wide as a head.
TEST(ModelConfigs, InnerProductsOfStates) {
  const Transformer mamba = read(R"({"model_type": "falcon_mamba", "conv_kernel": 4, "hidden_size": 16,
    "intermediate_size": 32, "num_hidden_layers": 2, "state_size": 4, "tie_word_embeddings": false, "time_step_rank": 3,
    "use_bias": false, "use_conv_bias": true, "vocab_size": 100})");
  EXPECT_EQ(layer_parameter_count(mamba, 0).attention,
            16 * 64 + 32 * 5 + 32 * (3 + 2 * 4) + 3 * 32 + 32 + 32 * 4 + 32 + 32 * 16);
  for (const char* part : {"state_keys", "state_steps", "chunked_scan"})
    EXPECT_THAT(names_of(mamba, 0), Contains(part));
  EXPECT_FALSE(status_of(mamba, 2, 1).ok());
  const Transformer kimi =
      read(R"({"model_type": "kimi_linear", "first_k_dense_replace": 1, "hidden_size": 32,
    "intermediate_size": 48, "kv_lora_rank": 16, "linear_attn_config": {"full_attn_layers": [2], "head_dim": 8,
    "kda_layers": [1], "num_heads": 4, "short_conv_kernel_size": 4}, "model_max_length": 64, "moe_intermediate_size": 16,
    "num_attention_heads": 4, "num_experts": 4, "num_experts_per_token": 2, "num_hidden_layers": 2,
    "num_shared_experts": 1, "q_lora_rank": null, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
    "tie_word_embeddings": false, "v_head_dim": 8, "vocab_size": 100})");
  EXPECT_EQ(kimi.layer_kinds[kimi.kind(0)].mixer, Mixer::channel_delta);
  EXPECT_EQ(kimi.layer_kinds[kimi.kind(1)].mixer, Mixer::attention);
  // Queries, keys, values, two narrow vectors and a step; four weights of 96 channels; both gates; decays, steps and norm.
  EXPECT_EQ(layer_parameter_count(kimi, 0).attention,
            32 * (3 * 32 + 2 * 8 + 4) + 96 * 4 + 2 * 8 * 32 + 4 + 32 + 8 + 32 * 32);
  EXPECT_TRUE(status_of(kimi, 2, 1).ok());
  EXPECT_THAT(status_of(kimi, 1, 2).error().message(), HasSubstr("channel_delta"));
}

TEST(ModelConfigs, OtherSpellingsAndModelsAround) {
  const std::string text = R"({"hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 64,
    "model_type": "qwen3", "num_attention_heads": 4, "head_dim": 8, "num_hidden_layers": 2, "num_key_value_heads": 2,
    "tie_word_embeddings": false, "vocab_size": 100, "add_cross_attention": false})";
  const std::int64_t alone = parameter_count(read(text)).total();
  for (const char* around : {"text_config", "llm_config", "language_config"}) {
    std::vector<std::string> notes;
    const Transformer model = read(
        std::string{R"({"model_type": "seer", "vision_config": {"model_type": "eye"}, "eye_width": 3, ")"} +
            around + "\": " + text + "}",
        &notes);
    EXPECT_EQ(parameter_count(model).total(), alone) << around;
    EXPECT_THAT(notes, Contains(HasSubstr("not counted"))) << around;
  }
  std::vector<std::string> notes;
  const std::string thinks = R"({"model_type": "talks", "talker_config": {"width": 3}, "thinker_config": )";
  read(thinks + R"({"model_type": "qwen2_5_omni_thinker", "audio_config": {}, "text_config": )" + text + "}}",
       &notes);
  EXPECT_THAT(notes, Contains(HasSubstr("the talker is not counted")));
  // Without a section of what stands around it, it may be a part of something else.
  EXPECT_THAT(message_of(R"({"model_type": "seer", "text_config": )" + text + "}"),
              HasSubstr("unknown architecture"));
  EXPECT_THAT(message_of(with(text, "\"add_cross_attention\": false", "\"add_cross_attention\": true")),
              HasSubstr("add_cross_attention"));
  const Transformer glm = read(R"({"model_type": "chatglm", "add_bias_linear": false, "add_qkv_bias": true,
    "ffn_hidden_size": 48, "hidden_size": 32, "kv_channels": 8, "multi_query_group_num": 2, "num_attention_heads": 4,
    "num_layers": 2, "num_hidden_layers": 2, "padded_vocab_size": 100, "seq_length": 64, "tie_word_embeddings": false})");
  EXPECT_EQ(layer_parameter_count(glm, 1).attention, 32 * (4 + 2 * 2) * 8 + 8 * 8 + 32 * 32);
  EXPECT_EQ(glm.max_position, 64);
}

TEST(ModelConfigs, LayersOfExpertsByAList) {
  const std::string text =
      R"({"model_type": "llama4_text", "head_dim": 8, "hidden_size": 32, "intermediate_size": 16,
    "intermediate_size_mlp": 48, "interleave_moe_layer_step": 2, "max_position_embeddings": 64, "moe_layers": [1, 3],
    "num_attention_heads": 4, "num_experts_per_tok": 1, "num_hidden_layers": 4, "num_key_value_heads": 2,
    "num_local_experts": 4, "tie_word_embeddings": false, "vocab_size": 100})";
  EXPECT_EQ(read(text).n_moe_layers(), 2);
  EXPECT_EQ(read(with(text, "[1, 3]", "[]")).n_moe_layers(), 0);  // MobileLLM-R1
  EXPECT_THAT(message_of(with(text, "[1, 3]", "[0, 3]")),
              AllOf(HasSubstr("moe_layers"), HasSubstr("layer 0")));
}

// The encoder is told by its own type: one that the family is not known with is not taken for another.
TEST(ModelConfigs, TowersByTheirEncoder) {
  const std::string text =
      R"({"model_type": "llava", "text_config": {"hidden_size": 32, "intermediate_size": 48,
    "max_position_embeddings": 64, "model_type": "mistral", "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "vocab_size": 100}, "vision_config": {"hidden_size": 16, "image_size": 16,
    "intermediate_size": 24, "model_type": "pixtral", "num_attention_heads": 2, "num_hidden_layers": 2,
    "patch_size": 4}})";
  // Patches, a norm; two norms, attention without biases and a gated FFN; the projector.
  const std::int64_t layer = 2 * 16 + 4 * 16 * 16 + 3 * 16 * 24;
  EXPECT_EQ(parameter_count(read(text)).tower, 3 * 16 * 16 + 16 + 2 * layer + 16 * 32 + 32 + 32 * 32 + 32);
  std::vector<std::string> notes;
  EXPECT_EQ(parameter_count(read(with(text, "pixtral", "strange_eye"), &notes)).tower, 0);
  EXPECT_THAT(notes, Contains(HasSubstr("not counted")));
  const std::string chat =
      R"({"model_type": "internvl_chat", "downsample_ratio": 0.5, "llm_config": {"hidden_size": 32,
    "intermediate_size": 48, "max_position_embeddings": 64, "model_type": "qwen2", "num_attention_heads": 4,
    "num_hidden_layers": 2, "num_key_value_heads": 2, "vocab_size": 100}, "vision_config": {"hidden_size": 16,
    "image_size": 16, "intermediate_size": 24, "model_type": "intern_vit_6b", "norm_type": "rms_norm",
    "num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 4, "qk_normalization": true, "qkv_bias": false}})";
  // A patch, its bias, class and places; norms, attention, norms of queries and keys, FFN, two scales; projector.
  EXPECT_EQ(parameter_count(read(chat)).tower, 3 * 16 * 16 + 16 + 18 * 16 + 2 * 16 + 4 * 16 * 16 + 16 +
                                                   2 * 16 + 2 * 16 * 24 + 24 + 16 + 2 * 16 + 2 * 64 +
                                                   64 * 32 + 32 + 32 * 32 + 32);
}

// Images are beside the sequence; without them its layers do not run.
TEST(ModelConfigs, CrossAttentionLooksAtAllVectorsOfImages) {
  const std::string text = R"({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model",
    "cross_attention_layers": [1], "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 64,
    "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2, "vocab_size": 100},
    "vision_config": {"attention_heads": 2, "hidden_size": 16, "image_size": 8, "intermediate_size": 24,
    "max_num_tiles": 4, "num_channels": 3, "num_global_layers": 1, "num_hidden_layers": 1, "patch_size": 4,
    "supported_aspect_ratios": [[1, 1], [2, 2]], "vision_output_dim": 32}})";
  std::vector<std::string> notes;
  const Transformer model = read(text, &notes);
  EXPECT_THAT(notes, Contains(HasSubstr("with cross-attention to 20 vectors")));
  EXPECT_EQ(model.layer_kinds[model.kind(1)].cross_tokens, 4 * (2 * 2 + 1));
  EXPECT_EQ(layer_parameter_count(model, 1).total(), layer_parameter_count(model, 0).total() + 2 * 8 + 2);
  expect_all_parameters_in_step(model);
  Layout layout;
  layout.batch = {.micro_batch_sequences = 2, .global_batch_sequences = 2, .seq_len_tokens = 64};
  const auto work = step_work(model, layout).value();
  bool attends = false;
  for (const auto& layer : work.layer_kinds) {
    for (const WorkItem& item : layer->forward) {
      const auto* shape = item.operation() ? std::get_if<AttentionShape>(&item.operation()->shape) : nullptr;
      attends = attends ||
                (shape != nullptr && shape->key_length == 20 && shape->query_length == 64 && !shape->causal);
    }
  }
  EXPECT_TRUE(attends);
  const auto blind = parse_huggingface_config(text, "config.json", {}, &notes, {.text_only = true});
  ASSERT_TRUE(blind.ok());
  EXPECT_EQ(blind->n_layers, 2);
  EXPECT_THAT(notes, Contains(HasSubstr("1 cross-attention layers are left out")));
  layout.degrees.context = 2;
  EXPECT_THAT(check(layout, model).error().message(), HasSubstr("cross-attention is not modelled"));
}

// The maker states 560 billion, about 27 of them active. Modules of transformers hold unused rows of the experts that give
// a token back as it came, so they are no measure.
TEST(ModelConfigs, ExpertsThatGiveTokensBack) {
  const Transformer model = read(R"({"model_type": "longcat_flash", "hidden_size": 6144, "num_layers": 28,
    "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "n_routed_experts": 512, "zero_expert_num": 256,
    "zero_expert_type": "identity", "moe_topk": 12, "num_attention_heads": 64, "kv_lora_rank": 512,
    "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 131072,
    "max_position_embeddings": 131072})");
  EXPECT_NEAR(static_cast<double>(parameter_count(model).total()), 560e9, 5.6e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model)), 27e9, 1e9);
  EXPECT_EQ(model.n_layers, 56);
  EXPECT_EQ(layer_parameter_count(model, 0).router, 6144 * (512 + 256));
}

// The table names the class that was asked, or who stated the total.
TEST(ModelConfigs, PublishedOnesAreReadWithTheirParameters) {
  SKIP_WITHOUT_DATA();
  const std::filesystem::path folder = *test::measured_data() / "field" / "model_configs";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no published configs";
  const std::filesystem::path table = test::source_dir() / "tests/formats/published_parameters.csv";
  const auto text = read_file(table);
  ASSERT_TRUE(text.ok());
  auto rows = CsvRows::open(*text, table.string());
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  std::size_t n_read = 0;
  for (auto more = rows->next(); more.ok() && *more; more = rows->next()) {
    const std::string file{rows->cell("config")};
    const auto model = read_huggingface_config(folder / (file + "_config.json"));
    ASSERT_TRUE(model.ok()) << model.error().message();
    ++n_read;
    const ParameterCount count = parameter_count(*model);
    EXPECT_EQ(static_cast<double>(count.total()), *rows->number("total", 0)) << file;
    EXPECT_EQ(static_cast<double>(active_parameter_count(*model)), *rows->number("active", 0)) << file;
    EXPECT_EQ(static_cast<double>(count.tower), *rows->number("tower", 0)) << file;
  }
  EXPECT_EQ(n_read, 60U);
}

const std::string kSeeing = R"({"model_type": "qwen3_vl", "image_token_id": 7, "tie_word_embeddings": true,
  "text_config": {"model_type": "qwen3_vl_text", "head_dim": 8, "hidden_size": 32, "intermediate_size": 48,
    "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
    "vocab_size": 100},
  "vision_config": {"depth": 2, "hidden_size": 16, "in_channels": 3, "intermediate_size": 24, "num_heads": 2,
    "num_position_embeddings": 16, "out_hidden_size": 32, "patch_size": 4, "spatial_merge_size": 2,
    "temporal_patch_size": 2, "deepstack_visual_indexes": [1]}})";

Result<Transformer> seeing(const VisionSettings& vision, std::vector<std::string>* notes = nullptr) {
  return parse_huggingface_config(kSeeing, "config.json", {}, notes, vision);
}

TEST(ModelConfigs, TowersCountAndSeeTheImagesOfASequence) {
  std::vector<std::string> notes;
  const Transformer model = seeing({}, &notes).value();
  // Patches of two frames and their places; norms, attention and FFN with biases; two mergers, of which the first has a
  // norm of one patch and the other one of four.
  const std::int64_t patches = 3 * 2 * 16 * 16 + 16 + 16 * 16;
  const std::int64_t layer = 4 * 16 + 4 * 16 * 16 + 4 * 16 + 2 * 16 * 24 + 24 + 16;
  const std::int64_t merger = 64 * 64 + 64 + 64 * 32 + 32;
  EXPECT_EQ(parameter_count(model).tower, patches + 2 * layer + 2 * merger + 2 * 16 + 2 * 64);
  ASSERT_NE(model.tower, nullptr);
  EXPECT_EQ(model.tower->image_size, 16);  // four patches in either direction have places
  EXPECT_EQ(model.tower->tokens_per_image, 4);
  EXPECT_THAT(notes, Contains(HasSubstr("1 image of 16 x 16 pixels")));
  expect_all_parameters_in_step(model);

  const auto flops_of = [](const Transformer& m) {
    Layout layout;
    layout.batch = {.micro_batch_sequences = 2, .global_batch_sequences = 2, .seq_len_tokens = 64};
    const auto work = step_work(m, layout).value();
    double flops = 0;
    for (const WorkItem& item : work.embedding->forward)
      if (const Operation* operation = item.operation()) flops += work_of(*operation).flops.value();
    return flops;
  };
  const double none = flops_of(seeing({.images = 0}).value()), one = flops_of(model);
  EXPECT_GT(one, none);
  EXPECT_NEAR(flops_of(seeing({.images = 3}).value()) - none, 3 * (one - none), 1e-6 * one);
  EXPECT_GT(flops_of(seeing({.image_size = 32}).value()) - none, 4 * (one - none));  // attention grows faster
}

// As the checkpointing of transformers wraps them; Megatron's recomputation is of the language model alone.
TEST(ModelConfigs, TowersAreRecomputedWhereTheFrameworkDoes) {
  const Transformer model = seeing({}).value();
  Layout layout;
  layout.batch = {.micro_batch_sequences = 2, .global_batch_sequences = 2, .seq_len_tokens = 64};
  layout.software.framework = Framework::fsdp;
  const auto backward = [&] { return step_work(model, layout).value().embedding->backward.size(); };
  const auto kept = [&] {
    return memory_forecast(model, layout, Bytes{1e12}).value().stages[0].activations.value();
  };
  const std::size_t n_forward = step_work(model, layout).value().embedding->forward.size(),
                    plain = backward();
  const double all = kept();
  layout.layer.recompute.kind = Recompute::full;
  EXPECT_GT(backward(), plain + n_forward / 2);
  const double inputs = kept();
  EXPECT_LT(inputs, all);
  layout.software.framework = Framework::megatron;
  EXPECT_EQ(backward(), plain);
  EXPECT_GT(kept(), inputs);
}

TEST(ModelConfigs, TowersAreLeftOutWhereAsked) {
  std::vector<std::string> notes;
  const Transformer text = seeing({.text_only = true}, &notes).value();
  EXPECT_EQ(text.tower, nullptr);
  EXPECT_THAT(notes, Contains(HasSubstr("--text-only")));
  EXPECT_EQ(parameter_count(seeing({}).value()).total() - parameter_count(text).total(),
            parameter_count(seeing({}).value()).tower);
  EXPECT_THAT(seeing({.image_size = 18}).error().message(),
              AllOf(HasSubstr("--image-size"), HasSubstr("multiple of 4")));
  const auto blind = parse_huggingface_config(kMamba, "config.json", {}, nullptr, {.images = 2});
  ASSERT_FALSE(blind.ok());
  EXPECT_THAT(blind.error().message(), HasSubstr("--images"));
}

// The embedding of a layer's own vector, its way in and out, and upper layers without keys and values.
TEST(ModelConfigs, VectorsOfLayersAndSharedKeys) {
  const Transformer model = read(R"({"model_type": "gemma4_text", "head_dim": 8, "hidden_activation":
    "gelu_pytorch_tanh", "hidden_size": 32, "intermediate_size": 24, "layer_types": ["full_attention",
    "full_attention"], "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "num_kv_shared_layers": 1, "use_double_wide_mlp": true, "vocab_size": 100,
    "hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 50})");
  EXPECT_EQ(embedding_parameter_count(model).total(), 100 * 32 + 50 * 2 * 4 + 32 * 2 * 4 + 4);
  EXPECT_EQ(layer_parameter_count(model, 0).ffn, 3 * 32 * 24 + 2 * 32 * 4);
  EXPECT_EQ(layer_parameter_count(model, 1).ffn, 3 * 32 * 48 + 2 * 32 * 4);
  EXPECT_EQ(layer_parameter_count(model, 1).attention, 2 * 32 * 32 + 8);
  expect_all_parameters_in_step(model);
}

TEST(ModelConfigs, GatesOfHeadsAndLayersOfAList) {
  const Transformer model =
      read(R"({"model_type": "step3p5", "head_dim": 8, "hidden_size": 32, "intermediate_size": 24,
    "layer_types": ["full_attention", "sliding_attention", "full_attention"], "max_position_embeddings": 64,
    "moe_layers_enum": "1", "moe_num_experts": 4, "moe_top_k": 2, "moe_intermediate_size": 8, "share_expert_dim": 8,
    "num_attention_heads": 4, "num_attention_groups": 2, "num_hidden_layers": 2, "num_nextn_predict_layers": 1,
    "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 8,
    "num_attention_groups": 2, "head_dim": 8}, "sliding_window": 16, "vocab_size": 100,
    "use_head_wise_attn_gate": true})");
  EXPECT_EQ(layer_parameter_count(model, 0).attention, 32 * (4 + 2 * 2) * 8 + 32 * 32 + 32 * 4 + 2 * 8);
  EXPECT_EQ(layer_parameter_count(model, 1).attention, 32 * (8 + 2 * 2) * 8 + 64 * 32 + 32 * 8 + 2 * 8);
  EXPECT_FALSE(model.has_experts(0));
  EXPECT_EQ(layer_parameter_count(model, 1).shared_experts, 3 * 32 * 8);
}

TEST(ModelConfigs, NetworksThatAreNoLanguageModels) {
  const auto total = [](const char* text) { return parameter_count(read(text)).total(); };
  // As the classes ...ForImageClassification and T5ForConditionalGeneration have them.
  EXPECT_EQ(total(R"({"model_type": "vit", "num_labels": 1000})"), 86'567'656);
  EXPECT_EQ(total(R"({"model_type": "resnet", "num_labels": 1000})"), 25'557'032);
  EXPECT_EQ(total(R"({"model_type": "t5"})"), 60'506'624);
  EXPECT_EQ(total(R"({"model_type": "mt5", "tie_word_embeddings": false})"), 300'176'768);
  EXPECT_THAT(message_of(R"({"model_type": "resnet", "hidden_sizes": [32, 64, 128, 256]})"),
              HasSubstr("only the widths of torchvision"));
  EXPECT_THAT(message_of(R"({"model_type": "vit", "image_size": 225})"), HasSubstr("a multiple of 16"));
  EXPECT_THAT(message_of(R"({"model_type": "vit", "streams": 2})"), HasSubstr("streams: unknown key"));
  EXPECT_THAT(message_of(R"({"model_type": "t5", "d_model": 0})"), HasSubstr("hidden size"));
}

}  // namespace
}  // namespace stepcast::model_configs_test
