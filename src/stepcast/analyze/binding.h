// Which of the things a task had to wait for decided when it could start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"

namespace stepcast {

// Times closer than this are the same time: simulated times are sums of doubles.
inline constexpr double kTimeToleranceUs = 1e-6;

struct Binding {
  enum class Kind : std::uint8_t {
    rank_start,  // nothing before it: the rank's start
    lane,        // its predecessor on the lane
    edge,        // `source`
  };
  Kind kind = Kind::rank_start;
  FlatSource source;      // lane: task is the predecessor, delay 0
  double arrival_us = 0;  // when the constraint was met
};

// The latest constraint. Among constraints that are met at the same time (kTimeToleranceUs) the lane goes
// first, then the edges in the order of the block.
[[nodiscard]] Binding binding_of(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                 RankClassId c, std::size_t task, double rank_start_us);

// What a lane waits for while it does nothing.
enum class IdleCause : std::uint8_t {
  cpu,  // a GPU stream: the CPU has not launched the work yet, or works on when nothing is left to launch
  other_stream,   // a GPU stream: work of another stream of the rank (an event, or a busy device)
  other_rank,     // a GPU stream: inside a collective, for the rank that comes last
  pipeline,       // a GPU stream: for what another pipeline stage sends
  between_steps,  // a GPU stream: the CPU is between two steps
  gpu,            // a CPU thread: GPU work
  other_thread,   // a CPU thread: another thread of the rank
  rest,           // gaps between queued kernels, recorded delays, nothing left to do
};
inline constexpr int kIdleCauseCount = 8;
[[nodiscard]] std::string_view to_string(IdleCause cause);

// Why the lane of a task did nothing before the task started. Tasks that only wait (TaskKind::wait) are looked
// through: what they waited for is the cause.
[[nodiscard]] IdleCause idle_cause_before(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                          RankClassId c, std::size_t task, double rank_start_us);
// The same from the binding of the task.
[[nodiscard]] IdleCause idle_cause(const FlatProgram& flat, RankClassId c, std::size_t task,
                                   const Binding& binding);

// The call that launched a piece of GPU work, the last to return of several; nothing where none is known.
[[nodiscard]] std::optional<FlatSource> launch_of(const FlatProgram& flat, const TaskTimes& times,
                                                  const Costs& costs, RankClassId c, std::size_t task);
// The part of a gap of a GPU stream before `task` that counts for the host whatever held the task behind it: its launch
// had not returned. Of no length at the gap's start where it had.
[[nodiscard]] Interval before_launch(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                     RankClassId c, std::size_t task, Interval gap);

}  // namespace stepcast
