// Families of models on Hugging Face that are told by their keys alone: what names sizes, experts and the kind of every
// layer. A row in tables/huggingface_families.json and a test make a family.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// How experts are told. Counts, experts per token, widths, shared experts and dense layers in front go by any of the names
// that families use (huggingface_row_experts.cpp); these say what is otherwise.
struct ExpertKeys {
  std::string_view width = {};  // the key of the width of an expert; empty: one of the usual
  std::string_view latent_size = {};
  std::string_view layers =
      "mlp_layer_types";  // a list of 0 and 1, or of dense and sparse: which layers have experts
  bool shared_gate = false;
  bool router_bias = false;  // trained, in the router
  bool one_shared = false;   // without a key that says so, as wide as the others, or as this key says
  std::string_view one_shared_width = {};
  bool dense_beside = false;  // the dense FFN runs beside the experts (Gemma 4), switched by `switch_key`
  std::string_view switch_key = {};
};

// Which products have biases, by a key; an empty key: they never have. `otherwise`: without the key.
struct BiasKey {
  std::string_view key = {};
  bool otherwise = false;
};

// Sizes of attention that layers of one kind have to themselves.
struct AttentionKeys {
  std::string_view n_heads = {}, n_kv_heads = {}, head_dim = {}, v_head_dim = {}, sinks = {},
                   values_are_keys = {};
};

struct StateKeys {
  std::string_view n_heads = {}, head_dim = {}, n_key_heads = {}, key_head_dim = {}, conv_kernel = {},
                   conv_bias = {}, chunk_tokens = {};
  Mixer mixer = Mixer::gated_delta;  // what `linear_attention`, `mamba` and `conv` mean
  std::string_view norm = {};        // says whether there is a norm in front of the way out; empty: there is
  bool low_rank = false;             // gates are made of vectors as wide as a head
};

struct FamilyRow {
  std::string_view model_type = {};
  Transformer model = {};         // what the family always has, and defaults
  std::string_view pattern = {};  // the key that lists what every layer is
  // Of files without that list: the key of the numbers of layers that attend.
  std::string_view attending = {};
  // Of files without that list: the last of so many layers sees all, the others have a window, or a state if there is one.
  std::string_view interval = "full_attention_interval";
  ExpertKeys experts = {};
  AttentionKeys sliding = {}, full = {};
  // Above 1: without keys of their own, layers with a window have so many times the keys and values, and sinks.
  std::int64_t sliding_kv_factor = 1;
  StateKeys state = {};
  bool latent = false;    // attention is multi-latent
  bool own_keys = false;  // without num_key_value_heads every head has its own
  BiasKey qkv_bias = {"attention_bias"}, output_bias = {"attention_bias"}, ffn_bias = {"mlp_bias"};
  NormKind norm = NormKind::rms_norm;
  bool norm_bias = false;
  bool gated_ffn = true;
  bool tied_otherwise = false;  // without tie_word_embeddings
  std::string_view activation = "hidden_act";
  std::string_view further_tokens = {};   // number of layers that predict them
  std::string_view further_pattern = {};  // letters of what each of these consists of
  std::string_view must_be_off = {};      // words: keys of parts that are not modelled
  std::string_view no_shape = {};         // keys that change neither shape nor time
  std::string_view left_out = {};         // small parts that are not counted, for a note
  [[nodiscard]] bool has_state() const { return !state.n_heads.empty() || state.mixer != Mixer::gated_delta; }
};

[[nodiscard]] std::span<const FamilyRow> huggingface_rows();
[[nodiscard]] Status read_row(const FamilyRow& row, ObjectReader& keys, Transformer& model);

// Sizes of experts, if there are any, into `model`; then which of its layers may have them.
[[nodiscard]] Status read_expert_sizes(ObjectReader& keys, const ExpertKeys& names, Transformer& model);
[[nodiscard]] Result<std::vector<bool>> read_expert_layers(ObjectReader& keys, const ExpertKeys& names,
                                                           const Transformer& model);

// Sizes of what carries a state, if the family has any, into `model`.
[[nodiscard]] Status read_state(ObjectReader& keys, const StateKeys& names, Transformer& model);

// One word per layer, from a list of words or numbers or from a text of letters. `further`: as many more at most, of
// layers that predict further tokens.
[[nodiscard]] Result<std::vector<std::string>> read_words(ObjectReader& keys, std::string_view key,
                                                          std::int64_t n_layers, std::int64_t further = 0);
// The one of every so many layers that is of another kind (Jamba); none without the keys.
[[nodiscard]] Result<std::vector<bool>> layers_of_period(ObjectReader& keys, std::string_view period_key,
                                                         std::string_view offset_key, std::int64_t n_layers);
// Nothing of an empty key.
[[nodiscard]] Status optional_size(ObjectReader& keys, std::string_view key, std::int64_t& out);

}  // namespace stepcast::detail
