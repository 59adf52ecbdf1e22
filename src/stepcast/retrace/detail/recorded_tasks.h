// What passes over recorded steps ask of a task and of a rank class.
#pragma once

#include <cstddef>

#include "stepcast/rebuild/recorded_program.h"

namespace stepcast::detail {

// The block of a rank class. A recorded step has one instance of it.
[[nodiscard]] inline BlockId block_id(const RecordedProgram& recorded, RankClassId c) {
  return recorded.program.rank_class(c).instances.front().block;
}
[[nodiscard]] inline BlockId block_id(const RecordedProgram& recorded, std::size_t c) {
  return block_id(recorded, RankClassId{c});
}

// A kernel of any class, or a copy.
[[nodiscard]] inline bool is_kernel_or_copy(TaskKind kind) {
  return kind == TaskKind::kernel || kind == TaskKind::memcpy || kind == TaskKind::memset;
}
// Anything on a stream.
[[nodiscard]] inline bool is_gpu_work(TaskKind kind) {
  return is_kernel_or_copy(kind) || kind == TaskKind::collective;
}
// Communication, matched with other ranks or not.
[[nodiscard]] inline bool is_transfer(const TaskInfo& task) {
  return task.kind == TaskKind::collective || task.kernel_class == KernelClass::communication;
}
[[nodiscard]] inline bool is_computation(const TaskInfo& task) {
  return !is_transfer(task) && is_kernel_or_copy(task.kind);
}

}  // namespace stepcast::detail
