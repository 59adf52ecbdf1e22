#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/base/units.h"
#include "stepcast/report/detail/inspect_text.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/report/log_report.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

std::string device_names(const InspectedProfile& p) {
  if (p.devices.empty() || p.devices.front().name.empty()) return "not told";
  const std::string& name = p.devices.front().name;
  const bool alike =
      std::ranges::all_of(p.devices, [&](const DeviceProperties& device) { return device.name == name; });
  if (p.devices.size() == 1) return name;
  return alike ? fmt::format("{} x {}", p.devices.size(), name) : name + " and others";
}

std::string optional_number(const std::optional<std::int32_t>& number) {
  return number ? std::to_string(*number) : "not told";
}

std::string milliseconds(Microseconds time) { return table_number(time.value() * 1e-3, 3); }

std::string counts_of(const InspectedProfile& p) {
  const RankSummary& s = p.summary;
  std::string text;
  const auto add = [&text](std::size_t count, const char* one, const char* many) {
    if (count == 0) return;
    if (!text.empty()) text += ", ";
    text += table_count(count) + " " + (count == 1 ? one : many);
  };
  add(s.ops, "operator", "operators");
  add(s.annotations, "annotation", "annotations");
  add(s.steps.size(), "step", "steps");
  add(p.runtime_calls, "runtime call", "runtime calls");
  add(s.kernels, "kernel", "kernels");
  add(s.copies, "copy", "copies");
  add(s.fills, "fill", "fills");
  add(p.stream_syncs, "synchronisation record", "synchronisation records");
  add(p.allocator_totals, "total of the allocator", "totals of the allocator");
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

std::string threads_table(const InspectedProfile& p) {
  TextTable table{
      {{"pid"}, {"tid"}, {"operators"}, {"annotations"}, {"calls"}, {"name", TextTable::Align::left}}};
  for (std::size_t i = 0; i < p.threads.size(); ++i) {
    const RankSummary::Thread& counts = p.summary.threads[i];
    table.row({std::to_string(p.threads[i].pid), std::to_string(p.threads[i].tid), table_count(counts.ops),
               table_count(counts.annotations), table_count(counts.calls), shorten(p.threads[i].name, 40)});
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

}  // namespace

namespace detail {

std::string inspect_text(const InspectedProfile& p) {
  const RankSummary& s = p.summary;
  std::string out = in_one_line(p.file) + "\n";
  labelled_line(out, "format",
                p.schema.empty() ? "profiler trace (kineto)"
                                 : fmt::format("profiler trace (kineto), schema {}", p.schema));
  labelled_line(
      out, "rank",
      fmt::format("{}{}, world size {}", optional_number(s.rank),
                  p.rank_is_by_name ? " (by the name of the file)" : "", optional_number(p.world_size)));
  labelled_line(out, "device", device_names(p));
  labelled_line(out, "events", fmt::format("{} over {} ms", table_count(p.events), milliseconds(s.span)));
  labelled_line(out, "kept", counts_of(p));
  labelled_line(out, "skipped", skips_of(p.skipped));
  labelled_line(out, "GPU links",
                fmt::format("{} of {} GPU events have their launch in the file; {}",
                            table_count(s.gpu_events_with_launch), table_count(p.gpu_events),
                            link_text(s.external_id)));
  labelled_line(
      out, "collectives",
      fmt::format("{} kernels, {} with sizes; {} record_param_comms, {} with sizes",
                  table_count(s.communication_kernels), table_count(s.communication_kernels_with_metadata),
                  table_count(s.collective_records), table_count(s.collective_records_with_metadata)));
  if (s.memory) labelled_line(out, "memory", memory_text(*s.memory));
  labelled_line(out, "usable", s.usable_for_replay ? "yes, for replay" : "not for replay");
  for (const std::string& note : s.notes) labelled_line(out, "", "- " + note);
  if (!s.steps.empty()) out += "\n" + steps_table(s);
  if (!s.threads.empty()) out += "\n" + threads_table(p);
  if (!s.streams.empty()) out += "\n" + streams_table(s);
  if (s.kernels > 0) out += "\n" + kernel_time_table(s);
  return out;
}

std::string inspect_text(const InspectedExecutionTrace& trace) {
  const ExecutionTraceSummary& s = trace.summary;
  std::string out = in_one_line(trace.file) + "\n";
  labelled_line(out, "format",
                trace.schema.empty() ? "PyTorch execution trace"
                                     : fmt::format("PyTorch execution trace, schema {}", trace.schema));
  labelled_line(out, "rank", optional_number(trace.rank));
  labelled_line(out, "nodes",
                fmt::format("{}, {} with tensors, on {} threads", table_count(trace.nodes),
                            table_count(s.nodes_with_tensors), s.threads));
  labelled_line(out, "tensors", table_count(trace.tensor_uses) + " uses");
  labelled_line(out, "skipped", skips_of(trace.skipped));
  std::string kinds;
  std::size_t count = 0;
  for (const auto& [op, n] : s.collectives) {
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", n, to_string(op));
    count += n;
  }
  labelled_line(out, "collectives",
                count == 0
                    ? "none"
                    : fmt::format("{}; {} with sizes, {} waits", kinds, s.collectives_with_size, s.waits));
  labelled_line(out, "usable", "yes, with the profiler trace of the same rank: it has no times of its own");
  return out;
}

std::string inspect_text(const InspectedChakra& graph) {
  const OperationGraphSummary& s = graph.summary;
  const std::size_t n = graph.nodes;
  std::string out = in_one_line(graph.file) + "\n";
  labelled_line(out, "format",
                graph.schema.empty() ? "Chakra execution trace"
                                     : fmt::format("Chakra execution trace, schema {}", graph.schema));
  labelled_line(out, "rank", optional_number(graph.rank));
  std::string kinds;
  for (const auto& [kind, count] : s.nodes_by_kind)
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", table_count(count), kind);
  labelled_line(out, "nodes", fmt::format("{}: {}", table_count(n), kinds));
  labelled_line(out, "dependencies", table_count(graph.dependencies));
  std::map<std::string, std::uint64_t> skipped;
  if (graph.dangling > 0) skipped["dependencies on nodes that are not in the file"] = graph.dangling;
  if (graph.callers > 0) skipped["control dependencies on callers"] = graph.callers;
  if (graph.metadata_nodes > 0) skipped["metadata nodes"] = graph.metadata_nodes;
  labelled_line(out, "skipped", skips_of(skipped));
  labelled_line(out, "durations",
                fmt::format("{} of {} nodes, {} ms of GPU work", table_count(s.with_duration), table_count(n),
                            table_number(s.recorded_gpu_ms, 3)));
  std::string collectives;
  for (const auto& [op, count] : s.collectives)
    collectives += fmt::format("{}{} {}", collectives.empty() ? "" : ", ", count, to_string(op));
  labelled_line(out, "collectives", collectives.empty() ? "none" : collectives);
  labelled_line(out, "transfers", fmt::format("{} MiB", table_number(s.transfer_bytes / (1024 * 1024), 1)));
  const std::size_t unknown = n - s.with_duration - s.with_amounts;
  std::string usable = s.with_amounts > 0    ? "yes, with a platform: some nodes have a size and no duration"
                       : s.with_duration > 0 ? "yes"
                                             : "its order alone: no node has a duration or a size";
  if (unknown > 0 && s.with_duration + s.with_amounts > 0)
    usable += fmt::format("; {} nodes have neither duration nor size", table_count(unknown));
  labelled_line(out, "usable", usable);
  return out;
}

std::string inspect_text(const InspectedTimeline& timeline) {
  std::string out = in_one_line(timeline.file) + "\n";
  labelled_line(out, "format", "operator-level timeline of a pipeline");
  labelled_line(out, "ranks", table_count(timeline.ranks.size()));
  labelled_line(out, "steps",
                fmt::format("{}: {} to {}", table_count(timeline.steps.size()), timeline.steps.front(),
                            timeline.steps.back()));
  std::size_t n = 0;
  for (const auto& [name, of_name] : timeline.operators) n += of_name.count;
  labelled_line(out, "operators", table_count(n));
  TextTable table{{{"operator", TextTable::Align::left}, {"count"}, {"mean ms"}}};
  for (const auto& [name, of_name] : timeline.operators) {
    table.row({name, table_count(of_name.count),
               table_number(of_name.sum_us * 1e-3 / static_cast<double>(of_name.count), 3)});
  }
  return out + "\n" + table.text(2);
}

std::string inspect_text(const LoggedRun& run) { return log_text(run); }
std::string inspect_text(const UnreadableFile& file) { return in_one_line(file.error) + "\n"; }

}  // namespace detail

std::string inspect_text(const InspectedFile& file) {
  return std::visit([](const auto& one) { return detail::inspect_text(one); }, file);
}

InspectedProfile inspected(const RecordedRank& rank) {
  InspectedProfile p{.file = rank.file, .schema = rank.schema, .summary = summarize(rank)};
  p.rank_is_by_name = p.summary.rank && !rank.rank;
  p.world_size = rank.world_size;
  p.devices = rank.devices;
  p.threads = rank.threads;
  p.skipped = rank.skipped;
  p.events = rank.event_count;
  p.runtime_calls = rank.runtime_calls.size();
  p.gpu_events = rank.gpu_ops.size();
  p.stream_syncs = rank.stream_syncs.size();
  p.allocator_totals = rank.allocator_states.size();
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

}  // namespace stepcast
