// Families of models on Hugging Face that are told by their keys alone: what names sizes, experts and the kind of every
// layer. A row in huggingface_rows.cpp and a test make a family.
#pragma once

#include <span>
#include <string_view>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// Names of keys; an empty one: the family has none. Sizes are as in MixtureOfExperts.
struct ExpertKeys {
  std::string_view n_experts = {}, per_token = {}, width = {};
  std::string_view n_shared = {};      // with `shared_width`, or one if that is not 0
  std::string_view shared_width = {};  // of one; empty: as a routed one
  std::string_view latent_size = {};
  std::string_view first_dense = {};  // so many layers in front have none
  std::string_view layers = {};       // a list of 0 and 1: which layers have experts
  bool shared_gate = false;
  bool dense_beside = false;  // the dense FFN runs beside the experts (Gemma 4), switched by `switch_key`
  std::string_view switch_key = {};
};

// Sizes of attention that layers of one kind have to themselves.
struct AttentionKeys {
  std::string_view n_heads = {}, n_kv_heads = {}, head_dim = {}, v_head_dim = {}, sinks = {},
                   values_are_keys = {};
};

struct StateKeys {
  std::string_view n_heads = {}, head_dim = {}, n_key_heads = {}, key_head_dim = {}, conv_kernel = {},
                   conv_bias = {}, chunk_tokens = {};
};

struct FamilyRow {
  std::string_view model_type;
  Transformer model;              // what the family always has, and defaults
  std::string_view pattern = {};  // the key that lists what every layer is
  ExpertKeys experts = {};
  AttentionKeys sliding = {}, full = {};
  StateKeys state = {};
  std::string_view activation = "hidden_act";
  std::string_view further_tokens = {};                // number of layers that predict them
  std::string_view further_pattern = {};               // letters of what each of these consists of
  std::span<const std::string_view> must_be_off = {};  // keys of parts that are not modelled
  std::span<const std::string_view> no_shape = {};     // keys that change neither shape nor time
};

[[nodiscard]] std::span<const FamilyRow> huggingface_rows();
[[nodiscard]] Status read_row(const FamilyRow& row, ObjectReader& keys, Transformer& model);

}  // namespace stepcast::detail
