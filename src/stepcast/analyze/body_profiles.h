// Profiles of the bodies of a step. A body (program/task_bodies.h) is one pass of a pipeline stage, from its
// first kernel to its last; a single task represents it in the program. Each body is analysed once, and its
// profile is added for every task that represents it.
//
//   const BodyProfiles bodies{priced};
//   const FlatProgram flat{program, &bodies};      // analyses of `flat` expand such tasks
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stepcast/analyze/breakdown.h"
#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/predict/price_program.h"

namespace stepcast {

// The result of the analysis of one body. Times are in microseconds from the start of the body.
struct BodyProfile {
  struct Lane {
    std::uint64_t tasks = 0, at_start = 0;  // number of tasks; number of tasks with no length at the start
    double tasks_us = 0;                    // sum of the counted tasks; 0 for CPU threads
    Interval busy;                          // from the start of the first task to the end of the last
    // Why the lane is idle before its first task. Nothing: the cause is whatever the body as a whole waited
    // for.
    std::optional<IdleCause> before{};
    bool seen = false;         // the lane has tasks with a length above 0
    std::size_t position = 0;  // index into the streams or threads of `parts`
  };
  // A transfer that is in progress on a stream.
  struct Transfer {
    std::size_t stream = 0;   // index into parts.streams
    std::uint32_t group = 0;  // GroupId + 1; 0: the group is unknown
    friend bool operator==(const Transfer&, const Transfer&) = default;
  };
  // An interval in which the activity does not change: a computation, transfers, or both. It begins where the
  // previous piece ends.
  struct Piece {
    double end_us = 0;
    bool computes = false;
    std::vector<Transfer> transfers;
  };
  RankBreakdown parts;      // idle time of a lane is counted between its first and its last task
  std::vector<Lane> lanes;  // one per lane of the rank class
  std::vector<Piece> pieces;
  CriticalPath path;  // task numbers of BodyProfiles::flat()
  // If the body ends by waiting: the cause, as from idle_cause_before(). Nothing otherwise.
  std::optional<IdleCause> ends_on{};

  [[nodiscard]] double length_us() const { return parts.window.end_us; }
  // Appends the intervals in which the body computes to `busy`, for a body that runs at `at`. Adjacent
  // intervals are merged.
  void add_computation(const Interval& at, std::vector<Interval>& busy) const;
};

// The profiles of all bodies of a priced program. Keeps pointers into `bodies`, which must outlive this
// object.
class BodyProfiles {
 public:
  explicit BodyProfiles(const PricedBodies& bodies);
  // The profile of the body that a task represents; a null pointer for an ordinary task.
  [[nodiscard]] const BodyProfile* of(const TaskInfo& info) const {
    const std::size_t body = tasks_->index_of(info);
    return body == TaskBodies::kNone ? nullptr : &profiles_[body];
  }
  // By the number of the body.
  [[nodiscard]] const BodyProfile& operator[](std::size_t body) const { return profiles_[body]; }
  [[nodiscard]] std::size_t index_of(const BodyProfile& body) const {
    return static_cast<std::size_t>(&body - profiles_.data());
  }
  // The bodies as a program of their own: rank class b is body b.
  [[nodiscard]] const FlatProgram& flat() const { return flat_; }

 private:
  const TaskBodies* tasks_;
  FlatProgram flat_;
  std::vector<BodyProfile> profiles_;
};

// The profile of the body that a task of `flat` represents; a null pointer for an ordinary task, or if `flat`
// was made without bodies.
[[nodiscard]] inline const BodyProfile* body_of(const FlatProgram& flat, const TaskInfo& info) {
  return flat.bodies() == nullptr ? nullptr : flat.bodies()->of(info);
}

}  // namespace stepcast
