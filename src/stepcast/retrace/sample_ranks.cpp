#include "stepcast/retrace/sample_ranks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/retrace/detail/task_context.h"

namespace stepcast {
namespace {

// Smaller messages are losses, counters and flags.
constexpr double kSmallMessage = 4096;

bool is_point_to_point(CollectiveOp op) {
  return op == CollectiveOp::send || op == CollectiveOp::receive || op == CollectiveOp::send_receive;
}

// What the transfers of a job say of its parallelism.
struct Groups {
  std::int64_t world = 1;
  std::set<std::int64_t> sizes;       // of groups of fewer ranks than the job has
  std::set<std::int64_t> activation;  // of groups, all ranks too, that sum activations in the forward pass
  bool is_pipeline = false;

  void add(const Program& program, const TaskInfo& task, const CollectiveWork& transfer) {
    if (transfer.message.value() < kSmallMessage) return;
    is_pipeline |= is_point_to_point(transfer.op);
    if (!transfer.group.valid()) return;
    const auto size = static_cast<std::int64_t>(program.groups()[transfer.group.index()].ranks.size());
    if (size < 2) return;
    if (size < world) sizes.insert(size);
    const detail::TaskContext context = detail::context_of(program, task.stack);
    if (transfer.op == CollectiveOp::all_reduce && !context.backward && !context.optimizer)
      activation.insert(size);
  }
};

Error not_told(const std::string& found) {
  return Error{"samples per step: the traces do not show how many ranks have their own samples"}
      .found(found)
      .advice("give the samples per step of all ranks with --samples-per-step");
}

// Of all ranks of the job.
Result<std::int64_t> ranks_with_samples(Groups groups) {
  if (groups.world == 1) return 1;
  if (groups.is_pipeline) {
    return not_told(
        fmt::format("{} ranks that send to each other, as stages of a pipeline do", groups.world));
  }
  if (groups.activation.empty()) {
    if (groups.sizes.empty()) return groups.world;
    return not_told(
        fmt::format("{} ranks with collectives of {}", groups.world, fmt::join(groups.sizes, " and ")));
  }
  // Ranks that all-reduce activations share a batch; the rest of the groups must be those or their complement.
  const std::int64_t tensor = *groups.activation.rbegin();
  const std::int64_t replicas = groups.world / tensor;
  std::erase_if(groups.sizes, [&](std::int64_t size) { return size == tensor || size == replicas; });
  if (groups.activation.size() == 1 && groups.world % tensor == 0 && groups.sizes.empty()) return replicas;
  return not_told(fmt::format("{} ranks ({} of them sum activations), and collectives of {} others",
                              groups.world, tensor, fmt::join(groups.sizes, " and ")));
}

}  // namespace

Result<std::int64_t> sample_ranks(const RecordedProgram& recorded) {
  Groups groups{
      .world = static_cast<std::int64_t>(detail::all_ranks_of(recorded)), .sizes = {}, .activation = {}};
  const Program& program = recorded.program;
  for (const Block& block : program.blocks())
    for (const TaskInfo& task : block.tasks())
      if (const CollectiveWork* transfer = program.works.collective(task.work))
        groups.add(program, task, *transfer);
  const std::int64_t world = groups.world;
  // Scale from all ranks of the job to the recorded ones.
  STEPCAST_ASSIGN(const std::int64_t of_all, ranks_with_samples(std::move(groups)));
  return std::max<std::int64_t>(1, of_all * static_cast<std::int64_t>(program.rank_count()) / world);
}

}  // namespace stepcast
