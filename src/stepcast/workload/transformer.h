// A Transformer: the shape of a language model, as far as time and memory depend on it, whoever trains it
// and however it is spread over GPUs (that is a Layout).
//
//   Transformer model{.name = "mine", .n_layers = 32, .hidden_size = 4096, .ffn_hidden_size = 14336, ...};
//   STEPCAST_TRY(check(model));
//   parameter_count(model).total();     // 8'030'261'248, as the model card says
//
// Every matrix and vector that is trained can be told from the fields, so parameter counts are exact.
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
  decoder,  // causal language model: every token predicts the next
  encoder,  // bidirectional (BERT): masked tokens are predicted
};
[[nodiscard]] std::string_view to_string(Architecture architecture);

enum class Activation : std::uint8_t { gelu, relu, squared_relu, silu };
[[nodiscard]] std::string_view to_string(Activation activation);

enum class PositionEncoding : std::uint8_t {
  learned,  // a trained vector per position, max_position of them
  rotary,   // queries and keys are rotated
  alibi,    // a bias on the scores
  none,
  relative,  // Transformer-XL, XLNet: products of queries with vectors of all distances, and biases; never fused
};
[[nodiscard]] std::string_view to_string(PositionEncoding encoding);

// What carries information from token to token in a layer.
enum class Mixer : std::uint8_t {
  attention,
  gated_delta,        // linear attention with the gated delta rule (Qwen3-Next, Qwen 3.5)
  channel_delta,      // the same with a gate for every channel (Kimi Linear, Ling 3)
  decayed_linear,     // linear attention whose state decays by a fixed factor (MiniMax-01)
  mamba2,             // state-space layer of Mamba-2 (Nemotron-H)
  mamba1,             // state-space layer with a state of every channel (Jamba, Falcon Mamba)
  short_convolution,  // a gated convolution over a few tokens (LFM2)
  none,
};
[[nodiscard]] std::string_view to_string(Mixer mixer);
// Carries a state, or the last few tokens, instead of attending.
[[nodiscard]] inline bool is_recurrent(Mixer mixer) {
  return mixer != Mixer::attention && mixer != Mixer::none;
}

// Feed-forward networks of which every token visits a few. Layers without experts use
// Transformer::ffn_hidden_size.
struct MixtureOfExperts {
  std::int64_t n_experts = 0;               // routed
  std::int64_t experts_per_token = 0;       // top k
  std::int64_t expert_ffn_hidden_size = 0;  // of one routed expert
  std::int64_t n_shared_experts = 0;        // every token visits them
  std::int64_t shared_ffn_hidden_size = 0;  // of one shared expert
  bool shared_expert_gate = false;          // a sigmoid of hidden_size weights (Qwen2-MoE)
  bool router_bias = false;                 // trained, one per expert (GPT-OSS)
  // Choices of the router that give a token back as it came (LongCat); experts_per_token counts the others.
  std::int64_t zero_experts = 0;
  // The experts lie in groups of equal size, of which a token visits the best few: its experts then lie on few nodes
  // (DeepSeek-V3: 4 of 8 groups). As many as there are: any expert.
  std::int64_t n_groups = 1;
  std::int64_t groups_per_token = 1;
  std::int64_t latent_size =
      0;  // experts read and write vectors of this width (Nemotron 3 Super); 0: hidden_size
  std::int64_t first_dense_layers = 0;  // layers in front that have no experts
  std::int64_t moe_every_n_layers = 1;  // behind those: the last of every n layers has experts
  friend bool operator==(const MixtureOfExperts&, const MixtureOfExperts&) = default;
};

// A kind of attention other than multi-head attention, and its sizes in the order in which the module names them
// (workload/modules/attention_module.h).
struct AttentionVariant {
  const AttentionModule* module = nullptr;  // of attention_modules(); none: multi-head attention
  std::array<std::int64_t, 6> sizes{};
  explicit operator bool() const { return module != nullptr; }
  friend bool operator==(const AttentionVariant& a, const AttentionVariant& b) {
    return a.module == b.module && (a.module == nullptr || a.sizes == b.sizes);
  }
};

// Sparse attention (DeepSeek-V3.2, GLM-5): a small multi-query product scores all earlier tokens for every query, which
// then attends to the best `keys_per_query` alone. Its queries come from the latent vector of queries, or, of attention
// without one, from the layer's input and behind a norm, and all heads weigh the same (MiniMax M3).
struct SparseIndexer {
  std::int64_t n_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t keys_per_query = 0;
  friend bool operator==(const SparseIndexer&, const SparseIndexer&) = default;
};

// Mixers that carry a matrix of key_head_dim x head_dim per head from token to token, in chunks: linear attention, and
// Mamba, whose groups are the key heads and whose state size is their width; every channel of Mamba-1 is a head. Keys,
// queries and values pass a causal convolution of each channel, which is all that short_convolution does: it has no keys.
struct StateMixer {
  std::int64_t n_heads = 0;  // of values
  std::int64_t head_dim = 0;
  std::int64_t n_key_heads = 0;
  std::int64_t key_head_dim = 0;
  std::int64_t conv_kernel = 4;
  bool conv_bias = false;
  std::int64_t chunk_tokens = 64;
  std::int64_t rank =
      0;  // of the vector that makes steps (mamba1) or gates (channel_delta; 0: one product does)
  bool has_norm =
      true;  // in front of the way out (Falcon-H1: none), of decayed_linear, of steps and keys of mamba1
  bool head_norms = false;  // of queries and keys (linear attention of Ling 2.5)
  [[nodiscard]] std::int64_t keys() const { return n_key_heads * key_head_dim; }  // elements per token
  [[nodiscard]] std::int64_t values() const { return n_heads * head_dim; }
  friend bool operator==(const StateMixer&, const StateMixer&) = default;
};

// What one layer is made of where layers of a model differ. Sizes that are 0 are those of the model.
struct LayerKind {
  Mixer mixer = Mixer::attention;
  enum class FeedForward : std::uint8_t { dense, experts, none };
  FeedForward feed_forward = FeedForward::dense;
  std::int64_t n_heads = 0, n_kv_heads = 0, head_dim = 0, v_head_dim = 0;
  std::int64_t window_tokens = 0;  // that a query sees at most; 0: all
  std::int64_t ffn_hidden_size = 0;
  bool attention_sinks = false;
  bool values_are_keys = false;
  // Tokens that one more key stands for, learned from them; 0: none. With `chooses_keys` they overlap with those
  // of the key before, and an indexer over keys of its own chooses among them.
  std::int64_t compressed_tokens = 0;
  // Has the indexer, where attention is not latent: then all layers have it.
  bool chooses_keys = false;
  bool shares_chosen_keys =
      false;  // attends to what the indexer of a layer below chose, and has none (GLM-5.2)
  bool shares_keys_values = false;  // of a layer below (the upper layers of Gemma 4's small models)
  bool attends_beside = false;      // beside a state, from the same input, both are added (Falcon-H1)
  // Cross-attention: keys and values come from so many vectors of something else (image tokens of Llama 3.2 Vision), with
  // norms of queries and keys and a gate behind either part; 0: from the sequence itself.
  std::int64_t cross_tokens = 0;
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

// The defaults are those of a GPT-2: learned positions, biases everywhere, GELU, tied embeddings.
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
  std::int64_t vocab_size = 0;  // as the tokenizer has it; layouts pad it
  std::int64_t max_position = 0;
  std::int64_t unused_positions = 0;  // rows of that table in front of the first token (OPT, RoBERTa: 2)

  NormKind norm = NormKind::layer_norm;
  bool norm_bias = true;
  bool norm_weights = true;  // false: nothing of a norm is trained (OLMo 1)
  // 4: before and behind both parts (Gemma 2); 1: one for both; 7: three more around experts beside a dense part (Gemma 4)
  std::int64_t norms_per_layer = 2;
  bool final_norm = true;
  bool embedding_norm = false;       // BERT
  bool qk_norm = false;              // of every query and key head, over head_dim (Qwen 3)
  bool qk_norm_spans_heads = false;  // qk_norm: one over all query heads, one over all key heads (OLMo 2)

  Activation activation = Activation::gelu;
  bool gated_ffn = false;                  // activation(x W) * (x V): SwiGLU, GeGLU
  std::int64_t activation_parameters = 0;  // of each dense FFN (2 of xIELU)
  PositionEncoding position = PositionEncoding::learned;
  double rotary_fraction = 1;      // share of a head that is rotated (GPT-NeoX: 0.25)
  bool parallel_residual = false;  // attention and FFN read the same input, one sum (GPT-NeoX)
  bool tied_embeddings = true;     // the output matrix is the word embedding

  bool qkv_bias = true;
  bool attention_output_bias = true;
  bool ffn_bias = true;
  bool head_bias = false;  // of the output matrix

  // Tokens that a query sees at most; 0: all. global_attention_every_n_layers: the last of every n layers
  // sees all (Gemma 2: 2, Gemma 3: 6); 0: none does.
  std::int64_t sliding_window_tokens = 0;
  std::int64_t global_attention_every_n_layers = 0;
  bool attention_sinks = false;  // a trained logit per head that takes attention away (GPT-OSS)
  bool attention_output_gate =
      false;                     // as many gates as elements of the output, from the layer's input (Qwen 3.5)
  bool gate_per_head = false;    // of that: one gate for all elements of a head (Step 3.5)
  bool values_are_keys = false;  // one matrix makes both (global layers of Gemma 4)
  bool shares_chosen_keys = false, shares_keys_values = false, attends_beside = false;  // as in LayerKind
  std::int64_t cross_tokens = 0;                                                        // likewise
  bool attention_softcap = false;  // tanh on the scores, keeps some fused kernels away (Gemma 2)
  bool logit_softcap = false;      // tanh on the logits

  double hidden_dropout = 0;     // probability; 0: no kernel runs
  double attention_dropout = 0;  // likewise, on the attention weights

  std::int64_t n_token_types = 0;  // rows of BERT's segment embedding
  bool pooler = false;             // BERT: dense layer and tanh on the first token
  bool mlm_head = false;           // BERT pre-training: dense layer and norm in front of the output matrix

  std::optional<MixtureOfExperts> moe;
  AttentionVariant attention;
  std::int64_t compressed_tokens = 0;  // as in LayerKind; an indexer is there where it chooses among them
  // Copies of what runs around the layers (hyper-connections): either part of a layer reads a mix of them, and writes
  // into another mix of them, by weights that a product of all of them gives.
  std::int64_t residual_streams = 1;
  std::optional<SparseIndexer> sparse_indexer;
  std::optional<StateMixer> state_mixer;  // of layers whose mixer is recurrent

  // Of layers without kinds of their own: what the fields above describe. norms_per_layer counts both parts.
  Mixer mixer = Mixer::attention;
  bool has_ffn = true;
  // Where layers differ in more than windows and experts: what kinds there are, and which each layer is. Both empty:
  // all layers are what the fields above say. Otherwise windows, sinks and places of experts stand in the kinds alone.
  std::vector<LayerKind> layer_kinds;
  std::vector<std::uint8_t> kind_of_layer;
  // Extra layers that predict further tokens while training (DeepSeek-V3: 1). Not part of parameter_count(),
  // as published counts leave them out; see multi_token_prediction_parameters().
  std::int64_t n_multi_token_prediction_layers = 0;
  // Kinds of the layers that each of these consists of (Nemotron 3: attention, then experts), all of which the model has;
  // empty: one like the last layer.
  std::vector<std::uint8_t> kinds_of_further_layer;

  // Elements of a vector that every layer looks up for each token and adds to its output, beside the embedding (Gemma 4
  // E2B and E4B); 0: none. The table has vocab_of_layers rows.
  std::int64_t vector_of_layer = 0, vocab_of_layers = 0;

  std::shared_ptr<const VisionTower> tower;  // runs in front of the embedding (workload/network.h)

  // What the model is instead of all above (workload/network.h): n_layers blocks, of the kinds in kind_of_layer. Sizes
  // above then are of its last features, and vocab_size its classes.
  std::shared_ptr<const BlockNetwork> network;

  [[nodiscard]] bool attends() const { return mixer == Mixer::attention || attends_beside; }
  [[nodiscard]] std::int64_t kv_heads() const { return n_kv_heads > 0 ? n_kv_heads : n_heads; }
  [[nodiscard]] std::int64_t own_kv_heads() const { return shares_keys_values ? 0 : kv_heads(); }
  [[nodiscard]] std::int64_t longest_sequence() const { return max_position - unused_positions; }
  // Elements of a query or key of one head, of its value, and of the keys of all heads of a token.
  [[nodiscard]] std::int64_t qk_head_dim() const;
  [[nodiscard]] std::int64_t value_head_dim() const;
  [[nodiscard]] std::int64_t gates_of_head() const;          // of the output of attention
  [[nodiscard]] bool has_experts(std::int64_t layer) const;  // layers count from 0
  // Tokens a query of this layer sees at most; 0: all.
  [[nodiscard]] std::int64_t window_tokens(std::int64_t layer) const;
  [[nodiscard]] std::int64_t n_moe_layers() const;
  [[nodiscard]] std::size_t kind(std::int64_t layer) const {
    return kind_of_layer.empty() ? 0 : kind_of_layer[static_cast<std::size_t>(layer)];
  }

  friend bool operator==(const Transformer&, const Transformer&) = default;
};

// Of models that see images. Nothing: one image per sequence, of the size that the file says or its table of positions is
// for.
struct VisionSettings {
  std::optional<std::int64_t> images, image_size;
  bool text_only = false;  // the language model without its tower
  friend bool operator==(const VisionSettings&, const VisionSettings&) = default;
};

// Trained parameters by where they are. A part of a model has the same type as the whole.
struct ParameterCount {
  std::int64_t word_embedding = 0;
  std::int64_t position_embedding = 0;  // and segment embedding
  std::int64_t attention = 0;           // with latent and query-key norms
  std::int64_t ffn = 0;                 // of layers without experts
  std::int64_t router = 0;              // and the gate of shared experts
  std::int64_t routed_experts = 0;
  std::int64_t shared_experts = 0;
  std::int64_t tower = 0;  // for images, with what projects its result
  std::int64_t norms = 0;  // of layers, embedding and end
  std::int64_t head = 0;   // output matrix unless tied, its bias, BERT's pooler and MLM layers
  [[nodiscard]] std::int64_t total() const;
  ParameterCount& operator+=(const ParameterCount& other);
  friend bool operator==(const ParameterCount&, const ParameterCount&) = default;
};

// Nothing negative, sizes that divide, experts that exist. The sentence names the field, what it is, and the
// nearest value that works.
[[nodiscard]] Status check(const Transformer& model);

// All below: for a model that passes check().
[[nodiscard]] ParameterCount parameter_count(const Transformer& model);
[[nodiscard]] ParameterCount layer_parameter_count(const Transformer& model, std::int64_t layer);
// What stands in front of the first layer, and behind the last (the output matrix 0 if it is tied).
[[nodiscard]] ParameterCount embedding_parameter_count(const Transformer& model);
[[nodiscard]] ParameterCount head_parameter_count(const Transformer& model);
// A model of nothing but layers of one of its kinds; for a model that has kinds.
[[nodiscard]] Transformer layer_model(const Transformer& model, std::size_t kind);
// Layers of the model that those of one extra prediction layer are like.
[[nodiscard]] std::vector<std::int64_t> layers_of_further_prediction(const Transformer& model);
// Parameters that a token meets: experts_per_token of the routed experts instead of all.
[[nodiscard]] std::int64_t active_parameter_count(const Transformer& model);
// Of all extra prediction layers: a layer like the last (or kinds_of_further_layer), three norms and a projection of
// 2 hidden_size to hidden_size each; embedding and output matrix are shared with the model.
[[nodiscard]] std::int64_t multi_token_prediction_parameters(const Transformer& model);

}  // namespace stepcast
