// Writes what is in front of the first layer and behind the last one: embedding; final norm, logits and loss.
#pragma once

#include "stepcast/workload/detail/layer_writer.h"

namespace stepcast::detail {

class EndWriter : public LayerWriter {
 public:
  explicit EndWriter(const LayerWriter& writer) : LayerWriter(writer) { frozen_ = {}; }
  [[nodiscard]] LayerWork embedding() const;
  [[nodiscard]] LayerWork head() const;
  // Of one rank.
  [[nodiscard]] double word_embedding_parameters() const;
  // What a layer makes of its vector of the embedding: gated by its output, projected back and added.
  void add_own_vector(WorkList& list, Direction direction) const;

 private:
  [[nodiscard]] WorkList embedding(Direction direction) const;
  [[nodiscard]] WorkList head(Direction direction) const;
  void predict_further_tokens(WorkList& list, Direction direction) const;
  void vectors_of_layers(WorkList& list, Direction direction) const;
};

}  // namespace stepcast::detail
