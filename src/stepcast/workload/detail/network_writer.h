// Writes the blocks of networks that are described by operations (workload/network.h,
// modules/network_block.cpp).
#pragma once

#include <cstdint>

#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/network.h"

namespace stepcast::detail {

class NetworkWriter : private LayerWriter {
 public:
  explicit NetworkWriter(const LayerWriter& writer) : LayerWriter(writer) {}
  // Adds the forward and backward work of a block, and its parameters.
  void network_block(const NetworkBlock& block, LayerWork& work) const;
  // Adds the vision tower of a language model: before the embedding in forward, after its gradient in
  // backward.
  void add_tower(LayerWork& work) const;

 private:
  // One part of a block, for the samples of a micro-batch.
  void network_part(WorkList& list, const NetworkPart& part, Direction direction) const;
  // A GEMM part with weights as a Linear.
  [[nodiscard]] Linear linear_of(const NetworkPart& part) const;
  // The all-reduce of a split GEMM over the tensor-parallel group.
  void sum_over_tensor(WorkList& list, const NetworkPart& part, std::int64_t width) const;
};

}  // namespace stepcast::detail
