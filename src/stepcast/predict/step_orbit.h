// A step that repeats: the time from the begin of one to the begin of the next, once it no longer changes.
//
//   StepOrbit orbit{recorded};
//   STEPCAST_ASSIGN(const StepPeriod period, orbit.period(costs));
//   period.us, period.bound_by_stream()
//
// The steps of a job follow each other: what the GPU has not done when the CPU is through with a step stands in its
// streams before the work of the next one, and whoever waits for that work waits for it as well. So copies of the step
// are chained, each beginning with what the copy before left: when every thread and every stream is free, and when
// the work is over that was still running as the recorded step began (it is the last work of the copy before, and is
// over no sooner than it was in the record). All ranks begin a copy with their recorded distances.
//
// A step that waited for the worker processes of its data loader gets its batches at their pace: one in a recorded step.
//
// Times of a copy are maxima of sums of times of the copy before (a max-plus system), so the largest growth of any
// thread or stream from copy to copy never rises, and settles at the largest mean of a cycle: the period. It is never
// below the work of a stream, nor below the step alone where that does not wait for a loader; and since it is a maximum
// of sums of durations, no shorter duration makes it longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "stepcast/base/interval.h"
#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

// A copy in which the step no longer changes.
struct SettledStep {
  Timeline timeline;              // of the tasks of the recorded Program
  std::vector<Interval> windows;  // [rank class] one period, that holds all GPU work of the step
  std::optional<TaskRef> last;    // of the stream that sets it
};

struct StepPeriod {
  double us = 0;
  double alone_us = 0;       // of one step without any before it: the longest of all ranks
  std::uint32_t copies = 1;  // simulated until it settled
  // Where a stream falls behind the threads that feed it, so that its work sets the period: whose and which.
  RankClassId rank_class{};
  std::uint16_t lane = 0;
  [[nodiscard]] bool bound_by_stream() const { return rank_class.valid(); }
  std::optional<SettledStep> settled;  // nothing: one step leaves nothing to the next
};

class StepOrbit {
 public:
  // `recorded` must outlive it.
  explicit StepOrbit(const RecordedProgram& recorded);
  ~StepOrbit();
  StepOrbit(StepOrbit&&) noexcept;
  StepOrbit& operator=(StepOrbit&&) noexcept;

  // Errors: those of Plan::compile() and Plan::simulate().
  [[nodiscard]] Result<StepPeriod> period(const Costs& costs);
  // The same where the step alone was simulated with these costs.
  [[nodiscard]] Result<StepPeriod> period(const Costs& costs, const Timeline& alone);

 private:
  class Chain;
  const RecordedProgram* recorded_;
  std::unique_ptr<Plan> alone_;   // when it is first needed, and so
  std::unique_ptr<Chain> chain_;  // is this
};

}  // namespace stepcast
