// Matches the collectives of several ranks by communicator and order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/program/program.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// One collective over several ranks.
struct MatchedCollective {
  CollectiveOp op = CollectiveOp::unknown;
  std::string name;
  double message_bytes = -1;  // per rank, largest over the members; -1: not known
  // Shortest recorded duration in microseconds: the last rank to arrive waits least.
  double transfer_us = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> members;  // (rank position, GPU work)
};

// The result for a set of ranks.
struct CollectiveMatch {
  std::vector<MatchedCollective> collectives;
  std::vector<std::string> notes;  // groups that were not joined, with the reason; clocks that were moved
  // [rank position] microseconds to add to its clock, so that collectives end together.
  std::vector<double> clock_shift_us;
  double clock_uncertainty_us = 0;  // remaining uncertainty of the clocks in microseconds
};

// Matches collectives and sets GpuWork::collective of all joined work. Groups with missing ranks are not
// joined; their work keeps its recorded duration, and a note says so. If ranks disagree about the number or
// kind of collectives (several groups on one stream, no metadata), work is joined by recorded times.
[[nodiscard]] CollectiveMatch match_collectives(std::vector<RankGraph>& ranks);

// The facts about one communication kernel, from its own arguments, those of its record_param_comms, or the
// execution trace, in this order.

struct CollectiveFacts {
  CollectiveOp op = CollectiveOp::unknown;
  DType dtype = DType::unknown;
  // Larger one of input and output bytes; -1: not known.
  double bytes = -1;
  double bytes_in = -1;                     // input bytes of this rank; -1: not known
  std::string communicator;                 // identifies the communicator on its rank; empty: not known
  std::string group_name;                   // name of the process group; empty: not known
  std::int32_t group_size = -1;             // number of ranks; -1: not known
  std::vector<std::int32_t> group_ranks{};  // empty: not known
};

// Collects the facts of a kernel. O(1), computed again on each call.
[[nodiscard]] CollectiveFacts collective_facts(const RankGraph& graph, const GpuWork& work);

// True if kind and size are known, as CollectiveWork requires.
[[nodiscard]] bool is_known(const CollectiveFacts& facts);
// The message size for CollectiveWork: the input of this rank if ranks may send different amounts
// (all-to-all, send, receive), else the larger one of input and output.
[[nodiscard]] Bytes message_of(const CollectiveFacts& facts);

// Adds the groups of all communication to the program: the ranks named in the trace, else the joined ranks,
// else all ranks of the job ("all ranks"). Returns [rank position][GPU work]; invalid for other work.
[[nodiscard]] std::vector<std::vector<GroupId>> add_groups(Program& program,
                                                           const std::vector<RankGraph>& ranks,
                                                           const CollectiveMatch& match);

}  // namespace stepcast::detail
