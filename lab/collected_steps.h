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
  // p10 and p90 lie at most 2 % of the median apart; where the host decides, they lie 8 to 65 % apart.
  bool gpu_decides = false;
  std::filesystem::path description;  // steps/CASE.json
};

struct CollectedGpu {
  std::filesystem::path folder;
  std::vector<CollectedStep> steps;  // at least one
};

// Of the folders in `data` that hold steps.csv or, if there is none, of those of data/measured in the source tree, whose place
// goes to `data`. Errors: no such folder, a table that cannot be read.
[[nodiscard]] Result<std::vector<CollectedGpu>> collected_gpus(std::filesystem::path& data);

// The GPU's platform with the host times of the captures of all other GPUs: as shipped where there are none.
[[nodiscard]] Result<Platform> with_hosts_of_others(const CollectedGpu& gpu,
                                                    const std::vector<CollectedGpu>& all);

// The same case on another GPU, or a null pointer.
[[nodiscard]] const CollectedStep* on_other_gpu(const CollectedStep& step,
                                                const std::vector<CollectedGpu>& gpus);

}  // namespace stepcast
