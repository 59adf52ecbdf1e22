// The step of a recommendation model without the tasks that no sharding changes: of these only the longest ways between
// the others are left. What thousands of shardings are compared by; predict/dlrm_step simulates the one that is chosen.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "stepcast/program/block.h"
#include "stepcast/recommend/dlrm_program.h"

namespace stepcast::detail {

// Of the lookups of a rank.
struct RankLookups {
  double forward_us = 0, backward_us = 0;
};

// What a sharding exchanges, the same for all ranks, in microseconds.
struct DlrmExchanges {
  double vectors = 0, indices = 0, reduction = 0;
  double update = 0;  // of tables that every rank has
};

class DlrmSkeleton {
 public:
  DlrmSkeleton() = default;
  // Of the block that all ranks run; the times of `tasks` in `duration_us` count for nothing.
  DlrmSkeleton(const Block& block, std::span<const double> duration_us, std::span<const double> delay_us,
               const DlrmTasks& tasks);
  // When the last of these ranks is over: as the engine says, but for the order in which it adds up.
  [[nodiscard]] double end_us(std::span<const RankLookups> ranks, const DlrmExchanges& us);

 private:
  enum class Kind : std::uint8_t { start, lookup, lookup_backward, vectors, indices, reduction, other };
  struct Node {
    Kind kind = Kind::start;
    double duration_us = 0;                            // of the collectives whose time is not of the sharding
    std::vector<std::pair<std::size_t, double>> ways;  // from the ends of nodes before, the longest ones
  };
  std::vector<Node> nodes_;  // in the order of the block; the last one is the end of the step
  std::vector<double> ends_us_;
};

}  // namespace stepcast::detail
