// Small dense least squares, robust and bounded, for fits with a handful of parameters.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace stepcast::detail {

// Lower triangle of a symmetric positive definite matrix, row by row, replaced by its Cholesky factor.
// False if the matrix is not positive definite.
[[nodiscard]] bool cholesky(std::span<double> matrix, std::size_t n);
// Solves L L^T v = v in place, the inverse of L L^T, and its diagonal alone.
void cholesky_solve(std::span<const double> factor, std::size_t n, std::span<double> v);
[[nodiscard]] std::vector<double> cholesky_inverse(std::span<const double> factor, std::size_t n);
[[nodiscard]] std::vector<double> inverse_diagonal(std::span<const double> factor, std::size_t n);

// Minimises sum_i w_i^2 rho(r_i(p)) + sum_j ((p_j - centre_j) / spread_j)^2 over low <= p <= high with
// Levenberg-Marquardt. rho is quadratic up to about `robust_scale` and linear beyond (pseudo-Huber), so that
// single bad points do not drag the fit.
struct LeastSquares {
  std::vector<double> low, high;       // per parameter
  std::vector<double> centre, spread;  // per parameter; spread huge: no preference
  std::vector<double> weights;         // per residual
  double robust_scale = 1e9;
  int max_iterations = 40;
  std::function<void(std::span<const double> parameters, std::span<double> residuals)> residuals;

  // Improves `parameters` from where they are; returns the cost reached.
  double minimise(std::vector<double>& parameters) const;
  [[nodiscard]] double cost(std::span<const double> parameters) const;
};

// Minimises a function of a few variables without derivatives (Nelder and Mead), for functions with kinks.

struct SimplexSearch {
  std::vector<double> low, high;  // bounds; points are moved inside
  std::vector<double> step;       // first size of the simplex per variable
  int max_evaluations = 300;
  double tolerance = 1e-5;  // stops when the values of the simplex differ by less
  std::function<double(std::span<const double>)> value;

  // Improves `at`; returns the value reached.
  double minimise(std::vector<double>& at) const;
};

}  // namespace stepcast::detail
