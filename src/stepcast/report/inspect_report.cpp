#include "stepcast/report/inspect_report.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/base/units.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

std::string device_names(const RecordedRank& rank) {
  if (rank.devices.empty() || rank.devices.front().name.empty()) return "not told";
  const std::string& name = rank.devices.front().name;
  const bool alike = std::all_of(rank.devices.begin(), rank.devices.end(),
                                 [&name](const DeviceProperties& device) { return device.name == name; });
  if (rank.devices.size() == 1) return name;
  return alike ? fmt::format("{} x {}", rank.devices.size(), name) : name + " and others";
}

std::string optional_number(const std::optional<std::int32_t>& number) {
  return number ? std::to_string(*number) : "not told";
}

std::string milliseconds(Microseconds time) { return table_number(time.value() * 1e-3, 3); }

// "label    text" with the texts under each other.
void line(std::string& out, std::string_view label, std::string_view text) {
  fmt::format_to(std::back_inserter(out), "  {:<14}{}\n", label, text);
}

std::string counts_of(const RecordedRank& rank, const RankSummary& s) {
  std::string text;
  const auto add = [&text](std::size_t count, const char* one, const char* many) {
    if (count == 0) return;
    if (!text.empty()) text += ", ";
    text += table_count(count) + " " + (count == 1 ? one : many);
  };
  add(s.ops, "operator", "operators");
  add(s.annotations, "annotation", "annotations");
  add(s.steps.size(), "step", "steps");
  add(rank.runtime_calls.size(), "runtime call", "runtime calls");
  add(s.kernels, "kernel", "kernels");
  add(s.copies, "copy", "copies");
  add(s.fills, "fill", "fills");
  add(rank.stream_syncs.size(), "synchronisation record", "synchronisation records");
  add(rank.allocator_states.size(), "total of the allocator", "totals of the allocator");
  return text.empty() ? "none" : text;
}

std::string memory_text(const AllocatorPeak& peak) {
  return fmt::format("at most {} GiB allocated, {} GiB reserved by the caching allocator",
                     table_number(static_cast<double>(peak.allocated_bytes) / kGiB, 2),
                     table_number(static_cast<double>(peak.reserved_bytes) / kGiB, 2));
}

std::string skips_of(const std::map<std::string, std::uint64_t>& skipped) {
  std::string text;
  for (const auto& [reason, count] : skipped) {
    if (!text.empty()) text += ", ";
    text += table_count(count) + " " + reason;
  }
  return text.empty() ? "none" : text;
}

std::string steps_table(const RankSummary& s) {
  TextTable table{{{"step"}, {"start ms"}, {"step_time_ms"}}};
  for (const RankSummary::Step& step : s.steps) {
    table.row({fmt::format("#{}", step.number), milliseconds(step.start), milliseconds(step.duration)});
  }
  return table.text(2);
}

std::string threads_table(const RecordedRank& rank, const RankSummary& s) {
  TextTable table{
      {{"pid"}, {"tid"}, {"operators"}, {"annotations"}, {"calls"}, {"name", TextTable::Align::left}}};
  for (std::size_t i = 0; i < s.threads.size(); ++i) {
    const RecordedThread& thread = rank.threads[i];
    table.row({std::to_string(thread.pid), std::to_string(thread.tid), table_count(s.threads[i].ops),
               table_count(s.threads[i].annotations), table_count(s.threads[i].calls),
               shorten(thread.name, 40)});
  }
  return table.text(2);
}

std::string streams_table(const RankSummary& s) {
  TextTable table{{{"device"}, {"stream"}, {"kernels"}, {"communication"}, {"copies"}, {"busy ms"}}};
  for (const RankSummary::Stream& stream : s.streams) {
    table.row({std::to_string(stream.device), std::to_string(stream.stream), table_count(stream.kernels),
               table_count(stream.communication_kernels), table_count(stream.copies),
               milliseconds(stream.busy)});
  }
  return table.text(2);
}

std::string kernel_time_table(const RankSummary& s) {
  TextTable table{{{"kernels", TextTable::Align::left}, {"ms"}}};
  for (std::size_t i = 0; i < s.kernel_time.size(); ++i) {
    if (s.kernel_time[i].value() > 0) {
      table.row({std::string(to_string(static_cast<KernelClass>(i))), milliseconds(s.kernel_time[i])});
    }
  }
  return table.text(2);
}

std::string_view link_text(ExternalIdMeaning meaning) {
  switch (meaning) {
    case ExternalIdMeaning::absent: return "no external ids";
    case ExternalIdMeaning::op: return "\"External id\" names the operator";
    case ExternalIdMeaning::correlation: return "\"External id\" repeats the correlation";
    case ExternalIdMeaning::unclear: return "\"External id\" follows no rule";
  }
  return "";
}

void write_skipped(const std::map<std::string, std::uint64_t>& skipped, JsonWriter& json) {
  json.key("skipped").begin_object();
  for (const auto& [reason, count] : skipped) json.field(reason, count);
  json.end_object();
}

}  // namespace

std::string inspect_text(const RecordedRank& rank) {
  const RankSummary s = summarize(rank);
  std::string out = in_one_line(rank.file) + "\n";
  line(out, "format",
       rank.schema.empty() ? "profiler trace (kineto)"
                           : fmt::format("profiler trace (kineto), schema {}", rank.schema));
  line(out, "rank",
       fmt::format("{}{}, world size {}", optional_number(s.rank),
                   s.rank && !rank.rank ? " (by the name of the file)" : "",
                   optional_number(rank.world_size)));
  line(out, "device", device_names(rank));
  line(out, "events", fmt::format("{} over {} ms", table_count(rank.event_count), milliseconds(s.span)));
  line(out, "kept", counts_of(rank, s));
  line(out, "skipped", skips_of(rank.skipped));
  line(out, "GPU links",
       fmt::format("{} of {} GPU events have their launch in the file; {}",
                   table_count(s.gpu_events_with_launch), table_count(rank.gpu_ops.size()),
                   link_text(s.external_id)));
  line(out, "collectives",
       fmt::format("{} kernels, {} with sizes; {} record_param_comms, {} with sizes",
                   table_count(s.communication_kernels), table_count(s.communication_kernels_with_metadata),
                   table_count(s.collective_records), table_count(s.collective_records_with_metadata)));
  if (s.memory) line(out, "memory", memory_text(*s.memory));
  line(out, "usable", s.usable_for_replay ? "yes, for replay" : "not for replay");
  for (const std::string& note : s.notes) line(out, "", "- " + note);
  if (!s.steps.empty()) out += "\n" + steps_table(s);
  if (!s.threads.empty()) out += "\n" + threads_table(rank, s);
  if (!s.streams.empty()) out += "\n" + streams_table(s);
  if (s.kernels > 0) out += "\n" + kernel_time_table(s);
  return out;
}

std::string inspect_text(const ExecutionTrace& trace) {
  const ExecutionTraceSummary s = summarize(trace);
  std::string out = in_one_line(trace.file) + "\n";
  line(out, "format",
       trace.schema.empty() ? "PyTorch execution trace"
                            : fmt::format("PyTorch execution trace, schema {}", trace.schema));
  line(out, "rank", optional_number(trace.rank));
  line(out, "nodes",
       fmt::format("{}, {} with tensors, on {} threads", table_count(trace.nodes.size()),
                   table_count(s.nodes_with_tensors), s.threads));
  line(out, "tensors", table_count(trace.tensors.size()) + " uses");
  line(out, "skipped", skips_of(trace.skipped));
  std::string kinds;
  std::size_t count = 0;
  for (const auto& [op, n] : s.collectives) {
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", n, to_string(op));
    count += n;
  }
  line(out, "collectives",
       count == 0 ? "none"
                  : fmt::format("{}; {} with sizes, {} waits", kinds, s.collectives_with_size, s.waits));
  line(out, "usable", "yes, with the profiler trace of the same rank: it has no times of its own");
  return out;
}

std::string inspect_text(const OperationGraph& graph) {
  const OperationGraphSummary s = summarize(graph);
  const std::size_t n = graph.nodes.size();
  std::string out = in_one_line(graph.file) + "\n";
  line(out, "format",
       graph.schema.empty() ? "Chakra execution trace"
                            : fmt::format("Chakra execution trace, schema {}", graph.schema));
  line(out, "rank", optional_number(graph.rank));
  std::string kinds;
  for (const auto& [kind, count] : s.nodes_by_kind)
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", table_count(count), kind);
  line(out, "nodes", fmt::format("{}: {}", table_count(n), kinds));
  line(out, "dependencies", table_count(graph.dependencies.size()));
  std::map<std::string, std::uint64_t> skipped;
  if (graph.dangling > 0) skipped["dependencies on nodes that are not in the file"] = graph.dangling;
  if (graph.callers > 0) skipped["control dependencies on callers"] = graph.callers;
  if (graph.metadata_nodes > 0) skipped["metadata nodes"] = graph.metadata_nodes;
  line(out, "skipped", skips_of(skipped));
  line(out, "durations",
       fmt::format("{} of {} nodes, {} ms of GPU work", table_count(s.with_duration), table_count(n),
                   table_number(s.recorded_gpu_ms, 3)));
  std::string collectives;
  for (const auto& [op, count] : s.collectives)
    collectives += fmt::format("{}{} {}", collectives.empty() ? "" : ", ", count, to_string(op));
  line(out, "collectives", collectives.empty() ? "none" : collectives);
  line(out, "transfers", fmt::format("{} MiB", table_number(s.transfer_bytes / (1024 * 1024), 1)));
  const std::size_t unknown = n - s.with_duration - s.with_amounts;
  std::string usable = s.with_amounts > 0    ? "yes, with a platform: some nodes have a size and no duration"
                       : s.with_duration > 0 ? "yes"
                                             : "its order alone: no node has a duration or a size";
  if (unknown > 0 && s.with_duration + s.with_amounts > 0)
    usable += fmt::format("; {} nodes have neither duration nor size", table_count(unknown));
  line(out, "usable", usable);
  return out;
}

std::string inspect_text(const PipelineTimeline& timeline) {
  std::string out = in_one_line(timeline.file) + "\n";
  line(out, "format", "operator-level timeline of a pipeline");
  line(out, "ranks", table_count(timeline.ranks.size()));
  line(out, "steps",
       fmt::format("{}: {} to {}", table_count(timeline.steps.size()), timeline.steps.front(),
                   timeline.steps.back()));
  std::map<std::string_view, std::pair<std::size_t, double>> kinds;
  for (const PipelineOp& op : timeline.ops) {
    auto& [count, us] = kinds[timeline.names.text(op.name)];
    ++count;
    us += op.duration_us;
  }
  line(out, "operators", table_count(timeline.ops.size()));
  TextTable table{{{"operator", TextTable::Align::left}, {"count"}, {"mean ms"}}};
  for (const auto& [name, sum] : kinds) {
    table.row({std::string{name}, table_count(sum.first),
               table_number(sum.second * 1e-3 / static_cast<double>(sum.first), 3)});
  }
  return out + "\n" + table.text(2);
}

void inspect_json(const PipelineTimeline& timeline, JsonWriter& json) {
  json.begin_object();
  json.field("file", timeline.file).field("format", "pipeline_timeline");
  json.key("ranks").begin_array();
  for (const std::int32_t rank : timeline.ranks) json.value(rank);
  json.end_array();
  json.key("steps").begin_array();
  for (const std::int64_t step : timeline.steps) json.value(step);
  json.end_array();
  json.key("operators").begin_object();
  std::map<std::string_view, std::size_t> kinds;
  for (const PipelineOp& op : timeline.ops) ++kinds[timeline.names.text(op.name)];
  for (const auto& [name, count] : kinds) json.field(name, count);
  json.end_object();
  json.end_object();
}

void inspect_json(const OperationGraph& graph, JsonWriter& json) {
  const OperationGraphSummary s = summarize(graph);
  json.begin_object();
  json.field("file", graph.file).field("format", "chakra").field("schema", graph.schema);
  json.field("rank", graph.rank).field("nodes", graph.nodes.size());
  json.key("nodes_by_kind").begin_object();
  for (const auto& [kind, count] : s.nodes_by_kind) json.field(kind, count);
  json.end_object();
  json.field("dependencies", graph.dependencies.size());
  json.field("dangling_dependencies", graph.dangling).field("caller_dependencies", graph.callers);
  json.field("nodes_with_duration", s.with_duration).field("nodes_with_amounts", s.with_amounts);
  json.fixed_field("recorded_gpu_ms", s.recorded_gpu_ms, 6);
  json.key("collectives").begin_object();
  for (const auto& [op, count] : s.collectives) json.field(to_string(op), count);
  json.end_object();
  json.field("transfer_bytes", s.transfer_bytes).end_object();
}

void inspect_json(const RecordedRank& rank, JsonWriter& json) {
  const RankSummary s = summarize(rank);
  json.begin_object();
  json.field("file", rank.file).field("format", "kineto").field("schema", rank.schema);
  json.field("rank", s.rank).field("world_size", rank.world_size);
  json.key("devices").begin_array();
  for (const DeviceProperties& device : rank.devices) {
    json.begin_object();
    json.field("id", device.id).field("name", device.name).field("memory_bytes", device.memory_bytes);
    json.field("sm_count", device.sm_count).end_object();
  }
  json.end_array();
  json.field("events", rank.event_count);
  json.field("first_start_ns", s.first_start.count()).fixed_field("span_ms", s.span.value() * 1e-3, 6);
  json.key("kept").begin_object();
  json.field("cpu_op", s.ops).field("annotation", s.annotations).field("step", s.steps.size());
  json.field("runtime_call", rank.runtime_calls.size()).field("kernel", s.kernels);
  json.field("memcpy", s.copies).field("memset", s.fills).field("sync", rank.stream_syncs.size());
  json.end_object();
  write_skipped(rank.skipped, json);
  json.key("steps").begin_array();
  for (const RankSummary::Step& step : s.steps) {
    json.begin_object().field("step", step.number).fixed_field("start_ms", step.start.value() * 1e-3, 6);
    json.fixed_field("step_time_ms", step.duration.value() * 1e-3, 6).end_object();
  }
  json.end_array();
  json.key("threads").begin_array();
  for (std::size_t i = 0; i < s.threads.size(); ++i) {
    json.begin_object().field("pid", rank.threads[i].pid).field("tid", rank.threads[i].tid);
    json.field("name", rank.threads[i].name).field("cpu_ops", s.threads[i].ops);
    json.field("annotations", s.threads[i].annotations)
        .field("runtime_calls", s.threads[i].calls)
        .end_object();
  }
  json.end_array();
  json.key("streams").begin_array();
  for (const RankSummary::Stream& stream : s.streams) {
    json.begin_object().field("device", stream.device).field("stream", stream.stream);
    json.field("kernels", stream.kernels).field("communication_kernels", stream.communication_kernels);
    json.field("copies", stream.copies).fixed_field("busy_ms", stream.busy.value() * 1e-3, 6).end_object();
  }
  json.end_array();
  json.key("kernel_time_ms").begin_object();
  for (std::size_t i = 0; i < s.kernel_time.size(); ++i) {
    if (s.kernel_time[i].value() <= 0) continue;
    json.fixed_field(to_string(static_cast<KernelClass>(i)), s.kernel_time[i].value() * 1e-3, 6);
  }
  json.end_object();
  json.key("collectives").begin_object();
  json.field("kernels", s.communication_kernels)
      .field("kernels_with_metadata", s.communication_kernels_with_metadata);
  json.field("records", s.collective_records)
      .field("records_with_metadata", s.collective_records_with_metadata);
  json.end_object();
  json.key("links").begin_object();
  json.field("gpu_events", rank.gpu_ops.size()).field("with_launch", s.gpu_events_with_launch);
  json.field("external_id", to_string(s.external_id)).end_object();
  if (s.memory) {
    json.key("memory").begin_object().field("peak_allocated_bytes", s.memory->allocated_bytes);
    json.field("peak_reserved_bytes", s.memory->reserved_bytes).end_object();
  }
  json.field("usable_for_replay", s.usable_for_replay);
  json.key("notes").begin_array();
  for (const std::string& note : s.notes) json.value(note);
  json.end_array().end_object();
}

void inspect_json(const ExecutionTrace& trace, JsonWriter& json) {
  const ExecutionTraceSummary s = summarize(trace);
  json.begin_object();
  json.field("file", trace.file).field("format", "execution_trace").field("schema", trace.schema);
  json.field("rank", trace.rank).field("nodes", trace.nodes.size());
  json.field("nodes_with_tensors", s.nodes_with_tensors).field("tensor_uses", trace.tensors.size());
  json.field("threads", s.threads);
  write_skipped(trace.skipped, json);
  json.key("collectives").begin_object();
  for (const auto& [op, count] : s.collectives) json.field(to_string(op), count);
  json.end_object();
  json.field("collectives_with_size", s.collectives_with_size).field("waits", s.waits).end_object();
}

}  // namespace stepcast
