// Parsers of the words that training software uses for parts of a layer: recomputed modules, CUDA graphs,
// places of adapters, and the distribution of layers over stages. Unknown words are errors that list the
// known ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

// Words of Megatron's --recompute-modules, "core_attn layernorm moe_act", separated by blanks, `+` or commas.
[[nodiscard]] Result<RecomputedModules> parse_recomputed_modules(std::string_view words);

// Words of Megatron's --offload-modules: "core_attn moe_act".
[[nodiscard]] Result<OffloadedModules> parse_offloaded_modules(std::string_view words);

// Results of a layer, "qkv attention": input, qkv, attention, attention_output, ffn_up, ffn_down.
[[nodiscard]] Result<LayerResults> parse_layer_results(std::string_view words);

// `implementation`: "none", "local", "transformer_engine" or "full_iteration" (--cuda-graph-impl). `scope`:
// words of --cuda-graph-scope; empty, "full" and "per_layer" mean whole layers.
[[nodiscard]] Result<CudaGraphs> parse_cuda_graphs(std::string_view implementation, std::string_view scope);

// Linear layers with adapters, by their names in Megatron-Bridge and NeMo: "linear_qkv linear_proj linear_fc1
// linear_fc2". The rank stays 0.
[[nodiscard]] Result<Adapters> parse_adapter_targets(std::string_view words);

// "16bit", "int8", "nf4" or "nf4-double".
[[nodiscard]] Result<FrozenWeights> parse_frozen_weights(std::string_view word);

// Layers per stage from Megatron's --pipeline-model-parallel-layout, "Et*3|(tt|)*29,m|L": layers (t) of each
// stage between the bars, in the order of the model. E, m and L (embedding, multi-token prediction, loss) do
// not count as layers. `x*3` and `(...)*3` repeat; commas are ignored. A list of numbers, "7,8,8,7", is also
// accepted.
[[nodiscard]] Result<std::vector<std::int64_t>> parse_pipeline_layout(std::string_view text);

}  // namespace stepcast
