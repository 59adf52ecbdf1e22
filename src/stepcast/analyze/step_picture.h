// What ranks do over the time of a step, small enough to be drawn: the passes of a pipeline, or what the GPU of every
// rank does or waits for, or the critical path. Values only; analyze/make_step_picture.h makes them.
//
//   if (!pictures.ranks.rows.empty()) pictures.ranks.rows[3].bars.front().part
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace stepcast
