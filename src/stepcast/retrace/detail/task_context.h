// The phase of a training step in which a recorded task runs, and the number of ranks of the job.
#pragma once

#include <cstdint>

#include "stepcast/rebuild/recorded_program.h"

namespace stepcast::detail {

// Both false: the forward pass, or unknown.
struct TaskContext {
  bool backward = false, optimizer = false;
};
// Derived from the names of the operators and labels around the launch of the task.
[[nodiscard]] TaskContext context_of(const Program& program, StackId stack);

// Ranks of the job: the recorded ones, or the world size in the profiler traces if that is larger. At least 1.
[[nodiscard]] std::uint64_t all_ranks_of(const RecordedProgram& recorded);

}  // namespace stepcast::detail
