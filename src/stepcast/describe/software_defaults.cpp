#include "stepcast/describe/software_defaults.h"

#include <algorithm>
#include <string>

namespace stepcast {
namespace {

std::string lower(std::string_view text) {
  std::string result{text};
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

}  // namespace

Framework parse_framework(std::string_view text) {
  const std::string name = lower(text);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("nemo")) return Framework::nemo;
  if (has("torchtitan")) return Framework::torchtitan;
  if (has("megatron")) return Framework::megatron;
  if (has("libai")) return Framework::libai;
  if (has("deepspeed") || has("neox")) return Framework::deepspeed;
  if (has("fsdp") || has("foundry") || has("composer")) return Framework::fsdp;
  return Framework::unknown;
}

void set_software_defaults(Layout& layout, Framework framework, DType compute) {
  layout.framework = framework;
  layout.precision = precision_for(compute);
  layout.fused = FusedKernels{};
  layout.overlap = OverlapOptions{};
  switch (framework) {
    case Framework::megatron:
    case Framework::libai:
    case Framework::unknown: layout.overlap.pipeline = layout.virtual_stages > 1; break;
    case Framework::nemo:
      // The published NeMo configurations overlap everything that can be.
      layout.overlap.tensor_parallel = layout.sequence_parallel;
      layout.overlap.gradient_reduce = true;
      layout.overlap.parameter_gather = true;
      layout.overlap.pipeline = layout.virtual_stages > 1;
      layout.fused.cross_entropy = true;
      // Its performance recipes keep and reduce gradients in bf16; in fp32 some published runs would not fit.
      layout.precision.gradients = layout.precision.reduction = DType::bf16;
      break;
    case Framework::torchtitan:
      layout.fused = {.softmax = false,
                      .bias_activation = false,
                      .bias_dropout_add = false,
                      .norm = true,
                      .rotary = false,
                      .cross_entropy = false,
                      .weight_gradient_accumulation = false,
                      .compiled = false};
      layout.overlap.gradient_reduce = true;
      layout.overlap.sequence_parallel_weight_gradient = false;
      layout.sharding_options.backward_prefetch = Prefetch::pre;
      break;
    case Framework::fsdp:
      layout.fused = {.softmax = false,
                      .bias_activation = false,
                      .bias_dropout_add = false,
                      .norm = true,
                      .rotary = false,
                      .cross_entropy = false,
                      .weight_gradient_accumulation = false,
                      .compiled = false};
      layout.overlap.gradient_reduce = true;
      layout.attention_unpads = true;
      // Composer's default; PyTorch's own is `pre`.
      layout.sharding_options.backward_prefetch = Prefetch::post;
      break;
    case Framework::deepspeed:
      layout.overlap.gradient_reduce = true;
      layout.overlap.sequence_parallel_weight_gradient = false;
      break;
  }
}

}  // namespace stepcast
