// How much longer the slowest of many GPUs takes than those of one node: in a synchronous step all others wait for it.
#pragma once

#include <cstdint>

namespace stepcast {

// Time of the slowest of `n_gpus` over that of the slowest of the eight of a node, less 1, where speeds of GPUs of one
// kind differ by the standard deviation `spread` (0.015: 1.5 %). 0 for up to eight GPUs: what prices hold, records and
// clocks under load, was measured in single nodes.
//
// The expected largest of n normal deviates, by Blom's approximation (1958): the quantile (n - 3/8) / (n + 1/4). Within
// 1 % of the exact value from 8 on.
[[nodiscard]] double slowest_gpu_excess(std::int64_t n_gpus, double spread);

}  // namespace stepcast
