// Scores networks that are told by their operations (describe/network_presets.h) against the GPU time of traces: each by its
// name, image size, batch and type alone, as kernels take on the platform of the GPU.
//
//   networks               (primary) milliseconds of all kernels of an iteration, sets by trace
//   networks_utilisation   the trivial answer: the FLOPs of the iteration at the median share of the peak that the other
//                          traces reach
//
// "shipped": nothing is fitted to these rows; docs/constants.md says which rates of convolutions and pooling were chosen with
// traces of ResNet-50, VGG-13 and ResNet-18 in view. Forward passes of recorded inference count the forward pass alone.
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// `data`: the folder of all measured data.
[[nodiscard]] Result<SuiteResult> validate_networks(const std::filesystem::path& data);

[[nodiscard]] Suite network_suite();

}  // namespace stepcast
