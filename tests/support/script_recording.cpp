#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/script_writer.h"

namespace stepcast::test::generator {
namespace {

Nanoseconds recorded_time(double us, bool whole_microseconds) {
  const auto ns =
      whole_microseconds ? 1000 * static_cast<std::int64_t>(std::floor(us)) : std::llround(us * 1000);
  return kGeneratorEpoch + Nanoseconds{ns};
}

// Sorts events as RecordedRank has them and gives for every old index the new one.
template <class Event>
std::vector<std::uint32_t> sort_events(std::vector<Event>& events) {
  std::vector<std::uint32_t> order(events.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return events[a].start != events[b].start ? events[a].start < events[b].start
                                              : events[a].duration > events[b].duration;
  });
  std::vector<Event> sorted;
  std::vector<std::uint32_t> moved(events.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    sorted.push_back(events[order[i]]);
    moved[order[i]] = i;
  }
  events = std::move(sorted);
  return moved;
}

}  // namespace

GeneratedRank ScriptWriter::record(const machine::RankRun& run, std::vector<TrueCollective>& collectives) {
  constexpr std::uint32_t kNotRecorded = 0xffffffff;
  GeneratedRank result;
  RecordedRank& r = result.recorded;
  r.file = fmt::format("kineto_rank{}.json", rank_);
  r.schema = "1";
  r.rank = rank_;
  r.world_size = options_.ranks;
  r.devices.push_back({.id = 0,
                       .name = "Tesla V100-SXM2-32GB",
                       .memory_bytes = 34079899648,
                       .sm_count = kMultiprocessors,
                       .max_threads_per_sm = 2048});
  const std::int64_t pid = 59811 + rank_;
  r.threads = {{.pid = pid, .tid = pid, .name = fmt::format("thread {} (python3)", pid)},
               {.pid = pid, .tid = pid + 165, .name = fmt::format("thread {} (pt_autograd_0)", pid + 165)}};
  r.collective_infos = collective_infos_;

  const auto time = [&](double us) { return recorded_time(us, options_.whole_microseconds); };
  const auto set_times = [&](auto& event, double start, double end) {
    event.start = time(start);
    event.duration = time(end) - event.start;
  };
  const auto thread_id = [](int thread) { return ThreadId{static_cast<std::uint32_t>(thread)}; };
  const auto instruction = [&](int thread, std::size_t i) {
    return run.instructions[static_cast<std::size_t>(thread)][i];
  };

  // Framework ops: the profiler numbers them thread by thread, the autograd thread first.
  std::int64_t order = 0;
  for (const int thread : {kAutograd, kMain}) {
    for (const OpRecord& o : ops_) {
      if (o.thread != thread) continue;
      CpuOp op;
      set_times(op, instruction(thread, o.begin).start, instruction(thread, o.end).start);
      op.name = names_.intern(o.name);
      op.thread = thread_id(thread);
      if (!o.input_shapes.empty()) op.input_shapes = names_.intern(o.input_shapes);
      op.external_id = o.external_id;
      op.order = order++;
      op.sequence_number = o.sequence_number;
      op.collective = o.collective;
      op.kind = o.kind;
      r.cpu_ops.push_back(op);
    }
  }
  sort_events(r.cpu_ops);

  // Runtime calls.
  std::vector<std::uint32_t> call_index(calls_.size(), kNotRecorded);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const CallRecord& c = calls_[i];
    if (!c.visible) continue;
    RuntimeCall call;
    const machine::Span span = instruction(c.thread, c.instruction);
    set_times(call, span.start, span.end);
    call.name = names_.intern(c.name);
    call.thread = thread_id(c.thread);
    call.correlation = c.correlation;
    call.external_id = options_.launch_linked_to_op ? c.op_id : c.correlation;
    call_index[i] = static_cast<std::uint32_t>(r.runtime_calls.size());
    r.runtime_calls.push_back(call);
  }
  const std::vector<std::uint32_t> moved_calls = sort_events(r.runtime_calls);
  for (std::uint32_t& i : call_index) {
    if (i != kNotRecorded) i = moved_calls[i];
  }

  // GPU work: also what was launched before the window and starts in it.
  const double window_us = instruction(kMain, window_mark_).start;
  std::vector<std::uint32_t> op_index(item_records_.size(), kNotRecorded);
  const auto is_work = [&](std::size_t i) {
    return script_.items[i].kind != ItemKind::event_record && script_.items[i].kind != ItemKind::event_wait;
  };
  for (std::size_t i = 0; i < item_records_.size(); ++i) {
    if (!is_work(i)) continue;
    const ItemRecord& item = item_records_[i];
    const CallRecord& launch = calls_[item.call];
    if (!launch.visible && run.items[i].start < window_us) continue;
    if (!launch.visible) ++result.left_over;
    GpuOp op;
    set_times(op, run.items[i].start, run.items[i].end);
    op.name = names_.intern(item.name);
    op.stream = item.stream;
    op.correlation = launch.correlation;
    op.external_id = options_.launch_linked_to_op ? launch.op_id : launch.correlation;
    op.bytes = item.bytes;
    op.kind = item.kind;
    op.collective = item.collective;
    if (item.blocks >= 0) {
      op.blocks = item.blocks;
      op.blocks_per_sm = static_cast<float>(item.blocks) / static_cast<float>(kMultiprocessors);
    }
    op_index[i] = static_cast<std::uint32_t>(r.gpu_ops.size());
    r.gpu_ops.push_back(op);
  }
  const std::vector<std::uint32_t> moved_ops = sort_events(r.gpu_ops);
  for (std::uint32_t& i : op_index) {
    if (i != kNotRecorded) i = moved_ops[i];
  }

  if (options_.event_records == EventRecords::sync_records) {
    for (const SyncRecord& s : syncs_) {
      const CallRecord& c = calls_[s.call];
      if (!c.visible) continue;
      StreamSync sync;
      const machine::Span span = instruction(c.thread, c.instruction);
      set_times(sync, span.start, span.end);
      sync.correlation = c.correlation;
      sync.stream = s.stream;
      sync.wait_on_stream = s.wait_on_stream;
      sync.wait_on_event_record_correlation = s.record_correlation;
      sync.kind = s.kind;
      r.stream_syncs.push_back(sync);
    }
    sort_events(r.stream_syncs);
  }

  // The truth. Items were written in the order in which they enter their stream.
  std::map<int, std::size_t> last_work;  // [stream] item
  std::vector<std::optional<std::size_t>> event_source(static_cast<std::size_t>(events_));
  struct OpenWait {
    std::size_t source, call;
    WaitPattern pattern;
  };
  std::map<int, std::vector<OpenWait>> open_waits;  // [stream]
  for (std::size_t i = 0; i < item_records_.size(); ++i) {
    const Item& item = script_.items[i];
    const ItemRecord& record = item_records_[i];
    if (item.kind == ItemKind::event_record) {
      if (const auto last = last_work.find(record.stream); last != last_work.end())
        event_source[static_cast<std::size_t>(item.event)] = last->second;
    } else if (item.kind == ItemKind::event_wait) {
      if (record.no_effect) continue;
      const auto source = event_source[static_cast<std::size_t>(item.event)];
      if (source) open_waits[record.stream].push_back({*source, record.call, record.pattern});
    } else {
      const auto previous = last_work.find(record.stream);
      const double previous_end = previous == last_work.end() ? -1e18 : run.items[previous->second].end;
      const CallRecord& launch = calls_[record.call];
      const double visible = instruction(launch.thread, launch.instruction).end + item.delay_us;
      for (const OpenWait& w : open_waits[record.stream]) {
        if (op_index[w.source] == kNotRecorded || op_index[i] == kNotRecorded ||
            call_index[w.call] == kNotRecorded)
          continue;
        result.event_edges.push_back({op_index[w.source], op_index[i], call_index[w.call], w.pattern,
                                      run.items[w.source].end > std::max(previous_end, visible)});
      }
      open_waits[record.stream].clear();
      last_work[record.stream] = i;
    }
  }
  for (const SynchronizingCall& s : synchronizing_) {
    if (call_index[s.call] == kNotRecorded) continue;
    const CallRecord& c = calls_[s.call];
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < s.items; ++i) {
      if (!is_work(i) || (s.stream != kNone && item_records_[i].stream != s.stream)) continue;
      if (!last || run.items[i].end >= run.items[*last].end) last = i;
    }
    if (!last || op_index[*last] == kNotRecorded) continue;
    const machine::Span span = instruction(c.thread, c.instruction);
    const double base = script_.threads[static_cast<std::size_t>(c.thread)][c.instruction].us;
    result.synchronizations.push_back({op_index[*last], call_index[s.call], span.end - span.start - base});
  }
  for (std::size_t i = 0; i < item_records_.size(); ++i) {
    if (item_records_[i].group == kNone || op_index[i] == kNotRecorded ||
        !calls_[item_records_[i].call].visible)
      continue;
    TrueCollective& c = collectives[static_cast<std::size_t>(item_records_[i].group)];
    c.gpu_ops.push_back(op_index[i]);
    c.arrival_us.push_back(run.items[i].start);
  }

  r.names = names_;
  r.event_count = r.cpu_ops.size() + r.runtime_calls.size() + r.gpu_ops.size() + r.stream_syncs.size();

  const auto plain_node = [](const char* kind, std::int64_t id, int thread) {
    return fmt::format(
        R"({{"name":"[pytorch|profiler|execution_graph|{}]","id":{},"rf_id":0,"parent":1,"fw_parent":0,"seq_id":-1,"scope":7,)"
        R"("tid":{},"fw_tid":0,"op_schema":"","inputs":[],"input_shapes":[],"input_types":[],"outputs":[],"output_shapes":[],)"
        R"("output_types":[]}})",
        kind, id, thread);
  };
  result.execution_trace = fmt::format(
      "{{\"schema\":\"1.0.1\",\"pid\":{},\"time\":\"2023-09-07 16:09:59\",\"start_ts\":{},\"nodes\":[\n", pid,
      static_cast<std::int64_t>(window_us));
  for (const int thread : {kMain, kAutograd}) {
    if (const std::int64_t id = thread_nodes_[static_cast<std::size_t>(thread)]; id != 0) {
      result.execution_trace += plain_node("thread", id, thread + 1) + ",\n";
    }
  }
  result.execution_trace += nodes_;
  if (!nodes_.empty()) result.execution_trace += ",\n";
  result.execution_trace += plain_node("process", 1, 0);
  result.execution_trace +=
      fmt::format("\n],\"finish_ts\":{}}}\n", static_cast<std::int64_t>(window_us) + 20000);
  return result;
}

}  // namespace stepcast::test::generator
