// Writes blocks of networks that are told by their operations (workload/network.h, modules/network_block.cpp).
#pragma once

#include <cstdint>

#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/network.h"

namespace stepcast::detail {

class NetworkWriter : private LayerWriter {
 public:
  explicit NetworkWriter(const LayerWriter& writer) : LayerWriter(writer) {}
  // Adds the block's work forward and backward, and its parameters.
  void network_block(const NetworkBlock& block, LayerWork& work) const;
  // The vision tower of a language model: in front of the embedding forward, behind its gradient backward.
  void add_tower(LayerWork& work) const;

 private:
  void network_part(WorkList& list, const NetworkPart& part, Direction direction) const;
  [[nodiscard]] Linear linear_of(const NetworkPart& part) const;
  void sum_over_tensor(WorkList& list, const NetworkPart& part, std::int64_t width) const;
};

}  // namespace stepcast::detail
