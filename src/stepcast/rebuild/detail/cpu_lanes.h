// The tasks of CPU threads. Runtime calls are atomic tasks; the rest of a thread is cut at every start and
// end of an operator. Each task keeps its recorded duration.
//
// Tasks that wait keep only their base cost, since the waiting time must result from edges. Waits are:
// synchronising calls, blocking copies, a thread without open operators (idle), and the main thread while
// another thread runs its backward pass.
#pragma once

#include <vector>

#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// What a CPU thread waits for. All kinds except the last have learned constants. `held` are calls that the
// GPU delays although their names do not say so (launch_queue.h); they keep their recorded costs.
enum class WaitKind : std::uint8_t { none, stream_sync, device_sync, event_sync, blocking_copy, held };
inline constexpr int kWaitKindCount = 5;  // kinds with learned constants, including `none`

// A stretch of a CPU thread.
struct CpuTask {
  TaskKind kind = TaskKind::cpu_segment;
  double start_us = 0, end_us = 0;  // recorded; for a waiting call, the enter part is shortened later
  std::int32_t op = kNone;          // innermost open operator
  std::int32_t call = kNone;        // index into RankGraph::calls
};

// A call that waits, and the GPU work it waits for.
struct CpuWait {
  std::int32_t call = kNone;
  WaitKind kind = WaitKind::none;
  std::vector<std::int32_t> sources;  // GPU work
  bool inferred = false;
  // For held calls, in microseconds: time before the call can be held; time from the end of the last source
  // to the return, without the next value; and time that the call needs in any case after it was held.
  double enter_us = 0, return_us = 0, own_us = 0;
};

// One thread starts or continues because of another one.
struct Handoff {
  // wake: the main thread starts another thread (autograd). join: the main thread continues after another
  // thread. evaluate: the same inside of a backward pass.
  enum class Kind : std::uint8_t { wake, join, evaluate };
  // The end of this task, or without a task the start of the rank.
  std::int32_t from_thread = kNone, from_task = kNone;
  std::int32_t to_thread = kNone, to_task = kNone;
  Kind kind = Kind::wake;
  double delay_us = 0;
};

// The CPU side of one rank.
struct CpuLanes {
  std::vector<std::int32_t> threads;        // one lane per thread, the main thread first
  std::vector<std::vector<CpuTask>> tasks;  // [lane]
  std::vector<CpuWait> waits;
  std::vector<Handoff> handoffs;            // here, threads are numbers of lanes
  std::uint64_t dropped_polling_calls = 0;  // number of calls on threads that only poll
};

// Gaps without an open operator are idle from this length on, in microseconds. Idle time is cut out.
inline constexpr double kIdleGapUs = 60;
// Time in microseconds that the main thread still works at the start of such a gap.
inline constexpr double kGapBaseUs = 5;

// Cuts the threads of a rank in its window.
[[nodiscard]] CpuLanes cut_cpu_lanes(const RankGraph& graph);

}  // namespace stepcast::detail
