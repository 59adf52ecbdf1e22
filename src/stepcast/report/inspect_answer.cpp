#include "stepcast/report/inspect_answer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "stepcast/report/detail/inspect_fields.h"
#include "stepcast/report/fields/answer_fields.h"

namespace stepcast {

STEPCAST_ANSWER(inspect, InspectAnswer, "stepcast.inspect/1", "stepcast inspect --json")

namespace {

// One row per operator, with the largest recorded time first, then the most bytes. An operator with several
// operations counts once per node.
std::vector<InspectedOperations::Operator> rows_of(const ExecutionTrace& trace,
                                                   const TracedOperations& traced,
                                                   const KernelTimeCoverage* coverage) {
  std::map<std::string_view, InspectedOperations::Operator> by_name;
  // Operations of one node are consecutive, so a change of the node is a new occurrence of the operator.
  std::int64_t last_node = -1;
  for (const TracedOperation& operation : traced.operations) {
    const std::string_view name = trace.names.text(trace.nodes[operation.node].name);
    InspectedOperations::Operator& row = by_name[name];
    if (operation.node != last_node) ++row.count;
    last_node = operation.node;
    const std::string_view family = family_of(operation.operation);
    if (std::ranges::find(row.families, family) == row.families.end()) row.families.emplace_back(family);
    const Work work = work_of(operation.operation);
    row.flops += work.flops;
    row.bytes += work.bytes();
  }
  std::vector<InspectedOperations::Operator> rows;
  for (auto& [name, row] : by_name) {
    row.name = name;
    if (coverage != nullptr) {
      const auto at = coverage->time_of_operator.find(row.name);
      if (at != coverage->time_of_operator.end()) row.time = at->second;
    }
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(
      rows, [](const InspectedOperations::Operator& a, const InspectedOperations::Operator& b) {
        return a.time != b.time ? a.time > b.time : a.bytes > b.bytes;
      });
  return rows;
}

// A share in percent; 100 if the whole is 0.
double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 100; }

// The expected number of distinct rows in a batch of `samples` samples: the sum over tables, from the reuse
// factors of `seen`.
double expected_distinct_rows(const MeasuredIndices& seen, double samples) {
  double rows = 0;
  for (const MeasuredTable& t : seen.tables) {
    if (t.reuse.lookups == 0) continue;
    const auto table_rows = static_cast<double>(t.highest_index + 1);
    rows += AccessPattern::from_reuse(t.reuse, table_rows).distinct_rows(samples * t.lookups_per_sample);
  }
  return rows;
}

}  // namespace

// If only the name of the file gave the rank, the trace itself has none.
InspectedProfile inspected(const RecordedRank& rank, RankSummary summary) {
  InspectedProfile p{
      .file = rank.file, .schema = rank.schema, .format = rank.format, .summary = std::move(summary)};
  p.rank_is_by_name = p.summary.rank && !rank.rank;
  p.world_size = rank.world_size;
  p.devices = rank.devices;
  p.threads = rank.threads;
  p.skipped = rank.skipped;
  p.events = rank.event_count;
  return p;
}

InspectedExecutionTrace inspected(const ExecutionTrace& trace) {
  return {trace.file,           trace.schema,  trace.rank,      trace.nodes.size(),
          trace.tensors.size(), trace.skipped, summarize(trace)};
}

InspectedChakra inspected(const OperationGraph& graph) {
  return {graph.file,     graph.schema,  graph.rank,           graph.nodes.size(), graph.dependencies.size(),
          graph.dangling, graph.callers, graph.metadata_nodes, summarize(graph)};
}

InspectedTimeline inspected(const PipelineTimeline& timeline) {
  InspectedTimeline t{timeline.file, timeline.ranks, timeline.steps, {}};
  for (const PipelineOp& op : timeline.ops) {
    InspectedTimeline::Operators& of_name = t.operators[std::string{timeline.names.text(op.name)}];
    ++of_name.count;
    of_name.sum_us += op.duration_us;
  }
  return t;
}

double InspectedOperations::modelled_operators_percent() const {
  return share(static_cast<double>(modelled_operators), static_cast<double>(launching_operators));
}
double InspectedOperations::modelled_time_percent() const {
  return times ? share(times->modelled.value(), times->computation.value()) : 100;
}

InspectedOperations inspected(const ExecutionTrace& trace, const TracedOperations& traced,
                              std::optional<KernelTimeCoverage> times) {
  return {.file = trace.file,
          .schema = trace.schema,
          .launching_operators = traced.launching_operators,
          .modelled_operators = traced.modelled_operators,
          .operators = rows_of(trace, traced, times ? &*times : nullptr),
          .unmodelled = traced.unmodelled,
          .times = std::move(times)};
}

// The bins are few and sorted by their lower ends.
void Pooling::add(double pooling) {
  std::size_t bin = 0;
  while (bin + 1 < bins.size() && pooling >= bins[bin + 1].from) ++bin;
  ++bins[bin].tables;
  bins[bin].lookups += pooling;
  ++tables;
  lookups += pooling;
  if (pooling < kHeavyPooling) return;
  ++heavy_tables;
  heavy_lookups += pooling;
}

double Pooling::heavy_share() const {
  return tables > 0 ? static_cast<double>(heavy_tables) / static_cast<double>(tables) : 0;
}

InspectedTables inspected(const std::string& file, const std::vector<EmbeddingTable>& tables) {
  InspectedTables all{.file = file, .tables = tables.size()};
  for (const EmbeddingTable& t : tables) {
    all.pooling.add(t.pooling);
    all.rows += static_cast<double>(t.rows);
    all.bytes += t.bytes();
    all.widths.insert(t.dim);
    if (t.reuse) ++all.with_reuse;
  }
  return all;
}

// The comparison uses the mean batch if batches were counted, otherwise the whole file.
InspectedIndices inspected(const MeasuredIndices& measured, const MeasuredIndices* data_set,
                           std::int64_t batch_samples) {
  InspectedIndices all{.measured = measured, .batch_samples = batch_samples};
  for (const MeasuredTable& t : measured.tables) all.pooling.add(t.lookups_per_sample);
  if (data_set != nullptr) all.data_set = data_set->all;
  const bool has_batches = measured.batches > 0;
  all.compared_samples = static_cast<double>(has_batches ? batch_samples : measured.samples);
  all.distinct_rows = static_cast<double>((has_batches ? measured.mean_batch : measured.all).distinct_rows);
  all.expected_distinct_rows =
      expected_distinct_rows(data_set != nullptr ? *data_set : measured, all.compared_samples);
  return all;
}

}  // namespace stepcast
