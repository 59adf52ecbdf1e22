#include <algorithm>
#include <unordered_set>

#include "stepcast/operation/detail/op_rules.h"

// Access to the arguments of recorded calls, with defaults for missing ones.

namespace stepcast {

std::int64_t TensorArgument::elements() const {
  // The number of elements is capped, so that shapes in damaged traces do not overflow it.
  constexpr std::int64_t kLargest = std::int64_t{1} << 60;
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    if (extent <= 0) return 0;
    if (product > kLargest / extent) return kLargest;
    product *= extent;
  }
  return product;
}

namespace detail {

const TensorArgument* tensor_at(const FrameworkCall& call, std::size_t position) {
  // Without a list of arguments, the inputs have the positions 0, 1, ...
  if (call.arguments.empty()) return position < call.inputs.size() ? &call.inputs[position] : nullptr;
  if (position >= call.arguments.size()) return nullptr;
  const CallArgument& argument = call.arguments[position];
  if (argument.kind != CallArgument::Kind::tensor || argument.first_tensor >= call.inputs.size())
    return nullptr;
  return &call.inputs[argument.first_tensor];
}

Error missing(const FrameworkCall& call, std::string what) {
  return Error("operator " + std::string(call.name) + " does not say its work: " + std::move(what));
}

Result<const TensorArgument*> need_tensor(const FrameworkCall& call, std::size_t position, std::size_t dims) {
  const TensorArgument* tensor = tensor_at(call, position);
  if (tensor == nullptr) return missing(call, "no tensor as argument " + std::to_string(position));
  if (tensor->shape.size() < dims) {
    return missing(call, "argument " + std::to_string(position) + " has " +
                             std::to_string(tensor->shape.size()) + " dimensions, expected at least " +
                             std::to_string(dims));
  }
  return tensor;
}

std::span<const TensorArgument> tensors_at(const FrameworkCall& call, std::size_t position) {
  if (position >= call.arguments.size()) return {};
  const CallArgument& argument = call.arguments[position];
  if (argument.kind != CallArgument::Kind::tensors && argument.kind != CallArgument::Kind::tensor) return {};
  // The range may end beyond the recorded tensors; it is cut there.
  if (argument.first_tensor > call.inputs.size()) return {};
  return call.inputs.subspan(
      argument.first_tensor,
      std::min<std::size_t>(argument.tensors, call.inputs.size() - argument.first_tensor));
}

std::int64_t integer_at(const FrameworkCall& call, std::size_t position, std::int64_t otherwise) {
  if (position >= call.arguments.size()) return otherwise;
  const CallArgument& argument = call.arguments[position];
  return argument.kind == CallArgument::Kind::integer ? argument.integer : otherwise;
}

std::int64_t list_item(const FrameworkCall& call, std::size_t position, std::size_t i,
                       std::int64_t otherwise) {
  if (position >= call.arguments.size()) return otherwise;
  const CallArgument& argument = call.arguments[position];
  // One number applies to all items; the last item of a short list applies to the missing ones.
  if (argument.kind == CallArgument::Kind::integer) return argument.integer;
  if (argument.kind != CallArgument::Kind::integers || argument.integers.empty()) return otherwise;
  return argument.integers[std::min(i, argument.integers.size() - 1)];
}

double number_at(const FrameworkCall& call, std::size_t position, double otherwise) {
  if (position >= call.arguments.size()) return otherwise;
  const CallArgument& argument = call.arguments[position];
  if (argument.kind == CallArgument::Kind::real) return argument.real;
  return argument.kind == CallArgument::Kind::integer ? static_cast<double>(argument.integer) : otherwise;
}

bool flag_at(const FrameworkCall& call, std::size_t position, bool otherwise) {
  if (position >= call.arguments.size()) return otherwise;
  const CallArgument& argument = call.arguments[position];
  return argument.kind == CallArgument::Kind::boolean ? argument.integer != 0 : otherwise;
}

double bytes_of(const TensorArgument& tensor) {
  return static_cast<double>(tensor.elements()) * element_size(tensor.dtype).value();
}

double bytes_of(std::span<const TensorArgument> tensors) {
  double sum = 0;
  std::unordered_set<std::uint64_t> seen;
  for (const TensorArgument& tensor : tensors)
    // Tensors that share memory count once; memory 0: unknown, counts always.
    if (tensor.on_gpu && (tensor.memory == 0 || seen.insert(tensor.memory).second)) sum += bytes_of(tensor);
  return sum;
}

const TensorArgument* largest(const FrameworkCall& call) {
  const TensorArgument* best = nullptr;
  // Outputs are used only if no input is usable.
  for (const auto tensors : {call.inputs, call.outputs}) {
    for (const TensorArgument& tensor : tensors) {
      if (!tensor.on_gpu || tensor.dtype == DType::unknown) continue;
      if (best == nullptr || tensor.elements() > best->elements()) best = &tensor;
    }
    if (best != nullptr) return best;
  }
  return best;
}

DType product_dtype(const FrameworkCall& call, DType dtype) {
  // Only matrix units have TF32, so this applies to GEMMs and convolutions.
  return dtype == DType::fp32 && call.tf32_allowed ? DType::tf32 : dtype;
}

}  // namespace detail
}  // namespace stepcast
