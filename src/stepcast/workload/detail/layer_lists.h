// Composes the operations and transfers of one layer from its modules (workload/modules/), for one rank and
// one micro-batch: adds norms and residuals, recomputation, and CUDA graphs.
#pragma once

#include <cstdint>

#include "stepcast/workload/detail/layer_writer.h"
#include "stepcast/workload/modules/layer_module.h"
#include "stepcast/workload/step_work.h"

namespace stepcast::detail {

class LayerLists : public LayerWriter {
 public:
  using LayerWriter::LayerWriter;

  // The variant of layer `layer` of the model, with index `in_chunk` in its chunk.
  [[nodiscard]] LayerVariant variant(std::int64_t layer, std::int64_t in_chunk) const;
  // First layer from which variant() depends only on the index in the chunk; n_layers if it always depends on
  // both.
  [[nodiscard]] std::int64_t alike_from() const;
  // The work of a layer variant.
  [[nodiscard]] LayerWork layer(const LayerVariant& variant) const;
  // Bytes of activations that a stage sends to the next one, per rank.
  [[nodiscard]] Bytes boundary() const;

 private:
  // Writes the work that selective recomputation repeats before the backward pass of a layer.
  void recompute_modules(WorkList& list, const LayerVariant& variant) const;
  // The same for every kind of recomputation.
  void recompute(WorkList& backward, const WorkList& forward, const LayerVariant& variant) const;
  void layer_forward(WorkList& forward, const LayerVariant& variant) const;
  void layer_backward(WorkList& backward, const LayerVariant& variant) const;
  void count_parameters(LayerWork& work, const LayerVariant& variant) const;
  // Adds this layer's part of the host work per micro-batch.
  void add_part_of_micro_batch(WorkList& list) const;
  // Whether the parts of a layer are launched as CUDA graphs.
  struct Captured {
    bool attention = false, ffn = false;
  };
  [[nodiscard]] Captured captured(const LayerVariant& variant) const;

  // The mixer part and the feed-forward part of a layer, each with norms and residual.
  void mix(WorkList& list, const LayerVariant& variant, Direction direction) const;
  void feed(WorkList& list, const LayerVariant& variant, Direction direction) const;
  // The modules of one part, in order; reversed for backward.
  void add_modules(WorkList& list, LayerPart::Slot slot, const LayerVariant& variant,
                   Direction direction) const;
  [[nodiscard]] LayerWork network_layer(const LayerVariant& variant) const;
};

}  // namespace stepcast::detail
