// Families of models on Hugging Face: what they always have, and which keys say sizes, experts and the kind of every layer.
// A row in tables/huggingface_families.json and a test make a family.
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
  bool complete = false;  // sizes of experts without their number, or with a number of 0, are refused
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
  bool has_norm = true;              // in front of the way out
  Mixer mixer = Mixer::gated_delta;  // what `linear_attention`, `mamba` and `conv` mean
  std::string_view norm = {};        // says whether there is a norm in front of the way out; empty: there is
  bool low_rank = false;             // gates are made of vectors as wide as a head
};

struct FamilyRow {
  std::string_view model_type = {};
  // What the family always has, and defaults: of gated SiLU and rotated positions, unless the table says otherwise.
  Transformer model = {.activation = Activation::silu, .position = PositionEncoding::rotary};
  // {"n_embd": "hidden_size"}: keys of this family, "section.key" for those in `sections`, under their usual names.
  const JsonValue* spelled = nullptr;
  std::string_view sections = {};  // words: objects whose members are keys of the model
  // {"norm_type": {"rmsnorm": {"norm": "rms_norm"}, "layernorm": {}}}: what each word of a key, or true and false, sets in
  // the model. Other words are refused. "*Model": any word that ends so.
  const JsonValue* says = nullptr;
  // {"rotary": true}: the value of a key that is modelled, a list of such values, or "=key": what that key says.
  const JsonValue* must_be = nullptr;
  std::string_view must_say = {};  // words: keys that must be there, by their usual names
  // "everywhere": sliding_window is of all layers but the last of every so many; "turns": or as layer_types lists them;
  // "switched", "upper": and only with use_sliding_window, or from layer max_window_layers on. Empty: as `pattern` says.
  std::string_view window = {};
  std::string_view hook = {};  // the function that reads the rest (huggingface_row_hooks.cpp)
  std::int64_t ffn_times = 0;  // the FFN is so many times as wide as the model, unless a key says its width
  std::int64_t rotary_width =
      0;  // elements of a head that are rotated, without rotary_dim; 0: a share, by another key
  bool adds_unused = false;       // max_position_embeddings does not count the unused positions
  bool state_alone = false;       // layers of a state and nothing else
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
// Nothing if there is none.
[[nodiscard]] const FamilyRow* huggingface_row(std::string_view model_type);
[[nodiscard]] Status read_row(const FamilyRow& row, ObjectReader& keys, Transformer& model);

// Sizes of experts, if there are any, into `model`; then which of its layers may have them.
[[nodiscard]] Status read_expert_sizes(ObjectReader& keys, const ExpertKeys& names, Transformer& model);
[[nodiscard]] Result<std::vector<bool>> read_expert_layers(ObjectReader& keys, const ExpertKeys& names,
                                                           const Transformer& model);

// Errors name keys as this family spells them.
void show_spellings(const FamilyRow& row, ObjectReader& keys);
// An error if a key is missing, or says what is not modelled (huggingface_row_said.cpp).
[[nodiscard]] Status check_said(const FamilyRow& row, ObjectReader& keys);
[[nodiscard]] Status require(ObjectReader& keys, std::string_view key);
[[nodiscard]] Status read_said(const FamilyRow& row, ObjectReader& keys, Transformer& model);
// Of models whose sizes and experts are there.
[[nodiscard]] Status read_windows(const FamilyRow& row, ObjectReader& keys, Transformer& model);
[[nodiscard]] Status run_hook(std::string_view name, ObjectReader& keys, Transformer& model);

// Sizes of what carries a state, if the family has any, into `model`; all of a model of nothing else.
[[nodiscard]] Status read_state(ObjectReader& keys, const StateKeys& names, Transformer& model);
[[nodiscard]] Status read_state_alone(const FamilyRow& row, ObjectReader& keys, Transformer& model);

// The sizes of a kind of attention (workload/modules/) whose keys in configs are those that the module names.
[[nodiscard]] Status read_attention_sizes(ObjectReader& keys, std::string_view kind, Transformer& model);
// The sizes of multi-head latent attention, of a model whose other sizes are there (huggingface_row_attention.cpp).
[[nodiscard]] Status read_latents(ObjectReader& keys, Transformer& model);
// Which layers take what the indexer of one below chose, by a list, letters, or the one of every so many that has its own.
[[nodiscard]] Result<std::vector<bool>> layers_without_indexer(ObjectReader& keys, std::int64_t n_layers);

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
