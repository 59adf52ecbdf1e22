// Parameters of public models, each counted by hand: the sizes of its config.json put into the shapes of the modules that
// Hugging Face's modeling files build from it (transformers 5.23.0, src/transformers/models/*/modeling_*.py). No config states
// a count. Configs of configs/ are read as files, the others are those that huggingface_test.cpp holds to our presets.

#include <cstdint>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "stepcast/formats/huggingface.h"
#include "stepcast/formats/presets.h"

#include "tests/support/paths.h"

namespace stepcast::parameter_arithmetic_test {
namespace {

using Count = std::int64_t;

struct Size {
  Count vocab, hidden, layers;
};
struct Heads {
  Count queries, keys, dim;
};
constexpr bool kBias = true, kNoBias = false;

// Projections of queries, keys and values and of the output, with their biases.
constexpr Count attention(Count hidden, Heads n, bool bias = kNoBias, bool output_bias = kNoBias) {
  const Count inner = (n.queries + 2 * n.keys) * n.dim;
  return hidden * inner + n.queries * n.dim * hidden + (bias ? inner : 0) + (output_bias ? hidden : 0);
}
// gate_proj, up_proj and down_proj.
constexpr Count gated(Count hidden, Count inner) { return 3 * hidden * inner; }
// Up and down.
constexpr Count plain(Count hidden, Count inner, bool bias = kBias) {
  return 2 * hidden * inner + (bias ? hidden + inner : 0);
}
// Embeddings (twice where the output has its own), layers, the last norm.
constexpr Count untied(Size s, Count layer, Count last) {
  return 2 * s.vocab * s.hidden + s.layers * layer + last;
}
constexpr Count tied(Size s, Count layer, Count last) { return s.vocab * s.hidden + s.layers * layer + last; }

// RMSNorm before attention and MLP; `more` in a layer: norms of heads, biases.
constexpr Count llama_layer(Count hidden, Heads n, Count inner, Count norms, Count more) {
  return attention(hidden, n) + gated(hidden, inner) + norms * hidden + more;
}
constexpr Count llama(Size s, Heads n, Count inner, Count more = 0) {
  return untied(s, llama_layer(s.hidden, n, inner, 2, more), s.hidden);
}
// Tied, with two or four norms a layer.
constexpr Count gemma(Size s, Heads n, Count inner, Count norms, Count more = 0) {
  return tied(s, llama_layer(s.hidden, n, inner, norms, more), s.hidden);
}
constexpr Count qkv_bias(Heads n) { return (n.queries + 2 * n.keys) * n.dim; }

// A router and experts instead of the MLP.
struct Experts {
  Count n, inner;
};
constexpr Count experts(Count hidden, Experts e) { return hidden * e.n + e.n * gated(hidden, e.inner); }
constexpr Count mixtral(Size s, Heads n, Experts e, Count more = 0) {
  return untied(s, attention(s.hidden, n) + experts(s.hidden, e) + 2 * s.hidden + more, s.hidden);
}
// The first layers have an MLP, the others experts with one that is shared.
constexpr Count part_dense(Size s, Count layer, Count dense_layers, Count dense_inner, Experts e,
                           Count shared) {
  return untied(s, layer + 2 * s.hidden, s.hidden) + dense_layers * gated(s.hidden, dense_inner) +
         (s.layers - dense_layers) * (experts(s.hidden, e) + gated(s.hidden, shared));
}
// Multi-head latent attention: queries through q_lora_rank (0: not), keys and values through kv_lora_rank with a norm each,
// heads of 128 + 64 for scores and 128 for values.
constexpr Count latent(Count hidden, Count heads, Count q_rank) {
  constexpr Count kRank = 512, kPlain = 128, kRotary = 64, kValue = 128;
  const Count queries = heads * (kPlain + kRotary);
  return (q_rank > 0 ? hidden * q_rank + q_rank + q_rank * queries : hidden * queries) +
         hidden * (kRank + kRotary) + kRank + kRank * heads * (kPlain + kValue) + heads * kValue * hidden;
}
// LayerNorm with bias twice a layer, behind the embedding and at the end; biases everywhere; tied.
constexpr Count bloom(Size s, Heads n) {
  return tied(s, attention(s.hidden, n, kBias, kBias) + plain(s.hidden, 4 * s.hidden) + 4 * s.hidden,
              2 * s.hidden) +
         2 * s.hidden;
}
constexpr Count neox(Size s, Heads n) {
  return untied(s, attention(s.hidden, n, kBias, kBias) + plain(s.hidden, 4 * s.hidden) + 4 * s.hidden,
                2 * s.hidden);
}
// Learned positions; tied.
constexpr Count gpt(Size s, Heads n, Count positions, Count inner) {
  return tied(s, attention(s.hidden, n, kBias, kBias) + plain(s.hidden, inner) + 4 * s.hidden, 2 * s.hidden) +
         positions * s.hidden;
}
// Words, positions and kinds of sentences with a norm; the norm of a layer stands behind its parts.
constexpr Count bert(Size s, Heads n, Count positions, Count kinds, Count inner) {
  return tied(s, attention(s.hidden, n, kBias, kBias) + plain(s.hidden, inner) + 4 * s.hidden, 2 * s.hidden) +
         (positions + kinds) * s.hidden;
}
// The head that finds masked words: a product, a norm, a bias of the vocabulary.
constexpr Count masked_head(Size s) { return s.hidden * s.hidden + s.hidden + 2 * s.hidden + s.vocab; }
// Relative attention has a fifth product, three biases and two kinds of segments by head; the output has a bias. (Without the
// vector that stands for masked words.)
constexpr Count xlnet(Size s, Heads n, Count inner) {
  const Count heads = n.queries * n.dim;
  return tied(s,
              5 * s.hidden * heads + 3 * heads + 2 * heads + 2 * s.hidden + plain(s.hidden, inner) +
                  2 * s.hidden,
              0) +
         s.vocab;
}
// Biases in attention, router and experts; a sink a head; every expert as wide as the model.
constexpr Count gpt_oss(Count layers, Count n_experts) {
  constexpr Count kHidden = 2880;
  const Count expert = 3 * kHidden * kHidden + 3 * kHidden;
  return untied({201088, kHidden, layers},
                attention(kHidden, {64, 8, 64}, kBias, kBias) + 64 + (kHidden + 1) * n_experts +
                    n_experts * expert + 2 * kHidden,
                kHidden);
}
// Every `step`-th layer has experts with a shared one of 8192, the others an MLP of 16384.
constexpr Count llama4(Count n_experts, Count step) {
  constexpr Count kHidden = 5120, kLayers = 48;
  const Count with_experts = kLayers / step;
  return untied({202048, kHidden, kLayers}, attention(kHidden, {40, 8, 128}) + 2 * kHidden, kHidden) +
         with_experts * (experts(kHidden, {n_experts, 8192}) + gated(kHidden, 8192)) +
         (kLayers - with_experts) * gated(kHidden, 16384);
}

TEST(ParameterArithmetic, OfConfigsThatAreFiles) {
  const struct {
    const char* name;
    Count parameters;
  } kModels[] = {
      {"llama-3.3-70b", llama({128256, 8192, 80}, {64, 8, 128}, 28672)},
      {"llama-2-7b", llama({32000, 4096, 32}, {32, 32, 128}, 11008)},
      {"mixtral-8x22b", mixtral({32768, 6144, 56}, {48, 8, 128}, {8, 16384})},
      {"qwen2.5-72b", llama({152064, 8192, 80}, {64, 8, 128}, 29568, qkv_bias({64, 8, 128}))},
      {"qwen2.5-0.5b", gemma({151936, 896, 24}, {14, 2, 64}, 4864, 2, qkv_bias({14, 2, 64}))},
      {"qwen3-32b", llama({151936, 5120, 64}, {64, 8, 128}, 25600, 2 * 128)},
      {"qwen3-235b", mixtral({151936, 4096, 94}, {64, 4, 128}, {128, 1536}, 2 * 128)},
      {"deepseek-v2",
       part_dense({102400, 5120, 60}, latent(5120, 128, 1536), 1, 12288, {160, 1536}, 2 * 1536)},
      {"gemma-2b", gemma({256000, 2048, 18}, {8, 1, 256}, 16384, 2)},
      {"gemma-2-27b", gemma({256000, 4608, 46}, {32, 16, 128}, 36864, 4)},
      {"gemma-3-27b-text", gemma({262208, 5376, 62}, {32, 16, 128}, 21504, 4, 2 * 128)},
      {"gemma-3-4b-text", gemma({262208, 2560, 34}, {8, 4, 256}, 10240, 4, 2 * 256)},
      {"phi-3-medium", llama({32064, 5120, 40}, {40, 10, 128}, 17920)},
      {"phi-4-mini", gemma({200064, 3072, 32}, {24, 8, 128}, 8192, 2)},
      // Norms over all heads of queries and of keys together.
      {"olmo-2-7b", llama({100352, 4096, 32}, {32, 32, 128}, 11008, (32 + 32) * 128)},
      {"olmo-2-13b", llama({100352, 5120, 40}, {40, 40, 128}, 13824, (40 + 40) * 128)},
      {"olmo-2-32b", llama({100352, 5120, 64}, {40, 8, 128}, 27648, (40 + 8) * 128)},
      {"olmoe", mixtral({50304, 2048, 16}, {16, 16, 128}, {64, 1024}, 2 * 2048)},
      {"xlnet-base", xlnet({32000, 768, 12}, {12, 12, 64}, 3072)},
      // Two norms side by side before attention and MLP.
      {"falcon-40b",
       tied({65024, 8192, 60}, attention(8192, {128, 8, 64}) + plain(8192, 4 * 8192, kNoBias) + 4 * 8192,
            2 * 8192)},
      {"bloom-560m", bloom({250880, 1024, 24}, {16, 16, 64})},
      {"pythia-6.9b", neox({50432, 4096, 32}, {32, 32, 128})},
      {"gpt2-xl", gpt({50257, 1600, 48}, {25, 25, 64}, 1024, 6400)},
      {"bert-base", bert({30522, 768, 12}, {12, 12, 64}, 512, 2, 3072) + masked_head({30522, 768, 12})},
      {"roberta-base", bert({50265, 768, 12}, {12, 12, 64}, 514, 1, 3072) + masked_head({50265, 768, 12})},
      {"starcoder2-7b", gpt({49152, 4608, 32}, {36, 4, 128}, 0, 18432)},
      // One norm for attention and MLP, a bias of the output.
      {"phi-2",
       untied({51200, 2560, 32}, attention(2560, {32, 32, 80}, kBias, kBias) + plain(2560, 10240) + 2 * 2560,
              2 * 2560) +
           51200},
      {"smollm3-3b", gemma({128256, 2048, 36}, {16, 4, 128}, 11008, 2)},
      {"granite-3-8b", gemma({49155, 4096, 40}, {32, 8, 128}, 12800, 2)}};
  std::size_t n = 0;
  for (const auto& file : std::filesystem::directory_iterator{test::source_dir() / "tests/formats/configs"})
    n += file.path().extension() == ".json" ? 1U : 0U;
  EXPECT_EQ(std::size(kModels), n) << "every file of configs/ is counted";
  for (const auto& model : kModels) {
    const auto read = read_huggingface_config(test::source_dir() / "tests/formats/configs" /
                                              (std::string{model.name} + ".json"));
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(parameter_count(*read).total(), model.parameters) << model.name;
  }
}

TEST(ParameterArithmetic, OfPresetsThatConfigsAreHeldTo) {
  const struct {
    const char* name;
    Count parameters;
  } kModels[] = {
      {"gpt2", gpt({50257, 768, 12}, {12, 12, 64}, 1024, 3072)},
      {"gpt-neox-20b", neox({50432, 6144, 44}, {64, 64, 96})},
      {"bert-large",
       bert({30522, 1024, 24}, {16, 16, 64}, 512, 2, 4096) + 1024 * 1024 + 1024},  // with its pooler
      {"opt-13b", gpt({50272, 5120, 40}, {40, 40, 128}, 2050, 20480)},  // two positions are not used
      // No bias anywhere, no positions, LayerNorm of weights alone.
      {"mosaicml-mpt-7b",
       tied({50432, 4096, 32}, attention(4096, {32, 32, 128}) + plain(4096, 16384, kNoBias) + 2 * 4096,
            4096)},
      {"llama-3.1-405b", llama({128256, 16384, 126}, {128, 8, 128}, 53248)},
      {"llama-3.2-1b", gemma({128256, 2048, 16}, {32, 8, 64}, 8192, 2)},
      {"mistral-7b", llama({32000, 4096, 32}, {32, 8, 128}, 14336)},
      {"mixtral-8x7b", mixtral({32000, 4096, 32}, {32, 8, 128}, {8, 14336})},
      {"qwen2.5-7b", llama({152064, 3584, 28}, {28, 4, 128}, 18944, qkv_bias({28, 4, 128}))},
      {"qwen3-8b", llama({151936, 4096, 36}, {32, 8, 128}, 12288, 2 * 128)},
      {"qwen3-30b-a3b", mixtral({151936, 2048, 48}, {32, 4, 128}, {128, 768}, 2 * 128)},
      {"gpt-oss-20b", gpt_oss(24, 32)},
      {"gpt-oss-120b", gpt_oss(36, 128)},
      {"glm-4.5", part_dense({151552, 5120, 92}, attention(5120, {96, 8, 128}, kBias) + 2 * 128, 3, 12288,
                             {160, 1536}, 1536)},
      {"glm-4.5-air",
       part_dense({151552, 4096, 46}, attention(4096, {96, 8, 128}, kBias), 1, 10944, {128, 1408}, 1408)},
      {"kimi-k2", part_dense({163840, 7168, 61}, latent(7168, 64, 1536), 1, 18432, {384, 2048}, 2048)},
      {"deepseek-v2-lite",
       part_dense({102400, 2048, 27}, latent(2048, 16, 0), 1, 10944, {64, 1408}, 2 * 1408)},
      {"deepseek-v3", part_dense({129280, 7168, 61}, latent(7168, 128, 1536), 3, 18432, {256, 2048}, 2048)},
      {"llama-4-scout", llama4(16, 1)},
      {"llama-4-maverick", llama4(128, 2)},
      {"dbrx", mixtral({100352, 6144, 40}, {48, 8, 128}, {16, 10752})},
      {"gemma-7b", gemma({256000, 3072, 28}, {16, 16, 256}, 24576, 2)},
      {"gemma-2-9b", gemma({256000, 3584, 42}, {16, 8, 256}, 14336, 4)},
      {"gemma-3-1b", gemma({262144, 1152, 26}, {4, 1, 256}, 6912, 4, 2 * 256)},
      // LayerNorm with bias, a plain MLP without.
      {"nemotron-4-15b",
       untied({256000, 6144, 32}, attention(6144, {48, 8, 128}) + plain(6144, 24576, kNoBias) + 4 * 6144,
              2 * 6144)}};
  for (const auto& model : kModels) {
    EXPECT_EQ(parameter_count(find_preset(model.name).value()).total(), model.parameters) << model.name;
  }
}

// With what released files leave out.
TEST(ParameterArithmetic, OfConfigsThatLeaveTheLibrarysDefaultsOut) {
  const struct {
    const char* config;
    Count parameters;
  } kModels[] = {
      // Phi-3-mini-4k
      {R"({"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "hidden_size": 3072, "intermediate_size": 8192,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064,
        "max_position_embeddings": 4096, "original_max_position_embeddings": 4096, "sliding_window": 2047,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attention_bias": false, "tie_word_embeddings": false,
        "rope_scaling": null, "hidden_act": "silu", "rms_norm_eps": 1e-05})",
       llama({32064, 3072, 32}, {32, 32, 96}, 8192)},
      // Phi-4
      {R"({"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920, "num_hidden_layers": 40,
        "num_attention_heads": 40, "num_key_value_heads": 10, "vocab_size": 100352, "max_position_embeddings": 16384,
        "original_max_position_embeddings": 16384, "sliding_window": null, "rope_theta": 250000,
        "tie_word_embeddings": false})",
       llama({100352, 5120, 40}, {40, 10, 128}, 17920)},
      // Falcon 7B
      {R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "vocab_size": 65024, "multi_query": true, "parallel_attn": true, "bias": false, "alibi": false,
        "new_decoder_architecture": false, "apply_residual_connection_post_layernorm": false, "hidden_dropout": 0.0})",
       // Attention and MLP side by side behind one norm; one key and value head for all.
       tied({65024, 4544, 32}, attention(4544, {71, 1, 64}) + plain(4544, 4 * 4544, kNoBias) + 2 * 4544,
            2 * 4544)},
      // Bloom 176B
      {R"({"model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "n_head": 112, "vocab_size": 250880,
        "seq_length": 2048, "attention_softmax_in_fp32": true, "masked_softmax_fusion": true,
        "bias_dropout_fusion": true, "offset_alibi": 100, "skip_bias_add": true, "skip_bias_add_qkv": false,
        "slow_but_exact": false, "pretraining_tp": 4, "unk_token_id": 0})",
       bloom({250880, 14336, 70}, {112, 112, 128})},
      // GPT-J 6B
      {R"({"model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "n_positions": 2048, "n_inner": null, "rotary": true,
        "rotary_dim": 64, "vocab_size": 50400, "activation_function": "gelu_new", "tie_word_embeddings": false,
        "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "scale_attn_weights": true})",
       // One norm, no bias in attention, a bias of the output.
       untied({50400, 4096, 28}, attention(4096, {16, 16, 256}) + plain(4096, 4 * 4096) + 2 * 4096,
              2 * 4096) +
           50400},
      // Gemma 3 1B, as a file that leaves out the library's defaults and was written again by a trainer
      {R"({"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_attention_heads": 4,
        "num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512, "vocab_size": 262144,
        "max_position_embeddings": 32768, "unsloth_fixed": true})",
       gemma({262144, 1152, 26}, {4, 1, 256}, 6912, 4, 2 * 256)},
  };
  for (const auto& model : kModels) {
    const auto read = parse_huggingface_config(model.config, "config.json");
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(parameter_count(*read).total(), model.parameters) << model.config;
  }
}

}  // namespace
}  // namespace stepcast::parameter_arithmetic_test
