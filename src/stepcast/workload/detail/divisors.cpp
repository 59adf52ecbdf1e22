#include "stepcast/workload/detail/divisors.h"

#include <fmt/format.h>

namespace stepcast::detail {

// Divisors come in pairs: small and n / small.
std::string nearest_divisors(std::int64_t n, std::int64_t wanted) {
  std::int64_t below = 0, above = 0;
  for (std::int64_t small = 1; small <= n / small; ++small) {
    if (n % small != 0) continue;
    for (const std::int64_t divisor : {small, n / small}) {
      if (divisor <= wanted && divisor > below) below = divisor;
      if (divisor >= wanted && (above == 0 || divisor < above)) above = divisor;
    }
  }
  if (above == 0 || above == below) return fmt::format("{}", below);
  return fmt::format("{} or {}", below, above);
}

std::string nearest_multiples(std::int64_t step, std::int64_t wanted) {
  const std::int64_t below = wanted / step * step;
  if (below == wanted) return fmt::format("{}", below);
  if (below == 0) return fmt::format("{}", step);
  return fmt::format("{} or {}", below, below + step);
}

}  // namespace stepcast::detail
