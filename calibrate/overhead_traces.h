// The overheads of all steps of all traces that somebody names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/overhead_samples.h"

namespace stepcast {

// What was read as one job: the ranks of a folder, or a file by itself.
struct OverheadSource {
  std::string name;
  std::string device;  // of the first rank; empty: not in the file
  std::size_t ranks = 0;
  std::size_t steps = 0;  // of each rank; 1 where the whole file counts as a step
};

struct TraceOverheads {
  OverheadSamples samples;
  std::vector<OverheadSource> sources;
  struct LeftOut {
    std::string what, why;
  };
  std::vector<LeftOut> left_out;  // files, and steps that could not be rebuilt
};

// Each of `places` is a folder with the traces of a job, or of several, or a file. Errors: a place that does
// not exist, or none that holds an overhead. `threads`: for reading; 0: one per hardware thread.
[[nodiscard]] Result<TraceOverheads> read_overheads(std::span<const std::filesystem::path> places,
                                                    unsigned threads = 0);

}  // namespace stepcast
