// Numbers that divide, for the advice of checks: "3 or 5".
#pragma once

#include <cstdint>
#include <string>

namespace stepcast::detail {

// The divisors of `n` next to `wanted`: the largest below and the smallest above. n, wanted > 0.
[[nodiscard]] std::string nearest_divisors(std::int64_t n, std::int64_t wanted);
// The multiples of `step` next to `wanted`, without 0. step, wanted > 0.
[[nodiscard]] std::string nearest_multiples(std::int64_t step, std::int64_t wanted);

}  // namespace stepcast::detail
