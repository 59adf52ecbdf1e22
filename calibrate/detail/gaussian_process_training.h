// Fits the mean of a Gaussian process to what closed forms leave over.
#pragma once

#include <cstddef>
#include <span>

#include "stepcast/cost/families/gaussian_process.h"
#include "stepcast/cost/families/kernel_features.h"

namespace stepcast::detail {

// More points than this train other models: the cost grows with their cube, and trees have enough of them.
inline constexpr std::size_t kMostForProcess = 200, kMostForSizes = GaussianProcess::kMostPoints;

// The features of the process. shapes: everything that selects kernels. sizes: only both sizes and the kind of rows or elements.
enum class ProcessOver { shapes, sizes };

// `rows`: features of the set, point by point; `weights`: measurements that each target is the median of. How far points reach
// and how far they are to be believed are those that leave the least over of points that are left out, one at a time. Where no
// neighbour helps that is the shortest reach: points answer for themselves and for little else.
[[nodiscard]] GaussianProcess::Parameters train_gaussian_process(KernelFeatureSet set, ProcessOver over,
                                                                 std::span<const float> rows,
                                                                 std::span<const float> targets,
                                                                 std::span<const float> weights);

}  // namespace stepcast::detail
