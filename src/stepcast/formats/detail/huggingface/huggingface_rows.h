// Rows of the family table for Hugging Face models: fixed properties, and the keys for sizes, experts and
// kinds of layers. To add a family, add a row to tables/huggingface_families.json and a test.
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

// Keys of the experts. Counts, experts per token, widths, shared experts and leading dense layers are found
// under all common names (huggingface_row_experts.cpp). These fields are for what differs.
struct ExpertKeys {
  std::string_view width = {};  // key of the expert width; empty: a common name
  std::string_view latent_size = {};
  // A list of 0 and 1, or of "dense" and "sparse": the layers with experts.
  std::string_view layers = "mlp_layer_types";
  bool shared_gate = false;
  bool router_bias = false;  // the router has trained biases
  bool one_shared = false;   // always one shared expert, as wide as the others or as `one_shared_width` says
  std::string_view one_shared_width = {};
  // The dense FFN runs in parallel to the experts (Gemma 4), enabled by `switch_key`.
  bool dense_beside = false;
  std::string_view switch_key = {};
  bool complete = false;  // sizes of experts without their number, or with number 0, are errors
};

// A key that says whether GEMMs have biases. Empty key: fixed. `otherwise`: the value without the key.
struct BiasKey {
  std::string_view key = {};
  bool otherwise = false;
};

// Keys of attention sizes that apply to layers of one kind only.
struct AttentionKeys {
  std::string_view n_heads = {}, n_kv_heads = {}, head_dim = {}, v_head_dim = {}, sinks = {},
                   values_are_keys = {};
};

// Keys of the sizes of state mixers.
struct StateKeys {
  std::string_view n_heads = {}, head_dim = {}, n_key_heads = {}, key_head_dim = {}, conv_kernel = {},
                   conv_bias = {}, chunk_tokens = {};
  bool has_norm = true;              // a norm before the output projection
  Mixer mixer = Mixer::gated_delta;  // the mixer for `linear_attention`, `mamba` and `conv`
  // Key that says whether there is a norm before the output projection; empty: has_norm.
  std::string_view norm = {};
  bool low_rank = false;  // gates go through a bottleneck as wide as a head
};

// A row of the family table. Texts are views of the table, which stays in memory.
struct FamilyRow {
  std::string_view model_type = {};
  // Fixed properties and defaults. Unless the table says otherwise, activations are gated SiLU and positions are rotary.
  Transformer model = {.activation = Activation::silu, .position = PositionEncoding::rotary};
  // {"n_embd": "hidden_size"}: keys of this family ("section.key" for those in `sections`), and their usual names.
  const JsonValue* spelled = nullptr;
  std::string_view sections = {};  // names, separated by blanks, of objects with keys of the model
  // {"norm_type": {"rmsnorm": {"norm": "rms_norm"}, "layernorm": {}}}: for each value of a key (a word, or
  // true and false) the features that it sets in the model. Other values are errors. "*Model" matches any
  // word that ends with Model.
  const JsonValue* says = nullptr;
  // {"rotary": true}: the only supported value of a key, a list of supported values, or "=key" for the value of that key.
  const JsonValue* must_be = nullptr;
  std::string_view must_say = {};  // keys, separated by blanks, that must be present (usual names)
  // Which layers have a sliding window. "everywhere": all but every N-th; "turns": additionally by
  // layer_types; "switched": additionally only with use_sliding_window; "upper": additionally from layer
  // max_window_layers on. Empty: by `pattern`.
  std::string_view window = {};
  std::string_view hook = {};  // function for what no column expresses (huggingface_row_hooks.cpp)
  // FFN width as a multiple of the model's width, unless a key gives it; 0: required.
  std::int64_t ffn_times = 0;
  // Rotated elements of a head if there is no rotary_dim; 0: a share, given by another key.
  std::int64_t rotary_width = 0;
  bool adds_unused = false;       // max_position_embeddings does not include the unused positions
  bool state_alone = false;       // all layers are state mixers
  std::string_view pattern = {};  // key with the list of the layers' kinds
  // For configs without that list: the key with the numbers of the attention layers.
  std::string_view attending = {};
  // For configs without that list: the key with a number N. Every N-th layer has full attention; the others
  // have a window, or a state if the family has one.
  std::string_view interval = "full_attention_interval";
  ExpertKeys experts = {};
  // Keys of attention sizes that differ between layers with a window and layers with full attention.
  AttentionKeys sliding = {}, full = {};
  // If above 1 and there are no separate keys, layers with a window have this multiple of key-value heads, and sinks.
  std::int64_t sliding_kv_factor = 1;
  StateKeys state = {};
  bool latent = false;    // multi-head latent attention
  bool own_keys = false;  // without num_key_value_heads, every head has separate keys and values
  BiasKey qkv_bias = {"attention_bias"}, output_bias = {"attention_bias"}, ffn_bias = {"mlp_bias"};
  NormKind norm = NormKind::rms_norm;
  bool norm_bias = false;
  bool gated_ffn = true;
  bool tied_otherwise = false;  // tied embeddings if tie_word_embeddings is missing
  std::string_view activation = "hidden_act";
  std::string_view further_tokens = {};   // key with the number of multi-token prediction layers
  std::string_view further_pattern = {};  // key with the letters of the parts of these layers
  std::string_view must_be_off = {};      // keys, separated by blanks, of parts that are not modelled
  std::string_view no_shape = {};         // keys without effect on shape and time
  std::string_view left_out = {};         // small parts that are not counted; shown in a note
  [[nodiscard]] bool has_state() const { return !state.n_heads.empty() || state.mixer != Mixer::gated_delta; }
};

// All rows, in table order. Read on the first call.
[[nodiscard]] std::span<const FamilyRow> huggingface_rows();
// The row of a model type; null if there is none.
[[nodiscard]] const FamilyRow* huggingface_row(std::string_view model_type);
// Reads a config of the family into `model`. Errors: missing keys, values that are not modelled.
[[nodiscard]] Status read_row(const FamilyRow& row, ObjectReader& keys, Transformer& model);

// Reads the sizes of experts, if there are any, into `model`; and which of its layers may have experts.
[[nodiscard]] Status read_expert_sizes(ObjectReader& keys, const ExpertKeys& names, Transformer& model);
[[nodiscard]] Result<std::vector<bool>> read_expert_layers(ObjectReader& keys, const ExpertKeys& names,
                                                           const Transformer& model);

// Makes errors name keys in the spelling of this family.
void show_spellings(const FamilyRow& row, ObjectReader& keys);
// Errors: a required key is missing, or a key has a value that is not modelled (huggingface_row_said.cpp).
[[nodiscard]] Status check_said(const FamilyRow& row, ObjectReader& keys);
// Error if the key is missing. read_said(): applies the column `says`.
[[nodiscard]] Status require(ObjectReader& keys, std::string_view key);
[[nodiscard]] Status read_said(const FamilyRow& row, ObjectReader& keys, Transformer& model);
// Reads sliding windows. The sizes and experts of `model` must be set.
[[nodiscard]] Status read_windows(const FamilyRow& row, ObjectReader& keys, Transformer& model);
// Runs a hook of huggingface_row_hooks.cpp by name.
[[nodiscard]] Status run_hook(std::string_view name, ObjectReader& keys, Transformer& model);

// Reads the sizes of state mixers, if the family has any; and a whole model that consists of state mixers only.
[[nodiscard]] Status read_state(ObjectReader& keys, const StateKeys& names, Transformer& model);
[[nodiscard]] Status read_state_alone(const FamilyRow& row, ObjectReader& keys, Transformer& model);

// Reads the sizes of a kind of attention (workload/modules/). Its module names the keys.
[[nodiscard]] Status read_attention_sizes(ObjectReader& keys, std::string_view kind, Transformer& model);
// Reads the sizes of multi-head latent attention. The other sizes of `model` must be set
// (huggingface_row_attention.cpp).
[[nodiscard]] Status read_latents(ObjectReader& keys, Transformer& model);
// For each layer, whether it reuses the keys that the indexer of an earlier layer selected: from a list, a
// pattern of letters, or a frequency.
[[nodiscard]] Result<std::vector<bool>> layers_without_indexer(ObjectReader& keys, std::int64_t n_layers);

// One word per layer, from a list of words or numbers, or from a text of letters. Up to `further` additional
// entries, for multi-token prediction layers, are dropped. Errors: another number of entries.
[[nodiscard]] Result<std::vector<std::string>> read_words(ObjectReader& keys, std::string_view key,
                                                          std::int64_t n_layers, std::int64_t further = 0);
// True for one layer per period (Jamba); empty if the config does not have the keys.
[[nodiscard]] Result<std::vector<bool>> layers_of_period(ObjectReader& keys, std::string_view period_key,
                                                         std::string_view offset_key, std::int64_t n_layers);
// ObjectReader::optional(), except that an empty key reads nothing.
[[nodiscard]] Status optional_size(ObjectReader& keys, std::string_view key, std::int64_t& out);

}  // namespace stepcast::detail
