// Pairs the GPU work of two steps of the same ranks: the work one step would do with the shapes of the other, as in training
// with packed or bucketed sequences.
//
//   const OtherShapes other = other_shapes(step_5, step_9);     // of the structure of step 5
//   other.of_task[block][task]
//
// GPU work is compared per stream in order. Two pieces match if their kind, kernel class and operator are equal. Work that
// exists in only one of the steps is not compared.
#pragma once

#include <cstddef>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/program/task_work.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// The differences of `other` from `step`.
struct OtherShapes {
  std::vector<std::vector<TaskWork>>
      of_task;  // [block][task] work of the counterpart; monostate: equal or unknown
  // [block][task] the counterpart has other work and a kernel of the same name.
  std::vector<std::vector<bool>> same_kernel;
  double gpu_us = 0;       // recorded GPU time of the step
  double changed_us = 0;   // part of gpu_us with other work in the counterpart
  double moved_us = 0;     // sum of absolute changes if times were proportional to the work
  double unpaired_us = 0;  // part of gpu_us without a counterpart
  std::size_t extra = 0;   // pieces of the other step without a counterpart here
};

// Error: the two steps have different ranks.
[[nodiscard]] Result<OtherShapes> other_shapes(const RecordedProgram& step, const RecordedProgram& other);

// Work after / before: FLOPs for matrix units, message bytes for collectives, else memory bytes. 0: unknown.
[[nodiscard]] double work_ratio(const TaskWork& before, const TaskWork& after);

// True if the changed and unpaired work is at most 1 % of the GPU time. Lookups vary that much from step to step.
[[nodiscard]] bool has_same_shapes(const OtherShapes& shapes);

}  // namespace stepcast
