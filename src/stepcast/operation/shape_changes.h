// Shapes that are like others: of more samples, or as small as the same kernel is launched for.
#pragma once

#include <cstdint>

#include "stepcast/operation/operation.h"

namespace stepcast {

// Knows which extents of a recorded step count its samples. Every function grows what it is given, or returns false.
class BatchGrowth {
 public:
  virtual ~BatchGrowth() = default;
  [[nodiscard]] virtual double ratio() const = 0;  // samples wanted over those recorded
  virtual bool grow(std::int64_t& extent) const = 0;
  // Not if they are as many as a weight has.
  virtual bool grow_elements(std::int64_t& elements) const = 0;
  virtual bool grow_product(GemmShape& shape, Direction direction, bool backward) const = 0;
  virtual bool grow_transfer(TransferShape& shape) const = 0;
};

// The work of more samples; false: nothing of it counts them. `backward`: run by the backward pass, whatever its direction.
bool grow(Operation& operation, const BatchGrowth& batch, bool backward);

// The same kernel with as little work as one block has.
[[nodiscard]] Operation smallest_like(const Operation& operation);

}  // namespace stepcast
