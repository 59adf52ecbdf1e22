// Copies, gathers, transfers, embedding tables.
#include <algorithm>

#include "stepcast/operation/detail/op_rules.h"

namespace stepcast::detail {
namespace {

// Whether a tensor may contain indices.
bool is_index(const TensorArgument& tensor) {
  return tensor.dtype == DType::int64 || tensor.dtype == DType::int32;
}

// A copy between host and device, of the larger of both sizes.
Status transfer_between(const TensorArgument& to, const TensorArgument& from, bool pinned,
                        OperationList& out) {
  const auto bytes = static_cast<std::int64_t>(std::min(std::max(bytes_of(to), bytes_of(from)), 1e18));
  out.push_back({TransferShape{.kind = to.on_gpu ? MemcpyKind::host_to_device : MemcpyKind::device_to_host,
                               .bytes = bytes,
                               .pinned = pinned},
                 to.dtype});
  return Ok{};
}

}  // namespace

// copy_(to, from, non_blocking)
Status copy_rule(const FrameworkCall& call, const Rule&, OperationList& out) {
  STEPCAST_ASSIGN(const TensorArgument* to, need_tensor(call, 0, 0));
  const TensorArgument* from = tensor_at(call, 1);
  if (from == nullptr) {
    // _to_copy(from): the result is the output.
    from = to;
    if (!call.outputs.empty()) to = &call.outputs.front();
  }
  // Whether host memory is pinned is not recorded; code that asks for a non-blocking copy has pinned it.
  if (to->on_gpu != from->on_gpu) return transfer_between(*to, *from, flag_at(call, 2, false), out);
  const std::int64_t elements = to->elements();
  const std::int64_t inner = to->shape.empty() ? 1 : to->shape.back();
  const double to_size = element_size(to->dtype).value(), from_size = element_size(from->dtype).value();
  if (to->dtype != from->dtype && to_size > 0) {
    // In elements of the narrower type: widening and narrowing casts use different kernels.
    const bool widens = from_size > 0 && to_size > from_size;
    const double element = widens ? from_size : to_size;
    const double reads = static_cast<double>(from->elements()) * from_size /
                         std::max(static_cast<double>(elements) * element, 1.0);
    out.push_back(elementwise({.function = ElementwiseFunction::cast,
                               .elements = elements,
                               .reads = static_cast<float>(reads),
                               .writes = static_cast<float>(to_size / element),
                               .flops_per_element = 0,
                               .inner = inner},
                              widens ? from->dtype : to->dtype));
    return Ok{};
  }
  out.push_back({MovementShape{MovementKind::copy, elements, inner}, to->dtype});
  return Ok{};
}

// clone(x, memory_format): if a contiguous result was requested, x was not contiguous.
Status clone_rule(const FrameworkCall& call, const Rule&, OperationList& out) {
  STEPCAST_ASSIGN(const TensorArgument* x, need_tensor(call, 0, 0));
  constexpr std::int64_t kContiguous = 0, kPreserve = 1;  // c10::MemoryFormat
  const bool strided = integer_at(call, 1, kPreserve) == kContiguous;
  out.push_back({MovementShape{strided ? MovementKind::transpose : MovementKind::copy, x->elements(),
                               x->shape.empty() ? 1 : x->shape.back()},
                 x->dtype});
  return Ok{};
}

// Kind and moved tensor of a movement operator, by the positions of its rule.
Status movement_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const MovementRule& details = rule.as<MovementRule>();
  const TensorArgument* moved = nullptr;
  if (details.values_at >= 0) moved = tensor_at(call, static_cast<std::size_t>(details.values_at));
  for (const TensorArgument& tensor : call.outputs)
    if (moved == nullptr && tensor.on_gpu) moved = &tensor;
  if (moved == nullptr) moved = largest(call);
  if (moved == nullptr) return missing(call, "no tensor with an element type");
  MovementShape shape{.kind = details.kind, .elements = moved->elements()};
  switch (shape.kind) {
    case MovementKind::gather:
    case MovementKind::scatter: {
      // The rows that one index selects are contiguous.
      const TensorArgument* index =
          details.index_at >= 0 ? tensor_at(call, static_cast<std::size_t>(details.index_at)) : nullptr;
      for (std::size_t i = 1; i < call.inputs.size() && index == nullptr; ++i)
        if (is_index(call.inputs[i]) || call.inputs[i].dtype == DType::boolean) index = &call.inputs[i];
      if (shape.kind == MovementKind::scatter && details.values_at >= 0 && index != nullptr &&
          tensor_at(call, static_cast<std::size_t>(details.values_at)) == nullptr) {
        // A scalar is written to every indexed position.
        shape.elements = index->elements();
      }
      if (index != nullptr && index->elements() > 0)
        shape.inner = std::max<std::int64_t>(shape.elements / index->elements(), 1);
      break;
    }
    default: shape.inner = moved->shape.empty() ? 1 : moved->shape.back(); break;
  }
  out.push_back({shape, moved->dtype});
  return Ok{};
}

// A scalar that the program waits for.
Status to_host_rule(const FrameworkCall& call, const Rule&, OperationList& out) {
  STEPCAST_ASSIGN(const TensorArgument* x, need_tensor(call, 0, 0));
  if (!x->on_gpu) return Ok{};
  out.push_back({TransferShape{.kind = MemcpyKind::device_to_host,
                               .bytes = static_cast<std::int64_t>(element_size(x->dtype).value()),
                               .pinned = false},
                 x->dtype});
  return Ok{};
}

// "memcpy_h2d" and similar events.
Status transfer_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  STEPCAST_ASSIGN(const TensorArgument* x, need_tensor(call, 0, 0));
  out.push_back({TransferShape{.kind = rule.as<TransferRule>().kind,
                               .bytes = static_cast<std::int64_t>(std::min(bytes_of(*x), 1e18))},
                 x->dtype});
  return Ok{};
}

// embedding(weight, indices); embedding_dense_backward(dy, indices, rows, ...)
Status embedding_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const bool forward = rule.direction == Direction::forward;
  STEPCAST_ASSIGN(const TensorArgument* table, need_tensor(call, 0, 1));
  STEPCAST_ASSIGN(const TensorArgument* indices, need_tensor(call, 1, 0));
  LookupShape shape{.dim = table->shape.back(), .bags = indices->elements()};
  shape.rows = forward ? table->shape[0] : integer_at(call, 2, 0);
  if (!forward && shape.rows < 1 && !call.outputs.empty() && !call.outputs.front().shape.empty())
    shape.rows = call.outputs.front().shape[0];
  out.push_back({shape, table->dtype, rule.direction});
  return Ok{};
}

// _embedding_bag(weight, indices, offsets, ...);
// _embedding_bag_dense_backward(dy, indices, offset2bag, bag_size, maximum_indices, rows, ...)
Status embedding_bag_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const bool forward = rule.direction == Direction::forward;
  STEPCAST_ASSIGN(const TensorArgument* table, need_tensor(call, 0, 2));
  STEPCAST_ASSIGN(const TensorArgument* indices, need_tensor(call, 1, 1));
  LookupShape shape{.dim = table->shape.back()};
  if (forward) {
    shape.rows = table->shape[0];
    const TensorArgument* offsets = tensor_at(call, 2);
    shape.bags = indices->shape[0];  // two dimensions: one bag per row
    if (indices->shape.size() == 1 && offsets != nullptr) shape.bags = offsets->elements();
    if (!call.outputs.empty() && call.outputs.front().shape.size() == 2)
      shape.bags = call.outputs.front().shape[0];
  } else {
    shape.bags = table->shape[0];
    shape.rows = integer_at(call, 5, 0);
  }
  shape.pooling =
      static_cast<double>(indices->elements()) / static_cast<double>(std::max<std::int64_t>(shape.bags, 1));
  out.push_back({shape, table->dtype, rule.direction});
  return Ok{};
}

// Many tables in one kernel. In every version the order is: weights and placements, D_offsets, total_D,
// max_D, hash_size_cumsum, its bits, indices, offsets. The backward has the arguments of its forward.
Status table_batched_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  using Kind = CallArgument::Kind;
  std::size_t total_at = 0;
  while (total_at < call.arguments.size() && call.arguments[total_at].kind != Kind::integer) ++total_at;
  std::vector<const TensorArgument*> behind;
  for (std::size_t i = total_at; i < call.arguments.size() && behind.size() < 3; ++i)
    if (const TensorArgument* tensor = tensor_at(call, i); tensor != nullptr) behind.push_back(tensor);
  const TensorArgument* d_offsets = total_at > 0 ? tensor_at(call, total_at - 1) : nullptr;
  if (behind.size() < 3 || d_offsets == nullptr)
    return missing(call, "needs D_offsets, total_D, the indices and the offsets of the lookup");
  const std::int64_t total_dim = call.arguments[total_at].integer;
  const std::int64_t tables = d_offsets->elements() - 1;
  const std::int64_t bags = behind[2]->elements() - 1;
  if (tables < 1 || total_dim < 1 || bags < 0)
    return missing(call, "tables, dimensions or offsets are not positive");
  // Elements of all weights give the mean number of rows.
  double weights = 0;
  DType dtype = DType::unknown;
  for (std::size_t i = 0; i < total_at; ++i) {
    for (const TensorArgument& tensor : tensors_at(call, i)) {
      if (is_index(tensor)) continue;
      weights += static_cast<double>(tensor.elements());
      if (dtype == DType::unknown || tensor.elements() > 0) dtype = tensor.dtype;
    }
  }
  LookupShape shape{.tables = tables,
                    .rows = static_cast<std::int64_t>(weights / static_cast<double>(total_dim)),
                    .dim = (total_dim + tables - 1) / tables,
                    .bags = bags / tables,
                    .pooling = static_cast<double>(behind[1]->elements()) /
                               static_cast<double>(std::max<std::int64_t>(bags, 1)),
                    .fused_update = rule.as<TableRule>().fused_update};
  out.push_back({shape, dtype, rule.direction});
  return Ok{};
}

}  // namespace stepcast::detail
