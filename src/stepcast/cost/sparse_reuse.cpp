#include "stepcast/cost/sparse_reuse.h"

#include <algorithm>

namespace stepcast {
namespace {

constexpr double kCacheShare = 0.9;  // of the last-level cache that holds rows
constexpr double kIndexBytes = 8;    // as operation/detail/shape_facts.h has it

}  // namespace

double fetched_rows(const AccessPattern& pattern, double lookups, double row_bytes, double cache_bytes) {
  if (lookups <= 0) return 0;
  const double cached = row_bytes > 0 ? kCacheShare * cache_bytes / row_bytes : 0;
  return lookups - pattern.hits(lookups, cached);
}

Work sparse_work(const Operation& operation, const SparseShape& s, double cache_bytes) {
  Work work = work_of(operation);
  if (s.reuse > 0 || s.nonzeros <= 0 || s.rows < 1 || s.inner < 1) return work;
  const double element = element_size(operation.dtype).value();
  const auto rows = static_cast<double>(s.rows), inner = static_cast<double>(s.inner);
  const double row_of_d = static_cast<double>(s.cols) * (s.sparse_result ? element + kIndexBytes : element);
  // What work_of() takes for granted: a row that is used is fetched once.
  const auto more = [&](double n) {
    const double fetched = fetched_rows(AccessPattern::uniform(n), s.nonzeros, row_of_d, cache_bytes);
    return (fetched - std::min(s.nonzeros, n)) * row_of_d;
  };
  double bytes = 0;
  const Direction d = operation.direction;
  if (d == Direction::forward || d == Direction::backward || d == Direction::weight_gradient)
    bytes += more(inner);
  // Rows of dC in the order of the columns of S.
  if (d == Direction::backward || d == Direction::input_gradient) bytes += more(rows);
  work.bytes_read = Bytes{std::max(0.0, work.bytes_read.value() + bytes)};
  return work;
}

}  // namespace stepcast
