// Writes dense FFNs and their activation, for the dense part of a layer and for shared experts.
#pragma once

#include <cstdint>

#include "stepcast/workload/detail/layer_writer.h"

namespace stepcast::detail {

class FeedForwardWriter : public LayerWriter {
 public:
  explicit FeedForwardWriter(const LayerWriter& writer) : LayerWriter(writer) {}
  // An FFN of width `ffn`, split over tensor-parallel ranks. `communicate`: input and result are distributed
  // over the ranks.
  void ffn_forward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const;
  void ffn_backward(WorkList& list, std::int64_t ffn, bool fp8, bool communicate) const;
  // The activation function on `elements` elements; gated ones read two inputs.
  void activation(WorkList& list, double elements, Direction direction) const;

 private:
  void clamped_activation(WorkList& list, double elements, Direction direction) const;
};

}  // namespace stepcast::detail
