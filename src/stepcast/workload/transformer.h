// A Transformer: the architecture of a language model, as far as time and memory depend on it, independent of
// the framework and of its distribution over GPUs (which is a Layout).
//
//   Transformer model{.name = "mine", .n_layers = 32, .hidden_size = 4096, .ffn_hidden_size = 14336, ...};
//   STEPCAST_TRY(check(model));
//   parameter_count(model).total();     // 8'030'261'248, as in the model card
//
// The fields determine every trained matrix and vector, so parameter counts are exact.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

class AttentionModule;
struct BlockNetwork;
struct VisionTower;

enum class Architecture : std::uint8_t {
  decoder,  // causal language model: every token predicts the next one
  encoder,  // bidirectional (BERT): predicts masked tokens
};
[[nodiscard]] std::string_view to_string(Architecture architecture);

enum class Activation : std::uint8_t { gelu, relu, squared_relu, silu };
[[nodiscard]] std::string_view to_string(Activation activation);

enum class PositionEncoding : std::uint8_t {
  learned,  // a trained vector per position, max_position vectors
  rotary,   // queries and keys are rotated
  alibi,    // a bias on the scores
  none,
  relative,  // Transformer-XL, XLNet: scores from vectors of all distances, and biases; never fused
};
[[nodiscard]] std::string_view to_string(PositionEncoding encoding);

// The part of a layer that passes information between tokens.
enum class Mixer : std::uint8_t {
  attention,
  gated_delta,        // linear attention with the gated delta rule (Qwen3-Next, Qwen 3.5)
  channel_delta,      // gated delta rule with a gate per channel (Kimi Linear, Ling 3)
  decayed_linear,     // linear attention with a state that decays by a fixed factor (MiniMax-01)
  mamba2,             // state-space layer of Mamba-2 (Nemotron-H)
  mamba1,             // state-space layer with a state per channel (Jamba, Falcon Mamba)
  short_convolution,  // a gated convolution over a few tokens (LFM2)
  none,
};
[[nodiscard]] std::string_view to_string(Mixer mixer);
// Whether the mixer has a state, or uses the last few tokens, instead of attending.
[[nodiscard]] inline bool is_recurrent(Mixer mixer) {
  return mixer != Mixer::attention && mixer != Mixer::none;
}

// Mixture of experts: every token uses only a few of the feed-forward networks. Layers without experts use
// Transformer::ffn_hidden_size.
struct MixtureOfExperts {
  std::int64_t n_experts = 0;               // routed experts
  std::int64_t experts_per_token = 0;       // top k
  std::int64_t expert_ffn_hidden_size = 0;  // of one routed expert
  std::int64_t n_shared_experts = 0;        // used by every token
  std::int64_t shared_ffn_hidden_size = 0;  // of one shared expert
  bool shared_expert_gate = false;          // a sigmoid with hidden_size weights (Qwen2-MoE)
  bool router_bias = false;                 // trained, one per expert (GPT-OSS)
  // Router choices that return the token unchanged (LongCat); experts_per_token counts only real experts.
  std::int64_t zero_experts = 0;
  // Group-limited routing: experts form groups of equal size, and a token uses only the best groups, so that
  // its experts are on few nodes (DeepSeek-V3: 4 of 8 groups). Equal numbers: no limit.
  std::int64_t n_groups = 1;
  std::int64_t groups_per_token = 1;
  // Width of the vectors that experts read and write (Nemotron 3 Super); 0: hidden_size.
  std::int64_t latent_size = 0;
  std::int64_t first_dense_layers = 0;  // leading layers without experts
  std::int64_t moe_every_n_layers = 1;  // after those, the last of every n layers has experts
  friend bool operator==(const MixtureOfExperts&, const MixtureOfExperts&) = default;
};

// A kind of attention other than multi-head attention, with its sizes in the order of the module
// (workload/modules/attention_module.h).
struct AttentionVariant {
  const AttentionModule* module = nullptr;  // one of attention_modules(); null: multi-head attention
  std::array<std::int64_t, 6> sizes{};      // unused entries are 0
  explicit operator bool() const { return module != nullptr; }
  friend bool operator==(const AttentionVariant& a, const AttentionVariant& b) {
    return a.module == b.module && (a.module == nullptr || a.sizes == b.sizes);
  }
};

// Sparse attention (DeepSeek-V3.2, GLM-5): a small multi-query indexer scores all earlier tokens for every
// query, which then attends only to the best `keys_per_query` tokens. The queries of the indexer come from
// the latent vector of queries. Without one, they come from the input of the layer, followed by a norm, and
// all heads have equal weights (MiniMax M3).
struct SparseIndexer {
  std::int64_t n_heads = 0;         // of the indexer
  std::int64_t head_dim = 0;        // of the indexer
  std::int64_t keys_per_query = 0;  // keys that a query attends to
  friend bool operator==(const SparseIndexer&, const SparseIndexer&) = default;
};

// Sizes of mixers that pass a matrix of key_head_dim x head_dim per head from token to token, in chunks:
// linear attention and Mamba. In Mamba the groups are the key heads and the state size is their width; every
// channel of Mamba-1 is a head. Keys, queries and values pass a causal convolution per channel.
// short_convolution consists only of that convolution and has no keys.
struct StateMixer {
  std::int64_t n_heads = 0;   // value heads
  std::int64_t head_dim = 0;  // of values
  std::int64_t n_key_heads = 0;
  std::int64_t key_head_dim = 0;
  std::int64_t conv_kernel = 4;  // tokens
  bool conv_bias = false;
  std::int64_t chunk_tokens = 64;  // tokens per chunk of the scan
  // Width of the low-rank vector of steps (mamba1) or gates (channel_delta; 0: one full GEMM).
  std::int64_t rank = 0;
  // Norm before the output projection (Falcon-H1: none), of decayed_linear, of steps and keys of mamba1.
  bool has_norm = true;
  bool head_norms = false;  // norms of queries and keys (linear attention of Ling 2.5)
  [[nodiscard]] std::int64_t keys() const { return n_key_heads * key_head_dim; }  // elements per token
  // Elements of the values of a token.
  [[nodiscard]] std::int64_t values() const { return n_heads * head_dim; }
  friend bool operator==(const StateMixer&, const StateMixer&) = default;
};

// One kind of layer of a model with different layers. A size of 0 means the size of the model.
struct LayerKind {
  Mixer mixer = Mixer::attention;
  enum class FeedForward : std::uint8_t { dense, experts, none };
  FeedForward feed_forward = FeedForward::dense;
  std::int64_t n_heads = 0, n_kv_heads = 0, head_dim = 0, v_head_dim = 0;
  std::int64_t window_tokens = 0;  // tokens that a query attends to at most; 0: all
  std::int64_t ffn_hidden_size = 0;
  bool attention_sinks = false;  // as in Transformer
  bool values_are_keys = false;  // as in Transformer
  // Tokens summarised by each additional, learned key; 0: none. With `chooses_keys`, the tokens of
  // neighbouring keys overlap, and an indexer with separate keys selects among them.
  std::int64_t compressed_tokens = 0;
  // The layer has the indexer. With latent attention, all layers have it.
  bool chooses_keys = false;
  bool shares_chosen_keys =
      false;  // uses the keys selected in an earlier layer, without an indexer (GLM-5.2)
  // uses keys and values of an earlier layer (the upper layers of Gemma 4's small models)
  bool shares_keys_values = false;
  // attention and a state mixer read the same input, and their outputs are added (Falcon-H1)
  bool attends_beside = false;
  // Cross-attention: number of vectors of another source that give keys and values (image tokens of Llama 3.2
  // Vision), with norms of queries and keys and a gate after both parts; 0: self-attention.
  std::int64_t cross_tokens = 0;
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

// A language model. The defaults are those of GPT-2: learned positions, biases everywhere, GELU, tied
// embeddings.
struct Transformer {
  std::string name;
  Architecture architecture = Architecture::decoder;

  std::int64_t n_layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t ffn_hidden_size = 0;  // of one matrix; gated: of each of the two
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;  // 0: n_heads; 1: multi-query
  std::int64_t head_dim = 0;    // 0: hidden_size / n_heads
  std::int64_t v_head_dim = 0;  // 0: head_dim
  std::int64_t vocab_size = 0;  // of the tokenizer; layouts pad it
  std::int64_t max_position = 0;
  std::int64_t unused_positions = 0;  // leading rows of the position table without a token (OPT, RoBERTa: 2)

  NormKind norm = NormKind::layer_norm;
  bool norm_bias = true;
  bool norm_weights = true;  // false: norms have no trained parameters (OLMo 1)
  // 4: before and after both parts (Gemma 2); 1: one for both; 7: three more around experts with a parallel
  // dense part (Gemma 4).
  std::int64_t norms_per_layer = 2;
  bool final_norm = true;
  bool embedding_norm = false;  // a norm after the embedding (BERT)
  bool qk_norm = false;         // norm of every query and key head, over head_dim (Qwen 3)
  // qk_norm: one norm over all query heads, one over all key heads (OLMo 2)
  bool qk_norm_spans_heads = false;

  Activation activation = Activation::gelu;
  bool gated_ffn = false;                  // activation(x W) * (x V): SwiGLU, GeGLU
  std::int64_t activation_parameters = 0;  // per dense FFN (2 for xIELU)
  PositionEncoding position = PositionEncoding::learned;
  double rotary_fraction = 1;      // share of a head that is rotated (GPT-NeoX: 0.25)
  bool parallel_residual = false;  // attention and FFN read the same input and are added once (GPT-NeoX)
  bool tied_embeddings = true;     // the output matrix is the word embedding

  bool qkv_bias = true;
  bool attention_output_bias = true;
  bool ffn_bias = true;
  bool head_bias = false;  // of the output matrix

  // Tokens that a query attends to at most; 0: all. global_attention_every_n_layers: the last of every n
  // layers attends to all tokens (Gemma 2: 2, Gemma 3: 6); 0: no such layer.
  std::int64_t sliding_window_tokens = 0;
  std::int64_t global_attention_every_n_layers = 0;
  bool attention_sinks = false;  // a trained logit per head that absorbs attention (GPT-OSS)
  // Gates for all elements of the output, computed from the input of the layer (Qwen 3.5).
  bool attention_output_gate = false;
  bool gate_per_head = false;    // attention_output_gate: one gate per head (Step 3.5)
  bool values_are_keys = false;  // one matrix gives keys and values (global layers of Gemma 4)
  bool shares_chosen_keys = false, shares_keys_values = false, attends_beside = false;  // as in LayerKind
  std::int64_t cross_tokens = 0;                                                        // as in LayerKind
  bool attention_softcap = false;  // tanh on the scores, which some fused kernels do not support (Gemma 2)
  bool logit_softcap = false;      // tanh on the logits

  double hidden_dropout = 0;     // probability; 0: no kernel
  double attention_dropout = 0;  // probability, on the attention weights

  std::int64_t n_token_types = 0;  // rows of BERT's segment embedding
  bool pooler = false;             // BERT: dense layer and tanh on the first token
  bool mlm_head = false;           // BERT pre-training: dense layer and norm before the output matrix

  std::optional<MixtureOfExperts> moe;
  AttentionVariant attention;          // a kind other than multi-head attention
  std::int64_t compressed_tokens = 0;  // as in LayerKind; with an indexer where it selects among them
  // Number of residual streams (hyper-connections): each part of a layer reads a mix of all streams and
  // writes to another mix of them; a GEMM over all streams computes the weights of the mixes.
  std::int64_t residual_streams = 1;
  std::optional<SparseIndexer> sparse_indexer;
  std::optional<StateMixer> state_mixer;  // sizes of layers with a recurrent mixer

  // For models without layer_kinds: the parts of every layer. norms_per_layer counts the norms of both parts.
  Mixer mixer = Mixer::attention;
  bool has_ffn = true;
  // For models with different layers (other than in windows and experts): the kinds, and the kind of each
  // layer. Both empty: all layers follow the fields above. Otherwise windows, sinks and experts of layers are
  // taken only from the kinds.
  std::vector<LayerKind> layer_kinds;
  std::vector<std::uint8_t> kind_of_layer;
  // Additional layers that predict further tokens in training (DeepSeek-V3: 1). parameter_count() leaves them
  // out, as published counts do; see multi_token_prediction_parameters().
  std::int64_t n_multi_token_prediction_layers = 0;
  // Kinds of the layers of each additional prediction layer (Nemotron 3: attention, then experts), all of
  // them present in the model; empty: one like the last layer.
  std::vector<std::uint8_t> kinds_of_further_layer;

  // Width of a vector that every layer looks up per token and adds to its output, in addition to the
  // embedding (Gemma 4 E2B and E4B); 0: none. The table has vocab_of_layers rows.
  std::int64_t vector_of_layer = 0, vocab_of_layers = 0;

  std::shared_ptr<const VisionTower> tower;  // runs before the embedding (workload/network.h)

  // A network instead of a stack of layers (workload/network.h): n_layers blocks with the kinds in
  // kind_of_layer. The sizes above are then those of its last features, and vocab_size the number of its
  // classes.
  std::shared_ptr<const BlockNetwork> network;

  // Whether layers have attention, alone or parallel to a state mixer.
  [[nodiscard]] bool attends() const { return mixer == Mixer::attention || attends_beside; }
  [[nodiscard]] std::int64_t kv_heads() const { return n_kv_heads > 0 ? n_kv_heads : n_heads; }
  // Key-value heads that the layer itself computes.
  [[nodiscard]] std::int64_t own_kv_heads() const { return shares_keys_values ? 0 : kv_heads(); }
  [[nodiscard]] std::int64_t longest_sequence() const { return max_position - unused_positions; }
  // Elements of a query or key of one head.
  [[nodiscard]] std::int64_t qk_head_dim() const;
  // Elements of a value of one head.
  [[nodiscard]] std::int64_t value_head_dim() const;
  [[nodiscard]] std::int64_t gates_of_head() const;          // attention output gates per head; 0: none
  [[nodiscard]] bool has_experts(std::int64_t layer) const;  // layers count from 0
  // Tokens that a query of this layer attends to at most; 0: all.
  [[nodiscard]] std::int64_t window_tokens(std::int64_t layer) const;
  [[nodiscard]] std::int64_t n_moe_layers() const;
  [[nodiscard]] std::size_t kind(std::int64_t layer) const {
    return kind_of_layer.empty() ? 0 : kind_of_layer[static_cast<std::size_t>(layer)];
  }

  friend bool operator==(const Transformer&, const Transformer&) = default;
};

// Options of models with a vision tower. Unset: one image per sequence, with the size from the model file or
// from its position table.
struct VisionSettings {
  std::optional<std::int64_t> images, image_size;  // images per sequence, and pixels per side
  bool text_only = false;                          // the language model without the tower
  friend bool operator==(const VisionSettings&, const VisionSettings&) = default;
};

// Trained parameters by kind. A part of a model has the same type as the whole.
struct ParameterCount {
  std::int64_t word_embedding = 0;
  std::int64_t position_embedding = 0;  // with the segment embedding
  std::int64_t attention = 0;           // with latent and query-key norms
  std::int64_t ffn = 0;                 // of layers without experts
  std::int64_t router = 0;              // with the gate of shared experts
  std::int64_t routed_experts = 0;
  std::int64_t shared_experts = 0;
  std::int64_t tower = 0;  // vision tower, with the projection of its result
  std::int64_t norms = 0;  // of layers, embedding and output
  std::int64_t head = 0;   // output matrix unless tied, its bias, BERT's pooler and MLM layers
  [[nodiscard]] std::int64_t total() const;
  ParameterCount& operator+=(const ParameterCount& other);
  friend bool operator==(const ParameterCount&, const ParameterCount&) = default;
};

// Checks sizes, divisibility and combinations. The error names the field, its value, and the nearest valid
// value.
[[nodiscard]] Status check(const Transformer& model);

// All functions below require a model that passes check().
[[nodiscard]] ParameterCount parameter_count(const Transformer& model);
[[nodiscard]] ParameterCount layer_parameter_count(const Transformer& model, std::int64_t layer);
// Parameters before the first layer, and after the last (without the output matrix if it is tied).
[[nodiscard]] ParameterCount embedding_parameter_count(const Transformer& model);
[[nodiscard]] ParameterCount head_parameter_count(const Transformer& model);
// A model that has only layers of one of its kinds; requires layer_kinds.
[[nodiscard]] Transformer layer_model(const Transformer& model, std::size_t kind);
// The layers of the model that have the same structure as the layers of one additional prediction layer.
[[nodiscard]] std::vector<std::int64_t> layers_of_further_prediction(const Transformer& model);
// Parameters used per token: experts_per_token of the routed experts instead of all.
[[nodiscard]] std::int64_t active_parameter_count(const Transformer& model);
// Parameters of all additional prediction layers: each has a layer like the last one (or
// kinds_of_further_layer), three norms and a projection from 2 hidden_size to hidden_size; embedding and
// output matrix are shared with the model.
[[nodiscard]] std::int64_t multi_token_prediction_parameters(const Transformer& model);

}  // namespace stepcast
