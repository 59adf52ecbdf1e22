// Pictures of a step, small enough to be drawn: the passes of a pipeline, what the GPU of each rank does or
// waits for, and the critical path. Values only; analyze/make_step_picture.h makes them.
//
//   if (!pictures.ranks.rows.empty()) pictures.ranks.rows[3].bars.front().part
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// The content of a bar. Each part has its own colour (report/html/report.css).
enum class PicturePart : std::uint8_t {
  forward,
  backward,
  weight_gradient,
  update,
  computation,
  transfer,
  copy,
  other_rank,    // waits in a collective for a rank that arrives later
  pipeline,      // waits for another pipeline stage
  cpu,           // waits for its CPU to launch work
  other_stream,  // waits for another stream
  idle,          // any other idle time
  host,          // work of the CPU; only in pictures of a critical path
  delay,         // delay of a dependency; only in pictures of a critical path
};
// The number of parts, and the name of a part for legends: "weight gradients".
inline constexpr std::size_t kPicturePartCount = 14;
[[nodiscard]] std::string_view to_string(PicturePart part);

// A coloured interval. Times are in milliseconds from the start of the picture.
struct PictureBar {
  double start_ms = 0, time_ms = 0;
  PicturePart part = PicturePart::idle;
  std::int32_t number = -1;  // number of the pass of a micro-batch; -1: none
};

// One line of the picture: a pipeline stage or a rank.
struct PictureRow {
  std::string name;
  std::vector<PictureBar> bars;  // ascending and disjoint
  // Transfers that overlap the bars, drawn as a thin line; may be empty.
  std::vector<PictureBar> transfers;
};

// An interval of the step that is left out, with the number of passes in it.
struct PictureGap {
  double from_ms = 0, to_ms = 0;
  std::uint64_t passes = 0;
};

// One picture. Empty rows: there is no such picture.
struct StepPicture {
  double length_ms = 0;
  std::vector<PictureRow> rows;
  std::vector<PictureGap> gaps;  // at most one
  // The length of a slot: shorter activities are merged into the largest part of their slot. 0: bars are
  // exact.
  double slot_ms = 0;
  // Rows beyond the limit of make_step_picture.h.
  std::uint64_t rows_left_out = 0;
};

// The pictures of one step. A picture without rows does not exist for this kind of step.
struct StepPictures {
  StepPicture passes, ranks, path;
};

}  // namespace stepcast
