// What a pass of a pipeline stage does from its first kernel to its last, as a small Program of its own: nothing outside
// waits for a part of it, or keeps a part waiting. A step can hold one task in its place, as long as it takes, wherever it
// runs; who analyses the step's times asks what that task stands for.
//
//   TaskBodies bodies;
//   const std::size_t b = bodies.add(program.names, std::move(block), lanes);
//   builder.add_task(lane, bodies.task(b), ...);              // in blocks of `program`
//   bodies.finish(program);
//   if (const std::size_t b = bodies.index_of(info); b != TaskBodies::kNone) ...   // kNone: a task by itself
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "stepcast/program/program.h"

namespace stepcast {

class TaskBodies {
 public:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  // A block without ports. `names`: of the Program that it is a part of, where its names, works and groups are.
  std::size_t add(StringTable& names, Block block, std::vector<Lane> lanes);
  // When all are there: they are in its terms.
  void finish(const Program& program);

  // The task that stands for a body: a computation of its own name, which carries no work.
  [[nodiscard]] TaskInfo task(std::size_t body) const {
    return {.kind = TaskKind::kernel, .kernel_class = KernelClass::other, .name = names_[body]};
  }
  [[nodiscard]] std::size_t index_of(const TaskInfo& info) const {
    return info.name.index() < by_name_.size() ? by_name_[info.name.index()] : kNone;
  }
  [[nodiscard]] std::size_t size() const { return names_.size(); }
  // A rank class of one instance each, in the order of add().
  [[nodiscard]] const Program& program() const { return program_; }

 private:
  Program program_;
  std::vector<NameId> names_;         // of the tasks
  std::vector<std::size_t> by_name_;  // [NameId]
};

}  // namespace stepcast
