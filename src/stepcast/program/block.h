// A Block: a small DAG of tasks over the lanes of one rank class, stored once and instantiated many times.
//
// Structure only: how long a task takes and how long an edge delays stand beside it, one Costs per scenario.
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
using DelayId = Id<struct DelayTag>;      // within the delay classes that stand beside a recorded Program

enum class LaneKind : std::uint8_t { cpu_thread, gpu_stream };

// What code asks of a lane beyond its kind.
enum class LaneRole : std::uint8_t {
  other,
  data_parallel,  // transfers of weights and gradients of a described step
};

struct Lane {
  LaneKind kind = LaneKind::gpu_stream;
  std::string name;            // as a person knows it: "main thread", "stream 7"
  std::int64_t recorded = -1;  // thread index or stream number in the trace, -1 for described programs
  LaneRole role = LaneRole::other;
};

// What the instances of a block compute. Recorded blocks are `other`.
enum class BlockRole : std::uint8_t { other, forward, backward, weight_gradient, update };

enum class TaskKind : std::uint8_t {
  cpu_segment,  // a stretch of a thread's own work
  cpu_call,     // one runtime call: launch, event record, query...
  sync_enter,   // the part of a synchronising call before it waits
  sync_return,  // the part after: starts when what it waited for is over
  kernel,
  memcpy,
  memset,
  collective,  // a transfer that several ranks join
  wait,        // nothing runs: the lane is held until what the task's edges say has happened
};
[[nodiscard]] std::string_view to_string(TaskKind kind);

struct TaskInfo {
  TaskKind kind = TaskKind::kernel;
  KernelClass kernel_class = KernelClass::none;
  NameId name{};                              // in the Program's names
  StackId stack{};                            // CPU tasks: open framework ops; GPU tasks: those of the launch
  std::uint32_t recorded_event = 0xffffffff;  // importer's index of the event behind the task
  WorkId work{};                              // in the Program's works; invalid: not known
  double work_times = 1;                      // how often the task does it, or its share of it
  NameId part{};                              // part of the block it belongs to, such as "layer 7"
};

// Why a task has to wait for another.
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

struct EdgeInfo {
  EdgeOrigin origin = EdgeOrigin::dependency;
  bool inferred = false;  // not written in the input, concluded from it
  bool kept = false;      // its delay is a recorded stretch of time, not a constant learned elsewhere
  // The delay is this share of the source task's duration (device_busy), to be rescaled with it; 0: a plain
  // delay.
  float share_of_source = 0;
  DelayId delay{};  // what sort of delay it is; invalid: of no sort that was learned
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

struct OutPort {
  std::string name{};
  Moment source{};
  Microseconds delay{};
};

// A computation that runs while a transfer of its own list does, and is slower for it. Who prices the tasks
// says by how much.
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
  // Moment codes; 2 * task_count() + i is in-port i.
  [[nodiscard]] std::span<const std::uint32_t> sources() const { return sources_; }
  [[nodiscard]] std::span<const EdgeInfo> edge_infos() const { return edge_infos_; }
  // Ascending: the transfers beside one computation stand together.
  [[nodiscard]] std::span<const Overlap> overlaps() const { return overlaps_; }
  [[nodiscard]] std::span<const std::uint16_t> lane_codes() const { return lane_of_; }

  // Durations and delays given to the builder: the first scenario.
  [[nodiscard]] std::span<const double> duration_us() const { return duration_us_; }
  [[nodiscard]] std::span<const double> delay_us() const { return delay_us_; }

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
  void set_duration(TaskId task, Microseconds duration);
  void add_edge(Moment from, TaskId to, Microseconds delay, EdgeInfo info);
  void add_overlap(TaskId computation, TaskId transfer);
  OutPortId add_out_port(std::string name, Moment source, Microseconds delay = Microseconds{});

  static Moment start_of(TaskId t) { return Moment::start_of(t); }
  static Moment end_of(TaskId t) { return Moment::end_of(t); }
  // Port moments are numbered from the top while tasks may still be added; finish() renumbers.
  static Moment arrival_at(InPortId p) { return Moment{0x80000000u + p.index()}; }

  [[nodiscard]] std::uint32_t task_count() const { return static_cast<std::uint32_t>(tasks_.size()); }
  [[nodiscard]] std::span<const Lane> lanes() const { return lanes_; }

  struct Finished;
  // Sorts the tasks topologically: among ready tasks the one added first goes first, so a block added in a
  // topological order keeps its numbers. Errors name the first broken invariant: an edge against the order of
  // its lane, a cycle (its tasks), an unknown task, lane or port, a negative or non-finite duration or delay,
  // more lanes or tasks than ids can count. Tasks are named by the number that add_task gave them.
  [[nodiscard]] Result<Finished> finish_with_map() &&;
  [[nodiscard]] Result<Block> finish() &&;

 private:
  struct PendingEdge {
    Moment from;
    TaskId to;
    double delay_us;
    EdgeInfo info;
  };
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
  std::uint32_t unknown_task_ = 0xffffffff;  // given to set_duration
};

struct BlockBuilder::Finished {
  Block block;
  std::vector<TaskId> new_id;  // [id given by add_task] -> id in the block
};

}  // namespace stepcast
