// States and work of optimizers: one row per OptimizerKind, used for memory, work, recommendation models and
// readers of settings.
//
//   const OptimizerRule& rule = rule_of(OptimizerKind::muon);
//   rule.moments                    1 state per parameter
//   rule.matrix.iterations          5 Newton-Schulz iterations per weight matrix
//   rule_of(rule.rest).moments      2: AdamW updates the other parameters
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/stated.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// Optimizer state of an embedding table, in addition to its rows.
struct TableState {
  double bytes_per_row = 0, bytes_per_element = 0;
};

// Treatment of matrix sides longer than MatrixRule::largest_side.
enum class LargeSides : std::uint8_t {
  leave_out,  // no square matrix for this side
  cut,        // the weight matrix is divided into equal blocks
};

// Update of weight matrices by a matrix optimizer. A side of length s has `square_states` matrices of s x s;
// m is the shorter side of a weight matrix, n the longer one.
struct MatrixRule {
  // Newton-Schulz iterations with three GEMMs each: A = X X', B = b A + c A A, X = a X + B X, in total 4 m m
  // n + 2 m m m FLOPs.
  Stated<int> iterations;
  // Square matrices per side in fp32: statistics of the gradient, and matrices derived from them.
  Stated<int> square_states;
  // GEMMs with a square matrix per side and step, in addition to the update of the statistics.
  Stated<int> products_per_side;
  // Bases or roots are recomputed at this interval, with this number of FLOPs per cube of the side.
  Stated<int> renewal_interval_steps;
  Stated<double> renewal_flops_per_cube;
  Stated<std::int64_t> largest_side;  // 0: no limit
  Stated<LargeSides> large_sides;
  // Type of the operands of these GEMMs, and of gathered matrices.
  Stated<DType> products;
  // Whether every matrix has one owner among the ranks that share the optimizer: gradients are all-reduced
  // and no matrix is gathered. Otherwise ranks have parts, and gather whole matrices in the type above.
  Stated<bool> owned_whole;

  // Whether this is a matrix optimizer.
  [[nodiscard]] constexpr bool takes_matrices() const { return iterations > 0 || square_states > 0; }
};

// The row of an optimizer.
struct OptimizerRule {
  Stated<OptimizerKind> kind;
  Stated<std::string_view> name;
  // States per parameter updated by this rule, in Precision::moments.
  Stated<int> moments;
  // FLOPs of the element-wise part, counted term by term: Adam takes 3 for the first moment, 4 for the
  // second, 3 for the denominator and 3 for the step.
  Stated<double> flops_per_parameter;
  Stated<int> kernels_unfused;  // kernels of an unfused element-wise update
  // State per embedding table; none: not supported for embedding tables.
  Stated<std::optional<TableState>> table;
  Stated<MatrixRule> matrix;
  // Optimizer of embeddings, output matrix, norms and biases.
  Stated<OptimizerKind> rest;

  [[nodiscard]] constexpr bool updates_tables() const { return (*table).has_value(); }
  [[nodiscard]] constexpr TableState table_state() const { return (*table).value_or(TableState{}); }
};

namespace detail {

// Matrix rule of element-wise optimizers.
inline constexpr MatrixRule kElementByElement{.iterations = 0,
                                              .square_states = 0,
                                              .products_per_side = 0,
                                              .renewal_interval_steps = 1,
                                              .renewal_flops_per_cube = 0,
                                              .largest_side = 0,
                                              .large_sides = LargeSides::leave_out,
                                              .products = DType::fp32,
                                              .owned_whole = false};

// Jordan et al. 2024 and torch.optim.Muon: five iterations in bf16. Ranks that share a matrix gather its
// momentum in bf16 (Liu et al. 2025, "Muon is scalable for LLM training", section 2.3).
inline constexpr MatrixRule kNewtonSchulz{.iterations = 5,
                                          .square_states = 0,
                                          .products_per_side = 0,
                                          .renewal_interval_steps = 1,
                                          .renewal_flops_per_cube = 0,
                                          .largest_side = 0,
                                          .large_sides = LargeSides::leave_out,
                                          .products = DType::bf16,
                                          .owned_whole = false};

// Megatron Core's LayerWiseDistributedOptimizer (dist_muon): every rank updates the whole matrices that it
// owns.
constexpr MatrixRule owned_whole(MatrixRule rule) {
  rule.owned_whole = true;
  return rule;
}

// Shi et al. 2023, "A Distributed Data-Parallel PyTorch Implementation of the Distributed Shampoo Optimizer":
// statistics and inverse roots of blocks of at most 8192, roots every 100 steps as in its README. An
// eigendecomposition takes about 9 s s s (Golub and Van Loan, section 8.3), the root from it another 2: an
// estimate.
inline constexpr MatrixRule kInverseRoots{.iterations = 0,
                                          .square_states = 2,
                                          .products_per_side = 1,
                                          .renewal_interval_steps = 100,
                                          .renewal_flops_per_cube = 11,
                                          .largest_side = 8192,
                                          .large_sides = LargeSides::cut,
                                          .products = DType::fp32,
                                          .owned_whole = true};

// Vyas et al. 2024, "SOAP: Improving and Stabilizing Shampoo using Adam", and its code: Adam in the
// eigenbases of the statistics; gradients are rotated into them and updates back. Bases are renewed every 10
// steps by one power iteration, a GEMM of 2 s s s FLOPs and a QR decomposition with its factor of 8/3 s s s.
// Sides above 10000 have no basis.
inline constexpr MatrixRule kEigenbases{.iterations = 0,
                                        .square_states = 2,
                                        .products_per_side = 2,
                                        .renewal_interval_steps = 10,
                                        .renewal_flops_per_cube = 2 + 8.0 / 3,
                                        .largest_side = 10'000,
                                        .large_sides = LargeSides::leave_out,
                                        .products = DType::fp32,
                                        .owned_whole = false};

// The row of an element-wise optimizer.
constexpr OptimizerRule element_by_element(OptimizerKind kind, std::string_view name, int moments,
                                           double flops_per_parameter, int kernels_unfused,
                                           TableState table) {
  return {.kind = kind,
          .name = name,
          .moments = moments,
          .flops_per_parameter = flops_per_parameter,
          .kernels_unfused = kernels_unfused,
          .table = std::optional{table},
          .matrix = kElementByElement,
          .rest = kind};
}

// The row of a matrix optimizer; AdamW updates the other parameters.
constexpr OptimizerRule by_matrices(OptimizerKind kind, std::string_view name, int moments,
                                    double flops_per_parameter, int kernels_unfused,
                                    const MatrixRule& matrix) {
  return {.kind = kind,
          .name = name,
          .moments = moments,
          .flops_per_parameter = flops_per_parameter,
          .kernels_unfused = kernels_unfused,
          .table = std::optional<TableState>{},
          .matrix = matrix,
          .rest = OptimizerKind::adamw};
}

}  // namespace detail

inline constexpr std::size_t kOptimizerCount = static_cast<std::size_t>(OptimizerKind::count);

// Embedding tables: row-wise Adagrad (of FBGEMM) keeps one number per row, momentum one and Adam two per
// element. Muon's element-wise part: 3 for the momentum, 3 for Nesterov's, 3 for the norm, 1 for the decay, 2
// for the step.
inline constexpr std::array<OptimizerRule, kOptimizerCount> kOptimizerRules{
    detail::element_by_element(OptimizerKind::sgd, "sgd", 0, 2, 1, {}),
    detail::element_by_element(OptimizerKind::momentum_sgd, "momentum_sgd", 1, 4, 3, {0, 4}),
    detail::element_by_element(OptimizerKind::adam, "adam", 2, 13, 9, {0, 8}),
    detail::element_by_element(OptimizerKind::adamw, "adamw", 2, 14, 9, {0, 8}),
    detail::element_by_element(OptimizerKind::adagrad, "adagrad", 1, 7, 4, {4, 0}),
    detail::element_by_element(OptimizerKind::lamb, "lamb", 2, 20, 9, {0, 8}),
    detail::by_matrices(OptimizerKind::muon, "muon", 1, 12, 6, detail::kNewtonSchulz),
    detail::by_matrices(OptimizerKind::dist_muon, "dist_muon", 1, 12, 6,
                        detail::owned_whole(detail::kNewtonSchulz)),
    // Filtered gradient and the second moment of the grafted Adam.
    detail::by_matrices(OptimizerKind::shampoo, "shampoo", 2, 20, 12, detail::kInverseRoots),
    detail::by_matrices(OptimizerKind::soap, "soap", 2, 14, 9, detail::kEigenbases)};

namespace detail {
// Lets rule_of() index by value.
consteval bool rows_stand_in_the_order_of_kinds() {
  for (std::size_t i = 0; i < kOptimizerCount; ++i)
    if (static_cast<std::size_t>(*kOptimizerRules[i].kind) != i) return false;
  return true;
}
}  // namespace detail
static_assert(detail::rows_stand_in_the_order_of_kinds());

[[nodiscard]] constexpr const OptimizerRule& rule_of(OptimizerKind kind) {
  return kOptimizerRules[static_cast<std::size_t>(kind)];
}
// The optimizer with a name as in settings: "adamw". None: unknown.
[[nodiscard]] constexpr std::optional<OptimizerKind> find_optimizer(std::string_view name) {
  for (const OptimizerRule& rule : kOptimizerRules)
    if (*rule.name == name) return *rule.kind;
  return std::nullopt;
}

// The same, only optimizers that can update embedding tables.
[[nodiscard]] std::optional<OptimizerKind> find_table_optimizer(std::string_view name);
// The names that find_table_optimizer() accepts: "sgd, adagrad, ...".
[[nodiscard]] std::string table_optimizer_names();

}  // namespace stepcast
