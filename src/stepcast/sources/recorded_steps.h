// Which steps the traces of a job contain. A step is numbered by its mark `ProfilerStep#N`.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// The numbers N of the steps that this rank marks, ascending.
[[nodiscard]] std::set<std::int64_t> steps_of(const RecordedRank& rank);
// The steps that every rank of the set marks, ascending.
[[nodiscard]] std::set<std::int64_t> common_steps(const TraceSet& set);
// The common steps that represent the steady state of the job, ascending. Special steps (step_kind.h) are
// excluded, and so are steps longer than 1.3 times the median, such as those in which a profiler stops or a
// second recorder runs. Not empty if at least one common step is complete on a rank.
[[nodiscard]] std::vector<std::int64_t> ordinary_steps(const TraceSet& set);

}  // namespace stepcast
