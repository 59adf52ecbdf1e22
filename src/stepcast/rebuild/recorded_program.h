// Recorded ranks as one Program. Dependencies are rebuilt from the traces; the recorded durations are the
// first scenario.
//
// Each rank is a rank class with one block instance. The clock is in microseconds since the earliest first
// CPU event of all ranks.
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

// The kind of a delay between two tasks of a recorded rank. Delays of one class have one constant of the
// machine.
enum class DelayKind : std::uint8_t {
  wait_base,         // cost of a waiting call without any wait: a duration, not on an edge
  launch,            // from the end of the launching call to the start of its work
  inside_launch,     // from the start of the launching call, for work that starts before it returns
  stream_gap,        // between neighbours on a stream if the second one was waiting
  event,             // from the end of awaited work to the start of work on the waiting stream
  sync_return,       // from the end of GPU work to the return of the call that waits for it
  handoff_wake,      // the main thread starts another thread
  handoff_join,      // the main thread continues after another thread
  handoff_evaluate,  // the same, inside of a backward pass
};

// The kind of task or call at one end of a delay.
enum class DelayEnd : std::uint8_t {
  none,
  computation,  // for events: everything except collectives
  kernel,
  collective,
  copy,  // stream_gap: in any direction; launch: other than the following three
  copy_to_device,
  copy_to_host,
  copy_on_device,
  fill,
  stream_sync,
  device_sync,
  event_sync,
  blocking_copy,
};

// The class of a delay. Only the members that matter for its kind are set.
struct DelayClass {
  DelayKind kind = DelayKind::launch;
  // launch, inside_launch: the runtime call, in the names of the Program; invalid: not in the file.
  NameId call{};
  DelayEnd from = DelayEnd::none;
  DelayEnd to = DelayEnd::none;
  bool pageable = false;  // a copy from or to host memory that is not pinned
  auto operator<=>(const DelayClass&) const = default;
};

// True for delays between CPU threads.
[[nodiscard]] constexpr bool is_handoff(DelayKind kind) {
  return kind == DelayKind::handoff_wake || kind == DelayKind::handoff_join ||
         kind == DelayKind::handoff_evaluate;
}

// The delay classes to which the edges of a recorded Program refer (EdgeInfo::delay).
class DelayTable {
 public:
  // The number of a class, which is added if it is new.
  DelayId intern(const DelayClass& delay) {
    const auto [it, fresh] = index_.try_emplace(delay, DelayId{classes_.size()});
    if (fresh) classes_.push_back(delay);
    return it->second;
  }
  // `id` must be valid.
  [[nodiscard]] const DelayClass& of(DelayId id) const { return classes_[id.index()]; }
  // Number of classes; ids are 0 to size() - 1.
  [[nodiscard]] std::size_t size() const { return classes_.size(); }

 private:
  std::vector<DelayClass> classes_;
  std::map<DelayClass, DelayId> index_;
};

// A text for users: "launch delay from the call's end, cudaLaunchKernel -> kernel". `names`: those of the
// Program.
[[nodiscard]] std::string describe(const DelayClass& delay, const StringTable& names);

// The time of a rank's CPU threads in a recorded step, cut into pieces of the five overheads (Lin et al.,
// TPDS 2024). Every microsecond of a thread that is not waiting belongs to one piece.
//
// The unit is the top-level operator: the outermost operator inside the labels of modules and steps. A launch
// is a call that starts GPU work or waits for a stream.

// One occurrence of an overhead. Pieces may have length 0: an operator that launches at its start has a T2 of
// 0 us.
struct HostPiece {
  OverheadType type = OverheadType::t1;
  // Name as in operation/overhead_name.h; invalid at the end of the step. T1: gap between two top-level
  // operators. T2, T3, T5: the operator. T4: the runtime call.
  NameId op{};
  // Microseconds without waiting: synchronising calls and blocking copies count with their cost if there is
  // nothing to wait for. Other runtime calls inside the piece are separate pieces (T4) and not included.
  double duration_us = 0;
  // Number of events that the profiler wrote in it. T1: the following operator and labels. T4: the call.
  // Others: the operators inside.
  std::uint32_t profiler_events = 0;
};

// One execution of a top-level operator.
struct HostOperator {
  NameId op{};
  std::uint32_t first_launch = 0, n_launches = 0;  // in RecordedHost::launches
};

// The host time of one rank. Names are those of the Program in the same RecordedProgram.
struct RecordedHost {
  std::vector<HostPiece> pieces;
  std::vector<HostOperator> operators;
  std::vector<NameId> launches;  // the calls, in order
};

// What to rebuild, and how.
struct RebuildOptions {
  // Number N of ProfilerStep#N. Default: the typical step with GPU work that all ranks have.
  std::optional<std::int64_t> step;
  // Keep the recorded launch delay and stream gap of each operation, if small, instead of the learned
  // constants.
  bool own_delays = false;
  bool tf32_allowed = false;  // fp32 GEMMs ran on TF32 units, which traces do not record
  bool host_pieces = true;    // RecordedProgram::host
  // Called for a rank after its tasks are built. Its events are not used after that.
  std::function<void(const RecordedRank&)> done_with{};
};

// A constant learned from operations that, by the rebuilt edges, did not wait.
struct LearnedConstant {
  DelayClass delay;
  double value_us = 0;
  std::uint32_t clean = 0;  // number of operations it was learned from
  std::uint32_t all = 0;    // number of all operations of this class
  bool fallback = false;    // no clean operation: learned from related classes, or the smallest value
};

// Facts about the recorded step of one rank, for reports and comparison.
struct RecordedStepFacts {
  std::int32_t rank = 0;
  std::int64_t step_number = -1;  // -1: no ProfilerStep in the file; the whole trace is the step
  Interval step_us;               // measured step on the common clock
  double gpu_window_end_us = 0;   // last end of GPU work launched in the step
  TaskId step_end_task;           // the step ends with the end (or start) of this task
  // The step ends with the start of `step_end_task`.
  bool step_ends_at_start = false;
  std::optional<AllocatorPeak> memory;  // of the caching allocator in the step, if recorded
  std::uint64_t left_over_kernels = 0;  // GPU work in the window that was launched before it
  // Microseconds of GPU work in the window, and of its part with lost launches: no call in the file launched
  // it, and it is not left over from before.
  double gpu_work_us = 0, unlaunched_us = 0;
  double repaired_share = 0;  // RepairedTimes::share of the file
  // Microseconds of waiting, recorded and not explained by edges.
  double recorded_wait_us = 0;     // recorded waiting in calls beyond their base cost
  double unexplained_wait_us = 0;  // the part that no edge explains; the replay leaves it out
  // Microseconds in which GPU work was ready by all rebuilt edges but had not started (recorded times), and
  // number of such work (more than 15 us late). The cause is not known; the replay starts this work when it
  // is ready.
  double gpu_late_us = 0;
  std::uint32_t late_gpu_work = 0;
  // Starts and returns kept as recorded, since they waited for work before the file.
  std::uint32_t kept_starts = 0;
  std::uint32_t graph_nodes = 0;  // later nodes of CUDA graph launches, which keep their recorded distances
  // GPU work that started before its predecessor on the stream had ended.
  std::uint32_t overlapping_kernels = 0;
  // Microseconds of recorded delays kept on edges, by origin.
  std::array<double, kEdgeOriginCount> kept_delay_us{};
  std::array<std::uint32_t, kEdgeOriginCount> edge_count{};  // by origin
  // Edges that are concluded instead of recorded, by origin.
  std::array<std::uint32_t, kEdgeOriginCount> inferred_edge_count{};
};

// Facts about the files of a rank for reports, so that the traces need not be kept.
struct RecordedFileFacts {
  std::string profiler;                        // file name
  std::optional<std::string> execution_trace;  // file name; none if there is none or it could not be joined
  std::optional<std::int32_t> world_size;
  std::string device;                            // name of the first GPU; empty: not recorded
  std::uint64_t event_count = 0;                 // of the whole file
  std::map<std::string, std::uint64_t> skipped;  // number of events left out, by reason
  std::vector<SpecialStep> special_steps;        // of the whole file
};

// A recorded step as a Program. Every task of `program` has its work (TaskInfo::work):
//   kernels         the Operation of the operator that launched them, from the execution trace or else from shapes
//                   in the profiler trace; several kernels share it (TaskInfo::work_times)
//   copies          a transfer of the recorded size
//   communication   CollectiveWork, also if it is not joined with other ranks
//   CPU tasks       HostWork, `work_times` occurrences of the overhead; the second half of a waiting call is Waiting
// Unknown work is reported in `coverage`; `program.works` returns monostate for it.
struct RecordedProgram {
  Program program;
  std::vector<double> start_offset_us;  // [rank class] microseconds
  double clock_uncertainty_us = 0;  // uncertainty between the clocks of ranks in microseconds; 0: one clock
  std::vector<std::vector<Interval>> measured;  // [rank class][task of its block]
  std::vector<RecordedStepFacts> facts;         // [rank class]
  std::vector<RecordedFileFacts> files;         // [rank class]
  std::vector<RecordedHost> host;            // [rank class] the CPU time of the tasks as pieces, if requested
  std::vector<KernelTimeCoverage> coverage;  // [rank class] recorded GPU time with known work
  // [StackId] autograd's sequence number of the operator, which links forward and backward; -1 if it has
  // none.
  std::vector<std::int64_t> sequence_of_stack;
  DelayTable delays;                     // the classes to which EdgeInfo::delay refers
  std::vector<ShapeGroup> shape_groups;  // of the steps in the files; empty: one shape, or not known
  bool is_dry_run = false;               // host times are from other programs, and kernels have no names
  bool channels_last = false;            // of a dry run: convolutions have the layout that matrix units need
  std::vector<LearnedConstant> constants;
  std::vector<std::string> notes;  // messages for the user: skipped events, missing ranks, ...
};

// Sum over all ranks.
[[nodiscard]] KernelTimeCoverage work_coverage(const RecordedProgram& recorded);

namespace detail {
struct IndexedTrace;
}

// The traces of one rank, which must outlive all programs built from them.
struct RecordedInput {
  const RecordedRank* kineto = nullptr;
  const ExecutionTrace* execution_trace = nullptr;  // null: there is none
  // Result of index_trace() for these traces; without it each rebuild computes it again.
  std::shared_ptr<const detail::IndexedTrace> index{};
};

// Computes everything that all steps of a file have in common. Refers to the traces of `input`.
[[nodiscard]] std::shared_ptr<const detail::IndexedTrace> index_trace(const RecordedInput& input);

// Rebuilds the Program of one step from the traces of all ranks. Errors: two files with the same rank, no GPU
// work, no common step, a requested step that is missing. Missing ranks are not an error but a note. An
// execution trace that does not belong to its profiler trace is left out with a note.
[[nodiscard]] Result<RecordedProgram> rebuild_program(std::span<const RecordedInput> input,
                                                      const RebuildOptions& options = {});

// Error if a replay of this file alone has nothing to replay.
[[nodiscard]] Status can_be_replayed(const RecordedRank& rank);

}  // namespace stepcast
