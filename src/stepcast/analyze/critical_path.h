// The critical path: the chain of work and delays, through all ranks, that leads from the start to the end
// without a hole.
//
// It is found backwards: from the task that ends last to whatever decided when it could start (binding_of),
// from there on, and from a collective to the member that came last. Its steps are contiguous in time, so
// their lengths sum to the length of the whole. To make any of them longer by x makes the end later by x; a
// task off the path has slack.
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

struct PathStep {
  enum class Kind : std::uint8_t {
    task,          // the whole of a task; of a collective: its transfer
    edge,          // the delay of an edge into `task`
    start_offset,  // the rank began later than the first one
    unexplained,   // between the last constraint and the start of `task`: recorded times only
  };
  Kind kind = Kind::task;
  RankClassId rank_class;
  std::size_t task = kNoTask;  // flat number
  EdgeInfo edge;               // of kind edge
  Interval time;
};

struct PathShare {
  std::string what;
  double time_us = 0;
  std::uint64_t steps = 0;
};

struct CriticalPath {
  Interval time;                // from the earliest start of a rank to the end
  RankClassId last_rank;        // where it ends
  std::vector<PathStep> steps;  // in the order of time
};

struct CriticalPathOptions {
  // The path to the end of this rank; otherwise to the latest end of all.
  std::optional<RankClassId> to_rank;
  // The path to the end of this task of `to_rank`, a flat number.
  std::optional<std::size_t> to_task;
  // ... to the start of that task.
  bool to_start = false;
  // Only back to the first step that begins at or before this time.
  std::optional<double> from_us{};
};

// Among several candidates that are equally late the first wins: the lowest rank class, the lane before the
// edges.
[[nodiscard]] CriticalPath critical_path(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                         std::span<const double> rank_start_us,
                                         const CriticalPathOptions& options = {});

// What a body stands for counts step by step (program/task_bodies.h), here and in the lists.
[[nodiscard]] std::uint64_t step_count(const FlatProgram& flat, const CriticalPath& path);
// Each list sums to the length of the path, longest first.
// "cpu", "kernels: gemm", ..., "copies", "communication", "delay: launch", ..., "late start", "unexplained".
[[nodiscard]] std::vector<PathShare> path_by_class(const FlatProgram& flat, const CriticalPath& path);
[[nodiscard]] std::vector<PathShare> path_by_rank(const FlatProgram& flat, const CriticalPath& path);
// What a person would look for: framework op and task name; delays by the origin of the edge.
[[nodiscard]] std::string path_step_name(const FlatProgram& flat, const PathStep& step);
[[nodiscard]] std::vector<PathShare> path_by_name(const FlatProgram& flat, const CriticalPath& path);

}  // namespace stepcast
