// Training steps that `stepcast-collect` measured (docs/collector.md): the rows of steps.csv, and the GPUs of all folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

struct CollectedStep {
  std::string name, gpu, model;
  DType dtype = DType::fp32;
  std::string optimizer;            // adamw_fused, momentum_sgd, sgd
  std::int64_t batch = 0;           // samples
  std::int64_t seq_len_tokens = 0;  // 0: none
  double ms = 0;                    // without a profiler, median
  double peak_GiB = 0;              // allocated; 0: not measured
  // GPU-bound: p10 and p90 differ by at most 2 % of the median. In host-bound steps they differ by 8 to 65 %.
  bool gpu_decides = false;
  std::filesystem::path description;  // steps/CASE.json
};

struct CollectedGpu {
  std::filesystem::path folder;
  std::vector<CollectedStep> steps;  // at least one
};

// The GPUs of the folders in `data` with a steps.csv; if there is none, those of data/measured in the source tree, and
// `data` is set to that path. Errors: no such folder, a table that cannot be read.
[[nodiscard]] Result<std::vector<CollectedGpu>> collected_gpus(std::filesystem::path& data);

// The platform of the GPU with the host times from the captures of all other GPUs; as shipped if there are none.
[[nodiscard]] Result<Platform> with_hosts_of_others(const CollectedGpu& gpu,
                                                    const std::vector<CollectedGpu>& all);

// The same case on another GPU, or a null pointer.
[[nodiscard]] const CollectedStep* on_other_gpu(const CollectedStep& step,
                                                const std::vector<CollectedGpu>& gpus);

}  // namespace stepcast
