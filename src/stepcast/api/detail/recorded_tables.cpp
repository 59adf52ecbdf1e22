// Collects tables from the forward lookups of FBGEMM in the last recorded step of each rank's execution trace.
#include "stepcast/api/detail/recorded_tables.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/archive.h"
#include "stepcast/rebuild/traced_operations.h"
#include "stepcast/sources/trace_listing.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast::detail {
namespace {

// Order of the node that begins the last ProfilerStep of the trace; -1 without steps, so that all nodes count.
std::int64_t last_step(const ExecutionTrace& trace) {
  std::int64_t from = -1;
  for (const EtNode& node : trace.nodes)
    if (trace.names.text(node.name).starts_with("ProfilerStep#")) from = std::max(from, node.order);
  return from;
}

// Adds the tables of one lookup kernel, all with the same plan. `of` is the prefix of their names.
void add_tables(const LookupShape& lookup, DType dtype, const TablePlan& plan, std::string_view of,
                RecordedTables& out) {
  for (std::int64_t t = 0; t < lookup.tables; ++t) {
    out.tables.push_back({.name = fmt::format("{}_table_{}", of, out.tables.size()),
                          .rows = std::max<std::int64_t>(1, lookup.rows),
                          .dim = std::max<std::int64_t>(1, lookup.dim),
                          .pooling = lookup.pooling,
                          .dtype = dtype});
    out.plan.tables.push_back(plan);
  }
}

}  // namespace

Result<RecordedTables> recorded_tables(const std::filesystem::path& folder) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(std::vector{folder}));
  STEPCAST_ASSIGN(const std::vector<ExecutionTrace> traces, read_execution_traces(listing));
  RecordedTables out{.plan = {.name = "as traced"}};
  for (std::size_t r = 0; r < traces.size(); ++r) {
    const ExecutionTrace& trace = traces[r];
    const std::int64_t from = last_step(trace);
    const std::string rank = fmt::format("rank_{}", r);
    for (const TracedOperation& traced : traced_operations(trace).operations) {
      const EtNode& node = trace.nodes[traced.node];
      const auto* lookup = std::get_if<LookupShape>(&traced.operation.shape);
      const std::string_view name = trace.names.text(node.name);
      if (lookup == nullptr || traced.operation.direction != Direction::forward || node.order < from)
        continue;
      if (name.find("embedding_codegen_lookup_") == std::string_view::npos) continue;
      // Tables with dense gradients are replicated by DistributedDataParallel, so they are taken from rank 0 only.
      const bool everywhere = name.find("dense_embedding") != std::string_view::npos;
      if (everywhere && r > 0) continue;
      TablePlan plan{.ranks = {static_cast<std::int32_t>(r)}};
      if (everywhere) plan = {.kind = ShardingKind::data_parallel};
      if (!everywhere) out.global_batch = std::max(out.global_batch, lookup->bags);
      add_tables(*lookup, traced.operation.dtype, plan, everywhere ? "every_rank" : rank, out);
    }
  }
  if (out.tables.empty()) {
    return Error::at(folder.string(), "the execution traces")
        .found(traces.empty() ? "none" : fmt::format("{} without a lookup of tables", traces.size()))
        .expected("one per rank, with FBGEMM's table-batched lookups");
  }
  return out;
}

bool is_trace_folder(const std::filesystem::path& place) {
  std::error_code ignored;
  return std::filesystem::is_directory(place, ignored) || is_archive(place);
}

Status take_tables(const std::string& place, DlrmJob& job) {
  if (!is_trace_folder(place)) {
    STEPCAST_ASSIGN(job.model.tables, read_embedding_tables(place));
    return Ok{};
  }
  STEPCAST_ASSIGN(RecordedTables recorded, recorded_tables(place));
  job.model.tables = std::move(recorded.tables);
  if (!job.global_batch && !job.batch_per_rank && recorded.global_batch > 0)
    job.global_batch = recorded.global_batch;
  return Ok{};
}

}  // namespace stepcast::detail
