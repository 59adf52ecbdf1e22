// Composition: with durations fixed, a block acts on the times at its ports as a max-plus matrix, out_i =
// max_j (in_j + A_ij).
//
// In-ports of the matrix: the block's lanes, its in-ports, the completions of its collective tasks.
// Out-ports: the lanes, the out-ports, the arrivals at its collective tasks. Evaluating a Program over
// matrices gives the same lane times as the sweep, to rounding, in a time that depends on the ports and not
// on the tasks; a run of n equal instances costs log2(n) products.
#pragma once

#include <cstddef>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

// Dense max-plus matrix; -infinity means "does not depend on".
class MaxPlusMatrix {
 public:
  MaxPlusMatrix(std::size_t rows, std::size_t columns);
  static MaxPlusMatrix identity(std::size_t n);
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] double& at(std::size_t row, std::size_t column) { return values_[row * columns_ + column]; }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const {
    return values_[row * columns_ + column];
  }
  // this after `first`.
  [[nodiscard]] MaxPlusMatrix after(const MaxPlusMatrix& first) const;
  [[nodiscard]] MaxPlusMatrix power(std::uint64_t exponent) const;
  [[nodiscard]] std::vector<double> apply(const std::vector<double>& in) const;

 private:
  std::size_t rows_, columns_;
  std::vector<double> values_;
};

// Rows: lanes, out-ports, collective arrivals. Columns: lanes, in-ports, collective completions.
[[nodiscard]] MaxPlusMatrix block_matrix(const Block& block, std::span<const double> duration_us,
                                         std::span<const double> delay_us);

// Final lane times of every rank class, folded. [class][lane].
struct ComposedResult {
  std::vector<std::vector<double>> lane_free_us;
  [[nodiscard]] double end_us() const;
};

// A Program's block matrices under one scenario, ready to be evaluated for many start offsets.
class ComposedProgram {
 public:
  [[nodiscard]] static Result<ComposedProgram> compose(const Program& program, const Costs& costs);
  // One start offset per rank class; empty: all 0.
  [[nodiscard]] Result<ComposedResult> evaluate(const std::vector<double>& start_offset_us = {}) const;

 private:
  const Program* program_ = nullptr;
  const Costs* costs_ = nullptr;
  std::vector<MaxPlusMatrix> matrices_;                 // [block]
  std::vector<std::vector<MaxPlusMatrix>> run_powers_;  // [class][instances with repeat > 1, in order]
};

}  // namespace stepcast
