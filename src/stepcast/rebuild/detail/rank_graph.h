// The step of one rank, between recorded events and tasks: the window, linked calls and GPU work, and the
// edges found so far.
//
// All times are in microseconds on the common clock of all ranks.
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

// Microseconds. A delay above this value is later than any launch jitter in the recorded traces.
inline constexpr double kLateUs = 15;

// The role of a runtime call.
enum class CallKind : std::uint8_t {
  other,
  launch,       // starts GPU work (kernel, copy or fill)
  stream_wait,  // makes a stream wait for an event
  event_record,
  stream_sync,  // this and the following calls make the CPU wait
  device_sync,
  event_sync,
};

// A runtime call in the window.
struct Call {
  std::uint32_t recorded = 0;  // index into RecordedRank::runtime_calls
  std::uint32_t thread = 0;
  CallKind kind = CallKind::other;
  NameId name;                         // in the names of the Program, set by name_calls()
  bool blocking_copy = false;          // returns only after its copy has completed
  bool in_library_annotation = false;  // inside "nccl:*", so internal to the collective library
  double start_us = 0, end_us = 0;
  std::int32_t op = kNone;        // innermost open operator (index into RecordedRank::cpu_ops)
  std::int32_t comm_op = kNone;   // enclosing record_param_comms
  std::vector<std::int32_t> gpu;  // GPU work that it started, in order of start
};

// A kernel, copy or fill.
struct GpuWork {
  std::uint32_t recorded = 0;  // index into RecordedRank::gpu_ops
  std::int32_t call = kNone;   // none: launched before the window, or the launch is not in the file
  // Launched before the window or before the file: it runs before the first call, or directly after such
  // work. If no launch of the rank is in the file: work that started before the window.
  bool left_over = false;
  // Innermost operator around the launch. If the trace links work to operators by id, it is also set without
  // a launch.
  std::int32_t op = kNone;
  std::int32_t stream = 0;        // index into RankGraph::streams
  std::int32_t previous = kNone;  // previous work on the same stream
  double start_us = 0, end_us = 0;
  // When it was queued: the start of its call. Without a call, the value of the previous work on its stream.
  double queued_us = -std::numeric_limits<double>::infinity();
  GpuOp::Kind kind = GpuOp::Kind::kernel;
  MemcpyKind copy = MemcpyKind::none;
  KernelClass kernel_class = KernelClass::other;
  bool communication = false;
  bool pageable = false;            // a copy from or to host memory that is not pinned
  std::int32_t collective = kNone;  // index into CollectiveMatch::collectives

  // Microseconds.
  [[nodiscard]] double length_us() const { return end_us - start_us; }
  // Work of the step with a launch that the file does not show. It runs in stream order.
  [[nodiscard]] bool launch_is_lost() const { return call == kNone && !left_over; }
};

// A GPU stream with work in the window.
struct Stream {
  std::int32_t device = 0;
  std::int32_t number = 0;
  std::vector<std::int32_t> work;  // by start
};

// A dependency between two pieces of GPU work.
struct GpuEdge {
  std::int32_t from = kNone;
  std::int32_t to = kNone;
  EdgeInfo info;
  bool from_start = false;
  double delay_us = 0;  // for kept delays; event edges get the learned constant
};

// The window of the step on the common clock. `number`: of its ProfilerStep mark, -1 without one.
struct StepWindow {
  std::int64_t number = -1;
  double start_us = 0, end_us = 0;
  std::int32_t main_thread = kNone;
};

// The linked step of one rank.
struct RankGraph {
  const RecordedRank* recorded = nullptr;
  const ExecutionTrace* execution_trace = nullptr;
  std::int32_t rank = 0;
  StepWindow window;
  std::shared_ptr<const TraceIndex> index;
  // [CPU operator] enclosing operator on the thread, for the whole file
  std::span<const std::int32_t> parent_of_op;
  const TracedOperations* traced = nullptr;  // of the execution trace; null: not read yet
  std::vector<std::int32_t> et_node_of_op;   // [CPU operator] node of the execution trace; empty without one
  // [CPU operator] EtJoin::repetition_of_op; empty without execution trace
  std::vector<std::int32_t> et_repetition_of_op;
  std::vector<Call> calls;                                 // in the window, by start
  std::vector<std::vector<std::int32_t>> calls_of_thread;  // [thread] positions in `calls`
  std::vector<GpuWork> gpu;
  std::vector<Stream> streams;
  std::vector<GpuEdge> gpu_edges;
  double clock_step_us = 0;       // GPU times with at most this difference may be equal
  bool begins_with_file = false;  // no launch and no GPU work in the file before the window

  // Work by position, and a recorded time in microseconds on the common clock.
  [[nodiscard]] const GpuWork& work(std::int32_t i) const { return gpu[static_cast<std::size_t>(i)]; }
  [[nodiscard]] double us(Nanoseconds t) const { return static_cast<double>((t - origin).count()) * 1e-3; }
  Nanoseconds origin{};  // zero of the common clock
};

// Links operators, calls and GPU work inside a step: nesting of operators per thread, calls and GPU work by
// correlation id, streams in order of start. `origin`: zero of the common clock.
[[nodiscard]] RankGraph link_rank(std::shared_ptr<const TraceIndex> index, const RecordedStep& step,
                                  Nanoseconds origin);
// The same for a single use, with an index that is built for it.
[[nodiscard]] RankGraph link_rank(const RecordedRank& recorded, const RecordedStep& step, Nanoseconds origin);
// True if `next` starts while `running` still runs, by more than the resolution of the clock.
[[nodiscard]] bool overlaps(const RankGraph& graph, const GpuWork& running, const GpuWork& next);

// True for work that is not the first of its launch, so a later node of a CUDA graph.
[[nodiscard]] bool is_later_node(const RankGraph& graph, std::size_t work);
// Sets Call::name to names in `names`.
void name_calls(RankGraph& graph, StringTable& names);

}  // namespace stepcast::detail
