// Fits the mean of a Gaussian process to the residuals of closed forms.
#pragma once

#include <cstddef>
#include <span>

#include "stepcast/cost/families/gaussian_process.h"
#include "stepcast/cost/families/kernel_features.h"

namespace stepcast::detail {

// With more points than this other models are trained: the cost grows with the cube of the number, and trees have enough
// points.
inline constexpr std::size_t kMostForProcess = 200, kMostForSizes = GaussianProcess::kMostPoints;

// The features of the process. shapes: everything that selects kernels. sizes: only both sizes and the kind of rows or elements.
enum class ProcessOver { shapes, sizes };

// `rows`: features of the set, point by point. `weights`: number of measurements behind each target, which is their median.
// The reach and the noise are those with the least leave-one-out error. If neighbours do not help, that is the shortest
// reach: a point then affects little but its own shape.
[[nodiscard]] GaussianProcess::Parameters train_gaussian_process(KernelFeatureSet set, ProcessOver over,
                                                                 std::span<const float> rows,
                                                                 std::span<const float> targets,
                                                                 std::span<const float> weights);

}  // namespace stepcast::detail
