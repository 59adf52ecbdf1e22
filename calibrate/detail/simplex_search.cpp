#include "calibrate/detail/simplex_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepcast::detail {

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
