// The traces of one job in memory: which rank each file belongs to, which execution trace goes with which profiler
// trace.
//
//   STEPCAST_ASSIGN(const TraceListing listing, list_traces({"traces/dlrm8"}));
//   STEPCAST_ASSIGN(const TraceSet set, read_trace_set(listing));
//   STEPCAST_ASSIGN(const Replay replay, replay(set.inputs()));
//
// An execution trace belongs to the profiler trace whose name is the same apart from words like "et" and "kineto"
// ("et_rank3.json.gz" and "kineto_rank3.json.gz"), else to the one of its rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/sources/trace_listing.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/operation_graph.h"
#include "stepcast/trace/rank_file.h"
#include "stepcast/trace/read_progress.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

struct TraceSetOptions {
  // Only these; empty: all. Where file names or the heads of the files tell the ranks, the events of no other file are
  // read; a listing of these ranks does not even open the others.
  std::vector<std::int32_t> ranks;
  unsigned threads = 0;  // 0: one per hardware thread
  // Where the profiler traces are large together, keep of them only what one step needs (step_selection.h): `step`, or the one
  // that replay() takes. They are read twice then.
  bool one_step = false;
  std::optional<std::int64_t> step{};
  ProgressReport progress{};                                // while profiler and execution traces are read
  std::uint64_t large_from_bytes = std::uint64_t{1} << 28;  // of JSON; gzip counts sixteenfold
};

// Profiler traces with distinct ranks, in ascending order of rank, each with its execution trace if there is
// one.
struct TraceSet {
  std::string name;
  std::vector<RecordedRank> ranks;
  std::vector<std::optional<ExecutionTrace>> execution_traces;  // [position in ranks]
  std::vector<std::string> notes;                               // what a person should know

  // Views of this set, which must outlive them.
  [[nodiscard]] std::vector<RecordedInput> inputs() const;
};

// What is there instead of profiler traces.
[[nodiscard]] Error no_profiler_trace(const TraceListing& listing);

// The listing as one set. Errors: no profiler trace, two files of one rank, ranks that cannot be told, an
// execution trace without profiler trace, a rank asked for that is not there.
[[nodiscard]] Result<TraceSet> read_trace_set(const TraceListing& listing,
                                              const TraceSetOptions& options = {});

// The listing as one set if the files say or show distinct ranks, otherwise every profiler trace as a set of
// its own. What cannot be read, and execution traces without profiler trace, go to `skipped`.
[[nodiscard]] std::vector<TraceSet> read_trace_sets(const TraceListing& listing,
                                                    const TraceSetOptions& options,
                                                    std::vector<TraceListing::Other>& skipped);

// The rank files of the listing, likewise in ascending order of their ranks, and what they hold as a set.
[[nodiscard]] Result<std::vector<RankFile>> read_rank_files(const TraceListing& listing,
                                                            const TraceSetOptions& options = {});
[[nodiscard]] TraceSet trace_set_of(const TraceListing& listing, std::vector<RankFile> files);
// Both together, in ascending order of rank. Error: a trace and a rank file of the same rank.
[[nodiscard]] Result<TraceSet> with_rank_files(const TraceListing& listing, TraceSet traces,
                                               std::vector<RankFile> files);

// One rank out of its traces, of one step: the one asked for, else the last with GPU work.
struct ImportOptions {
  std::optional<std::int64_t> step{};
  bool all_steps = false;
  ProgressReport progress{};
  std::vector<std::int32_t> ranks{};  // the one to take of several; empty: there is one
};
// Errors: no profiler trace, several of them, none of that rank; execution traces that do not belong to it; no such step.
[[nodiscard]] Result<RankFile> import_rank(const TraceListing& listing, const ImportOptions& options = {});

// The execution traces of the listing without profiler traces, or its Chakra traces, in ascending order of their ranks
// (where neither the file nor its name tells: its place in the listing), each set. Errors: a file that cannot be read,
// two files of one rank, a rank asked for that is not there.
[[nodiscard]] Result<std::vector<ExecutionTrace>> read_execution_traces(const TraceListing& listing,
                                                                        const TraceSetOptions& options = {});
[[nodiscard]] Result<std::vector<OperationGraph>> read_operation_graphs(const TraceListing& listing,
                                                                        const TraceSetOptions& options = {});

}  // namespace stepcast
