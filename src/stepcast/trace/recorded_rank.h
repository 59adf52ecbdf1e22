// The content of a profiler trace of one rank as plain arrays: events as they were recorded, without derived
// data.
//
// Times are in nanoseconds since 1970, without rounding (`ts` of the file, plus `baseTimeNanoseconds` if the
// file has it).
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

// A thread of the process.
struct RecordedThread {
  std::int64_t pid = 0;
  std::int64_t tid = 0;  // 0 if the file has a text that is not a number
  std::string name;      // from thread_name metadata; may be empty
};

// A stretch of CPU time in a framework operator, an annotation or a ProfilerStep.
struct CpuOp {
  // step: a mark ProfilerStep#N.
  enum class Kind : std::uint8_t { op, annotation, step };

  Nanoseconds start{};
  Nanoseconds duration{};
  NameId name;
  ThreadId thread;
  NameId input_shapes;                // text of "Input Dims", interned; invalid if missing
  NameId input_types;                 // "Input type"
  NameId input_values;                // "Concrete Inputs"
  std::int64_t external_id = -1;      // "External id"; -1 if missing
  std::int64_t order = -1;            // "Ev Idx" or "Record function id"; -1 if missing
  std::int64_t sequence_number = -1;  // autograd sequence, links forward and backward; -1 if missing
  // Index into RecordedRank::collective_infos (for record_param_comms); -1: none.
  std::int32_t collective = -1;
  Kind kind = Kind::op;

  [[nodiscard]] Nanoseconds end() const { return start + duration; }
};

// A call of the CUDA or HIP runtime or driver. `correlation` links it to its GPU work.
struct RuntimeCall {
  Nanoseconds start{};
  Nanoseconds duration{};
  NameId name;
  ThreadId thread;
  std::int64_t correlation = -1;
  std::int64_t external_id = -1;

  [[nodiscard]] Nanoseconds end() const { return start + duration; }
};

// A kernel, copy or fill on a GPU stream.
struct GpuOp {
  enum class Kind : std::uint8_t { kernel, memcpy, memset };

  Nanoseconds start{};
  Nanoseconds duration{};
  NameId name;
  std::int32_t device = 0;
  std::int32_t stream = 0;
  std::int64_t correlation = -1;
  std::int64_t external_id = -1;
  std::int64_t bytes = -1;       // of copies and fills; -1 if missing
  float blocks_per_sm = -1;      // "blocks per SM"; -1 if missing
  std::int32_t blocks = -1;      // x * y * z of "grid"; -1 if missing
  std::int32_t collective = -1;  // index into RecordedRank::collective_infos; -1: no metadata
  // "graph 3, node 17" for a node of a CUDA graph launch; invalid if the file does not say.
  NameId graph_node;
  Kind kind = Kind::kernel;

  [[nodiscard]] Nanoseconds end() const { return start + duration; }
};

// A synchronisation record (category cuda_sync).
struct StreamSync {
  // stream_wait_event: a stream waits. The others: the CPU waits for an event, a stream or a whole context.
  enum class Kind : std::uint8_t { stream_wait_event, event_sync, stream_sync, context_sync, other };

  Nanoseconds start{};
  Nanoseconds duration{};
  std::int64_t correlation = -1;  // of the runtime call
  std::int64_t stream = -1;  // the waiting stream (wait event) or the awaited one (stream sync); -1: none
  std::int64_t wait_on_stream = -1;  // -1: missing
  // Correlation of the awaited cudaEventRecord; -1: missing.
  std::int64_t wait_on_event_record_correlation = -1;
  Kind kind = Kind::other;
};

// Totals of the caching allocator on a GPU after an allocation or release (event "[memory]", recorded with
// profile_memory).
struct AllocatorState {
  Nanoseconds start{};  // time of the event
  std::int32_t device = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t reserved_bytes = 0;
};

// The largest totals over a period, of the GPU with most.
struct AllocatorPeak {
  std::int64_t allocated_bytes = 0;
  std::int64_t reserved_bytes = 0;
};

// The description of a collective, from the arguments of a communication kernel or of record_param_comms.
struct CollectiveInfo {
  NameId name;  // as in the file: "allreduce", "_allgather_base"
  CollectiveOp op = CollectiveOp::unknown;
  DType dtype = DType::unknown;
  // Elements of input and output of this rank; -1: missing.
  std::int64_t in_elements = -1;
  std::int64_t out_elements = -1;
  std::int32_t group_size = -1;
  // "Process Group Name", else "Process Group ID" as text.
  NameId process_group;
  std::int64_t sequence = -1;  // "Seq", counts the collectives of the group; -1 if missing
  // "Comms Id" modulo 2^64: a hash that is equal on all ranks of one collective; -1 if missing.
  std::int64_t comms_id = -1;
  std::vector<std::int32_t> group_ranks;          // "Process Group Ranks"; empty if missing
  std::vector<std::int64_t> in_split, out_split;  // elements per peer; empty: equal shares
};

// A GPU as the trace describes it.
struct DeviceProperties {
  std::int32_t id = 0;
  std::string name;
  std::int64_t memory_bytes = 0;
  std::int32_t sm_count = 0;  // 0 if missing
  std::int32_t max_threads_per_sm = 0;
};

// Events with impossible ends, which were cut to the latest possible end (detail/repair_times.h).
struct RepairedTimes {
  std::uint64_t gpu_work = 0, cpu_time = 0, steps = 0;
  // Corrected time as a share of the recorded GPU time, or of the time in steps, whichever is larger.
  double share = 0;

  // Number of corrected events.
  [[nodiscard]] std::uint64_t events() const { return gpu_work + cpu_time + steps; }
};
// From this share on, every verdict about the file mentions the correction. Assumed.
inline constexpr double kMuchRepaired = 1e-3;

// The profiler that wrote a file.
enum class ProfileFormat : std::uint8_t {
  kineto,  // of PyTorch
  xplane,  // of XLA programs (xla_profile.h)
};
// The name in JSON output: "kineto".
[[nodiscard]] std::string_view to_string(ProfileFormat format);

// The recording of one rank.
struct RecordedRank {
  std::string file;
  ProfileFormat format = ProfileFormat::kineto;
  std::vector<std::string> notes;    // of the reader, for the user
  std::string schema;                // schemaVersion as text; empty if missing
  std::optional<std::int32_t> rank;  // from distributedInfo
  std::optional<std::int32_t> world_size;
  std::vector<DeviceProperties> devices;
  StringTable names;
  std::vector<RecordedThread> threads;

  // Events, sorted by (start, -duration, position in the file).
  std::vector<CpuOp> cpu_ops;
  std::vector<RuntimeCall> runtime_calls;
  std::vector<GpuOp> gpu_ops;
  std::vector<StreamSync> stream_syncs;
  std::vector<AllocatorState> allocator_states;  // by start
  std::vector<CollectiveInfo> collective_infos;

  std::vector<SpecialStep> special_steps;  // by start; from all events of the file, kept or not
  std::vector<StepSize> step_sizes;        // the same, for every step

  // Number of events read, and of events left out by reason ("python_function", "flow", "gpu annotation", "no
  // duration", ...).
  std::uint64_t event_count = 0;
  std::map<std::string, std::uint64_t> skipped;
  std::set<std::string> other_runtimes;  // categories of calls of other vendors, such as "xpu_runtime"
  RepairedTimes repaired;
};
// The reason in `skipped` for operations of XLA programs, which JAX and TensorFlow record.
inline constexpr std::string_view kXlaOperation = "an XLA operation";
// The reason in `skipped` for events with a start or duration that is not a number, negative or out of range.
inline constexpr std::string_view kBadTime = "a start or duration that is not a time";

// The maxima over the states in [from, to]; empty if there are none.
[[nodiscard]] std::optional<AllocatorPeak> allocator_peak(const RecordedRank& rank, Nanoseconds from,
                                                          Nanoseconds to);

// The number N of "ProfilerStep#N"; empty for other names.
[[nodiscard]] std::optional<std::int64_t> profiler_step_number(std::string_view name);

}  // namespace stepcast
