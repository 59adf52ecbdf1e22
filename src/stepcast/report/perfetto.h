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
#include <vector>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/program/program.h"

namespace stepcast {

// Memory of one rank of a class, for its counter.
struct TimelineMemory {
  double kept_bytes = 0;         // weights, gradients, optimizer and whatever else stays over the step
  double activations_bytes = 0;  // at most, of the passes under way
};

struct TimelineInput {
  const FlatProgram& flat;
  const Costs& costs;
  const TaskTimes& times;
  const TaskTimes* measured = nullptr;    // a second set of times, shown above the first one
  const PricedProgram* prices = nullptr;  // sources and bands of the durations; null: not known
  std::vector<TimelineMemory> memory{};   // [rank class]; empty: not known
};

// The document as text; times in microseconds with three decimals.
[[nodiscard]] std::string to_perfetto(const TimelineInput& input);

// Protobuf packets when the name ends in ".pftrace", JSON otherwise; gzip-compressed when it ends in ".gz".
[[nodiscard]] Status write_perfetto(const OutputFile& file, const TimelineInput& input);

}  // namespace stepcast
