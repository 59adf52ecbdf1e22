// The steady state of a pipeline: what the rounds that a Program leaves out (LeftOutRounds) add to its
// analysis.
//
// In the steady state, every rank repeats the same work once per period. The times of one round are counted
// again for each round that is left out, and the critical path passes through each round in the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stepcast/analyze/breakdown.h"
#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/predict/predicted_step.h"

namespace stepcast {

// A verified steady state.
struct SteadyRounds {
  LeftOutRounds left_out;
  // The length of a round in microseconds.
  double period_us = 0;
  std::vector<Interval> windows;  // [rank class] one period of the steady state
  // The critical path of the whole Program, and its steps inside one round.
  CriticalPath path, round_of_path;
};

// The steady state of a step. Nothing if some rank does different things in two consecutive periods, or if
// the critical path does not repeat. The path is not computed without `with_path`.
[[nodiscard]] std::optional<SteadyRounds> steady_rounds(const PredictedStep& step, const FlatProgram& flat,
                                                        const TaskTimes& times, bool with_path = true);

// Adds `count` rounds to the breakdown of a rank, and makes its window longer by `left_out_us`. `round`: the
// breakdown of the window of one round, with the task counts of the instances in the round.
void add_rounds(double count, double left_out_us, const RankBreakdown& round, RankBreakdown& rank);

}  // namespace stepcast
