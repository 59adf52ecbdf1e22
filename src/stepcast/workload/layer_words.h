// Words of training software for parts of a layer: what is computed again, what is captured in CUDA graphs, where
// adapters are, how layers are dealt out to stages.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

// "core_attn layernorm moe_act", words of Megatron's --recompute-modules, between them blanks, `+` or commas.
[[nodiscard]] Result<RecomputedModules> parse_recomputed_modules(std::string_view words);

// "core_attn moe_act", words of Megatron's --offload-modules.
[[nodiscard]] Result<OffloadedModules> parse_offloaded_modules(std::string_view words);

// "qkv attention", results of a layer: input, qkv, attention, attention_output, ffn_up, ffn_down.
[[nodiscard]] Result<LayerResults> parse_layer_results(std::string_view words);

// `implementation`: "none", "local" or "transformer_engine" (--cuda-graph-impl). `scope`: words of
// --cuda-graph-scope; nothing, "full" and "per_layer" stand for whole layers.
[[nodiscard]] Result<CudaGraphs> parse_cuda_graphs(std::string_view implementation, std::string_view scope);

// "linear_qkv linear_proj linear_fc1 linear_fc2", as Megatron-Bridge and NeMo call them; the rank stays 0.
[[nodiscard]] Result<Adapters> parse_adapter_targets(std::string_view words);

// "16bit", "int8", "nf4", "nf4-double".
[[nodiscard]] Result<FrozenWeights> parse_frozen_weights(std::string_view word);

// Megatron's --pipeline-model-parallel-layout, "Et*3|(tt|)*29,m|L": layers (t) of every stage between the bars, in
// the order of the model; E, m and L (embedding, multi-token prediction, loss) take no layer. `x*3` and `(...)*3`
// repeat; commas mean nothing.
[[nodiscard]] Result<std::vector<std::int64_t>> parse_pipeline_layout(std::string_view text);

}  // namespace stepcast
