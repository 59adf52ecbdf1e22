// Traces of a folder of the collector (docs/collector.md), with how long their steps take without a profiler.
#pragma once

#include <filesystem>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

struct CollectedTrace {
  std::filesystem::path file;  // a profiler trace
  // Of its step, measured without a profiler: the median over the batch sizes of the same model in the same type. 0: not measured.
  double unprofiled_us = 0;
};

// From steps.csv, overheads.csv and traces/. Empty where `folder` is none of the collector's. Errors: a table that cannot be read.
[[nodiscard]] Result<std::vector<CollectedTrace>> collected_traces(const std::filesystem::path& folder);

}  // namespace stepcast
