// Shapes related to a given one: with more samples, or the smallest for the same kernel.
#pragma once

#include <cstdint>

#include "stepcast/operation/operation.h"

namespace stepcast {

// Scales the extents of a recorded step that count samples. Every function grows its argument, or returns
// false.
class BatchGrowth {
 public:
  virtual ~BatchGrowth() = default;
  [[nodiscard]] virtual double ratio() const = 0;  // wanted samples over recorded samples
  // An extent that may count samples.
  virtual bool grow(std::int64_t& extent) const = 0;
  // A number of elements; not if a weight has the same number.
  virtual bool grow_elements(std::int64_t& elements) const = 0;
  // The extents of a GEMM; `backward`: it ran in the backward pass.
  virtual bool grow_product(GemmShape& shape, Direction direction, bool backward) const = 0;
  // The bytes of a copy.
  virtual bool grow_transfer(TransferShape& shape) const = 0;
};

// The operation for more samples; false: none of its extents counts samples. `backward`: it ran in the
// backward pass, whatever its direction.
bool grow(Operation& operation, const BatchGrowth& batch, bool backward);

// The same kernel with the work of a single block.
[[nodiscard]] Operation smallest_like(const Operation& operation);

}  // namespace stepcast
