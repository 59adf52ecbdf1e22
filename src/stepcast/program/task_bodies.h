// Detailed contents ("bodies") of passes that are represented by a single task in the Program of a step. A
// body is everything that a pass of a pipeline stage does from its first kernel to its last, stored as a
// small Program. Nothing outside may wait for an inner task of a body or delay one. So the step can contain
// one task with the duration of the body, and code that analyses the times of the step looks up which body
// that task represents.
//
//   TaskBodies bodies;
//   const std::size_t b = bodies.add(program.names, std::move(block), lanes);
//   builder.add_task(lane, bodies.task(b), ...);              // in blocks of `program`
//   bodies.finish(program);
//   if (const std::size_t b = bodies.index_of(info); b != TaskBodies::kNone) ...   // kNone: an ordinary task
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "stepcast/program/program.h"

namespace stepcast {

class TaskBodies {
 public:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  // Adds a body and returns its number. `block` must have no ports. `names` belongs to the Program of the
  // step, which also owns the names, works and groups that the block refers to.
  std::size_t add(StringTable& names, Block block, std::vector<Lane> lanes);
  // Call once after the last add(): copies names, stacks, works and groups of the step's Program.
  void finish(const Program& program);

  // The task that represents a body: a computation with a unique name and no work.
  [[nodiscard]] TaskInfo task(std::size_t body) const {
    return {.kind = TaskKind::kernel, .kernel_class = KernelClass::other, .name = names_[body]};
  }
  [[nodiscard]] std::size_t index_of(const TaskInfo& info) const {
    return info.name.index() < by_name_.size() ? by_name_[info.name.index()] : kNone;
  }
  [[nodiscard]] std::size_t size() const { return names_.size(); }
  // One rank class for each body, with one instance, in the order of add().
  [[nodiscard]] const Program& program() const { return program_; }

 private:
  Program program_;
  std::vector<NameId> names_;         // [body] -> name of the task that represents it
  std::vector<std::size_t> by_name_;  // [NameId] -> body or kNone
};

}  // namespace stepcast
