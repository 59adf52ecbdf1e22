// The question for a prediction from recorded ranks: the platform, the sources of times and the changes to the step.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/added_recomputation.h"
#include "stepcast/retrace/changed_work.h"
#include "stepcast/retrace/overlap_change.h"
#include "stepcast/retrace/recorded_prices.h"

namespace stepcast {

// Where the time of CPU threads comes from.
enum class HostTimeSource : std::uint8_t {
  recorded,   // as it was recorded
  overheads,  // the means of the platform's host overheads
};
[[nodiscard]] std::string_view to_string(HostTimeSource ground);

// Another device for the computation of one rank.
struct RankPlatform {
  std::int32_t rank = 0;
  const Platform* platform = nullptr;
};

// Defaults ask for the recorded step on the recorded machine.
struct TracePredictionOptions {
  RebuildOptions rebuild;
  // The platform to predict; null: the machine that recorded.
  const Platform* platform = nullptr;
  // The platform that represents the machine that recorded; required for `ratio`.
  const Platform* recorded_on = nullptr;
  KernelTimeSource kernels = KernelTimeSource::recorded;
  HostTimeSource host = HostTimeSource::recorded;
  // Factors on kernels and transfers (predict/what_if.h), and on host time.
  StepAssumptions assumptions{};
  // Removes stragglers: every rank computes and launches as fast as the median rank and starts with it.
  bool median_ranks = false;
  bool barrier = false;  // all ranks begin the step at the same time, as after a barrier
  // Changes of batch, types or data-parallel ranks. Without `platform` these and the next two require `recorded_on`.
  WorkChange change{};
  OverlapChange overlap = OverlapChange::as_recorded;
  // The part of the forward that is repeated (added_recomputation.h).
  RecomputedPart recompute = RecomputedPart::none;
  double bucket_mb = 0;             // minimum MiB of a gradient bucket (gradient_buckets.h); 0: as recorded
  const Platform* links = nullptr;  // prices transfers with its links; null: with those of the platform
  std::vector<RankPlatform> rank_platforms{};
  // Batch of a second recording of the same ranks (predict_between()); 0: none. `change.batch` then gives the batch of the
  // first recording and the wanted one. `between_batches` has the interpolated times.
  std::int64_t second_batch = 0;
  const Costs* between_batches = nullptr;
  // Work recorded without a time (Chakra traces) is priced by the models of the platform.
  bool price_unrecorded = false;

  // The platform that computes: `platform`, else `recorded_on`; null: unknown.
  [[nodiscard]] const Platform* machine() const { return platform != nullptr ? platform : recorded_on; }
};

}  // namespace stepcast
