// Collectives of several ranks, matched by communicator and order.
#pragma once

#include <string>
#include <vector>

#include "stepcast/trace/detail/rank_graph.h"

namespace stepcast::detail {

struct MatchedCollective {
  CollectiveOp op = CollectiveOp::unknown;
  std::string name;
  double message_bytes = -1;  // per rank, largest over the members; -1: not known
  double transfer_us = 0;     // shortest recorded duration: the last rank to arrive waits least
  std::vector<std::pair<std::int32_t, std::int32_t>> members;  // (rank position, GPU work)
};

struct CollectiveMatch {
  std::vector<MatchedCollective> collectives;
  std::vector<std::string> notes;      // groups that could not be joined, and why; clocks that were moved
  std::vector<double> clock_shift_us;  // [rank position] to add to its clock so that collectives end together
};

// Sets GpuWork::collective of every joined work. Groups of which ranks are missing are not joined: their work
// keeps its recorded duration, and a note says so. Where the ranks disagree about number or kind (several
// groups on one stream, no metadata) work is joined by recorded times.
[[nodiscard]] CollectiveMatch match_collectives(std::vector<RankGraph>& ranks);

}  // namespace stepcast::detail
