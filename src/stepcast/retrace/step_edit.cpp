#include "stepcast/retrace/step_edit.h"

#include <algorithm>
#include <array>
#include <utility>

#include "stepcast/retrace/detail/edits.h"
#include "stepcast/retrace/gradient_buckets.h"

namespace stepcast {
namespace {

using Options = TracePredictionOptions;

bool always(const Options& /*options*/) { return true; }
Status lacks_nothing(const Options& /*options*/, const RecordedProgram& /*recorded*/) { return Ok{}; }

Status regroup_gradients(const Options& options, EditedStep& step) {
  const BucketPricing machine{step.origin.get(), step.pricing.origin_gpus_per_node};
  STEPCAST_ASSIGN(step.recorded,
                  with_bucket_size(std::move(step.recorded), options.bucket_mb, machine, step.notes));
  return Ok{};
}

Status recompute(const Options& options, EditedStep& step) {
  STEPCAST_ASSIGN(AddedRecomputation added, with_recomputation(std::move(step.recorded), options.recompute));
  step.recorded = std::move(added.program);
  step.recomputed = std::move(added.blocks);
  step.notes.push_back(std::move(added.note));
  return Ok{};
}

Status change_overlap(const Options& options, EditedStep& step) {
  STEPCAST_ASSIGN(step.recorded, with_overlap(std::move(step.recorded), options.overlap));
  step.notes.emplace_back(options.overlap == OverlapChange::none
                              ? "no computation overlaps a transfer of its rank"
                          : options.overlap == OverlapChange::host
                              ? "no CPU call waits for the GPU before the end of the step"
                              : "nothing but other transfers and the end of the step waits for a transfer");
  return Ok{};
}

// Order matters within a stage, too: the structure first gets new buckets, then recomputation, then overlap.
constexpr std::array kEdits{
    StepEdit{"bucket-size", "regroup gradients into buckets of another size", EditStage::structure, true,
             [](const Options& o) { return o.bucket_mb > 0; }, lacks_nothing, regroup_gradients},
    StepEdit{"recompute", "run the forward of layers again before their backward", EditStage::structure,
             false, [](const Options& o) { return o.recompute != RecomputedPart::none; }, lacks_nothing,
             recompute},
    StepEdit{"overlap", "let transfers overlap with computation, or the host with the GPU, otherwise",
             EditStage::structure, false,
             [](const Options& o) { return o.overlap != OverlapChange::as_recorded; }, lacks_nothing,
             change_overlap},
    StepEdit{"platform", "price GPU work on the platform, or as recorded with what-if factors",
             EditStage::gpu_times, false, always, lacks_nothing, detail::price_gpu_work},
    StepEdit{"rank-platforms", "let ranks compute on devices of their own", EditStage::gpu_times, true,
             [](const Options& o) { return !o.rank_platforms.empty(); }, detail::check_rank_platforms,
             detail::move_ranks},
    StepEdit{"links", "send transfers over the links of another platform", EditStage::gpu_times, true,
             [](const Options& o) { return o.links != nullptr; }, detail::check_models, detail::change_links},
    StepEdit{"between-batches", "interpolate between recordings of two batches", EditStage::gpu_times, true,
             [](const Options& o) { return o.between_batches != nullptr; }, lacks_nothing,
             detail::scale_between_batches},
    StepEdit{"work", "change batch, element type and data-parallel ranks", EditStage::gpu_times, true,
             [](const Options& o) { return !detail::change_by_models(o).empty(); }, detail::check_models,
             detail::change_work},
    StepEdit{"delays", "stretch the delays that are a share of GPU work", EditStage::gpu_times, false, always,
             lacks_nothing, detail::stretch_delays},
    StepEdit{"host", "take host time from the platform's overheads, or scale it", EditStage::host_times,
             false,
             [](const Options& o) {
               return o.host == HostTimeSource::overheads || o.assumptions.host_factor != 1;
             },
             detail::check_host, detail::change_host_times},
    StepEdit{"barrier", "let all ranks begin the step at one moment", EditStage::ranks, false,
             [](const Options& o) { return o.barrier; }, lacks_nothing, detail::start_together},
    StepEdit{"median-ranks", "make every rank as fast as the median rank", EditStage::ranks, false,
             [](const Options& o) { return o.median_ranks; }, lacks_nothing, detail::level_ranks},
};
static_assert(std::is_sorted(kEdits.begin(), kEdits.end(),
                             [](const StepEdit& a, const StepEdit& b) { return a.stage < b.stage; }),
              "an edit finds what the earlier stages leave");

}  // namespace

EditedStep::EditedStep(RecordedProgram program, const TracePredictionOptions& options)
    : recorded(std::move(program)) {
  if (options.platform != nullptr) {
    // What-if factors apply to the predicted platform only, not to the recording machine.
    target = std::make_unique<StepPricer>(*options.platform, options.assumptions);
    pricing.gpus_per_node = options.platform->node.gpus_per_node;
  }
  if (options.recorded_on != nullptr) {
    origin = std::make_unique<StepPricer>(*options.recorded_on, StepAssumptions{});
    pricing.origin_gpus_per_node = options.recorded_on->node.gpus_per_node;
  }
  pricing.kernels = options.kernels;
  pricing.target = target.get();
  pricing.origin = origin.get();
  pricing.assumptions = options.assumptions;
  pricing.price_unrecorded = options.price_unrecorded && target != nullptr;
}

std::span<const StepEdit> step_edits() { return kEdits; }

bool changes_gpu_times(const TracePredictionOptions& options) {
  return std::any_of(kEdits.begin(), kEdits.end(),
                     [&](const StepEdit& edit) { return edit.changes_gpu_times && edit.asked(options); });
}

Result<EditedStep> edited_step(RecordedProgram recorded, const TracePredictionOptions& options) {
  // All checks run before the first edit, so that a missing input is reported early.
  for (const StepEdit& edit : kEdits)
    if (edit.asked(options)) STEPCAST_TRY(edit.check(options, recorded));
  EditedStep step{std::move(recorded), options};
  for (const StepEdit& edit : kEdits)
    if (edit.asked(options)) STEPCAST_TRY(edit.apply(options, step));
  return step;
}

}  // namespace stepcast
