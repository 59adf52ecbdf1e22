// The binding constraint of a task: which of its dependencies decided when it could start. Also the cause of
// the idle time in front of a task.
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

// The constraint that a task waited for longest.
struct Binding {
  enum class Kind : std::uint8_t {
    rank_start,  // no dependency: the start of the rank
    lane,        // the previous task on the lane
    edge,        // the dependency `source`
  };
  Kind kind = Kind::rank_start;
  FlatSource source;      // for kind lane: the previous task, delay 0
  double arrival_us = 0;  // when the constraint was met, in microseconds
};

// The constraint of task `task` that was met last. If several are met at the same time (kTimeToleranceUs),
// the lane wins, then the first edge in the order of the block. `rank_start_us`: when the rank's lanes became
// free.
[[nodiscard]] Binding binding_of(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                 RankClassId c, std::size_t task, double rank_start_us);

// What an idle lane waits for.
enum class IdleCause : std::uint8_t {
  // A GPU stream: the CPU has not launched the work yet, or goes on when nothing is left to launch.
  cpu,
  other_stream,   // a GPU stream: work on another stream of the rank (an event, or a busy device)
  other_rank,     // a GPU stream: inside a collective, the rank that arrives last
  pipeline,       // a GPU stream: data from another pipeline stage
  between_steps,  // a GPU stream: the CPU is between two steps
  gpu,            // a CPU thread: GPU work
  other_thread,   // a CPU thread: another thread of the rank
  rest,           // gaps between queued kernels, recorded delays, no work left
};
inline constexpr int kIdleCauseCount = 8;
// The name of a cause in JSON: "other_stream".
[[nodiscard]] std::string_view to_string(IdleCause cause);

// The reason why the lane of a task was idle before the task started. Tasks that only wait (TaskKind::wait)
// are followed to the constraint that they waited for.
[[nodiscard]] IdleCause idle_cause_before(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                          RankClassId c, std::size_t task, double rank_start_us);
// The same, given the binding constraint of the task. Waiting tasks are not followed.
[[nodiscard]] IdleCause idle_cause(const FlatProgram& flat, RankClassId c, std::size_t task,
                                   const Binding& binding);

// The call that launched a piece of GPU work. If several are known, the one that returned last; nothing if
// none is.
[[nodiscard]] std::optional<FlatSource> launch_of(const FlatProgram& flat, const TaskTimes& times,
                                                  const Costs& costs, RankClassId c, std::size_t task);
// The part of a GPU stream's idle `gap` before `task` that is charged to the host, whatever else the task
// waited for: the time until its launch call returned. An empty interval at the start of the gap if the
// launch had returned.
[[nodiscard]] Interval before_launch(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                     RankClassId c, std::size_t task, Interval gap);

}  // namespace stepcast
