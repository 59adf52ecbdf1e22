// Makes the pictures of a step (step_picture.h) from what was simulated.
//
//   const StepPicture passes = picture_of_passes(flat, times);       // a described step
//   const StepPicture ranks = picture_of_ranks({flat, costs, times, windows, starts});
//
// Nothing grows with the number of tasks: passes beyond kMostPictureBars are left out in the middle of the step, where a
// pipeline repeats itself; a rank's time is cut into slots, each of which shows what takes most of it.
#pragma once

#include <cstddef>
#include <span>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/step_picture.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/program/program.h"

namespace stepcast {

inline constexpr std::size_t kMostPictureBars = 6000;  // of passes
inline constexpr std::size_t kMostPictureRows = 128;

// Passes and updates of the pipeline stages of a described step (predict/step_program.h), by the roles of its blocks. No
// rows for other Programs.
[[nodiscard]] StepPicture picture_of_passes(const FlatProgram& flat, const TaskTimes& times);

struct RankPictureInput {
  const FlatProgram& flat;
  const Costs& costs;
  const TaskTimes& times;
  std::span<const Interval> windows;      // [rank class]
  std::span<const double> rank_start_us;  // [rank class]
};
// The parts of breakdown.h at their places in time; times are relative to the first window.
[[nodiscard]] StepPicture picture_of_ranks(const RankPictureInput& input);

// A critical path on the ranks that it goes through.
[[nodiscard]] StepPicture picture_of_path(const FlatProgram& flat, const CriticalPath& path);

}  // namespace stepcast
