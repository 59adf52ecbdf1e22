// Facts of frameworks (framework_rule.h) that depend on the device, the date or on sizes, so that no Layout says them:
// asked for where work, memory and times are counted.
#pragma once

#include <cstdint>

#include "stepcast/operation/operation.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// The fused attention kernel that runs where nothing is said; `hopper`: on Hopper or newer.
[[nodiscard]] AttentionKernel usual_attention_kernel(const Software& software, bool hopper);

// Attention by one fused kernel: asked for, and possible with the model's positions.
[[nodiscard]] inline bool attention_is_fused(const Transformer& model, const LayerChoices& layer) {
  return layer.attention == AttentionMethod::flash && model.position != PositionEncoding::relative;
}

// Parameters whose gradients travel together, unless said otherwise.
[[nodiscard]] std::int64_t usual_bucket_parameters(Framework framework, std::int64_t data_parallel);

// Bytes per logit at the worst moment of the loss, with logits of `element_bytes`. `spread`: tensor-parallel ranks have
// a part of the vocabulary each.
[[nodiscard]] double loss_bytes_per_logit(const Software& software, const FusedKernels& fused, bool spread,
                                          double element_bytes);
// Whether a step without a pipeline may have several micro-batches on a rank.
[[nodiscard]] bool adds_up_gradients(const Software& software);
// Memory that libraries of products keep for their partial sums.
[[nodiscard]] double workspace_bytes(Framework framework);

// Whether full recomputation holds for layers of a vision tower, too: the checkpointing of transformers wraps them as
// other layers, Megatron's setting is of the language model alone.
[[nodiscard]] bool recomputes_tower(const Layout& layout);

}  // namespace stepcast
