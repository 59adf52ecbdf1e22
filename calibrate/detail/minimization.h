// Small dense least squares, robust and bounded, for fits with few parameters.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace stepcast::detail {

// Replaces the lower triangle of a symmetric positive definite matrix, stored row by row, by its Cholesky factor. False if
// the matrix is not positive definite.
[[nodiscard]] bool cholesky(std::span<double> matrix, std::size_t n);
// Solves L L^T x = v in place; the inverse of L L^T; and only the diagonal of that inverse.
void cholesky_solve(std::span<const double> factor, std::size_t n, std::span<double> v);
[[nodiscard]] std::vector<double> cholesky_inverse(std::span<const double> factor, std::size_t n);
[[nodiscard]] std::vector<double> inverse_diagonal(std::span<const double> factor, std::size_t n);

// Minimises sum_i w_i^2 rho(r_i(p)) + sum_j ((p_j - centre_j) / spread_j)^2 over low <= p <= high by Levenberg-Marquardt.
// rho is quadratic up to about `robust_scale` and linear beyond (pseudo-Huber), so that single bad points have little
// effect.
struct LeastSquares {
  std::vector<double> low, high;       // for each parameter
  std::vector<double> centre, spread;  // for each parameter; a huge spread means no prior
  std::vector<double> weights;         // for each residual
  double robust_scale = 1e9;
  int max_iterations = 40;
  std::function<void(std::span<const double> parameters, std::span<double> residuals)> residuals;

  // Starts at `parameters` and replaces them by the minimum found; returns its cost.
  double minimise(std::vector<double>& parameters) const;
  [[nodiscard]] double cost(std::span<const double> parameters) const;
};

// Minimises a function of a few variables without derivatives (Nelder and Mead), for functions with kinks.

struct SimplexSearch {
  std::vector<double> low, high;  // bounds; points are moved inside
  std::vector<double> step;       // initial size of the simplex for each variable
  int max_evaluations = 300;
  double tolerance = 1e-5;  // stops when the values of the simplex differ by less
  std::function<double(std::span<const double>)> value;

  // Starts at `at` and replaces it by the minimum found; returns the value there.
  double minimise(std::vector<double>& at) const;
};

}  // namespace stepcast::detail
