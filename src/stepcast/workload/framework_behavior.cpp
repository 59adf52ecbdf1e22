#include "stepcast/workload/framework_behavior.h"

#include <algorithm>

namespace stepcast {

AttentionKernel usual_attention_kernel(const Software& software, bool hopper) {
  switch (software.framework) {
    // Transformer Engine takes cuDNN's fused attention on Hopper, which uses its new units since cuDNN 9 (2024).
    case Framework::nemo:
    case Framework::automodel:
    case Framework::megatron:
      return hopper && software.is_of("2024") ? AttentionKernel::flash3 : AttentionKernel::flash2;
    // LLM Foundry and Composer of 2023: Triton or FlashAttention 1.
    case Framework::neox: return AttentionKernel::flash1;
    case Framework::fsdp: return software.is_of("2024") ? AttentionKernel::flash2 : AttentionKernel::flash1;
    // PyTorch's scaled_dot_product_attention.
    case Framework::torchtitan:
    case Framework::deepspeed:
    case Framework::pytorch:
    case Framework::libai:
    case Framework::maxtext:  // splash attention has no rate of its own here
    case Framework::unknown: return AttentionKernel::flash2;
  }
  return AttentionKernel::flash2;
}

std::int64_t usual_vocabulary_multiple(Framework framework) {
  const bool pads = framework != Framework::torchtitan && framework != Framework::fsdp &&
                    framework != Framework::pytorch && framework != Framework::maxtext &&
                    framework != Framework::automodel;
  return pads ? 128 : 1;  // Megatron-LM's --make-vocab-size-divisible-by
}

std::int64_t usual_bucket_parameters(Framework framework, std::int64_t data_parallel) {
  // DistributedDataParallel: 25 MiB of fp32 gradients (bucket_cap_mb).
  if (framework == Framework::pytorch) return 25 * 1024 * 1024 / 4;
  // Megatron Core's default, for all others.
  return std::max<std::int64_t>(40'000'000, 1'000'000 * data_parallel);
}

bool adds_up_gradients(const Software& software) {
  // TorchTitan since its release 0.1.0 (`training.global_batch_size`).
  return software.framework != Framework::torchtitan || software.is_of("2025-06");
}

double workspace_bytes(Framework framework) {
  // 32 MiB each: PyTorch's handle of cuBLAS in the forward and in the backward thread (on Hopper, and elsewhere with
  // CUBLAS_WORKSPACE_CONFIG=:4096:8), and Transformer Engine's own.
  constexpr double kWorkspace = 32 * 1024.0 * 1024;
  const bool transformer_engine =
      framework == Framework::megatron || framework == Framework::nemo || framework == Framework::automodel;
  return (transformer_engine ? 3 : 2) * kWorkspace;
}

double loss_bytes_per_logit(const Software& software, const FusedKernels& fused, bool spread,
                            double element_bytes) {
  const bool compiled = fused.compiled;
  // Megatron Core's fused loss (`fused_vocab_parallel_cross_entropy`) keeps fp32 logits beside what the others have, on
  // A100 two of them, on H100 one.
  if (software.framework == Framework::megatron && fused.cross_entropy) return element_bytes + 10;
  // Assumed: 16-bit logits and the fp32 softmax that becomes their gradient in place.
  if (software.framework != Framework::torchtitan) return element_bytes + 4;
  // PyTorch's loss_parallel, which nobody compiles: backward the result of the softmax, its exponential, the gradient of
  // the loss and their sum are there at once, in fp32.
  if (spread) return element_bytes + 16;
  // Since 2025 the loss is compiled with the model: its backward reads the logits again and writes their gradient.
  if (compiled && software.is_of("2025")) return 2 * element_bytes;
  // Before: the place of the logits, which were freed, and in fp32 the result of the softmax, the gradient of the loss
  // and that of the softmax.
  return element_bytes + 12;
}

bool recomputes_tower(const Layout& layout) {
  if (layout.layer.recompute.kind != Recompute::full) return false;
  const Framework framework = layout.software.framework;
  return framework == Framework::pytorch || framework == Framework::fsdp ||
         framework == Framework::deepspeed || framework == Framework::torchtitan;
}

}  // namespace stepcast
