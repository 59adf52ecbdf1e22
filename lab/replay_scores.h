// Scores of the suite `replay` other than times: inferred event edges, steps of operator-level timelines, and the effect of
// shifted clocks.
//
// Event edges are scored where the truth is known, by what they imply about the order of GPU work. A true edge is found if
// the inferred edges and the order of streams imply it. An inferred edge is right if the true edges imply it. Edges that
// others imply are redundant and not counted (a stream that waits for three all-reduces of one stream waits for the last).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/analyze/culprits.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/replay.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// Indices into RecordedRank::gpu_ops: `destination` does not start before the end of `source`.
struct EventEdge {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  auto operator<=>(const EventEdge&) const = default;
};

struct InferenceScore {
  std::size_t true_edges = 0;      // without implied edges
  std::size_t found = 0;           // true edges implied by the inferred edges
  std::size_t inferred_edges = 0;  // without implied edges
  std::size_t right = 0;           // inferred edges implied by the true edges
  std::vector<EventEdge> missed, wrong;

  [[nodiscard]] double recall() const;                      // 1 if there is nothing to find
  [[nodiscard]] double precision() const;                   // 1 if nothing was inferred
  InferenceScore& operator+=(const InferenceScore& other);  // without the lists
};

[[nodiscard]] InferenceScore score_event_edges(const RecordedRank& recorded, std::span<const EventEdge> truth,
                                               std::span<const EventEdge> inferred);

// Edges between work of different streams in a rebuilt Program of one rank.
[[nodiscard]] std::vector<EventEdge> event_edges(const RecordedProgram& program, std::size_t rank);

// Edges from the `cuda_sync` records of the trace. For waits without a record of the awaited event, the time of the wait is
// used.
[[nodiscard]] std::vector<EventEdge> recorded_event_edges(const RecordedRank& recorded);

// The same trace without `cuda_sync` records, as from other profilers.
[[nodiscard]] RecordedRank without_sync_records(RecordedRank recorded);

// Steps of an operator-level timeline (trace/pipeline_timeline.h) against their recorded lengths.
struct PipelineStepScore {
  std::int64_t step = 0;
  // With launch delays of the other half of the steps: steps at odd positions use those at even positions and vice versa.
  TimePair delayed;
  // Without launch delays, against the publishers' simulation without them, if the folder contains it (`step_t_nodelay` of
  // the file result-* that belongs to timeline-*).
  std::optional<TimePair> without_delay;
};

// Every step of `file`. Errors: those of read_pipeline_timeline().
[[nodiscard]] Result<std::vector<PipelineStepScore>> score_pipeline(const std::filesystem::path& file);

// Effect of shifted clocks: time stamps of whole ranks are moved at random. The rank that a replay then names as awaited is
// compared with the one named as recorded.

// The rank and the cause that delay the simulated step.
[[nodiscard]] Result<StepCulprits> culprits_of(const Replay& replayed);

// Draws with the same largest offset.
struct ClockDraws {
  std::int64_t most_us = 0;  // the clock of every rank is ahead by 0 to this, in whole microseconds
  std::size_t draws = 0;
  std::uint32_t collectives = 0;  // as recorded
  std::uint32_t most_other = 0;   // the number in the draw that differs most; the same if all agree
  std::size_t named_right = 0;  // the same rank is named, and its share of the waiting is within kShareWithin
  std::size_t said_not_known = 0;  // no rank is named
  double largest_share_error = 0;  // of the waiting, if the rank is right
};
inline constexpr double kShareWithin = 0.03;

// Draws for the last step that all ranks have, for each largest offset. Empty if no rank is named as recorded, because
// clocks then cannot change the answer. Errors: those of replay().
[[nodiscard]] Result<std::vector<ClockDraws>> draw_clock_offsets(const TraceSet& set, std::size_t draws,
                                                                 unsigned threads);

}  // namespace stepcast
