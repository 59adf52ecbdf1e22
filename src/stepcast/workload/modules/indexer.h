// The indexer of sparse attention (SparseIndexer) as a part of a layer: scores all earlier tokens for every query and chooses
// the best. Every rank of a tensor-parallel group has all of it. The kind of attention says what its queries come from.
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
  // Of one layer; 0 where it has none of its own.
  [[nodiscard]] static std::int64_t parameters(const Transformer& model);
  static void forward(const detail::LayerWriter& writer, WorkList& list);
  static void backward(const detail::LayerWriter& writer, WorkList& list);
  // Bytes: queries and keys, and which keys every query chose.
  [[nodiscard]] static double kept(const detail::ActivationCount& count);
  [[nodiscard]] static Status check(const Transformer& model);
};

}  // namespace stepcast
