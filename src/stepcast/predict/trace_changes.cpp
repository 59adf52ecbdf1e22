#include "stepcast/predict/trace_changes.h"

#include <algorithm>

#include <fmt/format.h>

#include "stepcast/predict/batch_pair.h"
#include "stepcast/predict/trace_prediction.h"

namespace stepcast {
namespace {

BlockId block_id(const RecordedProgram& recorded, std::size_t c) {
  return recorded.program.rank_class(RankClassId{c}).instances.front().block;
}

bool is_transfer(const TaskInfo& task) {
  return task.kind == TaskKind::collective || task.kernel_class == KernelClass::communication;
}
bool is_computation(const TaskInfo& task) {
  return !is_transfer(task) &&
         (task.kind == TaskKind::kernel || task.kind == TaskKind::memcpy || task.kind == TaskKind::memset);
}

// Takes the times of some tasks of a rank from other prices.
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

// The step priced on another platform altogether.
Result<RecordedPrices> priced_on(const RecordedProgram& recorded, const Platform& platform,
                                 const TracePredictionOptions& options, const RecordedPricing& how) {
  StepPricer pricer{platform, options.assumptions};
  RecordedPricing other = how;
  other.target = &pricer;
  other.gpus_per_node = platform.node.gpus_per_node;
  if (other.kernels == KernelTimeSource::recorded) other.kernels = KernelTimeSource::ratio;
  return price_recorded(recorded, other);
}

Status move_ranks(const RecordedProgram& recorded, const TracePredictionOptions& options,
                  const RecordedPricing& how, RecordedPrices& prices, std::vector<std::string>& notes) {
  for (const RankPlatform& one : options.rank_platforms) {
    const auto found = std::find_if(recorded.facts.begin(), recorded.facts.end(),
                                    [&](const RecordedStepFacts& facts) { return facts.rank == one.rank; });
    if (found == recorded.facts.end()) {
      return Error::at("", "--rank-platform")
          .found(fmt::format("rank {}", one.rank))
          .expected("a rank of these traces");
    }
    STEPCAST_ASSIGN(const RecordedPrices on_it, priced_on(recorded, *one.platform, options, how));
    take_times(recorded, static_cast<std::size_t>(found - recorded.facts.begin()), on_it, prices,
               is_computation);
    notes.push_back(fmt::format("rank {} computes on {} ({}); its host and its links are those of the others",
                                one.rank, one.platform->device.name, one.platform->name));
  }
  return Ok{};
}

Status change_links(const RecordedProgram& recorded, const TracePredictionOptions& options,
                    const RecordedPricing& how, RecordedPrices& prices, std::vector<std::string>& notes) {
  STEPCAST_ASSIGN(const RecordedPrices on_it, priced_on(recorded, *options.links, options, how));
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) take_times(recorded, c, on_it, prices, is_transfer);
  notes.push_back(fmt::format("transfers go over the links of {} ({} inside its nodes of {})",
                              options.links->name, to_string(options.links->node.intra.kind),
                              options.links->node.gpus_per_node));
  return Ok{};
}

// Every time as far from the recorded one as `at_batch` is.
void scale_to_batch(const RecordedProgram& recorded, const Costs& at_batch, RecordedPrices& prices) {
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const BlockId id = block_id(recorded, c);
    const std::span<const double> was = recorded.program.block(id).duration_us(),
                                  now = at_batch.duration_us(id);
    for (Costs* costs : {&prices.costs, &prices.low, &prices.high}) {
      const std::span<double> us = costs->duration_us(id);
      for (std::size_t t = 0; t < us.size(); ++t) {
        if (was[t] > 0) us[t] *= now[t] / was[t];
      }
    }
  }
}

}  // namespace

bool changes_prices(const TracePredictionOptions& options) {
  return !options.change.empty() || options.bucket_mb > 0 || options.links != nullptr ||
         !options.rank_platforms.empty();
}

Status apply_trace_changes(const RecordedProgram& recorded, const TracePredictionOptions& options,
                           const RecordedPricing& how, const Costs* at_batch, RecordedPrices& prices,
                           std::vector<std::string>& notes) {
  StepPricer* machine = how.target != nullptr ? how.target : how.origin;
  const bool asks_models = options.links != nullptr || !options.rank_platforms.empty() ||
                           (!options.change.empty() && at_batch == nullptr);
  if (asks_models && (machine == nullptr || how.origin == nullptr)) {
    return Error{"no platform represents the recording machine"}.advice("name one with --recorded-on");
  }
  if (!options.rank_platforms.empty()) STEPCAST_TRY(move_ranks(recorded, options, how, prices, notes));
  if (options.links != nullptr) STEPCAST_TRY(change_links(recorded, options, how, prices, notes));
  WorkChange change = options.change;
  if (at_batch != nullptr) {
    scale_to_batch(recorded, *at_batch, prices);
    notes.push_back(batch_pair_note(change.batch->wanted, change.batch->recorded, options.second_batch));
    change.batch.reset();
  }
  if (!change.empty()) {
    STEPCAST_ASSIGN(const ChangedWork changed, changed_work(recorded, change));
    const std::int64_t on_nodes =
        options.links != nullptr ? options.links->node.gpus_per_node : machine->platform().node.gpus_per_node;
    STEPCAST_TRY(changed.apply(recorded, *machine, on_nodes, how.origin_gpus_per_node, prices));
    notes.insert(notes.end(), changed.notes().begin(), changed.notes().end());
  }
  for (Costs* costs : {&prices.costs, &prices.low, &prices.high})
    costs->rescale_shared_delays(recorded.program);
  return Ok{};
}

}  // namespace stepcast
