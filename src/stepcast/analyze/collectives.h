// Every occurrence of a collective: who came when, who came last, how long the others waited, how long the
// transfer took.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/program/program.h"

namespace stepcast {

struct CollectiveArrival {
  RankClassId rank_class;
  std::size_t task = 0;  // flat number
  double arrival_us = 0;
  double wait_us = 0;  // for the last member it depends on
  double transfer_us = 0;
  double exposed_us = 0;  // transfer while no stream of the rank computes
  double end_us = 0;
};

struct CollectiveOccurrence {
  CollectiveId collective;
  CollectiveOp op = CollectiveOp::unknown;
  NameId name;
  double message_bytes = -1;  // -1: not known
  std::vector<CollectiveArrival> members;
  std::size_t last = 0;      // position in members of the one that arrived last; the first of several
  double total_wait_us = 0;  // over members
  double longest_wait_us = 0;
  double transfer_us = 0;                 // shortest of the members'
  [[nodiscard]] double start_us() const;  // first arrival
};

// All collectives of the Program in the order of their first arrival.
[[nodiscard]] std::vector<CollectiveOccurrence> collective_occurrences(const FlatProgram& flat,
                                                                       const TaskTimes& times);

}  // namespace stepcast
