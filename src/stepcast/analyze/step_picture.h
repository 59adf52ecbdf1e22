// What ranks do over the time of a step, small enough to be drawn: the passes of a pipeline, or what the GPU of every
// rank does or waits for, or the critical path. Values only.
//
//   const StepPicture passes = picture_of_passes(flat, times);       // a described step
//   const StepPicture ranks = picture_of_ranks({flat, costs, times, windows, starts});
//   if (!ranks.rows.empty()) ranks.rows[3].bars.front().part
//
// Nothing grows with the number of tasks: passes beyond kMostPictureBars are left out in the middle of the step, where a
// pipeline repeats itself; a rank's time is cut into slots, each of which shows what takes most of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/program/program.h"

namespace stepcast {

enum class PicturePart : std::uint8_t {
  forward,
  backward,
  weight_gradient,
  update,
  computation,
  transfer,
  copy,
  other_rank,    // waits for a rank that comes later
  pipeline,      // waits for another stage
  cpu,           // waits for its CPU
  other_stream,  // waits for another stream
  idle,          // anything else
  host,          // work of the CPU, on a critical path
  delay,         // of a dependency, there
};
inline constexpr std::size_t kPicturePartCount = 14;
[[nodiscard]] std::string_view to_string(PicturePart part);

struct PictureBar {
  double start_ms = 0, time_ms = 0;
  PicturePart part = PicturePart::idle;
  std::int32_t number = -1;  // of the micro-batch; -1: none
};

struct PictureRow {
  std::string name;
  std::vector<PictureBar> bars;       // ascending, disjoint
  std::vector<PictureBar> transfers;  // that run beside them; may be empty
};

// A stretch of the step that is not shown.
struct PictureGap {
  double from_ms = 0, to_ms = 0;
  std::uint64_t passes = 0;
};

struct StepPicture {
  double length_ms = 0;
  std::vector<PictureRow> rows;
  std::vector<PictureGap> gaps;  // at most one
  double slot_ms = 0;            // 0: every bar is as it is
  std::uint64_t rows_left_out = 0;
};

// What there is of one step; a picture without rows is not there.
struct StepPictures {
  StepPicture passes, ranks, path;
};

inline constexpr std::size_t kMostPictureBars = 6000;  // of passes
inline constexpr std::size_t kMostPictureRows = 128;

// Passes and updates of the pipeline stages of a described step (predict/step_program.h), by the names of its blocks. No
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
