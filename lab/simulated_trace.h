// Converts a simulated timeline to a recorded trace.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/program/block.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

struct SimulatedTrace {
  RecordedRank recorded;
  // [index into the original's gpu_ops] -> index here; 0xffffffff: not in the step.
  std::vector<std::uint32_t> gpu_op;
};

// Events of one rank at their simulated times. `measured` and `simulated` are the intervals of the tasks of the rank.
//
// Runtime calls and GPU work take the times of their tasks. Framework ops begin and end at boundaries of tasks of their
// thread, so their times follow from neighbouring tasks. Events before or after the step move with its begin or end. GPU
// work without a task is left out.
[[nodiscard]] SimulatedTrace simulated_trace(const RecordedRank& original, const Block& block,
                                             const std::vector<Interval>& measured,
                                             const std::vector<Interval>& simulated,
                                             Interval recorded_step_us, double simulated_step_start_us,
                                             double simulated_step_end_us);

// Zero of the common clock, from a task and its recorded event.
[[nodiscard]] Nanoseconds clock_origin(const RecordedRank& original, const Block& block,
                                       const std::vector<Interval>& measured);

// True for any work on a stream.
[[nodiscard]] inline bool is_gpu_work(TaskKind kind) {
  return kind == TaskKind::kernel || kind == TaskKind::memcpy || kind == TaskKind::memset ||
         kind == TaskKind::collective;
}

}  // namespace stepcast
