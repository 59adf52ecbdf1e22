#include "stepcast/trace/trace_summary.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "stepcast/base/error_text.h"
#include "stepcast/base/names.h"
#include "stepcast/trace/file_ranks.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {
namespace {

std::string times(std::size_t count, std::string_view what) {
  return std::to_string(count) + ' ' + std::string(what) + (count == 1 ? "" : "s");
}

void summarize_span(const RecordedRank& rank, RankSummary& s) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  const auto look = [&](const auto& events) {
    for (const auto& event : events) {
      first = std::min(first, event.start.count());
      last = std::max(last, event.end().count());
    }
  };
  look(rank.cpu_ops);
  look(rank.runtime_calls);
  look(rank.gpu_ops);
  if (first > last) return;
  s.first_start = Nanoseconds{first};
  s.span = to_microseconds(Nanoseconds{last}) - to_microseconds(Nanoseconds{first});
}

void summarize_threads(const RecordedRank& rank, RankSummary& s) {
  s.threads.resize(rank.threads.size());
  for (const CpuOp& op : rank.cpu_ops) {
    RankSummary::Thread& thread = s.threads[op.thread.index()];
    if (op.kind == CpuOp::Kind::op) {
      ++s.ops;
      ++thread.ops;
      continue;
    }
    ++thread.annotations;
    if (op.kind == CpuOp::Kind::annotation) {
      ++s.annotations;
    } else if (const auto number = profiler_step_number(rank.names.text(op.name))) {
      s.steps.push_back(
          {*number, to_microseconds(op.start - s.first_start), to_microseconds(op.duration), op.thread});
    }
  }
  for (const RuntimeCall& call : rank.runtime_calls) ++s.threads[call.thread.index()].calls;
}

void summarize_streams(const RecordedRank& rank, RankSummary& s) {
  struct Open {
    std::size_t index;
    Nanoseconds busy_until;
  };
  std::map<std::pair<std::int32_t, std::int32_t>, Open> rows;
  std::unordered_map<std::uint32_t, KernelClass> classes;  // by name
  for (const GpuOp& op : rank.gpu_ops) {
    const auto [row, added] = rows.try_emplace({op.device, op.stream}, Open{s.streams.size(), op.start});
    if (added) {
      s.streams.push_back({});
      s.streams.back().device = op.device;
      s.streams.back().stream = op.stream;
    }
    RankSummary::Stream& stream = s.streams[row->second.index];
    const Nanoseconds from = std::max(op.start, row->second.busy_until);
    if (op.end() > from) {
      stream.busy += to_microseconds(op.end() - from);
      row->second.busy_until = op.end();
    }
    if (op.kind != GpuOp::Kind::kernel) {
      ++stream.copies;
      ++(op.kind == GpuOp::Kind::memcpy ? s.copies : s.fills);
      continue;
    }
    ++s.kernels;
    ++stream.kernels;
    const auto [entry, is_new] = classes.try_emplace(op.name.index(), KernelClass::other);
    if (is_new) entry->second = classify_kernel(rank.names.text(op.name));
    s.kernel_time[static_cast<std::size_t>(entry->second)] += to_microseconds(op.duration);
    if (entry->second == KernelClass::communication) {
      ++stream.communication_kernels;
      ++s.communication_kernels;
      if (op.collective >= 0) ++s.communication_kernels_with_metadata;
    }
  }
  std::ranges::sort(s.streams, [](const auto& a, const auto& b) {
    return std::pair(a.device, a.stream) < std::pair(b.device, b.stream);
  });
}

void summarize_links(const RecordedRank& rank, RankSummary& s) {
  std::unordered_set<std::int64_t> calls;
  for (const RuntimeCall& call : rank.runtime_calls)
    if (call.correlation != -1) calls.insert(call.correlation);
  const NameId comms = rank.names.find("record_param_comms");
  for (const CpuOp& op : rank.cpu_ops) {
    if (!comms.valid() || op.name != comms) continue;
    ++s.collective_records;
    if (op.collective >= 0) ++s.collective_records_with_metadata;
  }
  for (const GpuOp& op : rank.gpu_ops)
    if (op.correlation != -1 && calls.contains(op.correlation)) ++s.gpu_events_with_launch;
  s.external_id = external_id_meaning(rank);
}

void judge(const RecordedRank& rank, RankSummary& s) {
  const std::size_t gpu_events = rank.gpu_ops.size();
  const auto note = [&s](std::string text) { s.notes.push_back(std::move(text)); };
  if (gpu_events == 0) note("no GPU work was recorded");
  if (s.ops == 0) note("no CPU operators were recorded");
  if (rank.runtime_calls.empty()) {
    note("no runtime calls were recorded: GPU work cannot be linked to its launches");
  } else if (s.gpu_events_with_launch < gpu_events) {
    note(times(gpu_events - s.gpu_events_with_launch, "GPU event") + " of " + std::to_string(gpu_events) +
         " without a launch in the file");
  }
  if (s.steps.empty() && gpu_events > 0) note("no ProfilerStep: the step is the span of all events");
  if (s.external_id == ExternalIdMeaning::correlation)
    note("\"External id\" of GPU events repeats the correlation: operators are found by time");
  if (s.communication_kernels > s.communication_kernels_with_metadata) {
    note(times(s.communication_kernels - s.communication_kernels_with_metadata, "communication kernel") +
         " without sizes: the execution trace (ET) of the rank would tell them");
  }
  s.rank = rank.rank;
  if (!s.rank) s.rank = rank_in_name(std::filesystem::path(rank.file).filename().string());
  if (!s.rank) note("the rank is not known: replayed alone it counts as 0");
  const Status replayable = can_be_replayed(rank);
  s.usable_for_replay = replayable.ok();
  if (!replayable.ok()) note(message_without_file(replayable.error()));
}

}  // namespace

std::string_view to_string(ExternalIdMeaning meaning) {
  return name_of<ExternalIdMeaning::unclear>(meaning, {"absent", "op", "correlation", "unclear"}, "unclear");
}

ExternalIdMeaning external_id_meaning(const RecordedRank& rank) {
  std::unordered_set<std::int64_t> ops;
  for (const CpuOp& op : rank.cpu_ops)
    if (op.external_id != -1) ops.insert(op.external_id);
  std::size_t with_id = 0;
  std::size_t equal = 0;
  std::size_t names_op = 0;
  for (const GpuOp& op : rank.gpu_ops) {
    if (op.external_id == -1) continue;
    ++with_id;
    if (op.external_id == op.correlation) ++equal;
    if (ops.contains(op.external_id)) ++names_op;
  }
  if (with_id == 0) return ExternalIdMeaning::absent;
  // Ids are small numbers in both spaces and meet by chance; what nearly all events do is the rule.
  if (equal * 10 >= with_id * 9) return ExternalIdMeaning::correlation;
  if (names_op * 2 >= with_id && equal * 10 < with_id) return ExternalIdMeaning::op;
  return ExternalIdMeaning::unclear;
}

RankSummary summarize(const RecordedRank& rank) {
  RankSummary s;
  summarize_span(rank, s);
  summarize_threads(rank, s);
  summarize_streams(rank, s);
  summarize_links(rank, s);
  s.memory = allocator_peak(rank, Nanoseconds::min(), Nanoseconds::max());
  judge(rank, s);
  return s;
}

ExecutionTraceSummary summarize(const ExecutionTrace& trace) {
  ExecutionTraceSummary s;
  std::set<std::int32_t> threads;
  for (const EtNode& node : trace.nodes) {
    if (node.thread != 0) threads.insert(node.thread);
    if (node.end_output > node.first_input) ++s.nodes_with_tensors;
  }
  s.threads = threads.size();
  for (const EtCollective& info : trace.collectives) {
    if (info.is_wait) {
      ++s.waits;
      continue;
    }
    ++s.collectives[info.op];
    if (info.elements_in >= 0 || info.elements_out >= 0) ++s.collectives_with_size;
  }
  return s;
}

}  // namespace stepcast
