// What a task does, independent of its duration. Tasks with a work can be priced on any Platform.
//
//   const WorkId id = program.works.intern(gemm({...}, DType::bf16));
//   TaskInfo info{.kind = TaskKind::kernel, .name = ..., .work = id};
//   program.works.of(id)          // the TaskWork
//   program.works.operation(id)   // the Operation, or null
//
// Equal works are stored once. A task does its work `TaskInfo::work_times` times: 24 for 24 equal kernels
// that run back to back as one task, less than 1 where several kernels share the work of one operator.
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

// Ranks that communicate with each other, with a name for reports.
struct RankGroup {
  std::string label;  // "tensor", "data", "embedding exchange", or the process group's name in a trace
  // World ranks of one such group. Empty for described programs, which only know how their groups are placed
  // on nodes.
  std::vector<std::uint32_t> ranks{};
  friend bool operator==(const RankGroup&, const RankGroup&) = default;
};

// A transfer that the ranks of a group make together. `message` follows the convention of nccl-tests.
// all_reduce: the buffer of one rank. all_gather: the result on each rank. reduce_scatter and all_to_all: the
// input of each rank. send_receive: what one rank sends.
struct CollectiveWork {
  CollectiveOp op = CollectiveOp::unknown;
  DType dtype = DType::unknown;
  Bytes message{};
  GroupId group{};
  friend bool operator==(const CollectiveWork&, const CollectiveWork&) = default;
};

// Work of a CPU thread.
struct HostWork {
  enum class Activity : std::uint8_t {
    overhead,                  // of `type`, around or inside framework op (T4: runtime call) `op`
    kernel_launches,           // everything that the host does to launch one kernel
    compiled_kernel_launches,  // the same for code compiled by torch.compile
    between_steps,             // loss to the host, data loader hand-over, learning-rate schedule
  };
  Activity activity = Activity::overhead;
  OverheadType type = OverheadType::t1;
  NameId op{};
  friend bool operator==(const HostWork&, const HostWork&) = default;
};

// No work: the lane is occupied until the incoming edges of the task are satisfied.
struct Waiting {
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

// monostate: unknown work. Such a task keeps the duration it was given.
using TaskWork = std::variant<std::monostate, Operation, CollectiveWork, HostWork, Waiting>;

// Equal works have equal hashes.
[[nodiscard]] std::size_t hash_of(const TaskWork& work);

// The distinct works of a Program, indexed by WorkId.
class WorkTable {
 public:
  // The id of an equal work that was added before, or a new one. Unknown work has the invalid id.
  WorkId intern(const TaskWork& work);
  // The work with this id; an invalid id is unknown work (monostate).
  [[nodiscard]] const TaskWork& of(WorkId id) const { return id.valid() ? works_[id.index()] : unknown_; }
  // These return null when the work is of another kind.
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
