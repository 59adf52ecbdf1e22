// The period of a repeated step: the time from the begin of one step to the begin of the next, in the steady
// state.
//
//   StepOrbit orbit{recorded};
//   STEPCAST_ASSIGN(const StepPeriod period, orbit.period(costs));
//   period.us, period.bound_by_stream()
//
// Consecutive steps of a job overlap. GPU work that is unfinished when the CPU ends a step delays the work of
// the next step in the same stream, and every task that waits for it. So copies of the step are chained. Each
// copy begins with the state that the previous one left: when every thread and stream becomes free, and when
// the work ends that was still running at the begin of the recorded step. That work is the last work of the
// previous copy, and ends no earlier than in the recording. The start offsets of the ranks are as recorded in
// every copy.
//
// If the recorded step waited for worker processes of its data loader, batches arrive at their pace: one per
// recorded step time.
//
// The times of a copy are maxima of sums of times of the previous copy (a max-plus system). So the largest
// growth of any thread or stream from copy to copy never increases, and it converges to the largest mean of a
// cycle, which is the period. The period is at least the work of any stream, and at least the time of a
// single step unless that waits for a loader. It is a maximum of sums of durations, so a shorter duration
// never makes it longer.
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

// A copy of the step in the steady state.
struct SettledStep {
  Timeline timeline;              // of the tasks of the recorded Program
  std::vector<Interval> windows;  // [rank class] one period that contains all GPU work of the step
  std::optional<TaskRef> last;    // last task of the stream that sets the period
};

// The result of StepOrbit::period(). Times are in microseconds.
struct StepPeriod {
  double us = 0;
  double alone_us = 0;       // of a single step without a previous one: the longest of all ranks
  std::uint32_t copies = 1;  // number of copies simulated until the steady state
  // If a stream is slower than the threads that feed it, its work sets the period: its rank class and lane.
  RankClassId rank_class{};
  std::uint16_t lane = 0;
  [[nodiscard]] bool bound_by_stream() const { return rank_class.valid(); }
  std::optional<SettledStep> settled;  // nullopt: a step leaves no state to the next one
};

// Computes periods of one recorded step under different costs. Plans are compiled once and reused.
class StepOrbit {
 public:
  // `recorded` must outlive this object.
  explicit StepOrbit(const RecordedProgram& recorded);
  ~StepOrbit();
  StepOrbit(StepOrbit&&) noexcept;
  StepOrbit& operator=(StepOrbit&&) noexcept;

  // Errors: those of Plan::compile() and Plan::simulate().
  [[nodiscard]] Result<StepPeriod> period(const Costs& costs);
  // The same if the single step was already simulated with these costs.
  [[nodiscard]] Result<StepPeriod> period(const Costs& costs, const Timeline& alone);

 private:
  class Chain;
  const RecordedProgram* recorded_;
  std::unique_ptr<Plan> alone_;   // compiled at first use
  std::unique_ptr<Chain> chain_;  // created at first use
};

}  // namespace stepcast
