// Analytic time of an Operation, from the data-sheet figures of the device alone: roofline, tiles and waves,
// launch floor. It is the fallback for every operation on every GPU, the denominator of fitted models, and
// the lower bound of every forecast.
#pragma once

#include "stepcast/base/quantity.h"
#include "stepcast/cost/access_pattern.h"
#include "stepcast/cost/device_figures.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// Revision of the formulas. Fitted models predict a ratio to the analytic time, so a record fitted to another
// revision is not usable.
inline constexpr int kAnalyticRevision = 2;

// The answers of time(), lower_bound() and work_of() from one evaluation, for callers on the hot path.
struct AnalyticTime {
  Microseconds time, lower_bound;
  Work work;
};

// Times of operations on one device. Copies the device; const calls are thread-safe.
class AnalyticModel {
 public:
  explicit AnalyticModel(const Device& device);

  // Time with its band. The source is `analytic` where the device states every figure that the operation
  // needs, else `assumed`. Never zero.
  [[nodiscard]] Estimate estimate(const Operation& operation) const;
  // The time alone: the denominator of fitted models.
  [[nodiscard]] Microseconds time(const Operation& operation) const;
  // No correct implementation on this device is faster: arithmetic at peak rate (minimum-FLOP convolution),
  // and the bytes that cannot stay in the last-level cache at peak memory bandwidth.
  [[nodiscard]] Microseconds lower_bound(const Operation& operation) const;

  [[nodiscard]] AnalyticTime answer(const Operation& operation) const;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] const DeviceFigures& figures() const { return figures_; }

 private:
  Device device_;
  DeviceFigures figures_;
};

// Number of rows of the dense operand that a sparse GEMM fetches from memory: the rows that an LRU cache of
// `cache_bytes` does not contain, for `lookups` rows of `row_bytes` bytes with this access pattern of the
// columns (cost/access_pattern.h).
[[nodiscard]] double fetched_rows(const AccessPattern& pattern, double lookups, double row_bytes,
                                  double cache_bytes);

// Work of C = S D and of its gradients dD = S' dC and dS (at the entries of S), with nonzeros spread evenly
// over the rows and columns of S. It is work_of() (operation/detail/shape_traits.h) plus the rows that the
// cache fetches more than once. A shape with a stated `reuse` keeps it.
[[nodiscard]] Work sparse_work(const Operation& operation, const SparseShape& shape, double cache_bytes);

}  // namespace stepcast
