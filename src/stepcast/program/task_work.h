// What a task is, apart from how long it took: with it any Program can be priced on any Platform.
//
//   TaskInfo info{.kind = TaskKind::kernel, .name = ..., .work = program.works.intern(gemm({...},
//   DType::bf16))}; program.works.of(info.work)        // the TaskWork program.works.operation(info.work) //
//   the Operation, or null
//
// Equal works are stored once. A task does its work `TaskInfo::work_times` times: 24 for kernels that run
// back to back as one task, less than 1 where several kernels share the work of one operator.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "stepcast/base/id.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/string_table.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/operation.h"
#include "stepcast/operation/overhead_type.h"

namespace stepcast {

using WorkId = Id<struct WorkTag>;    // within a Program
using GroupId = Id<struct GroupTag>;  // within a Program

// Ranks that communicate with each other, by what a person calls them.
struct RankGroup {
  std::string label;  // "tensor", "data", "embedding exchange", or the process group's name in a trace
  // World ranks of one such group. Empty where a description knows only how its groups lie on nodes.
  std::vector<std::uint32_t> ranks{};
  friend bool operator==(const RankGroup&, const RankGroup&) = default;
};

// A transfer that the ranks of a group make together. `message` counts as nccl-tests does: all_reduce =
// buffer of one rank; all_gather = what every rank has in the end; reduce_scatter, all_to_all = what every
// rank has at first; send_receive = what one rank sends.
struct CollectiveWork {
  CollectiveOp op = CollectiveOp::unknown;
  DType dtype = DType::unknown;
  Bytes message{};
  GroupId group{};
  friend bool operator==(const CollectiveWork&, const CollectiveWork&) = default;
};

// Time of a CPU thread.
struct HostWork {
  enum class Activity : std::uint8_t {
    overhead,                  // of `type`, around or inside framework op (T4: runtime call) `op`
    kernel_launches,           // all that the host does to launch one kernel
    compiled_kernel_launches,  // the same from compiled code
    between_steps,             // loss to the host, data loader hand-over, learning-rate schedule
  };
  Activity activity = Activity::overhead;
  OverheadType type = OverheadType::t1;
  NameId op{};
  friend bool operator==(const HostWork&, const HostWork&) = default;
};

// Nothing is done: the lane waits for what the task's edges say.
struct Waiting {
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

// monostate: not known. Such a task keeps the time it was given.
using TaskWork = std::variant<std::monostate, Operation, CollectiveWork, HostWork, Waiting>;

[[nodiscard]] std::size_t hash_of(const TaskWork& work);

// The distinct works of a Program.
class WorkTable {
 public:
  WorkId intern(const TaskWork& work);
  // An invalid id stands for work that is not known.
  [[nodiscard]] const TaskWork& of(WorkId id) const { return id.valid() ? works_[id.index()] : unknown_; }
  [[nodiscard]] const Operation* operation(WorkId id) const { return std::get_if<Operation>(&of(id)); }
  [[nodiscard]] const CollectiveWork* collective(WorkId id) const {
    return std::get_if<CollectiveWork>(&of(id));
  }
  [[nodiscard]] const HostWork* host(WorkId id) const { return std::get_if<HostWork>(&of(id)); }
  [[nodiscard]] std::size_t size() const { return works_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const TaskWork& work) const { return hash_of(work); }
  };
  TaskWork unknown_;
  std::vector<TaskWork> works_;
  std::unordered_map<TaskWork, WorkId, Hash> index_;
};

}  // namespace stepcast
