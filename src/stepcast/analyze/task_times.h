// Start and end of every task of every rank class, wherever they come from: a simulated Timeline or a
// recorded trace.
//
// Every analysis works on TaskTimes, so whatever is said about the simulated step can be said about the
// measured one. Tasks are numbered as in FlatProgram. Ranks of one class do the same, so one rank stands for
// its class.
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
  enum class Origin : std::uint8_t { simulated, measured };

  // Times of the first rank of every class.
  [[nodiscard]] static TaskTimes simulated(const FlatProgram& flat, const Timeline& timeline);
  // The same without a copy, of classes of one instance: it goes with the timeline.
  [[nodiscard]] static TaskTimes referring_to(const FlatProgram& flat, const Timeline& timeline);
  // `intervals` holds one vector per rank class with one interval per flat task, and is referred to. Error: other sizes.
  [[nodiscard]] static Result<TaskTimes> measured(const FlatProgram& flat,
                                                  std::span<const std::vector<Interval>> intervals);

  TaskTimes() = default;
  TaskTimes(TaskTimes&&) = default;
  TaskTimes& operator=(TaskTimes&&) = default;

  [[nodiscard]] Origin origin() const { return origin_; }
  [[nodiscard]] std::span<const Interval> of(RankClassId c) const { return times_[c.index()]; }
  [[nodiscard]] const Interval& at(RankClassId c, std::size_t flat) const { return times_[c.index()][flat]; }
  // Last end of a class' tasks; `otherwise` for a class without tasks.
  [[nodiscard]] double end_us(RankClassId c, double otherwise = 0) const;

 private:
  [[nodiscard]] static TaskTimes simulated(const FlatProgram& flat, const Timeline& timeline, bool referring);

  Origin origin_ = Origin::simulated;
  std::vector<std::span<const Interval>> times_;  // [class][flat task]
  std::vector<std::vector<Interval>> joined_;     // copied times, which times_ refers to
};

// The stretch that a member of a collective waits for others, and the stretch that it transfers.
//
// Simulated: it waits until the last member it depends on has arrived. Measured: it transfers for as long as
// the member that was in the collective for the shortest time, because the clocks of ranks may disagree by
// more than a transfer takes.
struct CollectiveStretch {
  double arrival_us = 0;
  double transfer_start_us = 0;
  double end_us = 0;
  [[nodiscard]] double wait_us() const { return transfer_start_us - arrival_us; }
  [[nodiscard]] double transfer_us() const { return end_us - transfer_start_us; }
};

// One stretch per member, in the order of Collective::members.
[[nodiscard]] std::vector<CollectiveStretch> collective_stretches(const FlatProgram& flat,
                                                                  const TaskTimes& times, CollectiveId id);
// The same into `stretches`, whose memory is kept from one collective to the next.
void collective_stretches(const FlatProgram& flat, const TaskTimes& times, CollectiveId id,
                          std::vector<CollectiveStretch>& stretches);

}  // namespace stepcast
