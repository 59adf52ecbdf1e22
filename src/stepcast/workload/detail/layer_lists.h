// Composes the operations and transfers of one layer of its modules (workload/modules/), for one rank and one micro-batch:
// norms and residuals around them, what is computed again, what is captured in CUDA graphs.
#pragma once

#include <cstdint>

#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/modules/layer_module.h"
#include "stepcast/workload/step_work.h"

namespace stepcast::detail {

class LayerLists : public LayerWriter {
 public:
  using LayerWriter::LayerWriter;

  // Layer `layer` of the model, which is number `in_chunk` of its chunk.
  [[nodiscard]] LayerVariant variant(std::int64_t layer, std::int64_t in_chunk) const;
  // From this layer on, variant() looks at the place in the chunk alone; the number of layers where it always looks at both.
  [[nodiscard]] std::int64_t alike_from() const;
  [[nodiscard]] LayerWork layer(const LayerVariant& variant) const;
  // Activations that a stage sends to the next one, per rank.
  [[nodiscard]] Bytes boundary() const;

 private:
  // What selective recomputation computes again before the backward pass of a layer.
  void recompute_modules(WorkList& list, const LayerVariant& variant) const;
  void recompute(WorkList& backward, const WorkList& forward, const LayerVariant& variant) const;
  void layer_forward(WorkList& forward, const LayerVariant& variant) const;
  void layer_backward(WorkList& backward, const LayerVariant& variant) const;
  void count_parameters(LayerWork& work, const LayerVariant& variant) const;
  void add_part_of_micro_batch(WorkList& list) const;
  // Parts of a layer that are launched as CUDA graphs.
  struct Captured {
    bool attention = false, ffn = false;
  };
  [[nodiscard]] Captured captured(const LayerVariant& variant) const;

  // What is behind the first norm of a layer, and behind the second.
  void mix(WorkList& list, const LayerVariant& variant, Direction direction) const;
  void feed(WorkList& list, const LayerVariant& variant, Direction direction) const;
  void add_modules(WorkList& list, LayerPart::Slot slot, const LayerVariant& variant,
                   Direction direction) const;
  [[nodiscard]] LayerWork network_layer(const LayerVariant& variant) const;
};

}  // namespace stepcast::detail
