// Summaries of a recorded rank or an execution trace, and what they can be used for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// The meaning of "External id" in GPU events.
enum class ExternalIdMeaning : std::uint8_t {
  absent,
  op,  // the operator that launched the work (PyTorch 2.2 and later)
  // The correlation again (earlier releases): operators are found by time only.
  correlation,
  unclear,
};
// The name in JSON output: "op".
[[nodiscard]] std::string_view to_string(ExternalIdMeaning meaning);
[[nodiscard]] ExternalIdMeaning external_id_meaning(const RecordedRank& rank);

// The counts and times of a rank.
struct RankSummary {
  // A step mark.
  struct Step {
    std::int64_t number = 0;
    Microseconds start;  // since the first event
    Microseconds duration;
    ThreadId thread;
    StepKind kind = StepKind::ordinary;  // set by judged()
    // The median step of the same shape, if shapes differ; also set by judged().
    std::optional<std::int64_t> like_step;
  };
  // Number of events on a CPU thread.
  struct Thread {
    std::size_t ops = 0;
    std::size_t annotations = 0;  // including steps
    std::size_t calls = 0;
  };
  // Number of events and busy time of a GPU stream.
  struct Stream {
    std::int32_t device = 0;
    std::int32_t stream = 0;
    std::size_t kernels = 0;
    std::size_t communication_kernels = 0;
    std::size_t copies = 0;  // copies and fills
    Microseconds busy;       // union of all its work
  };

  Nanoseconds first_start{};  // since 1970; 0 if nothing was recorded
  Microseconds span;          // from the first start to the last end
  std::size_t ops = 0, annotations = 0, kernels = 0, copies = 0, fills = 0;
  std::vector<Step> steps;                                    // by start
  std::vector<Thread> threads;                                // in the order of RecordedRank::threads
  std::vector<Stream> streams;                                // by device and stream
  std::array<Microseconds, kKernelClassCount> kernel_time{};  // [KernelClass] without copies and fills
  std::size_t communication_kernels = 0;
  std::size_t communication_kernels_with_metadata = 0;
  std::size_t collective_records = 0;  // record_param_comms
  std::size_t collective_records_with_metadata = 0;
  std::size_t gpu_events_with_launch = 0;
  std::size_t runtime_calls = 0, gpu_events = 0, stream_syncs = 0, allocator_totals = 0;
  ExternalIdMeaning external_id = ExternalIdMeaning::absent;

  std::optional<AllocatorPeak> memory;  // of the caching allocator, over the whole file
  std::optional<std::int32_t> rank;     // rank for a replay: from the file, else from its name
  bool usable_for_replay = false;       // a replay of this file alone finds a step with GPU work
  std::vector<std::string> notes;       // what is missing and what follows from it, one sentence each
};

// Decides whether a replay of the rank alone finds a step with GPU work. Callers pass `can_be_replayed`,
// because the readers must not depend on the replay.
using ReplayCheck = Status (*)(const RecordedRank& rank);

// Summarises a rank in memory. `execution_trace`: the rank has one, which contains the sizes of transfers.
[[nodiscard]] RankSummary summarize(const RecordedRank& rank, ReplayCheck check,
                                    bool execution_trace = false);

// Summarises a profiler trace of any size without keeping events. Memory grows with the number of streams,
// threads, steps and distinct names.
struct SummarizedRank {
  RecordedRank rank;    // without events
  RankSummary summary;  // to be completed by judged()
  Status replayable;    // result of the check
};
[[nodiscard]] Result<SummarizedRank> summarize_kineto(const std::filesystem::path& file, ReplayCheck check,
                                                      const ReadOptions& options = {});

// Completes a summary with the rank, and with notes about what is missing and what follows from it.
[[nodiscard]] RankSummary judged(RankSummary summary, const RecordedRank& rank, const Status& replayable,
                                 bool execution_trace = false);

// Counts of an execution trace.
struct ExecutionTraceSummary {
  std::size_t threads = 0;
  std::size_t nodes_with_tensors = 0;
  std::map<CollectiveOp, std::size_t> collectives;  // without waits
  std::size_t waits = 0;
  std::size_t collectives_with_size = 0;
};

// Counts collectives, waits and nodes with tensors.
[[nodiscard]] ExecutionTraceSummary summarize(const ExecutionTrace& trace);

}  // namespace stepcast
