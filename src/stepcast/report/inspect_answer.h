// What `stepcast inspect` answers (stepcast.inspect/1): what is in files, as values, for people and for scripts.
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

struct InspectedProfile {
  std::string file, schema;
  RankSummary summary;
  bool rank_is_by_name = false;                      // of the file
  bool is_rank_file = false;                         // of `stepcast import`
  std::optional<std::size_t> execution_trace_nodes;  // of the one that a rank file holds
  std::optional<std::int32_t> world_size;
  std::vector<DeviceProperties> devices;
  std::vector<RecordedThread> threads;
  std::map<std::string, std::uint64_t> skipped;  // events by reason
  std::uint64_t events = 0;
};

struct InspectedExecutionTrace {
  std::string file, schema;
  std::optional<std::int32_t> rank;
  std::size_t nodes = 0, tensor_uses = 0;
  std::map<std::string, std::uint64_t> skipped;
  ExecutionTraceSummary summary;
};

struct InspectedChakra {
  std::string file, schema;
  std::optional<std::int32_t> rank;
  std::size_t nodes = 0, dependencies = 0;
  std::uint64_t dangling = 0, callers = 0, metadata_nodes = 0;
  OperationGraphSummary summary;
};

struct InspectedTimeline {
  struct Operators {
    std::size_t count = 0;
    double sum_us = 0;
  };
  std::string file;
  std::vector<std::int32_t> ranks;
  std::vector<std::int64_t> steps;
  std::map<std::string, Operators> operators;  // by name
};

// The operations behind the operators of a trace.
struct InspectedOperations {
  struct Operator {
    std::string name;
    std::vector<std::string> families;  // in order of appearance
    std::size_t count = 0;
    Flops flops;
    Bytes bytes;
    Microseconds time;
  };
  std::string file, schema;
  std::size_t launching_operators = 0, modelled_operators = 0;
  std::vector<Operator> operators;  // by recorded time where there is one, then by bytes
  std::map<std::string, UnmodelledOperator> unmodelled;
  std::optional<KernelTimeCoverage> times;  // where a profiler trace of the same run stands beside

  // 100 where there is none.
  [[nodiscard]] double modelled_operators_percent() const;
  [[nodiscard]] double modelled_time_percent() const;
};

// Tables by their lookups per sample.
struct PoolingBin {
  std::string_view name;
  double from = 0;  // to the `from` of the next
  std::size_t tables = 0;
  double lookups = 0;
};
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

  void add(double pooling);
  [[nodiscard]] double heavy_share() const;
  [[nodiscard]] double heavy_lookup_share() const { return lookups > 0 ? heavy_lookups / lookups : 0; }
};

struct InspectedTables {
  std::string file;
  std::size_t tables = 0, with_reuse = 0;
  double rows = 0, bytes = 0;
  std::set<std::int64_t> widths;
  Pooling pooling;
};

// The indices that batches look up.
struct InspectedIndices {
  MeasuredIndices measured;
  std::optional<ReuseFactors> data_set;  // all files together, where there are several
  std::int64_t batch_samples = 0;
  Pooling pooling;
  // A batch, or the file, whose distinct rows the reuse factors of the whole, file or data set, foretell.
  double compared_samples = 0, distinct_rows = 0, expected_distinct_rows = 0;
};

struct UnreadableFile {
  STEPCAST_FIELDS(UnreadableFile, "unreadable");
  STEPCAST_FIELD(std::string, file, "");
  STEPCAST_FIELD(std::string, error, "");
};

using InspectedFile =
    std::variant<InspectedProfile, InspectedExecutionTrace, InspectedChakra, InspectedTimeline, LoggedRun,
                 InspectedTables, InspectedIndices, InspectedOperations, UnreadableFile>;

struct InspectAnswer {
  STEPCAST_FIELDS(InspectAnswer);
  STEPCAST_FIELD(std::vector<InspectedFile>, files, "");
};

[[nodiscard]] InspectedProfile inspected(const RecordedRank& rank, RankSummary summary);
[[nodiscard]] InspectedExecutionTrace inspected(const ExecutionTrace& trace);
[[nodiscard]] InspectedChakra inspected(const OperationGraph& graph);
[[nodiscard]] InspectedTimeline inspected(const PipelineTimeline& timeline);
[[nodiscard]] InspectedOperations inspected(const ExecutionTrace& trace, const TracedOperations& traced,
                                            std::optional<KernelTimeCoverage> times);
[[nodiscard]] InspectedTables inspected(const std::string& file, const std::vector<EmbeddingTable>& tables);
// `data_set` is all files together; null where there is one.
[[nodiscard]] InspectedIndices inspected(const MeasuredIndices& measured, const MeasuredIndices* data_set,
                                         std::int64_t batch_samples);

[[nodiscard]] ReportDocument inspect_document(const InspectedFile& file);
[[nodiscard]] std::string inspect_json(const InspectAnswer& answer);
[[nodiscard]] std::string inspect_schema();

}  // namespace stepcast
