// What optimizers keep and do: one row per OptimizerKind, which memory, work, recommendation models and readers of
// settings ask.
//
//   const OptimizerRule& rule = rule_of(OptimizerKind::muon);
//   rule.moments                    1 state per parameter
//   rule.matrix.iterations          5 of Newton-Schulz on every weight matrix
//   rule_of(rule.rest).moments      2: AdamW updates what is no weight matrix
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

// What an optimizer keeps beside an embedding table.
struct TableState {
  double bytes_per_row = 0, bytes_per_element = 0;
};

// Sides of a matrix beyond MatrixRule::largest_side.
enum class LargeSides : std::uint8_t {
  leave_out,  // have no square matrix
  cut,        // the weight matrix is cut into equal blocks
};

// How weight matrices are updated by an optimizer that takes them as wholes. A side of length s has `square_states`
// matrices of s x s; m is the shorter side of a matrix, n the longer one.
struct MatrixRule {
  // Newton-Schulz iterations of three products each: A = X X', B = b A + c A A, X = a X + B X, which are
  // 4 m m n + 2 m m m FLOPs.
  Stated<int> iterations;
  // In fp32, per side: statistics of the gradient, and what is derived from them.
  Stated<int> square_states;
  // Products with a square matrix per side and step, besides the one that adds to the statistics.
  Stated<int> products_per_side;
  // Bases or roots are derived anew every so many steps, at so many FLOPs per cube of the side.
  Stated<int> renewal_interval_steps;
  Stated<double> renewal_flops_per_cube;
  Stated<std::int64_t> largest_side;  // 0: any
  Stated<LargeSides> large_sides;
  // Operands of the products, and what ranks gather that share a matrix.
  Stated<DType> products;
  // Every matrix has one owner among the ranks that share the optimizer: gradients are all-reduced and no part of a
  // matrix is gathered. Otherwise ranks hold parts, and gather whole matrices in the type of the products.
  Stated<bool> owned_whole;

  [[nodiscard]] constexpr bool takes_matrices() const { return iterations > 0 || square_states > 0; }
};

struct OptimizerRule {
  Stated<OptimizerKind> kind;
  Stated<std::string_view> name;
  // States per parameter that is updated by this rule, in Precision::moments.
  Stated<int> moments;
  // Of the element-wise part, counted term by term: Adam takes 3 for the first moment, 4 for the second, 3 for the
  // denominator and 3 for the step.
  Stated<double> flops_per_parameter;
  Stated<int> kernels_unfused;  // element-wise steps of the update when each is a kernel
  // Nothing: embedding tables are not updated so.
  Stated<std::optional<TableState>> table;
  Stated<MatrixRule> matrix;
  // What updates embeddings, output matrix, norms and biases.
  Stated<OptimizerKind> rest;

  [[nodiscard]] constexpr bool updates_tables() const { return (*table).has_value(); }
  [[nodiscard]] constexpr TableState table_state() const { return (*table).value_or(TableState{}); }
};

namespace detail {

inline constexpr MatrixRule kElementByElement{.iterations = 0,
                                              .square_states = 0,
                                              .products_per_side = 0,
                                              .renewal_interval_steps = 1,
                                              .renewal_flops_per_cube = 0,
                                              .largest_side = 0,
                                              .large_sides = LargeSides::leave_out,
                                              .products = DType::fp32,
                                              .owned_whole = false};

// Jordan et al. 2024 and torch.optim.Muon: five iterations in bf16. Ranks that share a matrix gather its momentum in
// bf16 (Liu et al. 2025, "Muon is scalable for LLM training", section 2.3).
inline constexpr MatrixRule kNewtonSchulz{.iterations = 5,
                                          .square_states = 0,
                                          .products_per_side = 0,
                                          .renewal_interval_steps = 1,
                                          .renewal_flops_per_cube = 0,
                                          .largest_side = 0,
                                          .large_sides = LargeSides::leave_out,
                                          .products = DType::bf16,
                                          .owned_whole = false};

// Megatron Core's LayerWiseDistributedOptimizer (dist_muon): every rank updates whole weights of its own.
constexpr MatrixRule owned_whole(MatrixRule rule) {
  rule.owned_whole = true;
  return rule;
}

// Shi et al. 2023, "A Distributed Data-Parallel PyTorch Implementation of the Distributed Shampoo Optimizer": statistics
// and inverse roots of blocks of at most 8192, roots every 100 steps, as its README sets it up. An eigendecomposition
// takes about 9 s s s (Golub and Van Loan, section 8.3), the root from it another 2: an estimate.
inline constexpr MatrixRule kInverseRoots{.iterations = 0,
                                          .square_states = 2,
                                          .products_per_side = 1,
                                          .renewal_interval_steps = 100,
                                          .renewal_flops_per_cube = 11,
                                          .largest_side = 8192,
                                          .large_sides = LargeSides::cut,
                                          .products = DType::fp32,
                                          .owned_whole = true};

// Vyas et al. 2024, "SOAP: Improving and Stabilizing Shampoo using Adam", and its code: Adam in the eigenbases of the
// statistics, gradients turned into them and updates back; bases anew every 10 steps by one power iteration, a product of
// 2 s s s and a QR decomposition with its factor of 8/3 s s s; sides above 10000 have none.
inline constexpr MatrixRule kEigenbases{.iterations = 0,
                                        .square_states = 2,
                                        .products_per_side = 2,
                                        .renewal_interval_steps = 10,
                                        .renewal_flops_per_cube = 2 + 8.0 / 3,
                                        .largest_side = 10'000,
                                        .large_sides = LargeSides::leave_out,
                                        .products = DType::fp32,
                                        .owned_whole = false};

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

// `rest` is updated by AdamW.
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

// Embedding tables: row-wise Adagrad (of FBGEMM) keeps one number per row, momentum one and Adam two per element.
// Muon's element-wise part: 3 for the momentum, 3 for Nesterov's, 3 for the norm, 1 for the decay, 2 for the step.
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
[[nodiscard]] constexpr std::optional<OptimizerKind> find_optimizer(std::string_view name) {
  for (const OptimizerRule& rule : kOptimizerRules)
    if (*rule.name == name) return *rule.kind;
  return std::nullopt;
}

// One that embedding tables are updated by, and all their names: "sgd, adagrad, ...".
[[nodiscard]] std::optional<OptimizerKind> find_table_optimizer(std::string_view name);
[[nodiscard]] std::string table_optimizer_names();

}  // namespace stepcast
