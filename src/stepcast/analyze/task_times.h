// The start and end of every task of every rank class, either from a simulated Timeline or from a recorded
// trace.
//
// Analyses work on TaskTimes only, so they apply to simulated and to measured steps. Tasks have the numbers
// of FlatProgram. All ranks of a class do the same, so the times of one rank represent its class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/base/interval.h"
#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

class TaskTimes {
 public:
  // Decides how collective_stretches() separates waiting from transfer.
  enum class Origin : std::uint8_t { simulated, measured };

  // The times of the first rank of each class, copied from the timeline.
  [[nodiscard]] static TaskTimes simulated(const FlatProgram& flat, const Timeline& timeline);
  // The same without copying the times of classes with a single instance. The timeline must outlive the
  // result.
  [[nodiscard]] static TaskTimes referring_to(const FlatProgram& flat, const Timeline& timeline);
  // Measured times: one vector per rank class, one interval per flat task. They are not copied and must
  // outlive the result. Error: the sizes do not match the program.
  [[nodiscard]] static Result<TaskTimes> measured(const FlatProgram& flat,
                                                  std::span<const std::vector<Interval>> intervals);

  TaskTimes() = default;
  TaskTimes(TaskTimes&&) = default;
  TaskTimes& operator=(TaskTimes&&) = default;

  [[nodiscard]] Origin origin() const { return origin_; }
  // The times of all tasks of a class, and of one task.
  [[nodiscard]] std::span<const Interval> of(RankClassId c) const { return times_[c.index()]; }
  [[nodiscard]] const Interval& at(RankClassId c, std::size_t flat) const { return times_[c.index()][flat]; }
  // The latest end of the tasks of a class; `otherwise` if it has no tasks.
  [[nodiscard]] double end_us(RankClassId c, double otherwise = 0) const;

 private:
  // `referring`: do not copy where that is possible.
  [[nodiscard]] static TaskTimes simulated(const FlatProgram& flat, const Timeline& timeline, bool referring);

  Origin origin_ = Origin::simulated;
  std::vector<std::span<const Interval>> times_;  // [class][flat task]
  std::vector<std::vector<Interval>> joined_;     // copied times; times_ refers to them
};

// The time that a member of a collective waits for others, and the time that it transfers, in microseconds.
//
// Simulated: the member waits until the last member that it depends on has arrived. Measured: its transfer is
// as long as the stay of the member that was in the collective for the shortest time. Arrival times cannot be
// used there, because the clocks of ranks may differ by more than a transfer takes.
struct CollectiveStretch {
  double arrival_us = 0;
  double transfer_start_us = 0;
  double end_us = 0;
  [[nodiscard]] double wait_us() const { return transfer_start_us - arrival_us; }
  [[nodiscard]] double transfer_us() const { return end_us - transfer_start_us; }
};

// One entry per member, in the order of Collective::members.
[[nodiscard]] std::vector<CollectiveStretch> collective_stretches(const FlatProgram& flat,
                                                                  const TaskTimes& times, CollectiveId id);
// The same into `stretches`, so that its memory is reused from one collective to the next.
void collective_stretches(const FlatProgram& flat, const TaskTimes& times, CollectiveId id,
                          std::vector<CollectiveStretch>& stretches);

}  // namespace stepcast
