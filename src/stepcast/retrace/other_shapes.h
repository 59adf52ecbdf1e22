// The work of another step of the same ranks, piece by piece: what a step would do with the shapes of that one, as steps of
// packed or bucketed sequences have them.
//
//   const OtherShapes other = other_shapes(step_5, step_9);     // of the structure of step 5
//   other.of_task[block][task]
//
// The GPU work of both stands in the order of its streams; pieces are the same where operator and class of kernel are. What
// one of the two does alone is left out of the comparison.
#pragma once

#include <cstddef>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/program/task_work.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

struct OtherShapes {
  std::vector<std::vector<TaskWork>>
      of_task;  // [block][task] of other work; monostate: the same, or not known
  std::vector<std::vector<bool>> same_kernel;  // [block][task] of other work, by a kernel of the same name
  double gpu_us = 0;                           // recorded GPU time of the step
  double changed_us = 0;                       // of it that of pieces whose work is another in the other step
  double moved_us = 0;     // by so much it would change in proportion to its work, longer and shorter alike
  double unpaired_us = 0;  // of pieces that the other step does not have
  std::size_t extra = 0;   // pieces that it alone has
};

// Errors: other ranks.
[[nodiscard]] Result<OtherShapes> other_shapes(const RecordedProgram& step, const RecordedProgram& other);

// Times the work that there is to do, by its arithmetic on matrix units, else by its bytes; 0: not known.
[[nodiscard]] double work_ratio(const TaskWork& before, const TaskWork& after);

// Whether hardly any work is more or less, or not there: less than a hundredth of the GPU's time. Lookups vary a little
// from step to step.
[[nodiscard]] bool has_same_shapes(const OtherShapes& shapes);

}  // namespace stepcast
