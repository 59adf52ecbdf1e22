// Timelines of pipeline-parallel jobs: a list of Chrome events with one event per operator, rank and step, as
// published for straggler analysis (ByteDance-Seed/StragglerAnalysis). One file contains all ranks on one
// clock.
//
// Thread 5 r + k is lane k of rank r. Lane 0: computation. Lanes 1, 2 and 3: transfers of the pipeline,
// tensor and data groups. Lane 4: other work. `args` contains the step and the micro-batch. The time of a
// transfer starts when its last member has arrived.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/base/string_table.h"

namespace stepcast {

// An operator or transfer of one rank. Times are in microseconds.
struct PipelineOp {
  std::int64_t step = 0;
  std::int32_t rank = 0;
  std::uint8_t lane = 0;  // 0 to 4, see above
  NameId name;            // "forward-compute", "backward-send", "grads-reduce-scatter", ...
  double start_us = 0;
  double duration_us = 0;

  // Lanes 1 to 3 are transfers.
  [[nodiscard]] bool is_transfer() const { return lane >= 1 && lane <= 3; }
  [[nodiscard]] double end_us() const { return start_us + duration_us; }
};

// A timeline in memory.
struct PipelineTimeline {
  std::string file;
  StringTable names;
  std::vector<PipelineOp> ops;      // ordered by step, rank, start, end
  std::vector<std::int64_t> steps;  // ascending
  std::vector<std::int32_t> ranks;  // ascending
  std::uint64_t bad_times = 0;      // operators left out because of an invalid time
};

// Reads a file. Errors: JSON of another form, an operator without name, step or thread.
[[nodiscard]] Result<PipelineTimeline> read_pipeline_timeline(const std::filesystem::path& file);
// The same from memory; `name` is used in errors.
[[nodiscard]] Result<PipelineTimeline> parse_pipeline_timeline(std::string_view content, std::string name);

}  // namespace stepcast
