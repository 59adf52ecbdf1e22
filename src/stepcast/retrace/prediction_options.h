// What a prediction from recorded ranks is asked for: where the step runs, where its times come from, and what of it is
// changed.
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
  bool barrier = false;  // all ranks begin the step at one moment, as behind a barrier
  // Other work: batch, types, data-parallel ranks. Without a platform it needs `recorded_on`, and so do the next two.
  WorkChange change{};
  OverlapChange overlap = OverlapChange::as_recorded;
  RecomputedPart recompute = RecomputedPart::none;  // what runs its forward again (added_recomputation.h)
  double bucket_mb = 0;  // MiB that a bucket of gradients holds (gradient_buckets.h); 0: as recorded
  const Platform* links = nullptr;  // transfers go over its links; null: over those of the platform
  std::vector<RankPlatform> rank_platforms{};
  // Of a second recording of the same ranks (predict_between()); `change.batch` then names the batch of the first one,
  // and what is wanted. The times between the two come from there as well.
  std::int64_t second_batch = 0;
  const Costs* between_batches = nullptr;
  // Work that was recorded without a time (Chakra traces) takes that of the platform's models.
  bool price_unrecorded = false;

  // The device that computes: that of the platform, else that of the machine that recorded; null: not known.
  [[nodiscard]] const Platform* machine() const { return platform != nullptr ? platform : recorded_on; }
};

}  // namespace stepcast
