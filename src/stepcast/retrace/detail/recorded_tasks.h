// Predicates on tasks and access to blocks, shared by all passes over recorded steps.
#pragma once

#include <cstddef>

#include "stepcast/rebuild/recorded_program.h"

namespace stepcast::detail {

// The block of a rank class. A rank class of a recorded step has exactly one instance.
[[nodiscard]] inline BlockId block_id(const RecordedProgram& recorded, RankClassId c) {
  return recorded.program.rank_class(c).instances.front().block;
}
[[nodiscard]] inline BlockId block_id(const RecordedProgram& recorded, std::size_t c) {
  return block_id(recorded, RankClassId{c});
}

// True for kernels of any class, copies and memory sets; false for collectives that were matched between ranks.
[[nodiscard]] inline bool is_kernel_or_copy(TaskKind kind) {
  return kind == TaskKind::kernel || kind == TaskKind::memcpy || kind == TaskKind::memset;
}
// True for all work on a GPU stream, including collectives.
[[nodiscard]] inline bool is_gpu_work(TaskKind kind) {
  return is_kernel_or_copy(kind) || kind == TaskKind::collective;
}
// True for communication, whether or not it was matched with other ranks.
[[nodiscard]] inline bool is_transfer(const TaskInfo& task) {
  return task.kind == TaskKind::collective || task.kernel_class == KernelClass::communication;
}
// True for GPU work other than communication.
[[nodiscard]] inline bool is_computation(const TaskInfo& task) {
  return !is_transfer(task) && is_kernel_or_copy(task.kind);
}

}  // namespace stepcast::detail
