// What a recorded rank or an execution trace holds, and what it can be used for.
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

// What "External id" of a GPU event names.
enum class ExternalIdMeaning : std::uint8_t {
  absent,
  op,           // the operator that launched the work (PyTorch 2.2 and later)
  correlation,  // the launch once more (before): operators are found by time only
  unclear,
};
[[nodiscard]] std::string_view to_string(ExternalIdMeaning meaning);
[[nodiscard]] ExternalIdMeaning external_id_meaning(const RecordedRank& rank);

struct RankSummary {
  struct Step {
    std::int64_t number = 0;
    Microseconds start;  // since the first event
    Microseconds duration;
    ThreadId thread;
    StepKind kind = StepKind::ordinary;  // where the rank tells: behind judged()
    std::optional<std::int64_t>
        like_step;  // the median one of those of its shape, where shapes differ; the same
  };
  struct Thread {
    std::size_t ops = 0;
    std::size_t annotations = 0;  // steps included
    std::size_t calls = 0;
  };
  struct Stream {
    std::int32_t device = 0;
    std::int32_t stream = 0;
    std::size_t kernels = 0;
    std::size_t communication_kernels = 0;
    std::size_t copies = 0;  // and fills
    Microseconds busy;       // union of all its work
  };

  Nanoseconds first_start{};  // since the epoch; 0 if nothing was recorded
  Microseconds span;          // first start to last end
  std::size_t ops = 0, annotations = 0, kernels = 0, copies = 0, fills = 0;
  std::vector<Step> steps;                                    // by start
  std::vector<Thread> threads;                                // as RecordedRank::threads
  std::vector<Stream> streams;                                // by device and stream
  std::array<Microseconds, kKernelClassCount> kernel_time{};  // by KernelClass, copies and fills not included
  std::size_t communication_kernels = 0;
  std::size_t communication_kernels_with_metadata = 0;
  std::size_t collective_records = 0;  // record_param_comms
  std::size_t collective_records_with_metadata = 0;
  std::size_t gpu_events_with_launch = 0;
  std::size_t runtime_calls = 0, gpu_events = 0, stream_syncs = 0, allocator_totals = 0;
  ExternalIdMeaning external_id = ExternalIdMeaning::absent;

  std::optional<AllocatorPeak> memory;  // of the caching allocator over the whole file
  std::optional<std::int32_t> rank;     // as a replay takes it: from the file, else from its name
  bool usable_for_replay = false;       // a replay of the file alone finds a step with GPU work
  std::vector<std::string> notes;       // what is missing and what follows from it, one sentence each
};

// Says whether a replay of the rank alone finds a step with GPU work. Callers give `can_be_replayed`: readers know
// nothing of replays.
using ReplayCheck = Status (*)(const RecordedRank& rank);

// `execution_trace`: whether there is one of the rank, which tells what transfers carry.
[[nodiscard]] RankSummary summarize(const RecordedRank& rank, ReplayCheck check,
                                    bool execution_trace = false);

// A profiler trace of any size, of which no event is kept: memory grows with its streams, threads, steps and different names.
struct SummarizedRank {
  RecordedRank rank;    // without events
  RankSummary summary;  // for judged()
  Status replayable;    // what the check said
};
[[nodiscard]] Result<SummarizedRank> summarize_kineto(const std::filesystem::path& file, ReplayCheck check,
                                                      const ReadOptions& options = {});

// With the rank, and with what is missing and what follows from it.
[[nodiscard]] RankSummary judged(RankSummary summary, const RecordedRank& rank, const Status& replayable,
                                 bool execution_trace = false);

struct ExecutionTraceSummary {
  std::size_t threads = 0;
  std::size_t nodes_with_tensors = 0;
  std::map<CollectiveOp, std::size_t> collectives;  // without waits
  std::size_t waits = 0;
  std::size_t collectives_with_size = 0;
};

[[nodiscard]] ExecutionTraceSummary summarize(const ExecutionTrace& trace);

}  // namespace stepcast
