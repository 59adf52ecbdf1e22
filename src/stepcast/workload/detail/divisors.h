// Nearest divisors and multiples, for the advice of checks: "3 or 5".
#pragma once

#include <cstdint>
#include <string>

namespace stepcast::detail {

// The divisors of `n` next to `wanted`: the largest one up to it and the smallest one from it on. n, wanted >
// 0. O(sqrt(n)).
[[nodiscard]] std::string nearest_divisors(std::int64_t n, std::int64_t wanted);
// The multiples of `step` next to `wanted`, without 0. step, wanted > 0.
[[nodiscard]] std::string nearest_multiples(std::int64_t step, std::int64_t wanted);

}  // namespace stepcast::detail
