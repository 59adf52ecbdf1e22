// Finds the traces of one job: which files are traces, which rank each belongs to, which execution trace goes
// with which profiler trace.
//
//   STEPCAST_ASSIGN(const TraceListing listing, list_traces({"traces/dlrm8"}));
//   STEPCAST_ASSIGN(const TraceSet set, read_trace_set(listing));
//   STEPCAST_ASSIGN(const Replay replay, replay(set.inputs()));
//
// Formats are told from content. The rank of a profiler trace is what the file says (distributedInfo), else
// the number in its name ("rank-3", "rank3", "worker3", or the last short number). An execution trace belongs
// to the profiler trace whose name is the same apart from words like "et" and "kineto" ("et_rank3.json.gz" and
// "kineto_rank3.json.gz"), else to the one of its rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/operation_graph.h"
#include "stepcast/trace/recorded_program.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

struct TraceListing {
  std::string name;                              // what was asked for: a folder, or the first file
  std::vector<std::filesystem::path> profiler;   // sorted by name
  std::vector<std::filesystem::path> execution;  // sorted by name
  std::vector<std::filesystem::path> chakra;     // sorted by name
  std::vector<std::filesystem::path> timelines;  // of pipelines (pipeline_timeline.h), sorted by name
  struct Other {
    std::filesystem::path file;
    std::string why;
  };
  std::vector<Other> others;  // files that are no traces of these formats

  // All that are traces.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // Chakra traces, or timelines of pipelines, and nothing that holds more: they are what to read.
  [[nodiscard]] bool is_chakra() const { return profiler.empty() && execution.empty() && !chakra.empty(); }
  [[nodiscard]] bool is_pipeline() const {
    return profiler.empty() && execution.empty() && chakra.empty() && !timelines.empty();
  }
};

// `places` are files or folders; sub-folders are not searched. In a folder only *.json, *.gz and *.et
// files are looked at. Errors: a place that does not exist, a named file that is no such trace.
[[nodiscard]] Result<TraceListing> list_traces(std::span<const std::filesystem::path> places);

struct TraceSetOptions {
  // Only these; empty: all. Where file names or the heads of the files tell the ranks, no other file is read.
  std::vector<std::int32_t> ranks;
  unsigned threads = 0;  // 0: one per hardware thread
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

// The listing as one set. Errors: no profiler trace, two files of one rank, ranks that cannot be told, an
// execution trace without profiler trace, a rank asked for that is not there.
[[nodiscard]] Result<TraceSet> read_trace_set(const TraceListing& listing,
                                              const TraceSetOptions& options = {});

// The listing as one set if the files say or show distinct ranks, otherwise every profiler trace as a set of
// its own. What cannot be read, and execution traces without profiler trace, go to `skipped`.
[[nodiscard]] std::vector<TraceSet> read_trace_sets(const TraceListing& listing,
                                                    const TraceSetOptions& options,
                                                    std::vector<TraceListing::Other>& skipped);

// The Chakra traces of the listing, in ascending order of their ranks: what the file says, else its name, else its
// place. Of `options.ranks` no other file is read where its name tells its rank. Errors: a file that cannot be read,
// two files of one rank, a rank asked for that is not there.
[[nodiscard]] Result<std::vector<OperationGraph>> read_operation_graphs(const TraceListing& listing,
                                                                        const TraceSetOptions& options = {});

// The rank that a file name shows.
[[nodiscard]] std::optional<std::int32_t> rank_in_name(std::string_view file_name);

// What is wrong, where the file is named already: equal for files with the same trouble.
[[nodiscard]] std::string message_without_file(const Error& error);

// "0,2-5" -> 0 2 3 4 5, ascending and without repeats.
[[nodiscard]] Result<std::vector<std::int32_t>> parse_ranks(std::string_view text);

}  // namespace stepcast
