// How often products with a sparse matrix fetch rows of the dense one from memory: the rows that an LRU cache of the
// size of the last-level cache does not hold, by the access pattern of the columns (cost/access_pattern.h).
#pragma once

#include "stepcast/cost/access_pattern.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// Of `lookups` rows of so many bytes each.
[[nodiscard]] double fetched_rows(const AccessPattern& pattern, double lookups, double row_bytes,
                                  double cache_bytes);

// Of C = S D and of its gradients, dD = S' dC and the entries of dS, with nonzeros that are spread evenly over the
// columns and rows of S: the work of operation/detail/shape_traits.h with rows fetched as often as the cache makes it. A shape that
// states its `reuse` keeps it.
[[nodiscard]] Work sparse_work(const Operation& operation, const SparseShape& shape, double cache_bytes);

}  // namespace stepcast
