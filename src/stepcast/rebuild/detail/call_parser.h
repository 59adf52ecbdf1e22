// Parses the arguments of operators in execution traces, which have three parallel lists: values, shapes and
// types.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "stepcast/operation/framework_ops.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast::detail {

// The elements of a JSON list as they are written; empty if the text is not a list. Brackets inside texts do
// not count.
[[nodiscard]] std::vector<std::string_view> list_elements(std::string_view list);

// Parsed arguments of one operator.
struct ParsedArguments {
  std::vector<TensorArgument> tensors;  // all tensors, including those in nested lists
  std::vector<CallArgument> arguments;  // one per type
};

// `uses` gives the location of each tensor, in order; a tensor without an entry counts as on the GPU.
// Undefined tensors become arguments without a value. Damaged texts give fewer arguments, never an error.
[[nodiscard]] ParsedArguments parse_arguments(std::string_view values, std::string_view shapes,
                                              std::string_view types, std::span<const TensorUse> uses);

}  // namespace stepcast::detail
