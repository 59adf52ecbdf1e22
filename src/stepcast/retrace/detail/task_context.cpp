#include "stepcast/retrace/detail/task_context.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace stepcast::detail {

// AccumulateGrad counts as optimizer work: it handles tensors of the size of weights.
TaskContext context_of(const Program& program, StackId stack) {
  TaskContext context;
  for (; stack.valid(); stack = program.stacks.parent(stack)) {
    const std::string_view name = program.names.text(program.stacks.name(stack));
    const auto holds = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
    context.optimizer |=
        holds("Optimizer") || holds("_foreach_") || holds("AccumulateGrad") || holds("_fused_");
    context.backward |= holds("autograd::engine") || holds("Backward") || holds("_backward");
  }
  return context;
}

std::uint64_t all_ranks_of(const RecordedProgram& recorded) {
  const auto world = recorded.files.empty() ? std::nullopt : recorded.files.front().world_size;
  return std::max<std::uint64_t>(recorded.program.rank_count(),
                                 static_cast<std::uint64_t>(std::max(1, world.value_or(1))));
}

}  // namespace stepcast::detail
