// Times of a profiler trace that cannot be, and what stands in their place: the latest that could have been.
//
//   GPU work     that outlasts the work behind it on a stream which runs one after the other: ends as that begins
//   operators    that outlast the operator or step they began in: end with it. Calls likewise
//   steps        that reach into the next one end as it begins; one that ends long after all else is over, with that
#pragma once

#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {

// Events are sorted by start. Counts what it changes in RecordedRank::repaired.
void repair_times(RecordedRank& rank);

}  // namespace stepcast::detail
