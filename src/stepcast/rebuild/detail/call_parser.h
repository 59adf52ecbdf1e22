// The arguments of an operator as execution traces write them: three parallel lists of values, shapes and
// types.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "stepcast/operation/framework_ops.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast::detail {

// The elements of a JSON list as written; none if the text is no list. Brackets inside texts do not count.
[[nodiscard]] std::vector<std::string_view> list_elements(std::string_view list);

struct ParsedArguments {
  std::vector<TensorArgument> tensors;  // those in (nested) lists too
  std::vector<CallArgument> arguments;  // one for each type
};

// `uses` tell where the tensors lie, in order; what has no use counts as on the GPU. Tensors that are not
// defined become arguments without value. Texts that are damaged give fewer arguments, never an error.
[[nodiscard]] ParsedArguments parse_arguments(std::string_view values, std::string_view shapes,
                                              std::string_view types, std::span<const TensorUse> uses);

}  // namespace stepcast::detail
