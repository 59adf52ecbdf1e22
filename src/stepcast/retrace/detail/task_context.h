// Where in a training step a recorded task is, and how many ranks the job has.
#pragma once

#include <cstdint>

#include "stepcast/rebuild/recorded_program.h"

namespace stepcast::detail {

struct TaskContext {
  bool backward = false, optimizer = false;
};
// By the names of the operators and labels that the task was launched in.
[[nodiscard]] TaskContext context_of(const Program& program, StackId stack);

// Those of the files, or as many as the profiler traces say that the job has; at least 1.
[[nodiscard]] std::uint64_t all_ranks_of(const RecordedProgram& recorded);

}  // namespace stepcast::detail
