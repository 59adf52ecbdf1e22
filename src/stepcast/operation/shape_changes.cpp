#include "stepcast/operation/shape_changes.h"

#include <variant>

#include "stepcast/operation/detail/shape_traits.h"

namespace stepcast {

bool grow(Operation& operation, const BatchGrowth& batch, bool backward) {
  // The traits of a shape name the extents that count samples.
  return std::visit(
      [&](auto& s) { return detail::TraitsOf<decltype(s)>::grow(s, batch, operation.direction, backward); },
      operation.shape);
}

Operation smallest_like(const Operation& operation) {
  // The type and direction stay, since they choose the kernel.
  const auto smallest = [](const auto& s) -> OperationShape {
    return detail::TraitsOf<decltype(s)>::smallest(s);
  };
  return {std::visit(smallest, operation.shape), operation.dtype, operation.direction};
}

}  // namespace stepcast
