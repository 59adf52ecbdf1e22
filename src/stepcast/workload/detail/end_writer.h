// Writes the work before the first layer and after the last one: embedding; final norm, logits and loss.
#pragma once

#include "stepcast/workload/detail/layer_writer.h"

namespace stepcast::detail {

class EndWriter : public LayerWriter {
 public:
  explicit EndWriter(const LayerWriter& writer) : LayerWriter(writer) { frozen_ = {}; }
  // The embedding, with the vision tower if there is one.
  [[nodiscard]] LayerWork embedding() const;
  // Final norm, output matrix and loss.
  [[nodiscard]] LayerWork head() const;
  // On one rank.
  [[nodiscard]] double word_embedding_parameters() const;
  // The use of the per-layer embedding vector in a layer: gated by the output of the layer, projected back
  // and added.
  void add_own_vector(WorkList& list, Direction direction) const;

 private:
  [[nodiscard]] WorkList embedding(Direction direction) const;
  [[nodiscard]] WorkList head(Direction direction) const;
  void predict_further_tokens(WorkList& list, Direction direction) const;
  // The per-layer vectors of all layers.
  void vectors_of_layers(WorkList& list, Direction direction) const;
};

}  // namespace stepcast::detail
