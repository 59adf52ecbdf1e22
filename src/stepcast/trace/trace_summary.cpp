// Summaries for `stepcast inspect`: completes the sums of RankFold with notes about what is missing and what
// follows from it.
#include "stepcast/trace/trace_summary.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "stepcast/base/error_text.h"
#include "stepcast/base/names.h"
#include "stepcast/trace/detail/rank_fold.h"
#include "stepcast/trace/file_ranks.h"

namespace stepcast {
namespace {

// "1 event", "2 events".
std::string times(std::size_t count, std::string_view what) {
  return std::to_string(count) + ' ' + std::string(what) + (count == 1 ? "" : "s");
}

// Adds a note and the representative steps if the steps have several shapes.
void note_shapes(RankSummary& s, const RecordedRank& rank) {
  std::vector<StepLength> lengths;
  for (const RankSummary::Step& step : s.steps)
    lengths.push_back({.number = step.number,
                       .us = step.duration.value(),
                       .is_special = step.kind != StepKind::ordinary,
                       .size = {size_of(rank.step_sizes, step.number)}});
  const std::vector<ShapeGroup> groups = shape_groups(std::move(lengths));
  if (groups.size() < 2) return;
  for (RankSummary::Step& step : s.steps)
    for (const ShapeGroup& group : groups)
      if (std::ranges::binary_search(group.steps, step.number)) step.like_step = group.median_step;
  s.notes.push_back(describe(groups, std::nullopt));
}

}  // namespace

// Adds a note for each thing that is missing, with its consequence.
RankSummary judged(RankSummary s, const RecordedRank& rank, const Status& replayable, bool execution_trace) {
  const bool is_xla = rank.format == ProfileFormat::xplane;
  // XLA profiles name collectives without their sizes.
  if (is_xla) s.communication_kernels_with_metadata = 0;
  const std::size_t gpu_events = s.gpu_events;
  const auto note = [&s](std::string text) { s.notes.push_back(std::move(text)); };
  if (gpu_events == 0) note("no GPU work was recorded");
  if (s.ops == 0) note("no CPU operators were recorded");
  if (s.runtime_calls == 0) {
    note("no runtime calls were recorded: GPU work cannot be linked to its launches");
  } else if (s.gpu_events_with_launch < gpu_events) {
    note(times(gpu_events - s.gpu_events_with_launch, "GPU event") + " of " + std::to_string(gpu_events) +
         " without a launch in the file");
  }
  if (s.steps.empty() && gpu_events > 0)
    note(std::string(is_xla ? "no step annotations and no modules" : "no ProfilerStep") +
         ": the step is the span of all events");
  if (s.external_id == ExternalIdMeaning::correlation)
    note("\"External id\" of GPU events repeats the correlation: operators are found by time");
  if (!execution_trace && s.communication_kernels > s.communication_kernels_with_metadata) {
    note(times(s.communication_kernels - s.communication_kernels_with_metadata, "communication kernel") +
         " without sizes: " +
         (is_xla ? "XLA profiles do not have them" : "the execution trace (ET) of the rank has them"));
  }
  s.notes.insert(s.notes.end(), rank.notes.begin(), rank.notes.end());
  for (RankSummary::Step& step : s.steps) {
    const auto special = std::ranges::find(rank.special_steps, step.number, &SpecialStep::number);
    if (special != rank.special_steps.end()) step.kind = special->kind;
  }
  note_shapes(s, rank);
  s.rank = rank.rank;
  if (!s.rank) s.rank = rank_in_name(std::filesystem::path(rank.file).filename().string());
  if (!s.rank) note("the rank is unknown: alone it is replayed as rank 0");
  s.usable_for_replay = replayable.ok();
  if (!replayable.ok()) note(message_without_file(replayable.error()));
  return s;
}

std::string_view to_string(ExternalIdMeaning meaning) {
  return name_of<ExternalIdMeaning::unclear>(meaning, {"absent", "op", "correlation", "unclear"}, "unclear");
}

ExternalIdMeaning external_id_meaning(const RecordedRank& rank) {
  detail::LinkCount operators;
  for (const CpuOp& op : rank.cpu_ops)
    if (op.external_id != -1) operators.define(op.external_id);
  std::size_t with_id = 0;
  std::size_t is_correlation = 0;
  for (const GpuOp& op : rank.gpu_ops) {
    if (op.external_id == -1) continue;
    ++with_id;
    if (op.external_id == op.correlation)
      ++is_correlation;
    else
      operators.use(op.external_id);
  }
  return detail::external_id_meaning(with_id, is_correlation, operators.count());
}

RankSummary summarize(const RecordedRank& rank, ReplayCheck check, bool execution_trace) {
  detail::RankFold fold{true};  // events are sorted by start
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) fold.add(row, rank.names);
  };
  add(rank.cpu_ops);
  add(rank.runtime_calls);
  add(rank.gpu_ops);
  add(rank.stream_syncs);
  add(rank.allocator_states);
  std::vector<ThreadId> threads;
  for (std::size_t t = 0; t < rank.threads.size(); ++t) threads.emplace_back(t);
  fold.finish(threads, threads.size(), Nanoseconds{});
  return judged(fold.take(), rank, check(rank), execution_trace);
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
