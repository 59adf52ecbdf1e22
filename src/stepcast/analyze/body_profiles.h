// What the bodies of a step (program/task_bodies.h) do: analysed once, and added wherever a task stands for one.
//
//   const BodyProfiles bodies{priced};
//   const FlatProgram flat{program, &bodies};      // whose analyses look through such tasks
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

// Times are from the start of the body on.
struct BodyProfile {
  struct Lane {
    std::uint64_t tasks = 0, at_start = 0;  // all; those of no length at the body's start
    double tasks_us = 0;                    // 0 for threads
    Interval busy;                          // from its first task to the end of its last
    // Why it is idle before the first; none: whatever the body as a whole waited for.
    std::optional<IdleCause> before{};
    bool seen = false;         // it has tasks that last
    std::size_t position = 0;  // in the streams or threads of `parts`
  };
  struct Transfer {
    std::size_t stream = 0;   // position
    std::uint32_t group = 0;  // GroupId + 1
    friend bool operator==(const Transfer&, const Transfer&) = default;
  };
  // A stretch of time in which the same goes on: a computation, transfers, or both.
  struct Piece {
    double end_us = 0;
    bool computes = false;
    std::vector<Transfer> transfers;
  };
  RankBreakdown parts;      // idle time of a lane: between its first and its last task
  std::vector<Lane> lanes;  // of the rank class
  std::vector<Piece> pieces;
  CriticalPath path;  // in BodyProfiles::flat()
  // Where it ends by waiting: what for, as idle_cause_before() says.
  std::optional<IdleCause> ends_on{};

  [[nodiscard]] double length_us() const { return parts.window.end_us; }
  // Of a body that runs at `at`: the stretches in which it computes, behind those in `busy`.
  void add_computation(const Interval& at, std::vector<Interval>& busy) const;
};

// `bodies` must outlive it.
class BodyProfiles {
 public:
  explicit BodyProfiles(const PricedBodies& bodies);
  // What a task stands for; null if it stands for itself.
  [[nodiscard]] const BodyProfile* of(const TaskInfo& info) const {
    const std::size_t body = tasks_->index_of(info);
    return body == TaskBodies::kNone ? nullptr : &profiles_[body];
  }
  [[nodiscard]] const BodyProfile& operator[](std::size_t body) const { return profiles_[body]; }
  [[nodiscard]] std::size_t index_of(const BodyProfile& body) const {
    return static_cast<std::size_t>(&body - profiles_.data());
  }
  [[nodiscard]] const FlatProgram& flat() const { return flat_; }

 private:
  const TaskBodies* tasks_;
  FlatProgram flat_;
  std::vector<BodyProfile> profiles_;
};

[[nodiscard]] inline const BodyProfile* body_of(const FlatProgram& flat, const TaskInfo& info) {
  return flat.bodies() == nullptr ? nullptr : flat.bodies()->of(info);
}

}  // namespace stepcast
