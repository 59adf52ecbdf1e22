// Writes a timeline as Chrome trace JSON, for ui.perfetto.dev or chrome://tracing.
//
// There is one process per rank and one thread per lane. CPU threads show the open framework operators as
// nested slices with the runtime calls inside. A synchronising call is one slice that says how long it
// waited. A collective contains two slices: waiting and transfer. Arrows lead from a task to the task that
// waited for it: launches, events, synchronisation, hand-offs between threads.
//
//   STEPCAST_TRY(write_perfetto("timeline.json.gz", flat, costs, simulated));
//   // also with the measured times: "rank 0 measured" above "rank 0 simulated"
//   STEPCAST_TRY(write_perfetto("both.json", flat, costs, simulated, &measured));
#pragma once

#include <string>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/result.h"
#include "stepcast/program/program.h"

namespace stepcast {

// The timeline as text. Times are in microseconds with three decimals. `measured`: further times, may be
// null.
[[nodiscard]] std::string to_perfetto(const FlatProgram& flat, const Costs& costs, const TaskTimes& times,
                                      const TaskTimes* measured = nullptr);

// The timeline as a file. Gzip-compressed if its name ends in ".gz".
[[nodiscard]] Status write_perfetto(const OutputFile& file, const FlatProgram& flat, const Costs& costs,
                                    const TaskTimes& times, const TaskTimes* measured = nullptr);

}  // namespace stepcast
