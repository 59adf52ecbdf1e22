// Writes dense FFNs and their activation: the dense part of a layer, and shared experts.
#pragma once

#include <cstdint>

#include "stepcast/workload/detail/layer_writer.h"

namespace stepcast::detail {

class FeedForwardWriter : public LayerWriter {
 public:
  explicit FeedForwardWriter(const LayerWriter& writer) : LayerWriter(writer) {}
  // An FFN of width `ffn`, of which a tensor-parallel rank has its share. `communicate`: input and result are spread.
  void ffn_forward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const;
  void ffn_backward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const;
  void activation(WorkList& list, double elements, Direction direction) const;

 private:
  void clamped_activation(WorkList& list, double elements, Direction direction) const;
};

}  // namespace stepcast::detail
