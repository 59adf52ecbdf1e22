// Composition: with durations fixed, a block acts on the times at its ports as a max-plus matrix, out_i =
// max_j (in_j + A_ij).
//
// In-ports of the matrix: the block's lanes, its in-ports, the completions of its collective tasks.
// Out-ports: the lanes, the out-ports, the arrivals at its collective tasks. Evaluating a Program over
// matrices gives the same lane times as the sweep, to rounding, in a time that depends on the ports and not
// on the tasks.
//
//   Result<ComposedProgram> composed = ComposedProgram::compose(program, costs);
//   Result<ComposedResult> result = composed->evaluate();
//   double step_us = result->end_us();
//
// A second way to the times of the engine, which shares with it the order of the work alone: tests hold the
// two against each other. It works because the times in a block are built from the values at its ports with
// maximum and addition of constants, and max(a, b) + c = max(a + c, b + c). Sums are formed in another order
// than in the sweep, so results agree to rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

namespace detail {
class Composer;
}  // namespace detail

// Dense max-plus matrix; -infinity means "does not depend on".
class MaxPlusMatrix {
 public:
  // All entries -infinity.
  MaxPlusMatrix(std::size_t rows, std::size_t columns);
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] double& at(std::size_t row, std::size_t column) { return values_[row * columns_ + column]; }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const {
    return values_[row * columns_ + column];
  }
  bool operator==(const MaxPlusMatrix&) const = default;

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

// A Program under one scenario, reduced to the moments where instances and ranks meet: lane and slot values
// after each instance, arrivals at collectives and their completions. Each is the maximum of earlier ones
// plus constants (rows of block matrices), so one pass over them evaluates the Program for a choice of start
// offsets. Needs neither Program nor Costs any more.
class ComposedProgram {
 public:
  // Fails with the same sentences as Program::check and Costs::check.
  [[nodiscard]] static Result<ComposedProgram> compose(const Program& program, const Costs& costs);
  // One start offset per rank class; empty: all 0.
  [[nodiscard]] Result<ComposedResult> evaluate(const std::vector<double>& start_offset_us = {}) const;

  // Moments and the constants between them: what an evaluation costs.
  [[nodiscard]] std::size_t moment_count() const { return first_term_.size() - 1; }
  [[nodiscard]] std::size_t term_count() const { return terms_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  friend class detail::Composer;
  struct Term {
    double delay_us;
    std::uint32_t moment;
  };
  ComposedProgram() = default;

  std::size_t class_count_ = 0;  // the first moments are the start offsets of the classes
  std::vector<std::size_t> first_term_ = {
      0};  // [moment], one more at the end; moments in an order they can be computed in
  std::vector<Term> terms_;
  std::vector<std::vector<std::uint32_t>> lane_moment_;  // [class][lane]
};

}  // namespace stepcast
