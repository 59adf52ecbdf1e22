// Models whose layers have one part each, written as a letter per layer: Megatron's --hybrid-layer-pattern, Nemotron-H's
// hybrid_override_pattern.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// M: Mamba-2, *: attention, -: FFN, E: experts.
[[nodiscard]] std::optional<LayerKind> kind_of_letter(char letter);

// Adds a layer of this kind.
void append_layer(Transformer& model, const LayerKind& kind);

// What one layer that predicts a further token consists of. False: a letter of which the model has no layer.
[[nodiscard]] bool set_further_layers(Transformer& model, std::string_view letters);

// The layers of `settings.hybrid_pattern`, or as its shares spread them; nothing of a model that has no such setting.
// Errors: letters that are not modelled, another number of layers than was said.
[[nodiscard]] Status apply_hybrid_layers(const JobSettings& settings, Transformer& model);

// Linear attention in some layers, or an indexer, as `settings.attention_variant` says, of a model whose heads and experts
// are there; nothing without it.
[[nodiscard]] Status apply_attention_variant(const JobSettings& settings, Transformer& model);

// Whether a layer takes what the indexer of one below chose: one of every so many behind the first has its own.
[[nodiscard]] bool takes_chosen_keys(std::int64_t layer, std::int64_t every, std::int64_t offset);

// Layers between the bars of a pattern.
[[nodiscard]] std::vector<std::int64_t> layers_of_hybrid_stages(std::string_view pattern);

// Megatron's --moe-layer-freq: which layers have experts.
// A number, or a list such as "[0]*3+[1]*58" with an entry per layer. Sets the dense layers in front and the
// period behind; an error if the pattern is neither.
[[nodiscard]] Status read_moe_layer_pattern(std::string_view text, std::int64_t n_layers,
                                            MixtureOfExperts& moe);

// A list such as "[0]*3+[1]*58" as an entry per layer; `flag` says it.
[[nodiscard]] Result<std::vector<bool>> read_layer_list(std::string_view flag, std::string_view text,
                                                        std::int64_t n_layers);

}  // namespace stepcast::detail
