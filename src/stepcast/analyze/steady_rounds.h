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
  [[nodiscard]] double left_out_us() const { return left_out.count * period_us; }

  // The copies of what happens in an instance of a class: those of the first and of the last round.
  struct Copies {
    std::uint64_t first = 0, last = 0;
  };
  [[nodiscard]] Copies copies_of(RankClassId c, InstanceId instance) const;
};

// None if some rank does other things in two periods next to each other, or the critical path does not repeat; that is
// left out where nobody asks for it.
[[nodiscard]] std::optional<SteadyRounds> steady_rounds(const PredictedStep& step, const FlatProgram& flat,
                                                        const TaskTimes& times, bool with_path = true);

// Adds the rounds left out to the breakdown of a rank; `round`: that of its window.
void add_rounds(const SteadyRounds& rounds, const Program& program, const RankBreakdown& round,
                RankBreakdown& rank);

// Adds them to shares of the path; `round`: shares of round_of_path.
[[nodiscard]] std::vector<PathShare> with_rounds(std::vector<PathShare> shares,
                                                 const std::vector<PathShare>& round, double count);

}  // namespace stepcast
