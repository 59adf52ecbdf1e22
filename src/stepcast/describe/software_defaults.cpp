#include "stepcast/describe/software_defaults.h"

#include "stepcast/workload/framework_rule.h"

namespace stepcast {

// Overlap of tensor-parallel transfers needs sequence parallelism, and overlapped sends need virtual stages.
// Both are read from `layout`.
void set_software_defaults(Layout& layout, Framework framework, DType compute) {
  const FrameworkRule& rule = rule_of(framework);
  LayerChoices& layer = layout.layer;
  layout.software.framework = framework;
  Precision& precision = layer.precision;
  precision = precision_for(compute);
  if (*rule.types.gradients) precision.gradients = precision.reduction = **rule.types.gradients;
  if (*rule.types.states) precision.master = precision.moments = **rule.types.states;
  precision.fp8.fused_maxima = rule.has_transformer_engine();
  precision.fp8.gather_activations = *rule.fp8.linears != Fp8Linears::own;
  precision.fp8.gather_weights = rule.fp8.keeps_weights && compute == DType::fp8;
  layer.fused = rule.fused;
  layer.overlap = {.tensor_parallel = rule.overlap.tensor_parallel && layer.sequence_parallel,
                   .sequence_parallel_weight_gradient = rule.overlap.sequence_parallel_gather};
  layer.dispatcher = rule.layers.dispatcher;
  if (rule.layers.one_program) layer.cuda_graphs.full_iteration = true;
  if (compute == DType::fp32) layer.attention = rule.attention.in_fp32;
  layout.pipeline.overlap = rule.overlap.interleaved_sends && layout.degrees.virtual_stages > 1;
  layout.sharding.overlap_gradient_reduce = rule.overlap.gradient_reduction;
  layout.sharding.overlap_parameter_gather = rule.overlap.parameter_gather;
}

}  // namespace stepcast
