// The critical path: the chain of tasks and delays, through all ranks, that leads from the start of the step
// to its end without a gap.
//
// It is found backwards. From the task that ends last, the walk goes to the constraint that decided when it
// could start (binding_of), and from a collective to the member that arrived last. The steps of the path are
// contiguous in time, so their lengths sum to its length. If a step on the path takes x longer, the end is x
// later. A task off the path has slack.
//
//   rank 1:  start offset | cpu | cpu |
//                                     `-launch delay-> [transfer]
//   rank 0:  | cpu |  [waits for rank 1 ..............][transfer]-> | cpu |
//
//   steps: start offset of rank 1, cpu, cpu, launch delay, transfer (rank 1), wait edge, cpu of rank 0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/program/program.h"

namespace stepcast {

// One step of the path.
struct PathStep {
  enum class Kind : std::uint8_t {
    task,          // a whole task; of a collective: its transfer
    edge,          // the delay of an edge into `task`
    start_offset,  // the rank started later than the first rank
    // Time between the last constraint and the start of `task`. Occurs with recorded times only.
    unexplained,
  };
  Kind kind = Kind::task;
  RankClassId rank_class;
  std::size_t task = kNoTask;  // flat number
  EdgeInfo edge;               // for kind edge
  Interval time;
};

// The sum of the steps of one kind, and their number.
struct PathShare {
  std::string what;
  double time_us = 0;
  std::uint64_t steps = 0;
};

struct CriticalPath {
  Interval time;                // from the earliest start of a rank to the end
  RankClassId last_rank;        // the rank on which it ends
  std::vector<PathStep> steps;  // in ascending order of time
};

struct CriticalPathOptions {
  // The path leads to the end of this rank. Without it, to the latest end of all ranks.
  std::optional<RankClassId> to_rank;
  // The path leads to the end of this task of `to_rank` (a flat number).
  std::optional<std::size_t> to_task;
  // The path leads to the start of that task instead.
  bool to_start = false;
  // The path is followed back only to the first step that begins at or before this time.
  std::optional<double> from_us{};
};

// The critical path. Among candidates that are equally late, the first one wins: the lowest rank class, and
// the lane before the edges. `rank_start_us`: one start per rank class.
[[nodiscard]] CriticalPath critical_path(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                         std::span<const double> rank_start_us,
                                         const CriticalPathOptions& options = {});

// The number of steps on the path. A body (program/task_bodies.h) counts with all steps of its own path, here
// and in the lists below.
[[nodiscard]] std::uint64_t step_count(const FlatProgram& flat, const CriticalPath& path);
// The path by class of work. Each of these lists sums to the length of the path, longest first. Classes:
// "cpu", "kernels: gemm", ..., "copies", "communication", "delay: launch", ..., "late start", "unexplained".
[[nodiscard]] std::vector<PathShare> path_by_class(const FlatProgram& flat, const CriticalPath& path);
// The path by rank class; the late start of a rank is an entry of its own.
[[nodiscard]] std::vector<PathShare> path_by_rank(const FlatProgram& flat, const CriticalPath& path);
// The name of a step as a profiler shows it: framework operator and task name. Delays are named by the edge's
// origin.
[[nodiscard]] std::string path_step_name(const FlatProgram& flat, const PathStep& step);
// The path by path_step_name().
[[nodiscard]] std::vector<PathShare> path_by_name(const FlatProgram& flat, const CriticalPath& path);

}  // namespace stepcast
