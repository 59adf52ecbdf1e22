// Rebuilds the task graph of a recorded step from profiler traces. Order: check the ranks, choose the step,
// link each rank, match collectives and align clocks, find waits, learn constants, determine starts,
// assemble. Everything that the user should know about the quality of the traces becomes a note.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/duration_text.h"
#include "stepcast/rebuild/detail/assemble.h"
#include "stepcast/rebuild/detail/collective_matching.h"
#include "stepcast/rebuild/detail/constants.h"
#include "stepcast/rebuild/detail/cpu_lanes.h"
#include "stepcast/rebuild/detail/et_join.h"
#include "stepcast/rebuild/detail/gpu_waits.h"
#include "stepcast/rebuild/detail/launch_queue.h"
#include "stepcast/rebuild/detail/rank_graph.h"
#include "stepcast/rebuild/detail/slow_calls.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/rebuild/traced_operations.h"
#include "stepcast/trace/file_ranks.h"
#include "stepcast/trace/foreign_tracer.h"

namespace stepcast {

namespace detail {
// What every rebuild of a step needs from a file, computed once by index_trace().
struct IndexedTrace {
  std::shared_ptr<const TraceIndex> index;
  std::optional<Result<EtJoin>> join;      // only with an execution trace
  std::optional<TracedOperations> traced;  // only if it joins; with the default for TF32
};
}  // namespace detail

namespace {

// "steps 1, 2, 3", or only the number of steps with the first and the last.
std::string steps_text(const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t kMostNamed = 20;
  if (numbers.size() <= kMostNamed) return fmt::format("steps {}", fmt::join(numbers, ", "));
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  return fmt::format("{} steps from {} to {}", numbers.size(), *least, *most);
}

using detail::IndexedTrace;
using detail::RankGraph;
using detail::RecordedStep;

// Microseconds in the outermost operators and annotations of the step's main thread, by name.
std::map<std::string_view, double> times_by_name(const RecordedRank& rank, const RecordedStep& step) {
  std::map<std::string_view, double> times_us;
  Nanoseconds free_from = step.start;
  for (const CpuOp& op : rank.cpu_ops) {
    if (op.kind == CpuOp::Kind::step || op.start < free_from || op.start >= step.end) continue;
    if (static_cast<std::int32_t>(op.thread.index()) != step.main_thread) continue;
    free_from = op.end();
    times_us[rank.names.text(op.name)] += static_cast<double>(op.duration.count()) * 1e-3;
  }
  return times_us;
}

// The operator that makes a long step longer than the typical one: a data loader that stalls, a profiler that
// starts, a checkpoint. Empty if the step is less than 5 % longer, or no operator takes more than half of the
// difference.
std::string longer_by(const RecordedRank& rank, const RecordedStep& longest, const RecordedStep& typical) {
  constexpr double kMuchLonger = 0.05;
  const auto us = [](const RecordedStep& step) {
    return static_cast<double>((step.end - step.start).count()) * 1e-3;
  };
  const double more_us = us(longest) - us(typical);
  if (more_us < kMuchLonger * us(typical)) return {};
  const auto usual = times_by_name(rank, typical);
  std::string_view what;
  double most_us = more_us / 2;
  for (const auto& [name, time_us] : times_by_name(rank, longest)) {
    const auto before = usual.find(name);
    const double more = time_us - (before != usual.end() ? before->second : 0);
    if (more <= most_us) continue;
    most_us = more;
    what = name;
  }
  if (what.empty()) return {};
  return fmt::format("; step {} spends {} more in {}", longest.number, duration_text(most_us * 1e-3), what);
}

// Adds a note with the special steps. If ranks differ, the first rank that marks a step decides.
void note_special_steps(std::span<const RecordedInput> ranks, std::vector<std::string>& notes) {
  constexpr std::size_t kMostNamed = 10;
  std::map<std::int64_t, StepKind> kinds;
  for (const RecordedInput& in : ranks)
    for (const SpecialStep& step : in.kineto->special_steps) kinds.try_emplace(step.number, step.kind);
  std::vector<std::string> named;
  for (const auto& [number, kind] : kinds)
    if (named.size() < kMostNamed) named.push_back(fmt::format("step {} {}", number, describe(kind)));
  if (kinds.size() > kMostNamed) named.push_back(fmt::format("{} more", kinds.size() - kMostNamed));
  if (!named.empty()) notes.push_back(fmt::format("unlike the other steps: {}", fmt::join(named, "; ")));
}

// Length and size of each common step, by the longest rank.
std::vector<StepLength> step_lengths(std::span<const RecordedInput> ranks,
                                     const std::vector<std::vector<RecordedStep>>& steps,
                                     const std::vector<std::int64_t>& common) {
  std::vector<StepLength> lengths;
  for (const std::int64_t n : common) {
    StepLength& length = lengths.emplace_back(StepLength{.number = n});
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const RecordedRank& rank = *ranks[r].kineto;
      const auto step = std::ranges::find(steps[r], n, &RecordedStep::number);
      length.is_special |=
          std::ranges::find(rank.special_steps, n, &SpecialStep::number) != rank.special_steps.end();
      length.us = std::max(length.us, static_cast<double>((step->end - step->start).count()) * 1e-3);
      length.size.push_back(size_of(rank.step_sizes, n));
    }
  }
  return lengths;
}

// The step to replay if the user names none: the typical one of the common steps in which a rank launches GPU
// work, else the last common step. A step without GPU work occurs if the profiler stops inside it. Adds a
// note about the range of step times.
std::optional<std::int64_t> step_to_take(std::span<const RecordedInput> ranks,
                                         const std::vector<std::vector<RecordedStep>>& steps,
                                         std::vector<StepLength> lengths, std::vector<std::string>& notes) {
  if (lengths.empty()) return std::nullopt;
  const std::size_t n_common = lengths.size();
  const std::int64_t last = lengths.back().number;
  std::erase_if(lengths, [&](const StepLength& length) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const auto step = std::ranges::find(steps[r], length.number, &RecordedStep::number);
      if (ranks[r].index->index->launches_gpu_work(*step)) return false;
    }
    return true;
  });
  const std::optional<std::int64_t> typical = typical_step(lengths);
  if (!typical) return last;
  const std::vector<ShapeGroup> groups = shape_groups(lengths);
  const std::size_t n_working = lengths.size();
  const bool has_ordinary = std::erase_if(lengths, &StepLength::is_special) < n_working;
  if (groups.size() > 1) {
    const auto taken = std::ranges::find_if(
        groups, [&](const ShapeGroup& group) { return std::ranges::binary_search(group.steps, *typical); });
    if (taken != groups.end() && taken->median_step == *typical)
      std::erase_if(lengths, [&](const StepLength& length) {
        return !std::ranges::binary_search(taken->steps, length.number);
      });
  }
  if (has_ordinary && lengths.size() > 2) {
    const auto [least, most] = std::ranges::minmax(lengths, {}, &StepLength::us);
    notes.push_back(fmt::format("step {}: the median of {} steps, which take {} (step {}) to {} (step {})",
                                *typical, lengths.size(), duration_text(least.us * 1e-3, 4), least.number,
                                duration_text(most.us * 1e-3, 4), most.number));
    const auto of = [&](std::int64_t number) {
      return *std::ranges::find(steps[0], number, &RecordedStep::number);
    };
    notes.back() += longer_by(*ranks[0].kineto, of(most.number), of(*typical));
  } else if (*typical != last) {
    notes.push_back(fmt::format("step {} of {} in the files is replayed", *typical, n_common));
  }
  return typical;
}

// The recorded step of each rank: the requested one, else the typical one that every rank has. Without marks,
// the whole file is the step. Errors: the requested step is missing, the ranks have no step in common.
// `groups` receives the groups of steps by their shapes.
Result<std::vector<RecordedStep>> choose_steps(std::span<const RecordedInput> ranks,
                                               const RebuildOptions& options, std::vector<std::string>& notes,
                                               std::vector<ShapeGroup>& groups) {
  std::vector<std::vector<RecordedStep>> steps;
  std::size_t without = 0;
  for (const RecordedInput& in : ranks) {
    const std::span<const RecordedStep> of_rank = in.index->index->steps();
    steps.emplace_back(of_rank.begin(), of_rank.end());
    if (steps.back().empty()) ++without;
  }
  std::vector<RecordedStep> chosen;
  if (without == ranks.size()) {
    if (options.step) {
      return Error::at(ranks.front().kineto->file, "ProfilerStep", "the trace has no steps to choose from")
          .expected(fmt::format("ProfilerStep#{}", *options.step))
          .advice("leave out the step to replay the whole trace");
    }
    for (const RecordedInput& in : ranks) chosen.push_back(detail::whole_file(*in.kineto));
    return chosen;
  }
  std::map<std::int64_t, std::size_t> seen;
  for (const auto& list : steps) {
    std::set<std::int64_t> numbers;
    for (const RecordedStep& s : list) numbers.insert(s.number);
    for (const std::int64_t n : numbers) ++seen[n];
  }
  note_special_steps(ranks, notes);
  std::vector<std::int64_t> common;
  for (const auto& [n, count] : seen)
    if (count == ranks.size()) common.push_back(n);
  std::vector<StepLength> lengths = step_lengths(ranks, steps, common);
  groups = shape_groups(lengths);
  std::optional<std::int64_t> number = options.step;
  if (!number) {
    number = step_to_take(ranks, steps, std::move(lengths), notes);
    if (!number) {
      std::vector<std::string> lists;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        std::vector<std::int64_t> numbers;
        for (const RecordedStep& s : steps[r]) numbers.push_back(s.number);
        lists.push_back(steps_text(numbers));
      }
      return Error::at(ranks.front().kineto->file, "ProfilerStep", "the ranks have no step in common")
          .found(fmt::format("{}", fmt::join(lists, "; ")))
          .advice("record the same step on every rank, or replay the ranks one by one");
    }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto it =
        std::ranges::find_if(steps[r], [&](const RecordedStep& s) { return s.number == *number; });
    if (it == steps[r].end()) {
      std::vector<std::int64_t> numbers;
      for (const RecordedStep& s : steps[r]) numbers.push_back(s.number);
      return Error::at(ranks[r].kineto->file, fmt::format("ProfilerStep#{}", *number),
                       "there is no such step")
          .found(steps_text(numbers))
          .advice("choose one of them");
    }
    chosen.push_back(*it);
  }
  if (groups.size() > 1) notes.push_back(describe(groups, number));
  return chosen;
}

// The error for a profiler with GPU work in a form that is not read, with advice.
Error foreign_trace(const RecordedRank& rank, const ForeignTracer& tracer) {
  return Error::at(rank.file, "traceEvents")
      .found(std::string{tracer.called})
      .expected("kernels, copies or fills of an NVIDIA or AMD GPU")
      .advice(std::string{tracer.advice});
}

// Checks that the files can be one job: non-empty, distinct ranks, one world size, ranks within it.
Status check_ranks(std::span<const RecordedInput> ranks) {
  if (ranks.empty()) return Error("no profiler trace was given; give one file per rank");
  std::map<std::int32_t, const RecordedRank*> by_rank;
  std::optional<std::int32_t> world;
  for (const RecordedInput& in : ranks) {
    const RecordedRank& r = *in.kineto;
    const std::optional<ForeignTracer> tracer =
        r.gpu_ops.empty() && r.cpu_ops.empty() ? foreign_tracer(r) : std::nullopt;
    if (tracer) return foreign_trace(r, *tracer);
    if (r.gpu_ops.empty() && r.cpu_ops.empty())
      return Error::at(r.file, "traceEvents")
          .found("no operators and no GPU work")
          .expected("a trace of a training step");
    if (ranks.size() == 1) continue;
    if (!r.rank) {
      return Error::at(r.file, "distributedInfo.rank")
          .found("no rank")
          .expected("the rank of the trace, since several files were given")
          .advice("replay this file alone, or add \"distributedInfo\": {\"rank\": R, \"world_size\": N}");
    }
    const auto [it, fresh] = by_rank.emplace(*r.rank, &r);
    if (!fresh) {
      return Error::at(r.file, "distributedInfo.rank")
          .found(fmt::format("rank {}, the same as {}", *r.rank, it->second->file))
          .expected("one file per rank")
          .advice("give each rank once");
    }
    if (r.world_size) {
      if (*r.world_size < 1 || *r.rank < 0 || *r.rank >= *r.world_size) {
        return Error::at(r.file, "distributedInfo")
            .found(fmt::format("rank {} of a world of {}", *r.rank, *r.world_size))
            .expected("0 <= rank < world_size");
      }
      if (world && *world != *r.world_size) {
        return Error::at(r.file, "distributedInfo.world_size")
            .found(fmt::format("{}", *r.world_size))
            .expected(fmt::format("{} as in {}", *world, by_rank.begin()->second->file))
            .advice("give the files of one job");
      }
      world = r.world_size;
    }
  }
  return Ok{};
}

// The facts about the files of a rank that reports need.
RecordedFileFacts file_facts(const RecordedRank& rank, const ExecutionTrace* joined_execution_trace) {
  RecordedFileFacts facts{.profiler = rank.file,
                          .execution_trace = {},
                          .world_size = rank.world_size,
                          .device = rank.devices.empty() ? std::string{} : rank.devices.front().name,
                          .event_count = rank.event_count,
                          .skipped = rank.skipped,
                          .special_steps = rank.special_steps};
  if (joined_execution_trace != nullptr) facts.execution_trace = joined_execution_trace->file;
  return facts;
}

// Adds a note if recorded times were impossible and had to be corrected.
void note_repairs(const RecordedRank& rank, std::vector<std::string>& notes) {
  const RepairedTimes& repaired = rank.repaired;
  if (repaired.events() == 0) return;
  notes.push_back(
      fmt::format("{}: warning: {} events have an impossible end ({} of GPU work, {} of the CPU, {} steps). "
                  "Each is cut to its latest possible end, {:.2g} % of the recorded time in total",
                  rank.file, repaired.events(), repaired.gpu_work, repaired.cpu_time, repaired.steps,
                  100 * repaired.share));
}

void note_bad_times(const RecordedRank& rank, std::vector<std::string>& notes) {
  note_repairs(rank, notes);
  const auto bad = rank.skipped.find(std::string{kBadTime});
  if (bad == rank.skipped.end()) return;
  notes.push_back(
      fmt::format("{}: warning: {} events were left out: they have {}", rank.file, bad->second, kBadTime));
}

// Adds notes about the join of an execution trace: unjoined operators, merged profiler events, and a trace of
// another step.
void note_join(const RankGraph& g, const detail::EtJoin& join, std::vector<std::string>& notes) {
  if (join.joined < join.nodes)
    notes.push_back(fmt::format("rank {}: {} of {} operators of the execution trace were joined", g.rank,
                                join.joined, join.nodes));
  std::uint64_t merged = 0;
  for (const auto& [reason, n] : g.execution_trace->skipped) merged += n;
  if (merged > 0)
    notes.push_back(
        fmt::format("rank {}: {} profiler events that were merged into the execution trace were left "
                    "out: they are in the profiler trace",
                    g.rank, merged));
  const std::vector<CpuOp>& ops = g.recorded->cpu_ops;
  const auto begins_before = [&](double time_us) {
    return std::partition_point(ops.begin(), ops.end(),
                                [&](const CpuOp& op) { return g.us(op.start) < time_us; }) -
           ops.begin();
  };
  const bool in_step = std::any_of(g.et_node_of_op.begin() + begins_before(g.window.start_us),
                                   g.et_node_of_op.begin() + begins_before(g.window.end_us),
                                   [](std::int32_t node) { return node >= 0; });
  if (!in_step)
    notes.push_back(
        fmt::format("rank {}: the execution trace has another step than the replayed one", g.rank));
}

// Links a rank and attaches its execution trace. If the execution trace does not belong to the profiler
// trace, the rank is used without it, and a note says so.
RankGraph link(const RecordedInput& in, const RecordedStep& step, Nanoseconds origin, bool tf32_allowed,
               std::vector<std::string>& notes) {
  RankGraph g = detail::link_rank(in.index->index, step, origin);
  if (!in.index->join) return g;
  const Result<detail::EtJoin>& join = *in.index->join;
  if (!join.ok()) {
    notes.push_back(
        fmt::format("rank {}: replayed without its execution trace: {}", g.rank, join.error().message()));
    return g;
  }
  g.execution_trace = in.execution_trace;
  if (tf32_allowed == TracedOperationsOptions{}.tf32_allowed) g.traced = &*in.index->traced;
  g.et_node_of_op = join->node_of_op;
  g.et_repetition_of_op = join->repetition_of_op;
  note_join(g, *join, notes);
  return g;
}

// Moves all ranks to one clock that starts with the first step. `shift_us`: correction of each rank's clock.
void move_clocks(std::vector<RankGraph>& graphs, const std::vector<double>& shift_us) {
  double first = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < graphs.size(); ++r)
    first = std::min(first, graphs[r].window.start_us + shift_us[r]);
  for (std::size_t r = 0; r < graphs.size(); ++r) {
    const double shift = shift_us[r] - first;
    if (shift == 0) continue;
    RankGraph& g = graphs[r];
    g.origin -= Nanoseconds{std::llround(shift * 1e3)};
    g.window.start_us += shift;
    g.window.end_us += shift;
    for (detail::Call& c : g.calls) {
      c.start_us += shift;
      c.end_us += shift;
    }
    for (detail::GpuWork& w : g.gpu) {
      w.start_us += shift;
      w.end_us += shift;
      w.queued_us += shift;
    }
  }
}

// Error if no rank has GPU work in the step.
Status check_gpu_work(std::span<const RankGraph> graphs) {
  if (std::ranges::any_of(graphs, [](const RankGraph& g) { return !g.gpu.empty(); })) return Ok{};
  if (const std::optional<ForeignTracer> tracer = foreign_tracer(*graphs.front().recorded))
    return foreign_trace(*graphs.front().recorded, *tracer);
  return Error::at(graphs.front().recorded->file, "the step")
      .found("no GPU work")
      .expected("kernels, copies or fills inside the step")
      .advice("record with CUDA activities on");
}

// Adds what the reader of the file says, once if ranks agree.
void note_reader(const RecordedRank& rank, std::vector<std::string>& notes) {
  for (const std::string& note : rank.notes)
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

// Adds a note if the launches of all GPU work are missing.
void note_missing_launches(const RankGraph& g, std::vector<std::string>& notes) {
  note_reader(*g.recorded, notes);
  note_bad_times(*g.recorded, notes);
  const bool any =
      std::ranges::any_of(g.gpu, [](const detail::GpuWork& w) { return w.call != detail::kNone; });
  if (g.gpu.empty() || any) return;
  notes.push_back(
      fmt::format("rank {}: warning: no GPU work of the step has its launch in the file. It runs in stream "
                  "order, and longer gaps count as host time",
                  g.rank));
}

// One note for all ranks about calls of polling threads, since it is not important for any single rank.
std::optional<std::string> polling_note(const std::vector<RankGraph>& graphs,
                                        const std::vector<detail::CpuLanes>& lanes) {
  std::uint64_t calls = 0;
  std::vector<std::int32_t> ranks;
  for (std::size_t r = 0; r < graphs.size(); ++r) {
    if (lanes[r].dropped_polling_calls == 0) continue;
    calls += lanes[r].dropped_polling_calls;
    ranks.push_back(graphs[r].rank);
  }
  if (calls == 0) return std::nullopt;
  return fmt::format("{} calls of threads that only poll were left out (rank {})", calls, list_ranks(ranks));
}

// Determines the starts of a rank's GPU work. A busy device and starts after unseen work are found from
// lateness, so the earliest start times are computed again after each.
detail::RankStarts find_starts(RankGraph& g, const detail::Constants& constants,
                               const RebuildOptions& options) {
  detail::RankStarts starts{.of_work = detail::gpu_starts(g, constants, options.own_delays)};
  detail::find_busy_device(g, detail::ready_times(g, constants, starts.of_work));
  detail::keep_starts_behind_unseen_work(g, detail::ready_times(g, constants, starts.of_work),
                                         starts.of_work);
  starts.lateness =
      detail::gpu_lateness(g, detail::ready_times(g, constants, starts.of_work), starts.of_work);
  return starts;
}

// Adds a note if the GPU was idle although work was queued. Queued work follows its predecessor within
// microseconds, so the work in the gap was removed from the file or was not visible to the profiler.
void note_missing_kernels(const RankGraph& g, const detail::GpuLateness& lateness,
                          std::vector<std::string>& notes) {
  constexpr double kShareOfStep = 0.01;
  const double step_us = g.window.end_us - g.window.start_us;
  if (lateness.idle_between_queued_us <= kShareOfStep * step_us) return;
  notes.push_back(
      fmt::format("rank {}: kernels are missing in this trace: the GPU is idle for {} in {} places "
                  "although work was queued",
                  g.rank, duration_text(lateness.idle_between_queued_us * 1e-3), lateness.idle_n));
}

}  // namespace

std::shared_ptr<const IndexedTrace> index_trace(const RecordedInput& input) {
  auto indexed = std::make_shared<IndexedTrace>();
  indexed->index = std::make_shared<const detail::TraceIndex>(*input.kineto);
  if (input.execution_trace != nullptr)
    indexed->join = detail::join_execution_trace(*input.kineto, *input.execution_trace);
  // Every step of the trace needs them.
  if (indexed->join && indexed->join->ok()) indexed->traced = traced_operations(*input.execution_trace);
  return indexed;
}

// See the top of this file for the order of the work.
Result<RecordedProgram> rebuild_program(std::span<const RecordedInput> input, const RebuildOptions& options) {
  STEPCAST_TRY(check_ranks(input));
  // Ranks in ascending order, independent of the order of the files.
  std::vector<RecordedInput> ranks(input.begin(), input.end());
  std::ranges::stable_sort(ranks, [](const RecordedInput& a, const RecordedInput& b) {
    return a.kineto->rank.value_or(0) < b.kineto->rank.value_or(0);
  });
  std::vector<std::string> notes;
  std::vector<ShapeGroup> groups;
  for (RecordedInput& rank : ranks)
    if (!rank.index) rank.index = index_trace(rank);
  STEPCAST_ASSIGN(const std::vector<RecordedStep> steps, choose_steps(ranks, options, notes, groups));
  Nanoseconds origin = Nanoseconds::max();
  for (const RecordedStep& s : steps) origin = std::min(origin, s.start);

  std::vector<RankGraph> graphs;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    graphs.push_back(link(ranks[r], steps[r], origin, options.tf32_allowed, notes));
  const std::optional<std::int32_t> world = ranks.front().kineto->world_size;
  STEPCAST_TRY(check_gpu_work(graphs));
  for (const RankGraph& g : graphs) note_missing_launches(g, notes);
  detail::CollectiveMatch match = detail::match_collectives(graphs);
  move_clocks(graphs, match.clock_shift_us);

  std::vector<detail::CpuLanes> lanes;
  for (RankGraph& g : graphs) {
    detail::find_gpu_waits(g);
    lanes.push_back(detail::cut_cpu_lanes(g));
    detail::find_held_calls(g, lanes.back());
    if (std::string slow = detail::slow_calls_note(g, lanes.back()); !slow.empty())
      notes.push_back(std::move(slow));
  }

  // Edges first, then constants from operations that did not wait by these edges, then edges that only the
  // constants reveal.
  RecordedProgram out;
  for (RankGraph& g : graphs) detail::name_calls(g, out.program.names);
  const detail::Constants constants = detail::Constants::learn(graphs, lanes, out.program.names);
  std::vector<detail::RankStarts> starts;
  for (RankGraph& g : graphs) {
    starts.push_back(find_starts(g, constants, options));
    note_missing_kernels(g, starts.back().lateness, notes);
  }

  const std::optional<std::string> polling = polling_note(graphs, lanes);
  for (const RankGraph& g : graphs) out.files.push_back(file_facts(*g.recorded, g.execution_trace));
  RebuildOptions how = options;
  how.done_with = [&](const RecordedRank& rank) {
    std::ranges::find(ranks, &rank, &RecordedInput::kineto)->index.reset();
    if (options.done_with) options.done_with(rank);
  };
  STEPCAST_TRY(
      detail::assemble(std::move(graphs), std::move(lanes), std::move(starts), constants, match, how, out));
  out.clock_uncertainty_us = match.clock_uncertainty_us;
  if (groups.size() > 1) out.shape_groups = std::move(groups);
  out.notes = std::move(notes);
  out.notes.insert(out.notes.end(), match.notes.begin(), match.notes.end());
  if (polling) out.notes.push_back(*polling);
  if (world && static_cast<std::size_t>(*world) > ranks.size())
    out.notes.push_back(fmt::format("{} of {} ranks have traces", ranks.size(), *world));
  return out;
}

Status can_be_replayed(const RecordedRank& rank) {
  RecordedInput input{&rank, nullptr};
  const std::span<const RecordedInput> alone{&input, 1};
  std::vector<std::string> notes;
  std::vector<ShapeGroup> groups;
  STEPCAST_TRY(check_ranks(alone));
  input.index = index_trace(input);
  STEPCAST_ASSIGN(const std::vector<RecordedStep> steps, choose_steps(alone, {}, notes, groups));
  const RankGraph graph = detail::link_rank(input.index->index, steps.front(), steps.front().start);
  return check_gpu_work({&graph, 1});
}

KernelTimeCoverage work_coverage(const RecordedProgram& recorded) {
  KernelTimeCoverage sum;
  for (const KernelTimeCoverage& rank : recorded.coverage) sum += rank;
  return sum;
}

}  // namespace stepcast
