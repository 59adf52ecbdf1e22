// Operator-level timelines of pipeline-parallel jobs: a list of Chrome events, one for every operator of every rank and
// step, as published for straggler analysis (ByteDance-Seed/StragglerAnalysis). All ranks are in one file, on one clock.
//
// Thread 5 r + k is lane k of rank r: 0 computation; 1, 2 and 3 transfers of the pipeline, tensor and data groups; 4
// anything else. `args` has the step and the micro-batch. Transfers count from the moment their last member arrived.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/base/string_table.h"

namespace stepcast {

struct PipelineOp {
  std::int64_t step = 0;
  std::int32_t rank = 0;
  std::uint8_t lane = 0;  // 0 to 4, as above
  NameId name;            // "forward-compute", "backward-send", "grads-reduce-scatter", ...
  double start_us = 0;
  double duration_us = 0;

  [[nodiscard]] bool is_transfer() const { return lane >= 1 && lane <= 3; }
  [[nodiscard]] double end_us() const { return start_us + duration_us; }
};

struct PipelineTimeline {
  std::string file;
  StringTable names;
  std::vector<PipelineOp> ops;      // by step, rank, start, end
  std::vector<std::int64_t> steps;  // ascending
  std::vector<std::int32_t> ranks;  // ascending
  std::uint64_t bad_times = 0;      // operators that were left out: their start or duration is none
};

// Errors: JSON that is no such list, an operator without its step or thread.
[[nodiscard]] Result<PipelineTimeline> read_pipeline_timeline(const std::filesystem::path& file);
[[nodiscard]] Result<PipelineTimeline> parse_pipeline_timeline(std::string_view content, std::string name);

}  // namespace stepcast
