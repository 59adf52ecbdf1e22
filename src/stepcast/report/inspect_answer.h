// The answer of `stepcast inspect` (stepcast.inspect/1): the content of files as values, for users and for
// scripts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stepcast/base/fields.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/rebuild/traced_operations.h"
#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/measured_indices.h"
#include "stepcast/recommend/table_sets.h"
#include "stepcast/report/document.h"
#include "stepcast/trace/operation_graph.h"
#include "stepcast/trace/pipeline_timeline.h"
#include "stepcast/trace/trace_summary.h"

namespace stepcast {

// A profiler trace, or a rank file that `stepcast import` made from one.
struct InspectedProfile {
  std::string file, schema;
  ProfileFormat format = ProfileFormat::kineto;
  RankSummary summary;
  // The rank is known only from the name of the file.
  bool rank_is_by_name = false;
  bool is_rank_file = false;  // the file was written by `stepcast import`
  // The number of nodes of the execution trace inside a rank file.
  std::optional<std::size_t> execution_trace_nodes;
  std::optional<std::int32_t> world_size;
  std::vector<DeviceProperties> devices;
  std::vector<RecordedThread> threads;
  std::map<std::string, std::uint64_t> skipped;  // events that were not read, by reason
  std::uint64_t events = 0;
};

// A PyTorch execution trace.
struct InspectedExecutionTrace {
  std::string file, schema;
  std::optional<std::int32_t> rank;
  std::size_t nodes = 0, tensor_uses = 0;
  std::map<std::string, std::uint64_t> skipped;
  ExecutionTraceSummary summary;
};

// A Chakra execution trace. `dangling`: dependencies on nodes that are not in the file. `callers`: control
// dependencies on callers, which are not used.
struct InspectedChakra {
  std::string file, schema;
  std::optional<std::int32_t> rank;
  std::size_t nodes = 0, dependencies = 0;
  std::uint64_t dangling = 0, callers = 0, metadata_nodes = 0;
  OperationGraphSummary summary;
};

// An operator-level timeline of a pipeline.
struct InspectedTimeline {
  struct Operators {
    std::size_t count = 0;
    double sum_us = 0;
  };
  std::string file;
  std::vector<std::int32_t> ranks;
  std::vector<std::int64_t> steps;
  std::map<std::string, Operators> operators;  // by name; the sum is over all occurrences
};

// The operations that the operators of an execution trace perform.
struct InspectedOperations {
  struct Operator {
    std::string name;
    std::vector<std::string> families;  // families of operations in order of appearance
    std::size_t count = 0;
    Flops flops;
    Bytes bytes;
    Microseconds time;
  };
  std::string file, schema;
  // The number of operators that launch GPU work, and of those with a known operation.
  std::size_t launching_operators = 0, modelled_operators = 0;
  std::vector<Operator> operators;  // by recorded time if there is any, then by bytes; largest first
  std::map<std::string, UnmodelledOperator> unmodelled;
  std::optional<KernelTimeCoverage> times;  // if a profiler trace of the same run was found

  // Shares of operators and of kernel time with a known operation, in percent; 100 if there are none at all.
  [[nodiscard]] double modelled_operators_percent() const;
  [[nodiscard]] double modelled_time_percent() const;
};

// Embedding tables with a number of lookups per sample in this interval.
struct PoolingBin {
  std::string_view name;
  double from = 0;  // the interval ends at the `from` of the next one
  std::size_t tables = 0;
  double lookups = 0;
};
// The distribution of tables and lookups over these intervals. "Heavy" tables have at least kHeavyPooling
// lookups per sample.
struct Pooling {
  std::array<PoolingBin, 7> bins{{{"none", 0},  // exactly 0
                                  {"to 1", 1e-300},
                                  {"to 5", 1.0000001},
                                  {"to 20", 5.0000001},
                                  {"20 to 50", kHeavyPooling},
                                  {"to 100", 50},
                                  {"100 and more", 100}}};
  std::size_t tables = 0, heavy_tables = 0;
  double lookups = 0, heavy_lookups = 0;

  // Adds a table with this number of lookups per sample.
  void add(double pooling);
  // The share of heavy tables, and the share of lookups in them; fractions.
  [[nodiscard]] double heavy_share() const;
  [[nodiscard]] double heavy_lookup_share() const { return lookups > 0 ? heavy_lookups / lookups : 0; }
};

// A file of embedding tables: their number, size, widths, and how many have measured reuse factors.
struct InspectedTables {
  std::string file;
  std::size_t tables = 0, with_reuse = 0;
  double rows = 0, bytes = 0;
  std::set<std::int64_t> widths;
  Pooling pooling;
};

// A file with the indices that batches look up.
struct InspectedIndices {
  MeasuredIndices measured;
  std::optional<ReuseFactors> data_set;  // over all files, if there are several
  std::int64_t batch_samples = 0;
  Pooling pooling;
  // A batch, or the whole file, with its number of distinct rows, as counted and as expected from the reuse
  // factors of the file or the data set.
  double compared_samples = 0, distinct_rows = 0, expected_distinct_rows = 0;
};

// A file that could not be read, and why.
struct UnreadableFile {
  STEPCAST_FIELDS(UnreadableFile, "unreadable");
  STEPCAST_FIELD(std::string, file, "");
  STEPCAST_FIELD(std::string, error, "");
};

// One inspected file of any kind.
using InspectedFile =
    std::variant<InspectedProfile, InspectedExecutionTrace, InspectedChakra, InspectedTimeline, LoggedRun,
                 InspectedTables, InspectedIndices, InspectedOperations, UnreadableFile>;

// The answer: one entry per file, in the order of the command line.
struct InspectAnswer {
  STEPCAST_FIELDS(InspectAnswer);
  STEPCAST_FIELD(std::vector<InspectedFile>, files, "");
};

// One function per kind of file. `summary`, `traced` and `times` must be those of the trace.
[[nodiscard]] InspectedProfile inspected(const RecordedRank& rank, RankSummary summary);
[[nodiscard]] InspectedExecutionTrace inspected(const ExecutionTrace& trace);
[[nodiscard]] InspectedChakra inspected(const OperationGraph& graph);
[[nodiscard]] InspectedTimeline inspected(const PipelineTimeline& timeline);
[[nodiscard]] InspectedOperations inspected(const ExecutionTrace& trace, const TracedOperations& traced,
                                            std::optional<KernelTimeCoverage> times);
[[nodiscard]] InspectedTables inspected(const std::string& file, const std::vector<EmbeddingTable>& tables);
// `data_set`: the indices of all files together; null if there is only one file.
[[nodiscard]] InspectedIndices inspected(const MeasuredIndices& measured, const MeasuredIndices* data_set,
                                         std::int64_t batch_samples);

// The answer for one file as a document, all files as one page, and their JSON with its schema.
[[nodiscard]] ReportDocument inspect_document(const InspectedFile& file);
[[nodiscard]] ReportDocument inspect_page(const InspectAnswer& answer);
[[nodiscard]] std::string inspect_json(const InspectAnswer& answer);
[[nodiscard]] std::string inspect_schema();

}  // namespace stepcast
