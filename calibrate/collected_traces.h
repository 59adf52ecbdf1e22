// Traces in a folder of the collector (docs/collector.md), with the times of their steps without a profiler.
#pragma once

#include <filesystem>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

struct CollectedTrace {
  std::filesystem::path file;  // a profiler trace
  // Time of its step without a profiler: the median over the batch sizes of the same model and type. 0: not measured.
  double unprofiled_us = 0;
};

// Reads steps.csv, overheads.csv and traces/. Empty if `folder` is not of the collector. Errors: a table that cannot be
// read.
[[nodiscard]] Result<std::vector<CollectedTrace>> collected_traces(const std::filesystem::path& folder);

}  // namespace stepcast
