#include "stepcast/describe/software_defaults.h"

#include <string>

#include "stepcast/base/text.h"

namespace stepcast {
namespace {

// PyTorch as it is, without a compiler: norms are single kernels, nothing else is merged.
constexpr FusedKernels kEager{.softmax = false,
                              .bias_activation = false,
                              .bias_dropout_add = false,
                              .norm = true,
                              .rotary = false,
                              .cross_entropy = false,
                              .weight_gradient_accumulation = false,
                              .compiled = false};

// The published NeMo configurations overlap everything that can be.
void set_nemo_defaults(Layout& layout, DType compute) {
  layout.layer.overlap.tensor_parallel = layout.layer.sequence_parallel;
  layout.sharding.overlap_gradient_reduce = true;
  layout.sharding.overlap_parameter_gather = true;
  layout.pipeline.overlap = layout.degrees.virtual_stages > 1;
  layout.layer.fused.cross_entropy = true;
  // Its performance recipes keep and reduce gradients in bf16; in fp32 some published runs would not fit.
  layout.layer.precision.gradients = layout.layer.precision.reduction = DType::bf16;
  // Its precision `bf16_with_fp8_mixed` keeps weights in fp8 (`fp8_params`).
  layout.layer.precision.fp8.gather_weights = compute == DType::fp8;
}

void set_automodel_defaults(Layout& layout, DType compute) {
  layout.sharding.overlap_gradient_reduce = layout.sharding.overlap_parameter_gather = true;
  layout.pipeline.overlap = layout.degrees.virtual_stages > 1;
  layout.layer.fused.cross_entropy = true;
  // Weights are in bf16 alone, as models are loaded (`torch_dtype`), and PyTorch's optimizers follow.
  layout.layer.precision.gradients = layout.layer.precision.reduction = DType::bf16;
  layout.layer.precision.master = layout.layer.precision.moments = DType::bf16;
  layout.layer.precision.fp8.gather_weights = compute == DType::fp8;
  layout.layer.dispatcher = TokenDispatcher::deepep;
}

}  // namespace

Framework parse_framework(std::string_view text) {
  const std::string name = lower(text);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("automodel")) return Framework::automodel;
  if (has("nemo")) return Framework::nemo;
  if (has("maxtext")) return Framework::maxtext;
  if (has("torchtitan")) return Framework::torchtitan;
  if (has("megatron")) return Framework::megatron;
  if (has("libai")) return Framework::libai;
  if (has("neox")) return Framework::neox;
  if (has("deepspeed")) return Framework::deepspeed;
  if (has("fsdp") || has("foundry") || has("composer")) return Framework::fsdp;
  if (name == "pytorch" || has("hugging") || has("eager") || has("ddp")) return Framework::pytorch;
  return Framework::unknown;
}

void set_software_defaults(Layout& layout, Framework framework, DType compute) {
  layout.software.framework = framework;
  layout.layer.precision = precision_for(compute);
  layout.layer.fused = FusedKernels{};
  layout.layer.overlap = LayerOverlap{};
  const bool transformer_engine =
      framework == Framework::nemo || framework == Framework::megatron || framework == Framework::automodel;
  layout.layer.precision.fp8.fused_maxima = transformer_engine;
  // Transformer Engine and TorchTitan cast first and gather then.
  layout.layer.precision.fp8.gather_activations = transformer_engine || framework == Framework::torchtitan;
  layout.pipeline.overlap = layout.sharding.overlap_gradient_reduce =
      layout.sharding.overlap_parameter_gather = false;
  switch (framework) {
    case Framework::megatron:
    case Framework::libai:
    case Framework::unknown: layout.pipeline.overlap = layout.degrees.virtual_stages > 1; break;
    case Framework::nemo: set_nemo_defaults(layout, compute); break;
    case Framework::automodel: set_automodel_defaults(layout, compute); break;
    case Framework::torchtitan:
      layout.layer.fused = kEager;
      layout.sharding.overlap_gradient_reduce = true;
      layout.layer.overlap.sequence_parallel_weight_gradient = false;
      layout.sharding.backward_prefetch = Prefetch::pre;
      break;
    case Framework::maxtext:
      // One program for the whole step: chains of element-wise work are merged, and the host launches nothing.
      layout.layer.fused.compiled = true;
      layout.layer.cuda_graphs.full_iteration = true;
      layout.sharding.overlap_gradient_reduce = true;
      layout.layer.overlap.sequence_parallel_weight_gradient = false;
      layout.sharding.backward_prefetch = Prefetch::pre;
      break;
    case Framework::fsdp:
      layout.layer.fused = kEager;
      layout.sharding.overlap_gradient_reduce = true;
      layout.sharding.backward_prefetch = Prefetch::pre;
      break;
    case Framework::pytorch:
      // DistributedDataParallel reduces buckets beside the last backward pass; autocast keeps fp32 gradients.
      layout.layer.fused = kEager;
      layout.sharding.overlap_gradient_reduce = true;
      layout.layer.overlap.sequence_parallel_weight_gradient = false;
      if (compute == DType::fp32)
        layout.layer.attention = AttentionMethod::unfused;  // no flash kernel takes it
      break;
    case Framework::neox:
      // Its own norms and rotation are written out; softmax and bias-GELU kernels are Megatron's of 2021.
      layout.layer.fused.norm = layout.layer.fused.rotary = false;
      [[fallthrough]];
    case Framework::deepspeed:
      layout.sharding.overlap_gradient_reduce = true;
      layout.layer.overlap.sequence_parallel_weight_gradient = false;
      break;
  }
}

}  // namespace stepcast
