// One rank's step between recorded events and tasks: the window, the linked calls and GPU work, and the edges
// found so far.
//
// All times are microseconds on the common clock of the set.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "stepcast/base/interval.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/program/block.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/recorded_rank.h"
#include "stepcast/trace/trace_index.h"

namespace stepcast {
struct TracedOperations;
}

namespace stepcast::detail {

// Later than anything that launch jitter did in the recorded traces.
inline constexpr double kLateUs = 15;

enum class CallKind : std::uint8_t {
  other,
  launch,       // started GPU work (kernel, copy or fill)
  stream_wait,  // makes a stream wait for an event
  event_record,
  stream_sync,  // the calls that make the CPU wait
  device_sync,
  event_sync,
};

struct Call {
  std::uint32_t recorded = 0;  // index into RecordedRank::runtime_calls
  std::uint32_t thread = 0;
  CallKind kind = CallKind::other;
  NameId name;                         // in the names of the Program; name_calls() sets it
  bool blocking_copy = false;          // returns only after its own copy
  bool in_library_annotation = false;  // inside "nccl:*": the collective library's own affairs
  double start_us = 0, end_us = 0;
  std::int32_t op = kNone;        // innermost open framework op (index into RecordedRank::cpu_ops)
  std::int32_t comm_op = kNone;   // enclosing record_param_comms
  std::vector<std::int32_t> gpu;  // GPU work it started, in order of start
};

struct GpuWork {
  std::uint32_t recorded = 0;  // index into RecordedRank::gpu_ops
  std::int32_t call = kNone;   // none: launched before the window, or the file has no launch for it
  // Launched before the window, or before the file: it runs before the first call, or right behind such work. Where no
  // work of the rank has its launch, what began before the window.
  bool left_over = false;
  // Innermost framework op around the launch; where the trace links work to operators by id, also without one.
  std::int32_t op = kNone;
  std::int32_t stream = 0;        // index into RankGraph::streams
  std::int32_t previous = kNone;  // work before it on the same stream
  double start_us = 0, end_us = 0;
  // When it was queued: the start of its call; without one as the work before it on its stream.
  double queued_us = -std::numeric_limits<double>::infinity();
  GpuOp::Kind kind = GpuOp::Kind::kernel;
  MemcpyKind copy = MemcpyKind::none;
  KernelClass kernel_class = KernelClass::other;
  bool communication = false;
  bool pageable = false;            // copy from or to host memory that is not pinned
  std::int32_t collective = kNone;  // index into the set's matched collectives

  [[nodiscard]] double length_us() const { return end_us - start_us; }
  // Of the step, by a call that the file does not show: it runs in the order of its stream.
  [[nodiscard]] bool launch_is_lost() const { return call == kNone && !left_over; }
};

struct Stream {
  std::int32_t device = 0;
  std::int32_t number = 0;
  std::vector<std::int32_t> work;  // by start
};

// Between two pieces of GPU work.
struct GpuEdge {
  std::int32_t from = kNone;
  std::int32_t to = kNone;
  EdgeInfo info;
  bool from_start = false;
  double delay_us = 0;  // for kept delays; event edges get the learned constant
};

struct StepWindow {
  std::int64_t number = -1;
  double start_us = 0, end_us = 0;
  std::int32_t main_thread = kNone;
};

struct RankGraph {
  const RecordedRank* recorded = nullptr;
  const ExecutionTrace* execution_trace = nullptr;
  std::int32_t rank = 0;
  StepWindow window;
  std::shared_ptr<const TraceIndex> index;
  std::span<const std::int32_t> parent_of_op;     // [cpu op] -> enclosing op on the thread, whole file
  const TracedOperations* traced = nullptr;       // of the execution trace; null: not read yet
  std::vector<std::int32_t> et_node_of_op;        // [cpu op] -> ET node; empty without ET
  std::vector<std::int32_t> et_repetition_of_op;  // [cpu op] EtJoin::repetition_of_op; empty without ET
  std::vector<Call> calls;                        // in the window, by start
  std::vector<std::vector<std::int32_t>> calls_of_thread;  // [thread] -> calls
  std::vector<GpuWork> gpu;
  std::vector<Stream> streams;
  std::vector<GpuEdge> gpu_edges;
  double clock_step_us = 0;       // GPU times that are this close may be one
  bool begins_with_file = false;  // the file shows no launch and no GPU work before the window

  [[nodiscard]] const GpuWork& work(std::int32_t i) const { return gpu[static_cast<std::size_t>(i)]; }
  [[nodiscard]] double us(Nanoseconds t) const { return static_cast<double>((t - origin).count()) * 1e-3; }
  Nanoseconds origin{};  // common clock's zero
};

// Links ops, calls and GPU work inside the step: op nesting per thread, call to GPU work by correlation,
// streams by start.
[[nodiscard]] RankGraph link_rank(std::shared_ptr<const TraceIndex> index, const RecordedStep& step,
                                  Nanoseconds origin);
[[nodiscard]] RankGraph link_rank(const RecordedRank& recorded, const RecordedStep& step, Nanoseconds origin);
// True when `next` begins while `running` still runs, by more than the clock resolves.
[[nodiscard]] bool overlaps(const RankGraph& graph, const GpuWork& running, const GpuWork& next);

// True for what a call launched after its first work: nodes of a graph.
[[nodiscard]] bool is_later_node(const RankGraph& graph, std::size_t work);
// Sets Call::name.
void name_calls(RankGraph& graph, StringTable& names);

}  // namespace stepcast::detail
