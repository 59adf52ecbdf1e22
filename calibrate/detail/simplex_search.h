// Minimises a function of a few variables without derivatives (Nelder and Mead), for functions with kinks.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace stepcast::detail {

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
