// The traces of one job in memory. Decides which rank each file belongs to, and which execution trace belongs
// to which profiler trace.
//
//   STEPCAST_ASSIGN(const TraceListing listing, list_traces({"traces/dlrm8"}));
//   STEPCAST_ASSIGN(const TraceSet set, read_trace_set(listing));
//   STEPCAST_ASSIGN(const Replay replay, replay(set.inputs()));
//
// An execution trace belongs to the profiler trace with the same name except for words like "et" and "kineto"
// ("et_rank3.json.gz" and "kineto_rank3.json.gz"), else to the profiler trace of the same rank.
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

// Which ranks and steps are read, and how.
struct TraceSetOptions {
  // Requested ranks; empty: all. If file names or the heads of files show the ranks, the events of other
  // files are not read. A listing restricted to these ranks does not even open the other files.
  std::vector<std::int32_t> ranks;
  unsigned threads = 0;  // number of threads; 0: one per hardware thread
  // Keep only the events of one step (step_selection.h) if the profiler traces are large in total: `step`, or
  // by default the step that replay() would choose. The profiler traces are then read twice.
  bool one_step = false;
  std::optional<std::int64_t> step{};
  // Called while profiler and execution traces are read.
  ProgressReport progress{};
  // `one_step` takes effect from this total size in bytes of JSON. Compressed files count with 16 times their
  // size.
  std::uint64_t large_from_bytes = std::uint64_t{1} << 28;
};

// Profiler traces with distinct ranks in ascending order, each with its execution trace if there is one. Sets
// of execution traces alone (execution_source.cpp) have no `ranks`.
struct TraceSet {
  // The folder or file, as the user gave it.
  std::string name;
  std::vector<RecordedRank> ranks;
  std::vector<std::optional<ExecutionTrace>> execution_traces;  // [position in ranks]
  std::vector<std::string> notes;                               // messages for the user

  // Pointers to the ranks and execution traces of this set, which must outlive them.
  [[nodiscard]] std::vector<RecordedInput> inputs() const;
};

// The error for a listing without profiler traces. It says which other files were found.
[[nodiscard]] Error no_profiler_trace(const TraceListing& listing);

// Reads the listing as one job. Errors: no profiler trace, two files of one rank, a rank that cannot be
// determined, an execution trace without its profiler trace, a requested rank that is missing.
[[nodiscard]] Result<TraceSet> read_trace_set(const TraceListing& listing,
                                              const TraceSetOptions& options = {});

// Reads the listing as one set if the files have distinct ranks and the same world size, else as one set per
// profiler trace. Never fails: files that cannot be read and execution traces without a profiler trace are
// added to `skipped`.
[[nodiscard]] std::vector<TraceSet> read_trace_sets(const TraceListing& listing,
                                                    const TraceSetOptions& options,
                                                    std::vector<TraceListing::Other>& skipped);

// Reads the rank files of the listing, in ascending order of rank. Errors: as for read_execution_traces().
[[nodiscard]] Result<std::vector<RankFile>> read_rank_files(const TraceListing& listing,
                                                            const TraceSetOptions& options = {});
// Rank files as a set of traces. The order of `files` is kept.
[[nodiscard]] TraceSet trace_set_of(const TraceListing& listing, std::vector<RankFile> files);
// Merges profiler traces and rank files in ascending order of rank. Error: a trace and a rank file of the
// same rank.
[[nodiscard]] Result<TraceSet> with_rank_files(const TraceListing& listing, TraceSet traces,
                                               std::vector<RankFile> files);

// Reads the XLA profiles of the listing. Their devices are numbered as ranks, by the name of the file and the
// number of the device. Errors: a file that cannot be read, a pattern for ranks, a requested rank that is
// missing.
[[nodiscard]] Result<TraceSet> read_xla_profiles(const TraceListing& listing,
                                                 const TraceSetOptions& options = {});

// Options of import_rank(), which reads one rank, usually one step of it.
struct ImportOptions {
  // The step to keep; none: the step that replay() would choose.
  std::optional<std::int64_t> step{};
  bool all_steps = false;  // keep the events of all steps instead of one
  ProgressReport progress{};
  std::vector<std::int32_t> ranks{};  // the rank to import if there are several; empty: there is one
};
// Reads one rank from its traces. Errors: no profiler trace, several profiler traces and none is
// selected, no trace of that rank, execution traces that do not belong to it, a step that was not recorded.
[[nodiscard]] Result<RankFile> import_rank(const TraceListing& listing, const ImportOptions& options = {});

// The execution traces of a listing without profiler traces, or its Chakra traces, in ascending order of
// rank. Each result has its rank set: from the file, else from its name, else its position in the listing.
// Errors: a file that cannot be read, two files of one rank, a requested rank that is missing.
[[nodiscard]] Result<std::vector<ExecutionTrace>> read_execution_traces(const TraceListing& listing,
                                                                        const TraceSetOptions& options = {});
[[nodiscard]] Result<std::vector<OperationGraph>> read_operation_graphs(const TraceListing& listing,
                                                                        const TraceSetOptions& options = {});

}  // namespace stepcast
