// How well event edges are inferred, where the truth is known.
//
// An edge counts by what it says about the order of GPU work: it is found when the inferred edges, with the
// order of every stream, imply it, and right when the true ones do. Edges that others imply already are no
// use to anybody and are not counted (a stream that waits for three all-reduces of one stream waits for the
// last).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/trace/recorded_program.h"
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

}  // namespace stepcast
