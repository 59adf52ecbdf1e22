// A timeline as Chrome trace JSON, to be opened at ui.perfetto.dev or chrome://tracing.
//
// A process per rank, a thread per lane. CPU threads show the open framework ops as nested slices with the
// runtime calls inside; a synchronising call is one slice that says how long it waited. A collective shows
// waiting and transfer as two slices inside it. Arrows lead from the work that somebody waited for to the
// work that waited: launches, events, synchronisation, thread hand-offs.
//
//   STEPCAST_TRY(write_perfetto("timeline.json.gz", flat, costs, simulated));
//   // "rank 0 measured" above "rank 0 simulated":
//   STEPCAST_TRY(write_perfetto("both.json", flat, costs, simulated, &measured));
#pragma once

#include <string>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/result.h"
#include "stepcast/program/program.h"

namespace stepcast {

// The document as text; times in microseconds with three decimals.
[[nodiscard]] std::string to_perfetto(const FlatProgram& flat, const Costs& costs, const TaskTimes& times,
                                      const TaskTimes* measured = nullptr);

// Gzip-compressed when the name ends in ".gz".
[[nodiscard]] Status write_perfetto(const OutputFile& file, const FlatProgram& flat, const Costs& costs,
                                    const TaskTimes& times, const TaskTimes* measured = nullptr);

}  // namespace stepcast
