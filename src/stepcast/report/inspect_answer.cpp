#include "stepcast/report/inspect_answer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "stepcast/report/detail/log_fields.h"
#include "stepcast/report/fields/answer_fields.h"

namespace stepcast {

constexpr std::string_view schema_name(const InspectedProfile*) { return "kineto"; }
constexpr std::string_view schema_name(const InspectedExecutionTrace*) { return "execution_trace"; }
constexpr std::string_view schema_name(const InspectedChakra*) { return "chakra"; }
constexpr std::string_view schema_name(const InspectedTimeline*) { return "pipeline_timeline"; }
constexpr std::string_view schema_name(const InspectedTables*) { return "embedding_tables"; }
constexpr std::string_view schema_name(const InspectedIndices*) { return "table_indices"; }
constexpr std::string_view schema_name(const InspectedOperations*) { return "operations"; }
constexpr std::string_view schema_name(const ReuseFactors*) { return "reuse_factors"; }

namespace {

Fixed<6> ms(Microseconds time) { return {time.value() * 1e-3}; }

std::vector<std::pair<std::string_view, std::size_t>> by_name(
    const std::map<CollectiveOp, std::size_t>& counts) {
  std::vector<std::pair<std::string_view, std::size_t>> named;
  for (const auto& [op, count] : counts) named.emplace_back(to_string(op), count);
  return named;
}

std::vector<std::pair<std::string_view, Fixed<6>>> kernel_time_ms(const RankSummary& s) {
  std::vector<std::pair<std::string_view, Fixed<6>>> times;
  for (std::size_t i = 0; i < s.kernel_time.size(); ++i)
    if (s.kernel_time[i].value() > 0)
      times.emplace_back(to_string(static_cast<KernelClass>(i)), ms(s.kernel_time[i]));
  return times;
}

}  // namespace

void fields(auto& a, Is<DeviceProperties> auto& device) {
  a("id", device.id);
  a("name", device.name);
  a("memory_bytes", device.memory_bytes);
  a("sm_count", device.sm_count);
}

void fields(auto& a, Is<RankSummary::Step> auto& step) {
  a("step", step.number);
  a("start_ms", ms(step.start));
  a("step_time_ms", ms(step.duration));
  a("kind", step.kind, "told by what is in it");
  a("like_step", if_any(step.like_step),
    "the median step of those of its shapes, where steps differ by them; none of special steps");
}

void fields(auto& a, Is<RankSummary::Stream> auto& stream) {
  a("device", stream.device);
  a("stream", stream.stream);
  a("kernels", stream.kernels);
  a("communication_kernels", stream.communication_kernels);
  a("copies", stream.copies);
  a("busy_ms", ms(stream.busy));
}

void fields(auto& a, Is<AllocatorPeak> auto& peak) {
  a("peak_allocated_bytes", peak.allocated_bytes);
  a("peak_reserved_bytes", peak.reserved_bytes);
}

void fields(auto& a, Is<InspectedProfile> auto& p) {
  const RankSummary& s = p.summary;
  a("file", p.file);
  a("format", Constant{"kineto"});
  a("schema", p.schema, "as the file states");
  a("rank", s.rank);
  a("world_size", p.world_size);
  a("devices", p.devices);
  a("events", p.events);
  a("first_start_ns", s.first_start.count());
  a("span_ms", ms(s.span));
  a("kept", Object{[&](auto& kept) {
      kept("cpu_op", s.ops);
      kept("annotation", s.annotations);
      kept("step", s.steps.size());
      kept("runtime_call", p.summary.runtime_calls);
      kept("kernel", s.kernels);
      kept("memcpy", s.copies);
      kept("memset", s.fills);
      kept("sync", p.summary.stream_syncs);
    }},
    "events by kind");
  a("skipped", p.skipped, "events by reason");
  a("steps", s.steps);
  std::size_t i = 0;
  a("threads", Each{p.threads, [&](auto& one, const RecordedThread& thread) {
                      const RankSummary::Thread& counts = at_or_none(s.threads, i++);
                      one("pid", thread.pid);
                      one("tid", thread.tid);
                      one("name", thread.name);
                      one("cpu_ops", counts.ops);
                      one("annotations", counts.annotations);
                      one("runtime_calls", counts.calls);
                    }});
  a("streams", s.streams);
  a("kernel_time_ms", kernel_time_ms(s), "by class");
  a("collectives", Object{[&](auto& collectives) {
      collectives("kernels", s.communication_kernels);
      collectives("kernels_with_metadata", s.communication_kernels_with_metadata);
      collectives("records", s.collective_records);
      collectives("records_with_metadata", s.collective_records_with_metadata);
    }});
  a("links", Object{[&](auto& links) {
      links("gpu_events", p.summary.gpu_events);
      links("with_launch", s.gpu_events_with_launch);
      links("external_id", s.external_id);
    }});
  a("memory", if_any(s.memory), "largest totals of the caching allocator, where they were recorded");
  a("usable_for_replay", s.usable_for_replay);
  a("notes", s.notes);
}

void fields(auto& a, Is<InspectedExecutionTrace> auto& t) {
  a("file", t.file);
  a("format", Constant{"execution_trace"});
  a("schema", t.schema);
  a("rank", t.rank);
  a("nodes", t.nodes);
  a("nodes_with_tensors", t.summary.nodes_with_tensors);
  a("tensor_uses", t.tensor_uses);
  a("threads", t.summary.threads);
  a("skipped", t.skipped);
  a("collectives", by_name(t.summary.collectives));
  a("collectives_with_size", t.summary.collectives_with_size);
  a("waits", t.summary.waits);
}

void fields(auto& a, Is<InspectedChakra> auto& c) {
  const OperationGraphSummary& s = c.summary;
  a("file", c.file);
  a("format", Constant{"chakra"});
  a("schema", c.schema, "as the file states");
  a("rank", c.rank);
  a("nodes", c.nodes);
  a("nodes_by_kind",
    std::vector<std::pair<std::string_view, std::size_t>>(s.nodes_by_kind.begin(), s.nodes_by_kind.end()));
  a("dependencies", c.dependencies);
  a("dangling_dependencies", c.dangling);
  a("caller_dependencies", c.callers);
  a("nodes_with_duration", s.with_duration);
  a("nodes_with_amounts", s.with_amounts);
  a("recorded_gpu_ms", fixed<6>(s.recorded_gpu_ms));
  a("collectives", by_name(s.collectives));
  a("transfer_bytes", s.transfer_bytes);
}

void fields(auto& a, Is<InspectedTimeline> auto& t) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const auto& [name, of_name] : t.operators) counts.emplace_back(name, of_name.count);
  a("file", t.file);
  a("format", Constant{"pipeline_timeline"});
  a("ranks", t.ranks);
  a("steps", t.steps);
  a("operators", counts);
}

void fields(auto& a, Is<InspectedOperations::Operator> auto& op, bool has_times) {
  a("operator", op.name);
  a("families", op.families);
  a("count", op.count);
  a("flops", op.flops);
  a("bytes", op.bytes);
  a("recorded_ms", given_if(has_times, ms(op.time)));
}

void fields(auto& a, Is<InspectedOperations> auto& o) {
  static const KernelTimeCoverage kNone{};
  const bool has_times = o.times.has_value();
  const KernelTimeCoverage& times = has_times ? *o.times : kNone;
  a("file", o.file);
  a("format", Constant{"execution_trace"});
  a("schema", o.schema);
  a("launching_operators", o.launching_operators);
  a("modelled_operators", o.modelled_operators);
  a("modelled_operators_percent", fixed<4>(o.modelled_operators_percent()));
  a("kernel_time", given_if(has_times, Object{[&](auto& of) {
                              of("computation_ms", ms(times.computation));
                              of("modelled_ms", ms(times.modelled));
                              of("modelled_percent", fixed<4>(o.modelled_time_percent()));
                              of("communication_ms", ms(times.communication));
                              of("unlinked_ms", ms(times.unlinked));
                            }}));
  a("operators", Each{o.operators, [has_times](auto& one, const InspectedOperations::Operator& op) {
                        fields(one, op, has_times);
                      }});
  using Unmodelled = std::map<std::string, UnmodelledOperator>::value_type;
  a("unmodelled", Each{o.unmodelled, [](auto& one, const Unmodelled& op) {
                         one("operator", op.first);
                         one("count", op.second.count);
                         one("why", op.second.why);
                       }});
  using UnmodelledTime = std::map<std::string, UnmodelledWork>::value_type;
  a("unmodelled_time", given_if(has_times, Each{times.unmodelled, [](auto& one, const UnmodelledTime& op) {
                                                  one("operator", op.first);
                                                  one("recorded_ms", ms(op.second.time));
                                                }}));
}

void pooling_fields(auto& a, const Pooling& p) {
  a("lookups_per_sample", p.lookups);
  a("heavy_tables", p.heavy_tables, "with 20 lookups per sample and more");
  a("heavy_share", p.heavy_share());
  a("heavy_share_of_lookups", p.heavy_lookup_share());
  a("pooling", Each{p.bins, [&](auto& one, const PoolingBin& bin) {
                      one("lookups_per_sample", bin.name, "of the tables counted here");
                      one("tables", bin.tables);
                      one("share_of_lookups", p.lookups > 0 ? bin.lookups / p.lookups : 0);
                    }});
}

void fields(auto& a, Is<InspectedTables> auto& t) {
  a("file", t.file);
  a("format", Constant{"embedding_tables"});
  a("tables", t.tables);
  a("rows", t.rows);
  a("weight_bytes", t.bytes);
  pooling_fields(a, t.pooling);
}

void fields(auto& a, Is<ReuseFactors> auto& reuse) {
  a("lookups", reuse.lookups);
  a("distinct_rows", reuse.distinct_rows);
  a("mean_reuse_factor", reuse.mean());
  a("hottest_row_lookups", reuse.hottest);
  a("share_of_distinct_rows", reuse.of_rows,
    "17 bins of lookups per row: (0,1], (1,2], (2,4] ... (16384,32768], above");
  a("share_of_lookups", reuse.of_lookups, "the same bins");
}

void fields(auto& a, Is<MeasuredTable> auto& t) {
  a("name", t.name);
  a("lookups_per_sample", t.lookups_per_sample);
  a("empty_share", t.empty_share);
  a("longest_bag", t.longest_bag);
  a("highest_index", t.highest_index);
  a("reuse", t.reuse);
}

void fields(auto& a, Is<InspectedIndices> auto& i) {
  const MeasuredIndices& m = i.measured;
  const bool has_batches = m.batches > 0;
  a("file", m.file);
  a("format", Constant{"table_indices"});
  a("samples", m.samples);
  a("tables", m.tables.size());
  pooling_fields(a, i.pooling);
  a("file_reuse", m.all);
  a("batch_samples", given_if(has_batches, i.batch_samples));
  a("batches", given_if(has_batches, m.batches));
  a("batch_reuse", given_if(has_batches, m.mean_batch));
  a("data_set_reuse", if_any(i.data_set));
  a("expected_distinct_rows", i.expected_distinct_rows,
    "of a batch, or of the file, from the reuse factors of the file or of all files");
  a("by_table", m.tables);
}

STEPCAST_ANSWER(inspect, InspectAnswer, "stepcast.inspect/1", "stepcast inspect --json")

namespace {

// By recorded time where there is one, then by bytes.
std::vector<InspectedOperations::Operator> rows_of(const ExecutionTrace& trace,
                                                   const TracedOperations& traced,
                                                   const KernelTimeCoverage* coverage) {
  std::map<std::string_view, InspectedOperations::Operator> by_name;
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

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 100; }

// Distinct rows of a batch of so many samples, table by table, as the reuse factors of `seen` say.
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

InspectedProfile inspected(const RecordedRank& rank, RankSummary summary) {
  InspectedProfile p{.file = rank.file, .schema = rank.schema, .summary = std::move(summary)};
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
