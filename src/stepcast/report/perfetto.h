// A timeline for ui.perfetto.dev or chrome://tracing: Chrome trace JSON, or Perfetto's protobuf packets.
//
// A process per rank, a thread per lane. Passes of a pipeline are slices around their layers, and those around the operations:
// "forward, micro-batch 3" > "layer 7" > "qkv". Each operation has its shapes, FLOPs, bytes, source and band as arguments. CPU
// threads show the open framework ops as nested slices with the runtime calls inside; a synchronising call is one slice that
// says how long it waited. A collective shows waiting and transfer as two slices inside it. Arrows lead from the work that
// somebody waited for to the work that waited: launches, events, synchronisation, thread hand-offs. Counters show the rate of
// transfers and the memory of each rank where they are known. Slices have a length: work that takes no time is not shown.
//
//   STEPCAST_TRY(write_perfetto("timeline.json.gz", {.flat = flat, .costs = costs, .times = simulated}));
//   // "rank 0 measured" above "rank 0 simulated":
//   STEPCAST_TRY(write_perfetto("both.pftrace", {.flat = flat, .costs = costs, .times = simulated, .measured = &measured}));
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
