// Recorded ranks changed as other profilers, jobs and clocks would have it: traces that nobody recorded, for what has to
// be true of any trace. The same trace always gives the same mutants.
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
  bool several_ranks;     // means something only between ranks
  void (*apply)(std::vector<RecordedRank>& ranks);

  [[nodiscard]] bool fits(std::span<const RecordedRank> ranks) const {
    return !several_ranks || ranks.size() > 1;
  }
};

//   launches removed          no call that started GPU work is in the file; every other one; those of transfers; of copies
//   rank offsets              clocks of the ranks are up to 1,000 us apart; 30; 20,000
//   another profiler          whole microseconds; no shapes, sequence numbers, ids of operators, metadata of collectives,
//                             records of synchronisation and sizes of grids. Also the metadata alone, times in tens of
//                             microseconds, and no markers of steps
//   steps of 0.05, 0.3 and 4 times the length
//   first events cut          nothing but the step markers of the first tenth of the first step; of its first half
//   streams renamed           numbers in the opposite order
//   collectives spread        over three streams in turn; each on a stream of its own
[[nodiscard]] std::span<const TraceMutation> trace_mutations();

}  // namespace stepcast
