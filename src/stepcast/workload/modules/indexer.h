// The indexer of sparse attention (SparseIndexer) as a part of a layer: it scores all earlier tokens for
// every query and selects the best. It is replicated on all tensor-parallel ranks. The kind of attention
// determines the source of its queries.
#pragma once

#include <cstdint>

#include "stepcast/base/result.h"
#include "stepcast/workload/step_work.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

namespace detail {
class ActivationCount;
class LayerWriter;
}  // namespace detail

class Indexer {
 public:
  // Parameters per layer; 0 where the layer has no indexer.
  [[nodiscard]] static std::int64_t parameters(const Transformer& model);
  // Adds the projections, scores and selection, or their gradients; nothing without an indexer.
  static void forward(const detail::LayerWriter& writer, WorkList& list);
  static void backward(const detail::LayerWriter& writer, WorkList& list);
  // Kept bytes: queries and keys, and the selected keys of every query.
  [[nodiscard]] static double kept(const detail::ActivationCount& count);
  // Sizes within their ranges.
  [[nodiscard]] static Status check(const Transformer& model);
};

}  // namespace stepcast
