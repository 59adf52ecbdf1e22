// Changes recorded ranks as if from other profilers, jobs and clocks, to test laws that are true of any trace. The same
// trace always gives the same mutants.
//
//   for (const TraceMutation& mutation : trace_mutations())
//     if (mutation.fits(ranks)) mutation.apply(ranks);   // mutation.name: "launches removed"
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

struct TraceMutation {
  std::string_view name;  // lower case
  bool several_ranks;     // meaningful only with several ranks
  void (*apply)(std::vector<RecordedRank>& ranks);

  [[nodiscard]] bool fits(std::span<const RecordedRank> ranks) const {
    return !several_ranks || ranks.size() > 1;
  }
};

//   launches removed          calls that started GPU work: all; every other one; those of transfers; those of copies and fills
//   rank offsets              clocks of the ranks shifted by up to 1,000 us; 30 us; 20,000 us
//   another profiler          whole microseconds; no shapes, sequence numbers, ids of operators, metadata of collectives,
//                             records of synchronisation and sizes of grids. Also only the metadata removed, times in tens of
//                             microseconds, and no markers of steps
//   steps of 0.05, 0.3 and 4 times the length
//   first events cut          all but the step markers of the first tenth of the first step removed; of its first half
//   streams renamed           numbers in the opposite order
//   collectives spread        over three streams in turn; one stream for each
[[nodiscard]] std::span<const TraceMutation> trace_mutations();

}  // namespace stepcast
