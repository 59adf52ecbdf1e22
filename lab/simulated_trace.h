// A simulated timeline as if it had been recorded.
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

// One rank's events at their simulated times. `measured` and `simulated` are the intervals of the rank's
// tasks.
//
// Runtime calls and GPU work take the times of their tasks. Framework ops begin and end at boundaries of
// their thread's tasks, so their times follow from the tasks around them. What lies before or after the step
// moves with its begin and end; GPU work that is no task is left out.
[[nodiscard]] SimulatedTrace simulated_trace(const RecordedRank& original, const Block& block,
                                             const std::vector<Interval>& measured,
                                             const std::vector<Interval>& simulated,
                                             Interval recorded_step_us, double simulated_step_start_us,
                                             double simulated_step_end_us);

// The common clock's zero, from a task and the event behind it.
[[nodiscard]] Nanoseconds clock_origin(const RecordedRank& original, const Block& block,
                                       const std::vector<Interval>& measured);

// Anything on a stream.
[[nodiscard]] inline bool is_gpu_work(TaskKind kind) {
  return kind == TaskKind::kernel || kind == TaskKind::memcpy || kind == TaskKind::memset ||
         kind == TaskKind::collective;
}

}  // namespace stepcast
