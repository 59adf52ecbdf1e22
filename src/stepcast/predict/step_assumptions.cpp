#include "stepcast/predict/step_assumptions.h"

#include <cmath>

namespace stepcast {
namespace {

constexpr double kGpusOfNode = 8;

// The normal quantile of 1 - `tail`, for tails below 0.5. Abramowitz and Stegun 26.2.23; absolute error below
// 4.5e-4.
double upper_quantile(double tail) {
  const double t = std::sqrt(-2 * std::log(tail));
  return t -
         (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

// Expected maximum of n standard normal deviates (Blom): the tail is 1 - (n - 3/8) / (n + 1/4).
double expected_largest(double n) { return upper_quantile(0.625 / (n + 0.25)); }

}  // namespace

double slowest_gpu_excess(std::int64_t n_gpus, double spread) {
  const double n = static_cast<double>(n_gpus);
  if (n <= kGpusOfNode) return 0;
  return spread * (expected_largest(n) - expected_largest(kGpusOfNode));
}

}  // namespace stepcast
