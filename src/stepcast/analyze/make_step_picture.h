// Makes the pictures of a step (step_picture.h) from a simulated step.
//
//   const StepPicture passes = picture_of_passes(flat, times);       // a described step
//   const StepPicture ranks = picture_of_ranks({flat, costs, times, windows, starts});
//
// The size of a picture is bounded, whatever the number of tasks. Pictures of passes leave out the middle of
// the step beyond kMostPictureBars, where a pipeline repeats itself. Pictures of ranks divide the time into
// slots and show the part that takes most of each slot.
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

inline constexpr std::size_t kMostPictureBars = 6000;  // of passes; more are left out
// Rank classes beyond this number are left out.
inline constexpr std::size_t kMostPictureRows = 128;

// The passes and updates of the pipeline stages of a described step (predict/step_program.h), recognised by
// the roles of its blocks. Empty for other programs.
[[nodiscard]] StepPicture picture_of_passes(const FlatProgram& flat, const TaskTimes& times);

// A simulated or measured step, with one window and one start per rank class.
struct RankPictureInput {
  const FlatProgram& flat;
  const Costs& costs;
  const TaskTimes& times;
  std::span<const Interval> windows;      // [rank class]
  std::span<const double> rank_start_us;  // [rank class]
};
// The parts of breakdown.h over time, one row per rank. Times are relative to the earliest window.
[[nodiscard]] StepPicture picture_of_ranks(const RankPictureInput& input);

// A critical path, with one row for each rank that it goes through.
[[nodiscard]] StepPicture picture_of_path(const FlatProgram& flat, const CriticalPath& path);

}  // namespace stepcast
