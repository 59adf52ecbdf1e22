#include "stepcast/workload/framework_behavior.h"

#include <algorithm>

#include "stepcast/workload/framework_rule.h"

namespace stepcast {

AttentionKernel usual_attention_kernel(const Software& software, bool hopper) {
  const AttentionHabit& habit = rule_of(software.framework).attention;
  const bool is_newer = software.is_of(habit.since) && (hopper || !habit.newer_needs_hopper);
  return is_newer ? habit.newer : habit.kernel;
}

// Without a value in the rule: Megatron Core's default, which grows with the ranks.
std::int64_t usual_bucket_parameters(Framework framework, std::int64_t data_parallel) {
  const std::int64_t megatron_core = std::max<std::int64_t>(40'000'000, 1'000'000 * data_parallel);
  return rule_of(framework).sizes.bucket_parameters->value_or(megatron_core);
}

bool adds_up_gradients(const Software& software) {
  return software.is_of(rule_of(software.framework).sizes.accumulates_since);
}

double workspace_bytes(Framework framework) {
  // 32 MiB each: PyTorch's cuBLAS handles of the forward and the backward thread (on Hopper, and elsewhere
  // with CUBLAS_WORKSPACE_CONFIG=:4096:8), and one more of Transformer Engine.
  constexpr double kWorkspace = 32 * 1024.0 * 1024;
  return (rule_of(framework).has_transformer_engine() ? 3 : 2) * kWorkspace;
}

double loss_bytes_per_logit(const Software& software, const FusedKernels& fused, bool spread,
                            double element_bytes) {
  const LossMemory loss = rule_of(software.framework).memory.loss;
  // Megatron Core's fused loss (`fused_vocab_parallel_cross_entropy`) keeps fp32 logits in addition to the
  // buffers of other losses, two of them on A100, one on H100.
  if (loss == LossMemory::megatron_fused && fused.cross_entropy) return element_bytes + 10;
  // Liger and Cut Cross-Entropy have the logits of a chunk of tokens at a time, about as large as the input
  // of the vocabulary layer.
  if (loss == LossMemory::liger && fused.cross_entropy) return 0;
  // Assumed: 16-bit logits, and the fp32 softmax that becomes their gradient in place.
  if (loss != LossMemory::torch) return element_bytes + 4;
  // PyTorch's loss_parallel, which is usually not compiled: the backward needs the result of the softmax, its
  // exponential, the gradient of the loss and their sum at once, in fp32.
  if (spread) return element_bytes + 16;
  // Since 2025 the loss is compiled with the model: the backward reads the logits again and writes their
  // gradient.
  if (fused.compiled && software.is_of("2025")) return 2 * element_bytes;
  // Before 2025: the place of the freed logits, and in fp32 the result of the softmax, the gradient of the
  // loss and that of the softmax.
  return element_bytes + 12;
}

bool recomputes_tower(const Layout& layout) {
  return layout.layer.recompute.kind == Recompute::full && rule_of(layout).memory.recomputes_tower;
}

}  // namespace stepcast
