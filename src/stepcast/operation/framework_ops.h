// Maps operators of a framework to Operations: the GPU work that a call such as `aten::addmm` with given
// tensors launches.
//
//   const TensorArgument tensors[] = {{{1024}, DType::bf16}, {{4096, 512}, DType::bf16},
//                                     {{512, 1024}, DType::bf16}};
//   auto operations = operations_of({.name = "aten::addmm", .inputs = tensors});
//   describe(operations->front())   "gemm bf16 forward m=4096 n=1024 k=512 bias"
//
// The table is tables/framework_ops.csv; docs/reference/operators.md shows it. Names are those of PyTorch's
// profiler and execution traces, without the underscore of in-place forms and the number after `Backward`. A
// name ending in `*` matches all names with that prefix (the longest match wins). An unknown name is an
// Error, never an operation without work.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// A tensor of a call.
struct TensorArgument {
  std::vector<std::int64_t> shape;
  DType dtype = DType::unknown;
  bool on_gpu = true;
  // Equal for arguments in the same memory, which is read once (x * x). 0: unknown.
  std::uint64_t memory = 0;
  // Number of elements; saturates far above the size of any memory.
  [[nodiscard]] std::int64_t elements() const;
};

// One argument, in the order of the signature of the operator.
struct CallArgument {
  enum class Kind : std::uint8_t { none, tensor, tensors, boolean, integer, real, integers, text };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // value of a boolean or integer
  double real = 0;           // value of an integer or real
  std::vector<std::int64_t> integers;
  std::string text;
  std::uint32_t first_tensor = 0, tensors = 0;  // index into FrameworkCall::inputs, and number of tensors
};

// A recorded call of an operator.
struct FrameworkCall {
  std::string_view name;
  std::span<const TensorArgument> inputs;   // all tensors, including those in lists
  std::span<const TensorArgument> outputs;  // empty if unknown
  // Arguments by position. Empty if unknown: the inputs then have the positions 0, 1, ... and scalars have
  // their defaults.
  std::span<const CallArgument> arguments;
  bool tf32_allowed = false;  // fp32 GEMMs run on TF32 units
};

using OperationList = std::vector<Operation>;

// How to treat an operator in a trace.
enum class OpRole : std::uint8_t {
  unknown,
  annotation,     // marks a section of the program
  view,           // never launches GPU work: views, allocation, metadata
  communication,  // collectives, modelled elsewhere
  forwarding,     // only the operators that it calls launch work: aten::to
  composite,      // the same, but represents their work if the trace does not contain them: aten::linear
  kernel,         // launches kernels and represents all operators that it calls
};
[[nodiscard]] std::string_view to_string(OpRole role);

// The operations that a call launches, in order; none for views, CPU tensors and empty tensors. Errors name
// the operator: unknown, or without the tensors that determine its work.
[[nodiscard]] Result<OperationList> operations_of(const FrameworkCall& call);

// The role of an operator. Also resolves spellings: in-place operators, names with the prefix of the autograd
// engine or a number after `Backward`, foreach operators, fused Triton kernels.
[[nodiscard]] OpRole role_of(std::string_view name);
[[nodiscard]] inline bool is_known(std::string_view name) { return role_of(name) != OpRole::unknown; }

// A row of the table, for documentation.
struct FrameworkOp {
  std::string_view name;
  OpRole role = OpRole::unknown;
  std::string_view family;  // family_of() the operations; empty: none
  Direction direction = Direction::forward;
};
// All rows, ordered by name. Names ending in `*` match all names with that prefix.
[[nodiscard]] const std::vector<FrameworkOp>& framework_ops();

// The parts of the name of a kernel fused by Inductor: "triton_poi_fused_add_gelu_3" is a pointwise kernel of
// "add" and "gelu".
struct FusedKernelName {
  enum class Kind : std::uint8_t { pointwise, reduction, persistent_reduction, template_kernel, other };
  Kind kind = Kind::other;
  std::vector<std::string_view> parts;  // operators without "aten::", in the order of the name
  std::size_t unknown_parts = 0;        // number of parts that are not in the table
};
// Parses such a name into `out`. False for other names.
[[nodiscard]] bool parse_fused_kernel_name(std::string_view name, FusedKernelName& out);

}  // namespace stepcast
