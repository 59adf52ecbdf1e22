// What a profiler trace of one rank holds, as plain arrays: events as they were recorded, nothing derived.
//
// Times are nanoseconds since the epoch (`ts` of the file, plus `baseTimeNanoseconds` where the file has
// one), exactly.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/string_table.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/trace/step_kind.h"
#include "stepcast/trace/step_shapes.h"

namespace stepcast {

// Index into RecordedRank::threads.
using ThreadId = Id<struct ThreadTag>;

struct RecordedThread {
  std::int64_t pid = 0;
  std::int64_t tid = 0;  // 0 where the file holds a text that is no number
  std::string name;      // from thread_name metadata, may be empty
};

// A stretch of CPU time that a thread spends in a framework op, an annotation or a ProfilerStep.
struct CpuOp {
  enum class Kind : std::uint8_t { op, annotation, step };

  Nanoseconds start{};
  Nanoseconds duration{};
  NameId name;
  ThreadId thread;
  NameId input_shapes;                // text of "Input Dims", interned; invalid where absent
  NameId input_types;                 // "Input type"
  NameId input_values;                // "Concrete Inputs"
  std::int64_t external_id = -1;      // "External id"; -1 where absent
  std::int64_t order = -1;            // "Ev Idx" or "Record function id"; -1 where absent
  std::int64_t sequence_number = -1;  // autograd sequence, joins forward and backward; -1 where absent
  std::int32_t collective = -1;  // index into RecordedRank::collective_infos (record_param_comms); -1: none
  Kind kind = Kind::op;

  [[nodiscard]] Nanoseconds end() const { return start + duration; }
};

// One call of the CUDA/HIP runtime or driver.
struct RuntimeCall {
  Nanoseconds start{};
  Nanoseconds duration{};
  NameId name;
  ThreadId thread;
  std::int64_t correlation = -1;
  std::int64_t external_id = -1;

  [[nodiscard]] Nanoseconds end() const { return start + duration; }
};

// One stretch of work on a GPU stream.
struct GpuOp {
  enum class Kind : std::uint8_t { kernel, memcpy, memset };

  Nanoseconds start{};
  Nanoseconds duration{};
  NameId name;
  std::int32_t device = 0;
  std::int32_t stream = 0;
  std::int64_t correlation = -1;
  std::int64_t external_id = -1;
  std::int64_t bytes = -1;       // copies and fills; -1 where absent
  float blocks_per_sm = -1;      // "blocks per SM"; -1 where absent
  std::int32_t blocks = -1;      // product of "grid"; -1 where absent
  std::int32_t collective = -1;  // index into RecordedRank::collective_infos; -1: no metadata
  NameId graph_node;  // "graph 3, node 17" of a graph's launch; invalid where the file does not say
  Kind kind = Kind::kernel;

  [[nodiscard]] Nanoseconds end() const { return start + duration; }
};

// Synchronisation record (category cuda_sync).
struct StreamSync {
  enum class Kind : std::uint8_t { stream_wait_event, event_sync, stream_sync, context_sync, other };

  Nanoseconds start{};
  Nanoseconds duration{};
  std::int64_t correlation = -1;     // of the runtime call
  std::int64_t stream = -1;          // waiting (wait event) or waited for (stream sync); -1: none
  std::int64_t wait_on_stream = -1;  // -1: absent
  // Correlation of the cudaEventRecord waited for; -1: absent.
  std::int64_t wait_on_event_record_correlation = -1;
  Kind kind = Kind::other;
};

// Totals of the caching allocator on a GPU behind an allocation or a release ("[memory]", recorded with
// profile_memory).
struct AllocatorState {
  Nanoseconds start{};  // when
  std::int32_t device = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t reserved_bytes = 0;
};

// Largest totals over a stretch of time, of the GPU with most.
struct AllocatorPeak {
  std::int64_t allocated_bytes = 0;
  std::int64_t reserved_bytes = 0;
};

// Metadata of a collective, from a communication kernel's or record_param_comms' args.
struct CollectiveInfo {
  NameId name;  // as written, e.g. "allreduce", "_allgather_base"
  CollectiveOp op = CollectiveOp::unknown;
  DType dtype = DType::unknown;
  std::int64_t in_elements = -1;
  std::int64_t out_elements = -1;
  std::int32_t group_size = -1;
  NameId process_group;        // "Process Group Name", falls back to "Process Group ID" (as text)
  std::int64_t sequence = -1;  // "Seq", counts the collectives of the group; -1 where absent
  // "Comms Id" modulo 2^64: equal on all ranks of one collective, a hash and no count; -1 where absent.
  std::int64_t comms_id = -1;
  std::vector<std::int32_t> group_ranks;          // "Process Group Ranks"; empty where absent
  std::vector<std::int64_t> in_split, out_split;  // elements per peer; empty: equal
};

struct DeviceProperties {
  std::int32_t id = 0;
  std::string name;
  std::int64_t memory_bytes = 0;
  std::int32_t sm_count = 0;  // 0 where absent
  std::int32_t max_threads_per_sm = 0;
};

// Events whose end cannot be, and was moved to the latest that could have been (detail/repair_times.h).
struct RepairedTimes {
  std::uint64_t gpu_work = 0, cpu_time = 0, steps = 0;
  double share = 0;  // of the recorded GPU time, or of the time in steps, that stands in place of such times

  [[nodiscard]] std::uint64_t events() const { return gpu_work + cpu_time + steps; }
};
// From this share on no verdict rests on the file without saying so: assumed.
inline constexpr double kMuchRepaired = 1e-3;

struct RecordedRank {
  std::string file;
  std::string schema;                // schemaVersion as text, empty where absent
  std::optional<std::int32_t> rank;  // from distributedInfo
  std::optional<std::int32_t> world_size;
  std::vector<DeviceProperties> devices;
  StringTable names;
  std::vector<RecordedThread> threads;

  // Each sorted by (start, -duration, position in the file).
  std::vector<CpuOp> cpu_ops;
  std::vector<RuntimeCall> runtime_calls;
  std::vector<GpuOp> gpu_ops;
  std::vector<StreamSync> stream_syncs;
  std::vector<AllocatorState> allocator_states;  // by start
  std::vector<CollectiveInfo> collective_infos;

  std::vector<SpecialStep> special_steps;  // by start; told by all events of the file, kept or not
  std::vector<StepSize> step_sizes;        // the same, of every step

  // What was read and what was left out, by reason ("python_function", "flow", "gpu annotation", "no
  // duration", ...).
  std::uint64_t event_count = 0;
  std::map<std::string, std::uint64_t> skipped;
  std::set<std::string> other_runtimes;  // categories of calls that are not those of CUDA, as "xpu_runtime"
  RepairedTimes repaired;
};
// The reason of `skipped` for operations of XLA programs, which JAX and TensorFlow record.
inline constexpr std::string_view kXlaOperation = "an XLA operation";
// The reason of `skipped` for events whose start or duration is no number, negative or out of range.
inline constexpr std::string_view kBadTime = "a start or duration that is not a time";

// Over the states in [from, to]; nothing where there are none.
[[nodiscard]] std::optional<AllocatorPeak> allocator_peak(const RecordedRank& rank, Nanoseconds from,
                                                          Nanoseconds to);

// The number N of "ProfilerStep#N"; nothing for other names.
[[nodiscard]] std::optional<std::int64_t> profiler_step_number(std::string_view name);

}  // namespace stepcast
