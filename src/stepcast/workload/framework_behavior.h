// Framework properties (framework_rule.h) that depend on the device, the release date or sizes, and so are
// not part of a Layout. Used where work, memory and times are computed.
#pragma once

#include <cstdint>

#include "stepcast/operation/operation.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// The default fused attention kernel; `hopper`: on Hopper or newer.
[[nodiscard]] AttentionKernel usual_attention_kernel(const Software& software, bool hopper);

// Whether attention is one fused kernel: requested, and possible with the positions of the model.
[[nodiscard]] inline bool attention_is_fused(const Transformer& model, const LayerChoices& layer) {
  return layer.attention == AttentionMethod::flash && model.position != PositionEncoding::relative;
}

// Default bucket size of gradient reductions, in parameters.
[[nodiscard]] std::int64_t usual_bucket_parameters(Framework framework, std::int64_t data_parallel);

// Bytes per logit at the memory peak of the loss, with logits of `element_bytes`. `spread`: the vocabulary is
// split over tensor-parallel ranks.
[[nodiscard]] double loss_bytes_per_logit(const Software& software, const FusedKernels& fused, bool spread,
                                          double element_bytes);
// Whether a rank may have several micro-batches in a step without a pipeline (gradient accumulation).
[[nodiscard]] bool adds_up_gradients(const Software& software);
// Memory that GEMM libraries reserve for partial sums.
[[nodiscard]] double workspace_bytes(Framework framework);

// Whether full recomputation includes the layers of a vision tower: the checkpointing of transformers wraps
// all layers, Megatron's setting only those of the language model.
[[nodiscard]] bool recomputes_tower(const Layout& layout);

}  // namespace stepcast
