#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/retrace/batch_pair.h"
#include "stepcast/retrace/detail/edits.h"
#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast::detail {
namespace {

// Copies the times of the tasks of rank class `c` selected by `which` from one set of prices to another.
template <class Which>
void take_times(const RecordedProgram& recorded, std::size_t c, const RecordedPrices& from,
                RecordedPrices& to, Which which) {
  const BlockId id = block_id(recorded, c);
  const Block& block = recorded.program.block(id);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (!which(block.tasks()[t])) continue;
    to.costs.duration_us(id)[t] = from.costs.duration_us(id)[t];
    to.low.duration_us(id)[t] = from.low.duration_us(id)[t];
    to.high.duration_us(id)[t] = from.high.duration_us(id)[t];
  }
}

// Prices the whole step on `platform`; recorded times become ratios, because another machine computes.
Result<RecordedPrices> priced_on(const EditedStep& step, const Platform& platform) {
  StepPricer pricer{platform, step.pricing.assumptions};
  RecordedPricing other = step.pricing;
  other.target = &pricer;
  other.gpus_per_node = platform.node.gpus_per_node;
  // Recorded times do not apply to another platform.
  if (other.kernels == KernelTimeSource::recorded) other.kernels = KernelTimeSource::ratio;
  return price_recorded(step.recorded, other);
}

// Position in recorded.facts of a rank; end() if it was not recorded.
auto rank_class_of(const RecordedProgram& recorded, std::int32_t rank) {
  return std::find_if(recorded.facts.begin(), recorded.facts.end(),
                      [&](const RecordedStepFacts& facts) { return facts.rank == rank; });
}

}  // namespace

Status price_gpu_work(const TracePredictionOptions& /*options*/, EditedStep& step) {
  STEPCAST_ASSIGN(step.prices, price_recorded(step.recorded, step.pricing));
  return Ok{};
}

Status check_models(const TracePredictionOptions& options, const RecordedProgram& /*recorded*/) {
  if (options.recorded_on != nullptr) return Ok{};
  return Error{"no platform represents the recording machine"}.advice("name one with --recorded-on");
}

Status check_rank_platforms(const TracePredictionOptions& options, const RecordedProgram& recorded) {
  STEPCAST_TRY(check_models(options, recorded));
  for (const RankPlatform& one : options.rank_platforms) {
    if (rank_class_of(recorded, one.rank) != recorded.facts.end()) continue;
    return Error::at("", "--rank-platform")
        .found(fmt::format("rank {}", one.rank))
        .expected("a rank of these traces");
  }
  return Ok{};
}

Status move_ranks(const TracePredictionOptions& options, EditedStep& step) {
  for (const RankPlatform& one : options.rank_platforms) {
    const auto found = rank_class_of(step.recorded, one.rank);
    STEPCAST_ASSIGN(const RecordedPrices on_it, priced_on(step, *one.platform));
    take_times(step.recorded, static_cast<std::size_t>(found - step.recorded.facts.begin()), on_it,
               step.prices, is_computation);
    step.notes.push_back(
        fmt::format("rank {} computes on {} ({}); its host and links are those of the other ranks", one.rank,
                    one.platform->device.name, one.platform->name));
  }
  return Ok{};
}

Status change_links(const TracePredictionOptions& options, EditedStep& step) {
  STEPCAST_ASSIGN(const RecordedPrices on_it, priced_on(step, *options.links));
  for (std::size_t c = 0; c < step.recorded.facts.size(); ++c)
    take_times(step.recorded, c, on_it, step.prices, is_transfer);
  step.notes.push_back(fmt::format("transfers use the links of {} ({} inside its nodes of {})",
                                   options.links->name, to_string(options.links->node.intra.kind),
                                   options.links->node.gpus_per_node));
  return Ok{};
}

// Scales every time by the ratio of the interpolated time to the recorded one.
Status scale_between_batches(const TracePredictionOptions& options, EditedStep& step) {
  for (std::size_t c = 0; c < step.recorded.facts.size(); ++c) {
    const BlockId id = block_id(step.recorded, c);
    const std::span<const double> was = step.recorded.program.block(id).duration_us(),
                                  now = options.between_batches->duration_us(id);
    for (Costs* costs : {&step.prices.costs, &step.prices.low, &step.prices.high}) {
      const std::span<double> us = costs->duration_us(id);
      for (std::size_t t = 0; t < us.size(); ++t) {
        if (was[t] > 0) us[t] *= now[t] / was[t];
      }
    }
  }
  const BatchChange& batch = *options.change.batch;
  step.notes.push_back(batch_pair_note(batch.wanted, batch.recorded, options.second_batch));
  return Ok{};
}

WorkChange change_by_models(const TracePredictionOptions& options) {
  WorkChange change = options.change;
  if (options.between_batches != nullptr) change.batch.reset();
  return change;
}

Status change_work(const TracePredictionOptions& options, EditedStep& step) {
  STEPCAST_ASSIGN(const ChangedWork changed, changed_work(step.recorded, change_by_models(options)));
  StepPricer& machine = step.target != nullptr ? *step.target : *step.origin;
  // Transfers use other links if they were requested.
  const Platform& linked = options.links != nullptr ? *options.links : machine.platform();
  STEPCAST_TRY(changed.apply(step.recorded, machine, linked.node.gpus_per_node,
                             step.pricing.origin_gpus_per_node, step.prices));
  step.notes.insert(step.notes.end(), changed.notes().begin(), changed.notes().end());
  return Ok{};
}

Status stretch_delays(const TracePredictionOptions& /*options*/, EditedStep& step) {
  for (Costs* costs : {&step.prices.costs, &step.prices.low, &step.prices.high})
    costs->rescale_shared_delays(step.recorded.program);
  return Ok{};
}

}  // namespace stepcast::detail
