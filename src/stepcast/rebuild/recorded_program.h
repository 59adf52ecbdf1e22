// Recorded ranks as one Program: dependencies rebuilt from what the traces give, recorded durations as the
// first scenario.
//
// One rank class with one block instance per rank. The clock is microseconds since the earliest first CPU
// event of all ranks.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/interval.h"
#include "stepcast/base/result.h"
#include "stepcast/base/string_table.h"
#include "stepcast/operation/overhead_type.h"
#include "stepcast/program/block.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/work_coverage.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// What sort of delay stands between two tasks of a recorded rank: delays of one class are one constant of the
// machine.

enum class DelayKind : std::uint8_t {
  wait_base,         // what a waiting call costs when there is nothing to wait for: a duration, on no edge
  launch,            // from the end of the launching call to the start of its work
  inside_launch,     // from the start of the launching call, for work that starts before the call returns
  stream_gap,        // between neighbours on a stream when the second was waiting
  event,             // from the end of awaited work to the start of work on the waiting stream
  sync_return,       // from the end of GPU work to the return of the call that waits for it
  handoff_wake,      // the main thread sets another thread going
  handoff_join,      // the main thread goes on when another thread is done
  handoff_evaluate,  // the same, inside backward
};

// One end of a delay.
enum class DelayEnd : std::uint8_t {
  none,
  computation,  // event: everything but collectives
  kernel,
  collective,
  copy,  // stream_gap: in any direction; launch: in none of the following
  copy_to_device,
  copy_to_host,
  copy_on_device,
  fill,
  stream_sync,
  device_sync,
  event_sync,
  blocking_copy,
};

struct DelayClass {
  DelayKind kind = DelayKind::launch;
  // launch, inside_launch: the runtime call, in the Program's names; invalid: the file does not show it
  NameId call{};
  DelayEnd from = DelayEnd::none;
  DelayEnd to = DelayEnd::none;
  bool pageable = false;  // a copy from or to host memory that is not pinned
  auto operator<=>(const DelayClass&) const = default;
};

[[nodiscard]] constexpr bool is_handoff(DelayKind kind) {
  return kind == DelayKind::handoff_wake || kind == DelayKind::handoff_join ||
         kind == DelayKind::handoff_evaluate;
}

// The classes that the edges of a recorded Program name (EdgeInfo::delay).
class DelayTable {
 public:
  DelayId intern(const DelayClass& delay) {
    const auto [it, fresh] = index_.try_emplace(delay, DelayId{classes_.size()});
    if (fresh) classes_.push_back(delay);
    return it->second;
  }
  // `id` must be valid.
  [[nodiscard]] const DelayClass& of(DelayId id) const { return classes_[id.index()]; }
  [[nodiscard]] std::size_t size() const { return classes_.size(); }

 private:
  std::vector<DelayClass> classes_;
  std::map<DelayClass, DelayId> index_;
};

// For people: "launch delay from the call's end, cudaLaunchKernel -> kernel". `names`: those of the Program.
[[nodiscard]] std::string describe(const DelayClass& delay, const StringTable& names);

// The time of a rank's CPU threads in a recorded step, cut into the pieces that the five overheads count
// (Lin et al., TPDS 2024). Every microsecond of every thread that is no waiting lies in one piece.
//
// The unit is the top-level operator: the outermost one below the labels of modules and steps. A launch is a
// call that starts GPU work or waits for a stream.

// One occurrence of an overhead. Pieces of no length count: an operator whose first launch is at its very begin
// has a T2 of 0 us.
struct HostPiece {
  OverheadType type = OverheadType::t1;
  // As operation/overhead_name.h calls it, invalid where the step ends. T1: the gap between two top-level operators; T2,
  // T3, T5: the operator; T4: the runtime call.
  NameId op{};
  // Without waiting: synchronising calls and blocking copies hold what they cost when nothing has to be waited
  // for. Other runtime calls inside the piece are pieces of their own (T4) and not part of it.
  double duration_us = 0;
  // What the profiler wrote meanwhile: T1 the operator behind it and labels, T4 the call, others the operators
  // inside.
  std::uint32_t profiler_events = 0;
};

// One call of a top-level operator.
struct HostOperator {
  NameId op{};
  std::uint32_t first_launch = 0, n_launches = 0;  // in RecordedHost::launches
};

// Names are those of the Program that stands beside.
struct RecordedHost {
  std::vector<HostPiece> pieces;
  std::vector<HostOperator> operators;
  std::vector<NameId> launches;  // the calls, in order
};

struct RebuildOptions {
  // Number N of ProfilerStep#N; otherwise the last step with GPU work that all ranks have.
  std::optional<std::int64_t> step;
  // Each launched op's own recorded launch delay and stream gap, where small, instead of the medians.
  bool own_delays = false;
  bool tf32_allowed = false;  // fp32 products ran on TF32 units; traces do not record it
  bool host_pieces = true;    // RecordedProgram::host
  // Called for a rank whose tasks stand: none of its events is looked at any more.
  std::function<void(const RecordedRank&)> done_with{};
};

// A constant learned from operations that the rebuilt edges show not to have waited.
struct LearnedConstant {
  DelayClass delay;
  double value_us = 0;
  std::uint32_t clean = 0;  // operations it was learned from
  std::uint32_t all = 0;    // operations of that kind
  bool fallback = false;    // no clean operation: from related classes, or the smallest of all
};

struct RecordedStepFacts {
  std::int32_t rank = 0;
  std::int64_t step_number = -1;  // -1: no ProfilerStep in the file; the whole trace is the step
  Interval step_us;               // measured step on the common clock
  double gpu_window_end_us = 0;   // last GPU end of work launched in the step
  TaskId step_end_task;           // the step ends with the end (or start) of this task
  bool step_ends_at_start = false;
  std::optional<AllocatorPeak> memory;  // of the caching allocator in the step, where it was recorded
  std::uint64_t left_over_kernels = 0;  // GPU work in the window whose launch lies before it
  // Time of kernels, copies and fills in the window, and of those of them whose launch is lost: no call in the file
  // launched them, and they are not left over from before it.
  double gpu_work_us = 0, unlaunched_us = 0;
  double repaired_share = 0;  // RepairedTimes::share of the file
  // Waiting that ended up in edges, and waiting that no edge explains, in microseconds.
  double recorded_wait_us = 0;     // recorded length of waits in calls (beyond the base cost)
  double unexplained_wait_us = 0;  // of it, what no edge accounts for: left out of the replay
  // Time in which GPU work that every rebuilt dependency allowed to start had not started, by recorded times, and
  // how much work that was (more than 15 us late). No cause is known: the replay starts it in time.
  double gpu_late_us = 0;
  std::uint32_t late_gpu_work = 0;
  std::uint32_t kept_starts = 0;  // starts and returns kept as recorded: they waited for work before the file
  std::uint32_t graph_nodes = 0;  // later nodes of graph launches: they keep their recorded distances
  // GPU work that began before its predecessor on the stream had ended.
  std::uint32_t overlapping_kernels = 0;
  std::array<double, kEdgeOriginCount> kept_delay_us{};      // recorded delays kept on edges, by origin
  std::array<std::uint32_t, kEdgeOriginCount> edge_count{};  // by origin
  std::array<std::uint32_t, kEdgeOriginCount> inferred_edge_count{};
};

// What a report says about the files of a rank, so that what was read of them need not be kept.
struct RecordedFileFacts {
  std::string profiler;                        // file name
  std::optional<std::string> execution_trace;  // file name; none where it could not be joined
  std::optional<std::int32_t> world_size;
  std::string device;                            // name of the first GPU; empty: not in the file
  std::uint64_t event_count = 0;                 // of the whole file
  std::map<std::string, std::uint64_t> skipped;  // events left out, by reason
  std::vector<SpecialStep> special_steps;        // of the whole file
};

// Every task of `program` has its work (TaskInfo::work):
//   kernels    the Operation of the operator that launched them, from the execution trace or else from the
//              profiler trace's shapes; of several kernels each its share (TaskInfo::work_times)
//   copies     a transfer of the recorded size
//   communication   CollectiveWork, also where it is not joined with other ranks
//   CPU tasks  HostWork, `work_times` occurrences of the overhead; the second half of a call that waits is
//              Waiting
// What stays unknown is named in `coverage`; `program.works` gives monostate for it.
struct RecordedProgram {
  Program program;
  std::vector<double> start_offset_us;          // [rank class]
  double clock_uncertainty_us = 0;              // by so much the ranks' clocks may be apart; 0: they are one
  std::vector<std::vector<Interval>> measured;  // [rank class][task of its block]
  std::vector<RecordedStepFacts> facts;         // [rank class]
  std::vector<RecordedFileFacts> files;         // [rank class]
  std::vector<RecordedHost> host;  // [rank class] the same CPU time as in the tasks, where asked for
  std::vector<KernelTimeCoverage> coverage;  // [rank class] recorded GPU time with known work
  // [StackId] autograd's sequence number of the operator, which joins forward and backward; -1 where it has none.
  std::vector<std::int64_t> sequence_of_stack;
  DelayTable delays;                     // what EdgeInfo::delay names
  std::vector<ShapeGroup> shape_groups;  // of the steps of the files; empty: one shape, or it is not known
  bool is_dry_run = false;     // its host times are of other programs, and its kernels have no names
  bool channels_last = false;  // of a dry run: its convolutions find the layout that matrix units want
  std::vector<LearnedConstant> constants;
  std::vector<std::string> notes;  // what a person should know: events skipped, ranks missing, ...
};

// Of all ranks.
[[nodiscard]] KernelTimeCoverage work_coverage(const RecordedProgram& recorded);

namespace detail {
struct IndexedTrace;
}

struct RecordedInput {
  const RecordedRank* kineto = nullptr;
  const ExecutionTrace* execution_trace = nullptr;  // null where there is none
  // What index_trace() made of the two; without it every rebuild makes its own.
  std::shared_ptr<const detail::IndexedTrace> index{};
};

// What every step of a file needs: whoever rebuilds several of them makes it once. Refers to the input's traces.
[[nodiscard]] std::shared_ptr<const detail::IndexedTrace> index_trace(const RecordedInput& input);

// Errors: two files with the same rank, ranks missing from the world where collectives need them are noted
// and not an error, no GPU work, no common step. An execution trace that does not belong to its profiler trace is
// left out, with a note.
[[nodiscard]] Result<RecordedProgram> rebuild_program(std::span<const RecordedInput> input,
                                                      const RebuildOptions& options = {});

// An Error where a replay of this file alone would find nothing to replay.
[[nodiscard]] Status can_be_replayed(const RecordedRank& rank);

}  // namespace stepcast
