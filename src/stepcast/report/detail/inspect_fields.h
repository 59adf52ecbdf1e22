// The JSON members of inspected files (report/fields/field_list.h), for the JSON of inspect and for its
// tables. Each function lists one type: key, value, meaning and, for tables, the column.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/text.h"
#include "stepcast/report/detail/log_fields.h"
#include "stepcast/report/fields/field_list.h"
#include "stepcast/report/inspect_answer.h"

namespace stepcast {

// The names of these types in the $defs of the schema.
constexpr std::string_view schema_name(const InspectedProfile*) { return "kineto"; }
constexpr std::string_view schema_name(const InspectedExecutionTrace*) { return "execution_trace"; }
constexpr std::string_view schema_name(const InspectedChakra*) { return "chakra"; }
constexpr std::string_view schema_name(const InspectedTimeline*) { return "pipeline_timeline"; }
constexpr std::string_view schema_name(const InspectedTables*) { return "embedding_tables"; }
constexpr std::string_view schema_name(const InspectedIndices*) { return "table_indices"; }
constexpr std::string_view schema_name(const InspectedOperations*) { return "operations"; }
constexpr std::string_view schema_name(const ReuseFactors*) { return "reuse_factors"; }

namespace detail {

// Milliseconds with six decimals.
inline Fixed<6> fixed_ms(Microseconds time) { return {time.value() * 1e-3}; }

// The collectives by name of their operation.
inline std::vector<std::pair<std::string_view, std::size_t>> by_name(
    const std::map<CollectiveOp, std::size_t>& counts) {
  std::vector<std::pair<std::string_view, std::size_t>> named;
  for (const auto& [op, count] : counts) named.emplace_back(to_string(op), count);
  return named;
}

// The time by class of kernel, without classes that take no time.
inline std::vector<std::pair<std::string_view, Fixed<6>>> kernel_time_ms(const RankSummary& s) {
  std::vector<std::pair<std::string_view, Fixed<6>>> times;
  for (std::size_t i = 0; i < s.kernel_time.size(); ++i)
    if (s.kernel_time[i].value() > 0)
      times.emplace_back(to_string(static_cast<KernelClass>(i)), fixed_ms(s.kernel_time[i]));
  return times;
}

}  // namespace detail

void fields(auto& a, Is<DeviceProperties> auto& device) {
  a("id", device.id);
  a("name", device.name);
  a("memory_bytes", device.memory_bytes);
  a("sm_count", device.sm_count);
}

// A recorded step. `like_step`: see RankSummary::Step.
void fields(auto& a, Is<RankSummary::Step> auto& step) {
  a("step", step.number);
  a("start_ms", detail::fixed_ms(step.start));
  a("step_time_ms", detail::fixed_ms(step.duration));
  a("kind", step.kind, "kind of step, inferred from its content");
  a("like_step", if_any(step.like_step),
    "median step with the same shapes, if steps differ by shape; not given for special steps");
}

void fields(auto& a, Is<RankSummary::Stream> auto& stream) {
  a("device", stream.device, "", TableColumn::plain("device"));
  a("stream", stream.stream, "", TableColumn::plain("stream"));
  a("kernels", stream.kernels, "", {"kernels"});
  a("communication_kernels", stream.communication_kernels, "", {"communication"});
  a("copies", stream.copies, "", {"copies"});
  a("busy_ms", detail::fixed_ms(stream.busy), "", {"busy ms", 3});
}

void fields(auto& a, Is<AllocatorPeak> auto& peak) {
  a("peak_allocated_bytes", peak.allocated_bytes);
  a("peak_reserved_bytes", peak.reserved_bytes);
}

// A thread, with the number of its events by kind.
void fields(auto& a, Is<RecordedThread> auto& thread, const RankSummary::Thread& counts) {
  a("pid", thread.pid, "", TableColumn::plain("pid"));
  a("tid", thread.tid, "", TableColumn::plain("tid"));
  a("name", thread.name, "", TableColumn::words("name<", 40).at(1));
  a("cpu_ops", counts.ops, "", {"operators"});
  a("annotations", counts.annotations, "", {"annotations"});
  a("runtime_calls", counts.calls, "", {"calls"});
}

// A profiler trace. The members are facts about the file, so that scripts can check traces before a replay.
void fields(auto& a, Is<InspectedProfile> auto& p) {
  const RankSummary& s = p.summary;
  a("file", p.file);
  a("format", p.format);
  a("schema", p.schema, "version given in the file");
  a("rank", s.rank);
  a("world_size", p.world_size);
  a("devices", p.devices);
  a("events", p.events);
  a("first_start_ns", s.first_start.count());
  a("span_ms", detail::fixed_ms(s.span));
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
    "number of events used, by kind");
  a("skipped", p.skipped, "number of events skipped, by reason");
  a("steps", s.steps);
  // Threads and their counts are two lists in the same order.
  std::size_t i = 0;
  a("threads", Each{p.threads, [&](auto& one, const RecordedThread& thread) {
                      fields(one, thread, at_or_none(s.threads, i++));
                    }});
  a("streams", s.streams);
  a("kernel_time_ms", detail::kernel_time_ms(s), "kernel time by class, in ms");
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
  a("memory", if_any(s.memory), "peaks of the caching allocator, if recorded");
  a("usable_for_replay", s.usable_for_replay);
  a("notes", s.notes);
}

// A PyTorch execution trace.
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
  a("collectives", detail::by_name(t.summary.collectives));
  a("collectives_with_size", t.summary.collectives_with_size);
  a("waits", t.summary.waits);
}

// A Chakra trace.
void fields(auto& a, Is<InspectedChakra> auto& c) {
  const OperationGraphSummary& s = c.summary;
  a("file", c.file);
  a("format", Constant{"chakra"});
  a("schema", c.schema, "version given in the file");
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
  a("collectives", detail::by_name(s.collectives));
  a("transfer_bytes", s.transfer_bytes);
}

// A pipeline timeline: the number of operators by name.
void fields(auto& a, Is<InspectedTimeline> auto& t) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const auto& [name, of_name] : t.operators) counts.emplace_back(name, of_name.count);
  a("file", t.file);
  a("format", Constant{"pipeline_timeline"});
  a("ranks", t.ranks);
  a("steps", t.steps);
  a("operators", counts);
}

// An operator of an execution trace. Recorded times exist only if a profiler trace of the same run was found.
void fields(auto& a, Is<InspectedOperations::Operator> auto& op, bool has_times) {
  a("operator", op.name, "", TableColumn::words("operator<", 60));
  a("families", op.families);
  column(a, {"operations<"}, join(op.families, " + "));
  a("count", op.count, "", {"count"});
  a("flops", op.flops, "", {"GFLOP", 3, 1e-9});
  a("bytes", op.bytes, "", {"MB", 3, 1e-6});
  a("recorded_ms", given_if(has_times, detail::fixed_ms(op.time)), "",
    has_times ? TableColumn{"recorded ms", 3} : TableColumn{});
}

// An operator without a known operation, and the reason.
void fields(auto& a, Is<std::pair<const std::string, UnmodelledOperator>> auto& op) {
  a("operator", op.first, "", TableColumn::words("without operations<", 60));
  a("count", op.second.count, "", {"count"});
  a("why", op.second.why, "", TableColumn::words("why<", 100));
}

// Kernel time without a known operation, by operator.
void fields(auto& a, Is<std::pair<const std::string, UnmodelledWork>> auto& op) {
  a("operator", op.first, "", TableColumn::words("kernels without operations, by operator<", 60));
  a("recorded_ms", detail::fixed_ms(op.second.time), "", {"ms", 3});
}

// The operations of an execution trace.
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
                              of("computation_ms", detail::fixed_ms(times.computation));
                              of("modelled_ms", detail::fixed_ms(times.modelled));
                              of("modelled_percent", fixed<4>(o.modelled_time_percent()));
                              of("communication_ms", detail::fixed_ms(times.communication));
                              of("unlinked_ms", detail::fixed_ms(times.unlinked));
                            }}));
  a("operators", Each{o.operators, [has_times](auto& one, const InspectedOperations::Operator& op) {
                        fields(one, op, has_times);
                      }});
  const auto entry = [](auto& one, const auto& op) { fields(one, op); };
  a("unmodelled", Each{o.unmodelled, entry});
  a("unmodelled_time", given_if(has_times, Each{times.unmodelled, entry}));
}

// An interval of lookups per sample. `lookups`: the sum over all intervals.
void fields(auto& a, Is<PoolingBin> auto& bin, double lookups) {
  a("lookups_per_sample", bin.name, "range of lookups per sample", {"lookups per sample<"});
  a("tables", bin.tables, "", {"tables"});
  a("share_of_lookups", lookups > 0 ? bin.lookups / lookups : 0);
  column(a, {"% of lookups", 1}, lookups > 0 ? 100 * bin.lookups / lookups : 0);
}

// The distribution of lookups, for tables and for indices.
void pooling_fields(auto& a, const Pooling& p) {
  a("lookups_per_sample", p.lookups);
  a("heavy_tables", p.heavy_tables, "number of tables with at least 20 lookups per sample");
  a("heavy_share", p.heavy_share());
  a("heavy_share_of_lookups", p.heavy_lookup_share());
  a("pooling", Each{p.bins, [&](auto& one, const PoolingBin& bin) { fields(one, bin, p.lookups); }});
}

void fields(auto& a, Is<InspectedTables> auto& t) {
  a("file", t.file);
  a("format", Constant{"embedding_tables"});
  a("tables", t.tables);
  a("rows", t.rows);
  a("weight_bytes", t.bytes);
  pooling_fields(a, t.pooling);
}

// How often rows are looked up again: shares by number of lookups per row.
void fields(auto& a, Is<ReuseFactors> auto& reuse) {
  a("lookups", reuse.lookups);
  a("distinct_rows", reuse.distinct_rows);
  a("mean_reuse_factor", reuse.mean());
  a("hottest_row_lookups", reuse.hottest);
  a("share_of_distinct_rows", reuse.of_rows,
    "fraction of distinct rows by lookups per row, in 17 bins: (0,1], (1,2], (2,4] ... (16384,32768], above");
  a("share_of_lookups", reuse.of_lookups, "fraction of lookups, in the same bins");
}

// One embedding table as seen in the indices.
void fields(auto& a, Is<MeasuredTable> auto& t) {
  a("name", t.name);
  a("lookups_per_sample", t.lookups_per_sample);
  a("empty_share", t.empty_share);
  a("longest_bag", t.longest_bag);
  a("highest_index", t.highest_index);
  a("reuse", t.reuse);
}

// The indices of batches. Members about batches exist only if a batch size was given.
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
    "expected distinct rows of a batch or of the file, from reuse factors of the file or of all files");
  a("by_table", m.tables);
}

}  // namespace stepcast
