// Fused attention, in the argument orders of PyTorch and flash-attn.

#include "stepcast/operation/detail/op_rules.h"

namespace stepcast::detail {
namespace {

// The implementation, from the name of the operator.
AttentionKernel kernel_of(std::string_view name) {
  const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("efficient") || has("xformers")) return AttentionKernel::efficient;
  if (has("cudnn") || has("flash_attn_3") || has("flash_attn_interface")) return AttentionKernel::flash3;
  if (has("flash") || has("Flash")) return AttentionKernel::flash2;
  return AttentionKernel::any;
}

// Whether a call has a causal mask, from its flag if the rule has one.
bool is_causal(const FrameworkCall& call, const AttentionRule& rule) {
  if (rule.causal_at < 0) return true;
  const auto at = static_cast<std::size_t>(rule.causal_at);
  // The efficient kernel has a number for its mask: 1 and 2 are causal.
  return flag_at(call, at, integer_at(call, at, call.arguments.empty() ? 1 : 0) != 0);
}

// Number of sequences in a packed batch: [tokens, heads, head_dim] and the cumulative sums of lengths.
struct Packing {
  std::int64_t batch = 1;
};
Packing packing_of(const FrameworkCall& call) {
  for (const TensorArgument& tensor : call.inputs) {
    const bool sums = tensor.shape.size() == 1 && tensor.shape[0] >= 2 &&
                      (tensor.dtype == DType::int32 || tensor.dtype == DType::int64);
    if (sums) return {tensor.shape[0] - 1};
  }
  return {};
}

}  // namespace

// Shapes of queries, keys and values in three memory layouts.
Status attention_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const AttentionRule& details = rule.as<AttentionRule>();
  const auto first = static_cast<std::size_t>(details.queries_at);
  STEPCAST_ASSIGN(const TensorArgument* q, need_tensor(call, first, 3));
  STEPCAST_ASSIGN(const TensorArgument* k, need_tensor(call, first + 1, 3));
  STEPCAST_ASSIGN(const TensorArgument* v, need_tensor(call, first + 2, 3));
  if (k->shape.size() != q->shape.size() || v->shape.size() != q->shape.size() || q->shape.size() > 4)
    return missing(call, "queries, keys and values differ in dimensions");
  AttentionShape shape{.causal = is_causal(call, details), .kernel = kernel_of(call.name)};
  HeadLayout layout = details.layout;
  if (q->shape.size() == 3) layout = HeadLayout::packed;
  if (layout == HeadLayout::packed) {
    // Packed sequences count with their mean length.
    const std::int64_t batch = packing_of(call).batch;
    shape.batch = batch;
    shape.query_length = (q->shape[0] + batch - 1) / batch;
    shape.key_length = (k->shape[0] + batch - 1) / batch;
  } else {
    const std::size_t length = layout == HeadLayout::heads_first ? 2 : 1;
    shape.batch = q->shape[0];
    shape.query_length = q->shape[length];
    shape.key_length = k->shape[length];
  }
  const std::size_t heads = layout == HeadLayout::tokens_first ? 2 : 1;
  shape.heads = q->shape[heads];
  shape.key_value_heads = k->shape[heads];
  shape.head_dim = q->shape.back();
  if (v->shape.back() != shape.head_dim) shape.value_head_dim = v->shape.back();
  out.push_back(attention(shape, q->dtype, rule.direction));
  return Ok{};
}

}  // namespace stepcast::detail
