// Collectives of several ranks, matched by communicator and order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/program/program.h"
#include "stepcast/rebuild/detail/rank_graph.h"

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
  double clock_uncertainty_us = 0;     // by so much the clocks may still be apart
};

// Sets GpuWork::collective of every joined work. Groups of which ranks are missing are not joined: their work
// keeps its recorded duration, and a note says so. Where the ranks disagree about number or kind (several
// groups on one stream, no metadata) work is joined by recorded times.
[[nodiscard]] CollectiveMatch match_collectives(std::vector<RankGraph>& ranks);

// What a trace tells of one communication kernel: its own args, its record_param_comms' args, or the execution
// trace, in this order.

struct CollectiveFacts {
  CollectiveOp op = CollectiveOp::unknown;
  DType dtype = DType::unknown;
  double bytes = -1;                        // the larger of what goes in and what comes out; -1: not known
  double bytes_in = -1;                     // what this rank gives; -1: not known
  std::string communicator;                 // tells the communicators of a rank apart; empty: not known
  std::string group_name;                   // the process group's name; empty: not known
  std::int32_t group_size = -1;             // ranks; -1: not known
  std::vector<std::int32_t> group_ranks{};  // empty: not known
};

[[nodiscard]] CollectiveFacts collective_facts(const RankGraph& graph, const GpuWork& work);

// True if kind and size are known: what a CollectiveWork needs.
[[nodiscard]] bool is_known(const CollectiveFacts& facts);
// The message of CollectiveWork: what this rank gives where every rank may give another amount (all-to-all,
// send, receive), the larger of in and out for the others.
[[nodiscard]] Bytes message_of(const CollectiveFacts& facts);

// Adds the groups of all communication to the program: the ranks that the trace names, else those that were
// joined, else all ranks of the job ("all ranks"). [rank position][GPU work]; invalid for other work.
[[nodiscard]] std::vector<std::vector<GroupId>> add_groups(Program& program,
                                                           const std::vector<RankGraph>& ranks,
                                                           const CollectiveMatch& match);

}  // namespace stepcast::detail
