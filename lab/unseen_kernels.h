// The tests of the suite kernels on GPUs that nobody measured (kernels_suite.h says which).
#pragma once

#include <filesystem>
#include <vector>

#include "stepcast/base/result.h"

#include "lab/kernel_sets.h"
#include "lab/suite.h"

namespace stepcast {

// unseen_gpu, unseen_gpu_20_points, unseen_gpu_half and unseen_gpu_half_siblings, as far as the data go.
[[nodiscard]] Result<std::vector<TestScore>> score_unseen_gpus(
    const std::vector<DeviceRows>& devices, const std::vector<std::filesystem::path>& files,
    const PublishedErrors& published, unsigned threads);

}  // namespace stepcast
