#include "calibrate/detail/minimization.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepcast::detail {

bool cholesky(std::span<double> matrix, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    double diagonal = matrix[j * n + j];
    for (std::size_t k = 0; k < j; ++k) diagonal -= matrix[j * n + k] * matrix[j * n + k];
    if (!(diagonal > 0)) return false;
    const double root = std::sqrt(diagonal);
    matrix[j * n + j] = root;
    for (std::size_t i = j + 1; i < n; ++i) {
      double v = matrix[i * n + j];
      for (std::size_t k = 0; k < j; ++k) v -= matrix[i * n + k] * matrix[j * n + k];
      matrix[i * n + j] = v / root;
    }
  }
  return true;
}

void cholesky_solve(std::span<const double> factor, std::size_t n, std::span<double> v) {
  for (std::size_t i = 0; i < n; ++i) {
    double s = v[i];
    for (std::size_t k = 0; k < i; ++k) s -= factor[i * n + k] * v[k];
    v[i] = s / factor[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    double s = v[i];
    for (std::size_t k = i + 1; k < n; ++k) s -= factor[k * n + i] * v[k];
    v[i] = s / factor[i * n + i];
  }
}

std::vector<double> cholesky_inverse(std::span<const double> factor, std::size_t n) {
  std::vector<double> inverse(n * n), column(n);
  for (std::size_t c = 0; c < n; ++c) {
    std::ranges::fill(column, 0.0);
    column[c] = 1;
    cholesky_solve(factor, n, column);
    for (std::size_t r = 0; r < n; ++r) inverse[r * n + c] = column[r];
  }
  return inverse;
}

std::vector<double> inverse_diagonal(std::span<const double> factor, std::size_t n) {
  std::vector<double> diagonal(n), column(n);
  for (std::size_t c = 0; c < n; ++c) {
    column[c] = 1 / factor[c * n + c];
    diagonal[c] = column[c] * column[c];
    for (std::size_t i = c + 1; i < n; ++i) {
      double s = 0;
      for (std::size_t k = c; k < i; ++k) s -= factor[i * n + k] * column[k];
      column[i] = s / factor[i * n + i];
      diagonal[c] += column[i] * column[i];
    }
  }
  return diagonal;
}

namespace {

double robust_cost(const LeastSquares& problem, std::span<const double> p, std::span<const double> r) {
  const double scale = problem.robust_scale;
  double sum = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    const double a = r[i] / scale, w = problem.weights[i];
    // 2 scale^2 (sqrt(1 + a^2) - 1), in a form without cancellation for small a.
    sum += w * w * 2 * r[i] * r[i] / (1 + std::sqrt(1 + a * a));
  }
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double d = (p[j] - problem.centre[j]) / problem.spread[j];
    sum += d * d;
  }
  return sum;
}

// Matrix (lower triangle) and gradient of the normal equations at `p`, with residuals `r` and derivatives `jacobian`.
void normal_equations(const LeastSquares& problem, std::span<const double> p, std::span<const double> r,
                      std::span<const double> jacobian, std::span<double> normal,
                      std::span<double> gradient) {
  const std::size_t n = p.size();
  std::ranges::fill(normal, 0.0);
  std::ranges::fill(gradient, 0.0);
  for (std::size_t i = 0; i < r.size(); ++i) {
    const double a = r[i] / problem.robust_scale;
    const double w = problem.weights[i] * problem.weights[i] / std::sqrt(1 + a * a);
    for (std::size_t j = 0; j < n; ++j) {
      const double wj = w * jacobian[i * n + j];
      gradient[j] += wj * r[i];
      for (std::size_t k = 0; k <= j; ++k) normal[j * n + k] += wj * jacobian[i * n + k];
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    const double precision = 1 / (problem.spread[j] * problem.spread[j]);
    gradient[j] += (p[j] - problem.centre[j]) * precision;
    normal[j * n + j] += precision;
  }
}

}  // namespace

double LeastSquares::cost(std::span<const double> parameters) const {
  std::vector<double> r(weights.size());
  residuals(parameters, r);
  return robust_cost(*this, parameters, r);
}

double LeastSquares::minimise(std::vector<double>& p) const {
  const std::size_t n = p.size(), m = weights.size();
  const auto clamp = [&](std::vector<double>& q) {
    for (std::size_t j = 0; j < n; ++j) q[j] = std::clamp(q[j], low[j], high[j]);
  };
  clamp(p);
  std::vector<double> r(m), moved(m), jacobian(m * n), normal(n * n), damped, gradient(n), step, trial;
  residuals(p, r);
  double best = robust_cost(*this, p, r);
  double damping = 1e-2;
  for (int iteration = 0; iteration < max_iterations; ++iteration) {
    for (std::size_t j = 0; j < n; ++j) {
      trial = p;
      double h = 1e-5 * std::max(1.0, std::abs(p[j]));
      if (p[j] + h > high[j]) h = -h;
      trial[j] += h;
      residuals(trial, moved);
      for (std::size_t i = 0; i < m; ++i) jacobian[i * n + j] = (moved[i] - r[i]) / h;
    }
    normal_equations(*this, p, r, jacobian, normal, gradient);
    bool improved = false;
    double reached = best;
    for (int attempt = 0; attempt < 8 && !improved; ++attempt) {
      damped = normal;
      for (std::size_t j = 0; j < n; ++j) damped[j * n + j] *= 1 + damping;
      if (cholesky(damped, n)) {
        step = gradient;
        cholesky_solve(damped, n, step);
        trial = p;
        for (std::size_t j = 0; j < n; ++j) trial[j] -= step[j];
        clamp(trial);
        residuals(trial, moved);
        reached = robust_cost(*this, trial, moved);
        improved = reached < best;
      }
      damping = improved ? std::max(damping * 0.3, 1e-9) : damping * 4;
    }
    if (!improved) break;
    const bool converged = best - reached < 1e-7 * best;
    p = trial;
    r = moved;
    best = reached;
    if (converged) break;
  }
  return best;
}

double SimplexSearch::minimise(std::vector<double>& at) const {
  const std::size_t n = at.size();
  int evaluations = 0;
  struct Corner {
    std::vector<double> x;
    double value;
  };
  const auto corner = [&](std::vector<double> x) {
    for (std::size_t i = 0; i < n; ++i) x[i] = std::clamp(x[i], low[i], high[i]);
    ++evaluations;
    double v = value(x);
    if (!std::isfinite(v)) v = 1e300;
    return Corner{std::move(x), v};
  };
  std::vector<Corner> simplex{corner(at)};
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> x = at;
    x[i] += x[i] + step[i] <= high[i] ? step[i] : -step[i];
    simplex.push_back(corner(std::move(x)));
  }
  const auto better = [](const Corner& a, const Corner& b) { return a.value < b.value; };
  while (evaluations < max_evaluations) {
    std::ranges::stable_sort(simplex, better);
    if (simplex.back().value - simplex.front().value < tolerance) break;
    std::vector<double> centre(n, 0.0);
    for (std::size_t c = 0; c < n; ++c)
      for (std::size_t i = 0; i < n; ++i) centre[i] += simplex[c].x[i] / static_cast<double>(n);
    Corner& worst = simplex.back();
    const auto along = [&](double factor) {
      std::vector<double> x(n);
      for (std::size_t i = 0; i < n; ++i) x[i] = centre[i] + factor * (worst.x[i] - centre[i]);
      return corner(std::move(x));
    };
    Corner reflected = along(-1);
    if (better(reflected, simplex.front())) {
      Corner expanded = along(-2);
      worst = better(expanded, reflected) ? std::move(expanded) : std::move(reflected);
    } else if (better(reflected, simplex[n - 1])) {
      worst = std::move(reflected);
    } else {
      Corner contracted = better(reflected, worst) ? along(-0.5) : along(0.5);
      if (better(contracted, worst) && contracted.value <= reflected.value) {
        worst = std::move(contracted);
      } else {
        for (std::size_t c = 1; c <= n; ++c) {
          std::vector<double> x(n);
          for (std::size_t i = 0; i < n; ++i) x[i] = (simplex[c].x[i] + simplex[0].x[i]) / 2;
          simplex[c] = corner(std::move(x));
        }
      }
    }
  }
  std::ranges::stable_sort(simplex, better);
  at = simplex.front().x;
  return simplex.front().value;
}

}  // namespace stepcast::detail
