// Which steps the traces of a job hold.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// Numbers N of ProfilerStep#N.
[[nodiscard]] std::set<std::int64_t> steps_of(const RecordedRank& rank);
// Those that every rank has.
[[nodiscard]] std::set<std::int64_t> common_steps(const TraceSet& set);
// Of those the ones that say what the job repeats, ascending: without special steps (step_kind.h) and without steps that take
// more than 1.3 times as long as the middle one, as a step does in which a profiler stops or a second recorder runs. Never empty
// where there are complete common steps.
[[nodiscard]] std::vector<std::int64_t> ordinary_steps(const TraceSet& set);

}  // namespace stepcast
