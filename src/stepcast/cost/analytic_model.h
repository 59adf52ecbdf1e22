// The time of an Operation from figures of the device alone: roofline, tiles and waves, launch floor. The
// answer of last resort for every operation on every GPU, the quantity that fitted models correct, and the
// bound that no prediction may break.
#pragma once

#include "stepcast/base/quantity.h"
#include "stepcast/cost/access_pattern.h"
#include "stepcast/cost/device_figures.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// Fitted models hold ratios to the analytic time: a record that was fitted to another revision of the
// formulas does not fit this one.
inline constexpr int kAnalyticRevision = 2;

// The same questions answered at once, for callers that count nanoseconds.
struct AnalyticTime {
  Microseconds time, lower_bound;
  Work work;
};

class AnalyticModel {
 public:
  explicit AnalyticModel(const Device& device);

  // Source `analytic` where the device states what the operation needs, else `assumed`. Never zero.
  [[nodiscard]] Estimate estimate(const Operation& operation) const;
  // The time alone: what fitted models take the ratio to.
  [[nodiscard]] Microseconds time(const Operation& operation) const;
  // No correct implementation on this device is faster: arithmetic at peak (minimum-FLOP convolution), bytes
  // that cannot stay in the last-level cache at peak memory bandwidth.
  [[nodiscard]] Microseconds lower_bound(const Operation& operation) const;

  [[nodiscard]] AnalyticTime answer(const Operation& operation) const;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] const DeviceFigures& figures() const { return figures_; }

 private:
  Device device_;
  DeviceFigures figures_;
};

// How often products with a sparse matrix fetch rows of the dense one from memory: the rows that an LRU cache of the
// size of the last-level cache does not hold, by the access pattern of the columns (cost/access_pattern.h).

// Of `lookups` rows of so many bytes each.
[[nodiscard]] double fetched_rows(const AccessPattern& pattern, double lookups, double row_bytes,
                                  double cache_bytes);

// Of C = S D and of its gradients, dD = S' dC and the entries of dS, with nonzeros that are spread evenly over the
// columns and rows of S: the work of operation/detail/shape_traits.h with rows fetched as often as the cache makes it. A shape that
// states its `reuse` keeps it.
[[nodiscard]] Work sparse_work(const Operation& operation, const SparseShape& shape, double cache_bytes);

}  // namespace stepcast
