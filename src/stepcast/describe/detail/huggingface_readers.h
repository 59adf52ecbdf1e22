// How families of models in Hugging Face's config.json are read: one function each, and what they share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

struct HuggingfaceFamily {
  std::string_view model_types;  // words
  Status (*read)(ObjectReader& keys, Transformer& model);
};
[[nodiscard]] std::span<const HuggingfaceFamily> huggingface_families();

// Words of a row of tables/huggingface_keys.csv: "harmless" are keys that say nothing about shape, time or memory of training.
[[nodiscard]] std::string_view huggingface_keys(std::string_view list);

// A config with its language model as `text_config`, whatever that is called, and, of families that rows describe, with
// sizes under their usual names (huggingface_keys.cpp). What is left out goes into `notes`.
[[nodiscard]] JsonValue with_usual_keys(const JsonValue& config, std::vector<std::string>& notes);

// Keys that nobody took (huggingface_keys.cpp): an error where one may shape the model, by its name and value; the
// others go into `notes`, or say nothing.
[[nodiscard]] Status finish_with_unknown_keys(ObjectReader& keys, std::vector<std::string>& notes);

// Shared (huggingface_families.cpp).
[[nodiscard]] Status read_activation(ObjectReader& keys, std::string_view key, Activation& out);
// Features that no Transformer has: refused unless they are off.
[[nodiscard]] Status refuse_if_true(ObjectReader& keys, std::string_view key, std::string_view why);
[[nodiscard]] Status refuse_if_false(ObjectReader& keys, std::string_view key, std::string_view why);
// num_hidden_layers and so on, as most families name them. A size that `model` has already is the default.
[[nodiscard]] Status read_sizes(ObjectReader& keys, Transformer& model);
// RMS norm, rotary positions, gated FFN, no biases.
[[nodiscard]] Status read_llama_like(ObjectReader& keys, Transformer& model);
// These families have a default number of key-value heads that is not num_attention_heads.
[[nodiscard]] Status require_kv_heads(ObjectReader& keys);
// "layer_types": which layers see all tokens. Must be a pattern of which the last of every n does.
[[nodiscard]] Status read_layer_types(ObjectReader& keys, Transformer& model);

// Models with learned positions or of their time (huggingface_dense.cpp).
[[nodiscard]] Status read_gpt2(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_gpt_neox(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_opt(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_mpt(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_gpt_bigcode(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_gpt_neo(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_bloom(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_falcon(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_gptj(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_phi(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_starcoder2(ObjectReader& keys, Transformer& model);
// Encoders (huggingface_encoders.cpp).
[[nodiscard]] Status read_bert(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_roberta(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_xlnet(ObjectReader& keys, Transformer& model);

// Models like Llama (huggingface_llama_like.cpp).
[[nodiscard]] Status read_llama(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_mllama_text(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_mistral(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_qwen2(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_qwen3(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_gemma(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_gemma2(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_vaultgemma(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_gemma3_text(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_phi3(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_olmo2(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_olmo3(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_smollm3(ObjectReader& keys, Transformer& model);

// Models with experts (huggingface_experts.cpp).
[[nodiscard]] Status read_mixtral(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_qwen2_moe(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_qwen3_moe(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_olmoe(ObjectReader& keys, Transformer& model);
// The sizes of a kind of attention (workload/modules/) whose keys in configs are those that the module names.
[[nodiscard]] Status read_attention_sizes(ObjectReader& keys, std::string_view kind, Transformer& model);
// The sizes of multi-head latent attention, of a model whose other sizes are there.
[[nodiscard]] Status read_latents(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_deepseek(ObjectReader& keys, Transformer& model);
// Which layers take what the indexer of one below chose, by a list, letters, or the one of every so many that has its own.
[[nodiscard]] Result<std::vector<bool>> layers_without_indexer(ObjectReader& keys, std::int64_t n_layers);
// DeepSeek-V3.2 and GLM-5: DeepSeek's layers and an indexer that chooses keys.
[[nodiscard]] Status read_deepseek_sparse(ObjectReader& keys, Transformer& model);
// LongCat-Flash: two layers of latent attention and a dense FFN each, and experts that run beside the second.
[[nodiscard]] Status read_longcat(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_deepseek_v4(ObjectReader& keys, Transformer& model);
// States alone (huggingface_row_states.cpp).
[[nodiscard]] Status read_mamba2(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_mamba1(ObjectReader& keys, Transformer& model);
// A kind for every layer (huggingface_rows.cpp).
[[nodiscard]] Status read_nemotron_nas(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_gpt_oss(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_llama4_text(ObjectReader& keys, Transformer& model);
[[nodiscard]] Status read_dbrx(ObjectReader& keys, Transformer& model);

}  // namespace stepcast::detail
