// A Block: a small DAG of tasks over the lanes of one rank class, stored once and instantiated many times.
//
// Structure only. Task durations and edge delays are in a separate Costs object, one for each scenario.
//
//   BlockBuilder b{"forward"};
//   const LaneId cpu = b.add_lane({LaneKind::cpu_thread, "main"});
//   const LaneId gpu = b.add_lane({LaneKind::gpu_stream, "compute"});
//   const NameId gemm = program_names.intern("gemm");
//   const TaskId launch = b.add_task(cpu, {.kind = TaskKind::cpu_call}, 4.0_us);
//   const TaskId kernel = b.add_task(gpu, {.kind = TaskKind::kernel, .name = gemm}, 50.0_us);
//   b.add_edge(b.end_of(launch), kernel, 2.0_us, {.origin = EdgeOrigin::launch});
//   Result<Block> block = std::move(b).finish();
//
// A task starts at max(its lane is free, every incoming edge: source time + delay). Tasks of one lane run in
// the order in which they were added.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/id.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/base/string_table.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/program/task_work.h"

namespace stepcast {

using LaneId = Id<struct LaneTag>;        // within a block
using TaskId = Id<struct TaskTag>;        // within a block
using InPortId = Id<struct InPortTag>;    // within a block
using OutPortId = Id<struct OutPortTag>;  // within a block
using StackId = Id<struct StackTag>;      // within a Program's op stacks
using DelayId = Id<struct DelayTag>;      // within the delay classes of a recorded Program

// Where the tasks of a lane run.
enum class LaneKind : std::uint8_t { cpu_thread, gpu_stream };

// A property of a lane that code tests in addition to its kind.
enum class LaneRole : std::uint8_t {
  other,
  data_parallel,  // transfers of weights and gradients of a described step
};

// A CPU thread or GPU stream. Its tasks run one at a time, in the order of the block.
struct Lane {
  LaneKind kind = LaneKind::gpu_stream;
  std::string name;            // name shown to users: "main thread", "stream 7"
  std::int64_t recorded = -1;  // thread index or stream number in the trace, -1 for described programs
  LaneRole role = LaneRole::other;
};

// What the instances of a block compute. Recorded blocks are `other`.
enum class BlockRole : std::uint8_t { other, forward, backward, weight_gradient, update };

enum class TaskKind : std::uint8_t {
  cpu_segment,  // work of a CPU thread outside of runtime calls
  cpu_call,     // one runtime call: launch, event record, query
  sync_enter,   // the part of a synchronising call before it waits
  sync_return,  // the part after the wait: starts when the awaited work has ended
  kernel,
  memcpy,
  memset,
  collective,  // a transfer that several ranks join
  wait,        // no work: occupies the lane until every incoming edge of the task is satisfied
};
[[nodiscard]] std::string_view to_string(TaskKind kind);

// Everything known about a task except its duration.
struct TaskInfo {
  TaskKind kind = TaskKind::kernel;
  KernelClass kernel_class = KernelClass::none;
  NameId name{};                              // in the Program's names
  StackId stack{};                            // CPU tasks: open framework ops; GPU tasks: those of the launch
  std::uint32_t recorded_event = 0xffffffff;  // importer's index of the event behind the task
  WorkId work{};                              // in the Program's works; invalid: not known
  NameId part{};                              // part of the block it belongs to, such as "layer 7"
  double work_times = 1;  // repetitions of `work` in this task, or its fraction of one repetition (below 1)
};

// The reason why a task waits for another task.
enum class EdgeOrigin : std::uint8_t {
  launch,           // a runtime call and the GPU work it launched
  stream_order,     // minimum gap between neighbours on a stream
  event,            // event record / stream wait
  synchronization,  // GPU work and the return of the call that waits for it
  tensor,           // producer and consumer of a tensor
  thread_handoff,   // one CPU thread wakes or feeds another
  device_busy,      // a kernel of another stream held the device
  recorded_offset,  // work launched before the window, held at its recorded start
  dependency,       // given by a description
};
inline constexpr int kEdgeOriginCount = 9;
[[nodiscard]] std::string_view to_string(EdgeOrigin origin);

// Properties of one edge except its source and its delay.
struct EdgeInfo {
  EdgeOrigin origin = EdgeOrigin::dependency;
  bool inferred = false;  // not written in the input, concluded from it
  bool kept = false;      // the delay is a recorded stretch of time, not a learned constant
  // For device_busy: delay / duration of the source task. Costs::rescale_shared_delays() recomputes the delay
  // from it. 0: the delay does not depend on the source's duration.
  float share_of_source = 0;
  DelayId delay{};  // class of the delay; invalid: not in a learned class
};

// A moment a task can wait for: start or end of a task, or the value that arrives at an in-port.
class Moment {
 public:
  static constexpr Moment start_of(TaskId t) { return Moment{2 * t.index()}; }
  static constexpr Moment end_of(TaskId t) { return Moment{2 * t.index() + 1}; }

  constexpr Moment() = default;
  constexpr explicit Moment(std::uint32_t code) : code_(code) {}
  // Position in an instance's times: [start0, end0, start1, end1, ..., in-port values].
  [[nodiscard]] constexpr std::uint32_t code() const { return code_; }
  auto operator<=>(const Moment&) const = default;

 private:
  std::uint32_t code_ = 0xffffffff;
};

// A result for later instances: the value of `source` plus `delay`.
struct OutPort {
  std::string name{};
  Moment source{};
  Microseconds delay{};
};

// A computation that runs at the same time as a transfer of the same list and is slowed down by it. The
// pricing code decides by how much.
struct Overlap {
  TaskId computation{}, transfer{};
  auto operator<=>(const Overlap&) const = default;
};

// Immutable after BlockBuilder::finish. Tasks are numbered in a topological order of lanes and edges.
class Block {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] BlockRole role() const { return role_; }
  [[nodiscard]] std::uint32_t task_count() const { return static_cast<std::uint32_t>(lane_of_.size()); }
  [[nodiscard]] std::uint32_t edge_count() const { return static_cast<std::uint32_t>(sources_.size()); }
  [[nodiscard]] std::span<const Lane> lanes() const { return lanes_; }
  [[nodiscard]] std::span<const std::string> in_ports() const { return in_ports_; }
  [[nodiscard]] std::span<const OutPort> out_ports() const { return out_ports_; }
  [[nodiscard]] std::span<const TaskInfo> tasks() const { return tasks_; }
  [[nodiscard]] const TaskInfo& task(TaskId t) const { return tasks_[t.index()]; }
  [[nodiscard]] LaneId lane_of(TaskId t) const { return LaneId{std::size_t{lane_of_[t.index()]}}; }
  // Tasks of kind `collective`, ascending.
  [[nodiscard]] std::span<const TaskId> collective_tasks() const { return collective_tasks_; }

  // Incoming edges of task t are edges first_edge()[t] .. first_edge()[t + 1].
  [[nodiscard]] std::span<const std::uint32_t> first_edge() const { return first_edge_; }
  // [edge] -> Moment code of its source: 2 * task for its start, 2 * task + 1 for its end, 2 * task_count() +
  // i for in-port i.
  [[nodiscard]] std::span<const std::uint32_t> sources() const { return sources_; }
  [[nodiscard]] std::span<const EdgeInfo> edge_infos() const { return edge_infos_; }
  // Sorted, so the transfers that overlap one computation are adjacent.
  [[nodiscard]] std::span<const Overlap> overlaps() const { return overlaps_; }
  // [task] -> index of its lane.
  [[nodiscard]] std::span<const std::uint16_t> lane_codes() const { return lane_of_; }

  // Durations and delays given to the builder: the first scenario.
  [[nodiscard]] std::span<const double> duration_us() const { return duration_us_; }
  [[nodiscard]] std::span<const double> delay_us() const { return delay_us_; }

  // Heap and object size, without the characters of names.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  friend class BlockBuilder;
  std::string name_;
  BlockRole role_ = BlockRole::other;
  std::vector<Lane> lanes_;
  std::vector<std::string> in_ports_;
  std::vector<OutPort> out_ports_;
  std::vector<std::uint16_t> lane_of_;
  std::vector<std::uint32_t> first_edge_;
  std::vector<std::uint32_t> sources_;
  std::vector<double> duration_us_;
  std::vector<double> delay_us_;
  std::vector<TaskInfo> tasks_;
  std::vector<EdgeInfo> edge_infos_;
  std::vector<Overlap> overlaps_;
  std::vector<TaskId> collective_tasks_;
};

// Collects lanes, tasks and edges, then checks and sorts them into a Block. Nothing is validated before
// finish().
class BlockBuilder {
 public:
  explicit BlockBuilder(std::string name, BlockRole role = BlockRole::other)
      : name_(std::move(name)), role_(role) {}

  LaneId add_lane(Lane lane);
  InPortId add_in_port(std::string name);
  // Tasks of a lane run in the order they are added.
  TaskId add_task(LaneId lane, TaskInfo info, Microseconds duration);
  // Tasks added from now on belong to this part of the block (TaskInfo::part).
  void begin_part(NameId part) { part_ = part; }
  // Replaces the duration of a task. finish() reports an unknown task.
  void set_duration(TaskId task, Microseconds duration);
  // `to` starts no earlier than `from` + `delay`.
  void add_edge(Moment from, TaskId to, Microseconds delay, EdgeInfo info);
  void add_overlap(TaskId computation, TaskId transfer);
  // Later instances read `source` + `delay` from the slot that the port is bound to.
  OutPortId add_out_port(std::string name, Moment source, Microseconds delay = Microseconds{});

  static Moment start_of(TaskId t) { return Moment::start_of(t); }
  static Moment end_of(TaskId t) { return Moment::end_of(t); }
  // Port moments are numbered from the top while tasks may still be added; finish() renumbers.
  static Moment arrival_at(InPortId p) { return Moment{0x80000000u + p.index()}; }

  [[nodiscard]] std::uint32_t task_count() const { return static_cast<std::uint32_t>(tasks_.size()); }
  [[nodiscard]] std::span<const Lane> lanes() const { return lanes_; }

  struct Finished;
  // Sorts the tasks topologically. Among ready tasks the one added first comes first, so a block that was
  // added in a topological order keeps its numbers. Errors name the first broken invariant: an edge against
  // the order of its lane, a cycle (with its tasks), an unknown task, lane or port, a negative or non-finite
  // duration or delay, more lanes or tasks than ids can number. Tasks are named by the number that add_task
  // returned.
  [[nodiscard]] Result<Finished> finish_with_map() &&;
  // The same without the mapping of task ids.
  [[nodiscard]] Result<Block> finish() &&;

 private:
  // An edge in terms of the builder's task and port numbers.
  struct PendingEdge {
    Moment from;
    TaskId to;
    double delay_us;
    EdgeInfo info;
  };
  // For error messages: number, kind and lane of a task.
  [[nodiscard]] std::string describe(std::uint32_t task) const;
  [[nodiscard]] Error broken(std::uint32_t task, std::string problem) const;
  [[nodiscard]] Status check_parts() const;
  [[nodiscard]] Status check_moment(Moment moment, const std::string& place) const;
  // [position in the block] -> number given by add_task.
  [[nodiscard]] Result<std::vector<std::uint32_t>> sorted_tasks() const;

  NameId part_{};
  std::string name_;
  BlockRole role_;
  std::vector<Lane> lanes_;
  std::vector<std::string> in_ports_;
  std::vector<OutPort> out_ports_;
  std::vector<std::uint32_t> lane_of_;
  std::vector<TaskInfo> tasks_;
  std::vector<double> duration_us_;
  std::vector<PendingEdge> edges_;
  std::vector<Overlap> overlaps_;
  std::uint32_t unknown_task_ = 0xffffffff;  // first unknown task passed to set_duration; 0xffffffff: none
};

struct BlockBuilder::Finished {
  Block block;
  std::vector<TaskId> new_id;  // [id given by add_task] -> id in the block
};

}  // namespace stepcast
