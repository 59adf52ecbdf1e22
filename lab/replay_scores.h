// What the suite `replay` scores beside times: event edges that are inferred, steps of operator-level timelines, and what
// clocks that are apart change.
//
// How well event edges are inferred, where the truth is known: an edge counts by what it says about the order of GPU work. It
// is found when the inferred edges, with the order of every stream, imply it, and right when the true ones do. Edges that
// others imply already are no use to anybody and are not counted (a stream that waits for three all-reduces of one stream
// waits for the last).
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

// Indices into RecordedRank::gpu_ops: `destination` does not start before `source` is over.
struct EventEdge {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  auto operator<=>(const EventEdge&) const = default;
};

struct InferenceScore {
  std::size_t true_edges = 0;      // effective ones
  std::size_t found = 0;           // of them, implied by the inferred edges
  std::size_t inferred_edges = 0;  // effective ones
  std::size_t right = 0;           // of them, implied by the true edges
  std::vector<EventEdge> missed, wrong;

  [[nodiscard]] double recall() const;                      // 1 where there is nothing to find
  [[nodiscard]] double precision() const;                   // 1 where nothing was inferred
  InferenceScore& operator+=(const InferenceScore& other);  // without the lists
};

[[nodiscard]] InferenceScore score_event_edges(const RecordedRank& recorded, std::span<const EventEdge> truth,
                                               std::span<const EventEdge> inferred);

// Edges between works of different streams that a rebuilt Program has for one rank.
[[nodiscard]] std::vector<EventEdge> event_edges(const RecordedProgram& program, std::size_t rank);

// What the trace's `cuda_sync` records say. Waits without the record waited for rest on the moment of the
// wait.
[[nodiscard]] std::vector<EventEdge> recorded_event_edges(const RecordedRank& recorded);

// The same trace from a profiler that writes no `cuda_sync` records.
[[nodiscard]] RecordedRank without_sync_records(RecordedRank recorded);

// Steps of an operator-level timeline (trace/pipeline_timeline.h) against their recorded lengths.
struct PipelineStepScore {
  std::int64_t step = 0;
  // Launch delays as in the other half of the steps: of even positions for odd ones, and the other way round.
  TimePair delayed;
  // Without launch delays, against the publishers' own simulation without, where that stands beside
  // (`step_t_nodelay` of the file result-* beside timeline-*).
  std::optional<TimePair> without_delay;
};

// Every step of `file`. Errors: those of read_pipeline_timeline().
[[nodiscard]] Result<std::vector<PipelineStepScore>> score_pipeline(const std::filesystem::path& file);

// Ranks on clocks that are apart: the time stamps of whole ranks are moved at random, and what a replay says of who the others
// wait for is held against what it says of the ranks as recorded.

// Who and what holds the simulated step back.
[[nodiscard]] Result<StepCulprits> culprits_of(const Replay& replayed);

// Draws of one largest offset.
struct ClockDraws {
  std::int64_t most_us = 0;  // every rank's clock is ahead by 0 to this, whole microseconds
  std::size_t draws = 0;
  std::uint32_t collectives = 0;  // as recorded
  std::uint32_t most_other = 0;   // the number of a draw that is farthest from it; the same where all agree
  std::size_t named_right =
      0;  // the rank that is named as recorded, its share of the waiting within kShareWithin
  std::size_t said_not_known = 0;  // no rank is named
  double largest_share_error = 0;  // of the waiting, where the rank is right
};
inline constexpr double kShareWithin = 0.03;

// The last step that all ranks have, for each of the largest offsets. Nothing where no rank is named as recorded: then there is
// nothing that clocks could change. Errors: those of replay().
[[nodiscard]] Result<std::vector<ClockDraws>> draw_clock_offsets(const TraceSet& set, std::size_t draws,
                                                                 unsigned threads);

}  // namespace stepcast
