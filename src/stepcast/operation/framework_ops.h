// From operators of a framework to Operations: which work does a call of `aten::addmm` with these tensors
// launch on the GPU?
//
//   const TensorArgument tensors[] = {{{1024}, DType::bf16}, {{4096, 512}, DType::bf16},
//                                     {{512, 1024}, DType::bf16}};
//   auto operations = operations_of({.name = "aten::addmm", .inputs = tensors});
//   describe(operations->front())   "gemm bf16 forward m=4096 n=1024 k=512 bias"
//
// The table is tables/framework_ops.csv, docs/reference/operators.md shows it. Names are those that PyTorch's profiler and
// execution traces write, without the underscore of their in-place form and without the number behind `Backward`; a name
// ending in `*` stands for all that begin so (the longest such name wins). A name that is not known is an Error, never an
// operation of no work.
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

struct TensorArgument {
  std::vector<std::int64_t> shape;
  DType dtype = DType::unknown;
  bool on_gpu = true;
  // Equal for arguments that are one piece of memory, which is read once: x * x. 0: not known.
  std::uint64_t memory = 0;
  // Product of the shape; saturates far beyond what any memory holds.
  [[nodiscard]] std::int64_t elements() const;
};

// One argument in the order of the operator's signature.
struct CallArgument {
  enum class Kind : std::uint8_t { none, tensor, tensors, boolean, integer, real, integers, text };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // of boolean and integer
  double real = 0;           // of integer and real
  std::vector<std::int64_t> integers;
  std::string text;
  std::uint32_t first_tensor = 0, tensors = 0;  // of FrameworkCall::inputs: a tensor, or those of a list
};

struct FrameworkCall {
  std::string_view name;
  std::span<const TensorArgument> inputs;   // all tensors, those in lists too
  std::span<const TensorArgument> outputs;  // may be unknown: empty
  // With their positions; may be unknown: empty, the inputs then stand at the positions 0, 1, ... and scalars
  // have their defaults.
  std::span<const CallArgument> arguments;
  bool tf32_allowed = false;  // fp32 products run on TF32 units
};

using OperationList = std::vector<Operation>;

// What to expect of an operator in a trace.
enum class OpRole : std::uint8_t {
  unknown,
  annotation,     // marks a stretch of the program
  view,           // never launches GPU work: views, allocation, metadata
  communication,  // collectives, modelled elsewhere
  forwarding,     // launches what the operators it calls launch, and nothing if it calls none: aten::to
  composite,  // the same, but if the trace holds none of them it still stands for their work: aten::linear
  kernel,     // launches kernels and stands for everything below it
};
[[nodiscard]] std::string_view to_string(OpRole role);

// The operations that a call launches, in order; none for views, CPU tensors and empty tensors. Errors name
// the operator: not known, or its tensors do not say what is needed.
[[nodiscard]] Result<OperationList> operations_of(const FrameworkCall& call);

// Also for spellings that stand for a row of the table: in-place operators, names with the prefix of the
// autograd engine or a number behind `Backward`, foreach operators, fused Triton kernels.
[[nodiscard]] OpRole role_of(std::string_view name);
[[nodiscard]] inline bool is_known(std::string_view name) { return role_of(name) != OpRole::unknown; }

// A row of the table, for documentation.
struct FrameworkOp {
  std::string_view name;
  OpRole role = OpRole::unknown;
  std::string_view family;  // of the operations, as family_of calls it; empty: none
  Direction direction = Direction::forward;
};
// By name. Names ending in `*` stand for everything that begins so.
[[nodiscard]] const std::vector<FrameworkOp>& framework_ops();

// The parts that Inductor lists in the name of a fused kernel: "triton_poi_fused_add_gelu_3" is a pointwise
// kernel of "add" and "gelu".
struct FusedKernelName {
  enum class Kind : std::uint8_t { pointwise, reduction, persistent_reduction, template_kernel, other };
  Kind kind = Kind::other;
  std::vector<std::string_view> parts;  // operators without "aten::", in the order of the name
  std::size_t unknown_parts = 0;        // of them, not in the table
};
// False if the name is not one of those.
[[nodiscard]] bool parse_fused_kernel_name(std::string_view name, FusedKernelName& out);

}  // namespace stepcast
