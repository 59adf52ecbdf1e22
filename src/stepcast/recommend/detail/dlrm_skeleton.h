// A reduced model of the step of a recommendation model. It keeps only the tasks that a sharding changes, and
// the longest paths between them. A search compares thousands of shardings with it; dlrm_step.h simulates the
// full program for the chosen sharding.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "stepcast/program/block.h"
#include "stepcast/recommend/dlrm_program.h"

namespace stepcast::detail {

// Lookup times of a rank in microseconds.
struct RankLookups {
  double forward_us = 0, backward_us = 0;
};

// Durations of the exchanges of a sharding in microseconds, the same on all ranks.
struct DlrmExchanges {
  // All-to-all of vectors (once per direction), of indices, and all-reduce of tables on every rank.
  double vectors = 0, indices = 0, reduction = 0;
  double update = 0;  // optimizer update of tables on every rank
};

// The reduced step. Built once for a model and platform.
class DlrmSkeleton {
 public:
  DlrmSkeleton() = default;
  // `block` is the block that all ranks run, with the durations and edge delays of its tasks. Durations of
  // `tasks` are ignored, since the sharding sets them.
  DlrmSkeleton(const Block& block, std::span<const double> duration_us, std::span<const double> delay_us,
               const DlrmTasks& tasks);
  // The end of the last rank in microseconds. Equal to a simulation, except for rounding in the order of
  // additions. O(nodes x edges x ranks).
  [[nodiscard]] double end_us(std::span<const RankLookups> ranks, const DlrmExchanges& us);

 private:
  // What determines the duration of a node. start: the start of the step. other: fixed durations.
  enum class Kind : std::uint8_t { start, lookup, lookup_backward, vectors, indices, reduction, other };
  // A task that a sharding changes, or a collective.
  struct Node {
    Kind kind = Kind::start;
    double duration_us = 0;                            // of collectives that do not depend on the sharding
    std::vector<std::pair<std::size_t, double>> ways;  // (node, longest path from its end in microseconds)
  };
  std::vector<Node> nodes_;  // in the order of the block; the last one is the end of the step
  std::vector<double> ends_us_;
};

}  // namespace stepcast::detail
