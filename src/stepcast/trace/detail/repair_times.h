// Corrects times of a profiler trace that are impossible. They are replaced by the latest possible ones.
//
//   GPU work     ends after later work on a serial stream: is cut to the start of that work
//   operators    end after the operator or step in which they began: are cut to its end; calls likewise
//   steps        extend into the next step: are cut to its start; or end long after everything else: are cut to that
#pragma once

#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {

// Events must be sorted by start. Counts the changes in RecordedRank::repaired.
void repair_times(RecordedRank& rank);

}  // namespace stepcast::detail
