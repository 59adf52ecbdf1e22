// Layer patterns: one letter per layer (Megatron-LM's --hybrid-layer-pattern, Nemotron-H's
// hybrid_override_pattern), lists of layers, and attention variants of single layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// The kind of layer for a letter: M Mamba-2, * attention, - FFN, E experts. Nothing for other letters.
[[nodiscard]] std::optional<LayerKind> kind_of_letter(char letter);

// Appends a layer of this kind. Equal kinds share an entry of `layer_kinds`.
void append_layer(Transformer& model, const LayerKind& kind);

// Sets the parts of each multi-token prediction layer. False: a letter for a kind that the model has no layer of.
[[nodiscard]] bool set_further_layers(Transformer& model, std::string_view letters);

// Applies `settings.hybrid_pattern`, or the shares of attention and FFN layers. Does nothing if neither is
// set. Errors: letters that are not modelled, a number of layers that contradicts --num-layers.
[[nodiscard]] Status apply_hybrid_layers(const JobSettings& settings, Transformer& model);

// Applies `settings.attention_variant`: linear attention in some layers, or a sparse-attention indexer. The
// heads and experts of `model` must be set. Does nothing without the setting.
[[nodiscard]] Status apply_attention_variant(const JobSettings& settings, Transformer& model);

// Whether a layer reuses the keys that the indexer of an earlier layer selected. The first `offset` layers
// and then every `every`-th layer have an indexer.
[[nodiscard]] bool takes_chosen_keys(std::int64_t layer, std::int64_t every, std::int64_t offset);

// Numbers of layers between the bars of a pattern, up to its "/".
[[nodiscard]] std::vector<std::int64_t> layers_of_hybrid_stages(std::string_view pattern);

// Reads Megatron-LM's --moe-layer-freq, which says which layers have experts: a number, or a list with an entry
// per layer such as "[0]*3+[1]*58". Sets the leading dense layers and the period. Errors: other patterns.
[[nodiscard]] Status read_moe_layer_pattern(std::string_view text, std::int64_t n_layers,
                                            MixtureOfExperts& moe);

// Expands a list such as "[0]*3+[1]*58" to one entry per layer. `flag` is named in errors. Errors: invalid
// syntax, another number of entries.
[[nodiscard]] Result<std::vector<bool>> read_layer_list(std::string_view flag, std::string_view text,
                                                        std::int64_t n_layers);

}  // namespace stepcast::detail
