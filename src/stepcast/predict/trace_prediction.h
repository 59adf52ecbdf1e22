// The step of recorded ranks under other circumstances: on another GPU, with other links or a faster host,
// without stragglers.
//
//   TracePredictionOptions how{.platform = &mi300x, .recorded_on = &h100, .kernels = KernelTimeSource::ratio};
//   STEPCAST_ASSIGN(const TracePrediction p, predict_trace(set.inputs(), how));
//   p.step.time, p.step.p10, p.step.p90        // of the rank whose step is longest
//   p.ranks[3].step.simulated_us               // of one rank; measured_us beside it
//
// Structure, order and learned delays are those of the record (trace/recorded_program.h); the times of GPU work
// come from recorded_prices.h, those of the host from host_prices.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/added_recomputation.h"
#include "stepcast/predict/changed_work.h"
#include "stepcast/predict/coverage.h"
#include "stepcast/predict/host_prices.h"
#include "stepcast/predict/overlap_change.h"
#include "stepcast/predict/recorded_prices.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/predict/untimed_program.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {

// Where the time of CPU threads comes from.
enum class HostTimeSource : std::uint8_t {
  recorded,   // as it was recorded
  overheads,  // the means of the platform's host overheads
};
[[nodiscard]] std::string_view to_string(HostTimeSource ground);

// A rank that computes on another device than the others.
struct RankPlatform {
  std::int32_t rank = 0;
  const Platform* platform = nullptr;
};

struct TracePredictionOptions {
  RebuildOptions rebuild;
  // To predict on; null: the machine that recorded.
  const Platform* platform = nullptr;
  // What stands for the machine that recorded; needed for `ratio`.
  const Platform* recorded_on = nullptr;
  KernelTimeSource kernels = KernelTimeSource::recorded;
  HostTimeSource host = HostTimeSource::recorded;
  // Factors on kernels and transfers (predict/what_if.h), and on host time.
  StepAssumptions assumptions{};
  // Every rank computes and launches as fast as the median rank and starts with it: no stragglers.
  bool median_ranks = false;
  // Other work: batch, types, data-parallel ranks. Without a platform it needs `recorded_on`, and so do the next two.
  WorkChange change{};
  OverlapChange overlap = OverlapChange::as_recorded;
  RecomputedPart recompute = RecomputedPart::none;  // what runs its forward again (added_recomputation.h)
  double bucket_mb = 0;  // MiB that a bucket of gradients holds (gradient_buckets.h); 0: as recorded
  const Platform* links = nullptr;  // transfers go over its links; null: over those of the platform
  std::vector<RankPlatform> rank_platforms{};
  // Recordings of the same ranks at another batch (batch_pair.h); `change.batch` then names the recorded one of the
  // others, and what is wanted.
  std::vector<RecordedInput> second_inputs{};
  std::int64_t second_batch = 0;
  // Work that was recorded without a time (Chakra traces) takes that of the platform's models.
  bool price_unrecorded = false;
};

struct TracePrediction : ReplayScores {
  RecordedProgram recorded;
  Costs costs{recorded.program};
  Coverage coverage;
  Estimate step;                                       // longest step of all ranks
  std::vector<std::vector<SequenceRange>> recomputed;  // [rank class] blocks of layers that run twice
  std::vector<std::string> notes;
};

// The longest step of a job that repeats it. The CPU of one step alone may run ahead of its GPU to the end; in a row of
// steps it is held back by full launch queues and by copies, and a step takes what its GPU work takes. Steps that were
// recorded so already are left as they are.
struct RepeatedStep {
  double us = 0;
  RankClassId rank{};                     // where GPU work sets it: whose,
  std::vector<std::uint32_t> tasks = {};  // and what of its block, one behind the other; else empty
};
[[nodiscard]] RepeatedStep repeated_step(const RecordedProgram& recorded, const Costs& costs,
                                         double longest_us);

// The same of ranks that are known by their execution traces alone (untimed_program.h): needs a platform with
// host overheads, and takes kernel times from its models whatever `kernels` and `host` say. Nothing is measured:
// TimePair::measured_us is 0.
[[nodiscard]] Result<TracePrediction> predict_untimed(std::span<const UntimedRank> ranks,
                                                      const TracePredictionOptions& options);

// The same of a Program that was made elsewhere (trace/graph_program.h). `at_batch`: times between recordings of two
// batches (batch_pair.h), or null.
[[nodiscard]] Result<TracePrediction> predict_recorded(RecordedProgram recorded,
                                                       const TracePredictionOptions& options,
                                                       const Costs* at_batch = nullptr);

// Errors: those of rebuild_program(), price_recorded(), with_overlap(), between_batches() and apply_trace_changes();
// host overheads that the platform does not have.
[[nodiscard]] Result<TracePrediction> predict_trace(std::span<const RecordedInput> inputs,
                                                    const TracePredictionOptions& options);

}  // namespace stepcast
