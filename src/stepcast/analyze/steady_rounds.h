// The steady state of a pipeline: what the rounds that a Program leaves out (LeftOutRounds) add to its analysis.
//
// In the steady state every rank does the same again, a period later. Times of a round count once more for each that is
// left out; the critical path goes through each in the same way.
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

struct SteadyRounds {
  LeftOutRounds left_out;
  double period_us = 0;
  std::vector<Interval> windows;  // [rank class] a period of it
  CriticalPath path, round_of_path;
};

// None if some rank does other things in two periods next to each other, or the critical path does not repeat; that is
// left out where nobody asks for it.
[[nodiscard]] std::optional<SteadyRounds> steady_rounds(const PredictedStep& step, const FlatProgram& flat,
                                                        const TaskTimes& times, bool with_path = true);

// Adds `count` rounds to the breakdown of a rank, which make its window longer by `left_out_us`. `round`: that of the window
// of one, with the tasks of its instances.
void add_rounds(double count, double left_out_us, const RankBreakdown& round, RankBreakdown& rank);

}  // namespace stepcast
