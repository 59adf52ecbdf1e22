// CPU threads as lanes of tasks: runtime calls are atomic, the rest is cut at every op begin and end and
// keeps its recorded duration.
//
// What waits keeps only its base cost; the wait must come out of an edge. Waits are: synchronising calls,
// blocking copies, a thread without any open op (idle), and the main thread while another thread runs its
// backward.
#pragma once

#include <vector>

#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// What a CPU thread waits for. Constants are learned for all but the last: calls that the GPU holds back although their
// names do not say so (launch_queue.h) keep what they take by themselves.
enum class WaitKind : std::uint8_t { none, stream_sync, device_sync, event_sync, blocking_copy, held };
inline constexpr int kWaitKindCount = 5;  // with constants

struct CpuTask {
  TaskKind kind = TaskKind::cpu_segment;
  double start_us = 0, end_us = 0;  // recorded; of a waiting call the enter part gets its base later
  std::int32_t op = kNone;          // innermost open op
  std::int32_t call = kNone;        // index into RankGraph::calls
};

// A waiting call and the GPU work that it waits for.
struct CpuWait {
  std::int32_t call = kNone;
  WaitKind kind = WaitKind::none;
  std::vector<std::int32_t> sources;  // GPU work
  bool inferred = false;
  // Of a held call: before it can be held, from the end of the last source to its return (kept), and what it does then
  // whatever held it.
  double enter_us = 0, return_us = 0, own_us = 0;
};

struct Handoff {
  // Autograd begins; main goes on; main evaluates inside backward.
  enum class Kind : std::uint8_t { wake, join, evaluate };
  // End of this task, or, without one, the start of the rank.
  std::int32_t from_thread = kNone, from_task = kNone;
  std::int32_t to_thread = kNone, to_task = kNone;
  Kind kind = Kind::wake;
  double delay_us = 0;
};

struct CpuLanes {
  std::vector<std::int32_t> threads;        // lanes, the main thread first
  std::vector<std::vector<CpuTask>> tasks;  // [lane]
  std::vector<CpuWait> waits;
  std::vector<Handoff> handoffs;            // threads are lanes here
  std::uint64_t dropped_polling_calls = 0;  // calls of threads that only poll
};

// Cuts a thread's time that is no work: gaps without an open op from this length on are idle.
inline constexpr double kIdleGapUs = 60;
// What the main thread itself still does at the begin of such a gap.
inline constexpr double kGapBaseUs = 5;

[[nodiscard]] CpuLanes cut_cpu_lanes(const RankGraph& graph);

}  // namespace stepcast::detail
