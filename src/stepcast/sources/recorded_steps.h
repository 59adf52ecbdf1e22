// Which steps the traces of a job hold.
#pragma once

#include <cstdint>
#include <set>

#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// Numbers N of ProfilerStep#N.
[[nodiscard]] std::set<std::int64_t> steps_of(const RecordedRank& rank);
// Those that every rank has.
[[nodiscard]] std::set<std::int64_t> common_steps(const TraceSet& set);

}  // namespace stepcast
