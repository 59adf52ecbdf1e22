#include "stepcast/predict/trace_prediction.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/predict/batch_pair.h"
#include "stepcast/predict/detail/block_edit.h"
#include "stepcast/predict/gradient_buckets.h"
#include "stepcast/predict/trace_changes.h"

namespace stepcast {
namespace {

// What a replay of a record with its own times misses (docs/accuracy.md): the least half-width of any band.
constexpr double kStructureBand = 0.01;
// Half-width of the band of host time that was not recorded on the machine that is predicted: assumed. The
// first where means of the same operators stand in for it, the second where the host is another one that
// counts as equally fast.
constexpr double kOverheadBand = 0.08, kOtherHostBand = 0.20;

BlockId block_id(const RecordedProgram& recorded, std::size_t c) {
  return recorded.program.rank_class(RankClassId{c}).instances.front().block;
}

bool is_computation(const TaskInfo& task) {
  return task.kind == TaskKind::kernel || task.kind == TaskKind::memcpy || task.kind == TaskKind::memset;
}

double longest_step(const ReplayScores& scores) {
  double us = 0;
  for (const ReplayedRank& rank : scores.ranks) us = std::max(us, rank.step.simulated_us);
  return us;
}

// The stream of a rank whose work takes longest one after the other: without collectives, which wait for other ranks,
// and without what the step before had left.
struct BusyStream {
  std::uint16_t lane = 0;
  double us = 0;
};
BusyStream busiest_stream(const Block& block, std::span<const double> duration_us) {
  std::vector<double> of_lane(block.lanes().size(), 0);
  const std::vector<bool> left_over = left_over_tasks(block);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (is_computation(block.tasks()[t]) && !left_over[t]) of_lane[block.lane_codes()[t]] += duration_us[t];
  }
  if (of_lane.empty()) return {};
  const auto busiest = std::max_element(of_lane.begin(), of_lane.end());
  return {static_cast<std::uint16_t>(busiest - of_lane.begin()), *busiest};
}

// Brings computation and host time of every rank to the median of all, and their starts together.
void level_ranks(RecordedProgram& recorded, Costs& costs) {
  const std::size_t n = recorded.facts.size();
  std::vector<double> computation(n, 0), host(n, 0);
  for (std::size_t c = 0; c < n; ++c) {
    const Block& block = recorded.program.block(block_id(recorded, c));
    const std::span<const double> us = costs.duration_us(block_id(recorded, c));
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (is_computation(block.tasks()[t])) computation[c] += us[t];
      if (recorded.program.works.host(block.tasks()[t].work) != nullptr) host[c] += us[t];
    }
  }
  const double all_computation = median(computation), all_host = median(host);
  for (std::size_t c = 0; c < n; ++c) {
    const Block& block = recorded.program.block(block_id(recorded, c));
    const std::span<double> us = costs.duration_us(block_id(recorded, c));
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (is_computation(block.tasks()[t]) && computation[c] > 0) us[t] *= all_computation / computation[c];
      if (recorded.program.works.host(block.tasks()[t].work) != nullptr && host[c] > 0) {
        us[t] *= all_host / host[c];
      }
    }
  }
  const double start = median(recorded.start_offset_us);
  for (std::size_t c = 0; c < n; ++c) {
    const double moved = start - recorded.start_offset_us[c];
    recorded.start_offset_us[c] += moved;
    recorded.facts[c].step_us.start_us += moved;
    recorded.facts[c].step_us.end_us += moved;
    recorded.facts[c].gpu_window_end_us += moved;
    for (Interval& task : recorded.measured[c]) {
      task.start_us += moved;
      task.end_us += moved;
    }
  }
}

// The longest step with every piece of host time scaled.
Result<double> step_with_host(const RecordedProgram& recorded, Costs costs, double factor) {
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const Block& block = recorded.program.block(block_id(recorded, c));
    const std::span<double> us = costs.duration_us(block_id(recorded, c));
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (recorded.program.works.host(block.tasks()[t].work) != nullptr) us[t] *= factor;
    }
  }
  STEPCAST_ASSIGN(const ReplayScores scores, score_replay(recorded, costs));
  return repeated_step(recorded, costs, longest_step(scores)).us;
}

// Host times of one Costs in another one.
void copy_host(const RecordedProgram& recorded, const Costs& from, Costs& to) {
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const BlockId id = block_id(recorded, c);
    const Block& block = recorded.program.block(id);
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (!is_computation(block.tasks()[t]) && block.tasks()[t].kind != TaskKind::collective) {
        to.duration_us(id)[t] = from.duration_us(id)[t];
      }
    }
    std::copy(from.delay_us(id).begin(), from.delay_us(id).end(), to.delay_us(id).begin());
  }
}

EstimateSource weakest(const Coverage& coverage, const TracePredictionOptions& options) {
  const bool measured =
      options.kernels == KernelTimeSource::recorded || coverage.gpu_share(EstimateSource::measured) > 0.5;
  EstimateSource source = measured ? EstimateSource::measured : EstimateSource::fitted;
  if (coverage.gpu_share(EstimateSource::fitted) > 0.5) source = EstimateSource::fitted;
  if (coverage.gpu_share(EstimateSource::analytic) > 0.5) source = EstimateSource::analytic;
  if (coverage.gpu_share(EstimateSource::assumed) > 0.5) source = EstimateSource::assumed;
  if (changes_prices(options)) source = weaker(source, EstimateSource::fitted);
  if (options.host == HostTimeSource::overheads) source = weaker(source, EstimateSource::fitted);
  return source;
}

void name_unknown_ops(const AppliedHostTimes& applied, std::vector<std::string>& notes) {
  const double all = applied.own_us + applied.default_us;
  if (all <= 0 || applied.default_us < 0.01 * all) return;
  std::string names;
  std::size_t shown = 0;
  for (const auto& [op, n] : applied.unknown_ops) {
    if (shown++ == 3) break;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", op);
  }
  notes.push_back(fmt::format(
      "{:.0f} % of the host time rests on means of other operators: {} of them were not learned ({}{})",
      100 * applied.default_us / all, applied.unknown_ops.size(), names,
      applied.unknown_ops.size() > 3 ? ", ..." : ""));
}

}  // namespace

RepeatedStep repeated_step(const RecordedProgram& recorded, const Costs& costs, double longest_us) {
  RepeatedStep step{.us = longest_us};
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    if (recorded.facts[c].step_number < 0) continue;
    const Block& block = recorded.program.block(block_id(recorded, c));
    const BusyStream busy = busiest_stream(block, costs.duration_us(block_id(recorded, c)));
    if (busy.us <= busiest_stream(block, block.duration_us()).us || busy.us <= step.us) continue;
    step = {busy.us, RankClassId{c}, {}};
    const std::vector<bool> left_over = left_over_tasks(block);
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (block.lane_codes()[t] == busy.lane && is_computation(block.tasks()[t]) && !left_over[t])
        step.tasks.push_back(t);
    }
  }
  return step;
}

std::string_view to_string(HostTimeSource ground) {
  return ground == HostTimeSource::recorded ? "recorded" : "overheads";
}

Result<TracePrediction> predict_recorded(RecordedProgram program, const TracePredictionOptions& options,
                                         const Costs* at_batch) {
  TracePrediction result;
  std::unique_ptr<StepPricer> target, origin;
  if (options.platform != nullptr)
    target = std::make_unique<StepPricer>(*options.platform, options.assumptions);
  if (options.recorded_on != nullptr)
    origin = std::make_unique<StepPricer>(*options.recorded_on, StepAssumptions{});
  if (options.bucket_mb > 0) {
    const BucketPricing machine{origin.get(),
                                options.recorded_on != nullptr ? options.recorded_on->node.gpus_per_node : 0};
    STEPCAST_ASSIGN(program, with_bucket_size(std::move(program), options.bucket_mb, machine, result.notes));
  }
  if (options.recompute != RecomputedPart::none) {
    STEPCAST_ASSIGN(AddedRecomputation added, with_recomputation(std::move(program), options.recompute));
    program = std::move(added.program);
    result.recomputed = std::move(added.blocks);
    result.notes.push_back(std::move(added.note));
  }
  { STEPCAST_ASSIGN(result.recorded, with_overlap(std::move(program), options.overlap)); }
  RecordedProgram& recorded = result.recorded;
  RecordedPricing how;
  how.kernels = options.kernels;
  how.target = target.get();
  how.origin = origin.get();
  how.assumptions = options.assumptions;
  how.price_unrecorded = options.price_unrecorded && target != nullptr;
  if (options.platform != nullptr) how.gpus_per_node = options.platform->node.gpus_per_node;
  if (options.recorded_on != nullptr) how.origin_gpus_per_node = options.recorded_on->node.gpus_per_node;
  STEPCAST_ASSIGN(RecordedPrices prices, price_recorded(recorded, how));
  STEPCAST_TRY(apply_trace_changes(recorded, options, how, at_batch, prices, result.notes));
  if (options.overlap != OverlapChange::as_recorded) {
    result.notes.emplace_back(
        options.overlap == OverlapChange::none
            ? "no computation overlaps a transfer of its rank"
            : "nothing but other transfers and the end of the step waits for a transfer");
  }
  result.costs = std::move(prices.costs);
  result.coverage = std::move(prices.coverage);

  const double host_factor = options.assumptions.host_factor;
  if (options.host == HostTimeSource::overheads) {
    if (options.platform == nullptr) {
      return Error{"host overheads are those of a platform, and none is named"}.advice(
          "name one that has them (--platform), or keep the recorded host time");
    }
    STEPCAST_ASSIGN(const HostOverheads overheads, HostOverheads::of(*options.platform));
    if (overheads.empty()) {
      return Error{fmt::format("platform {} has no host overheads", options.platform->name)}.advice(
          "learn them with `stepcast calibrate overheads TRACES --platform ...`, or keep the recorded host "
          "time");
    }
    AppliedHostTimes all;
    for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
      const AppliedHostTimes applied =
          apply_host_overheads(overheads, recorded, RankClassId{c}, result.costs, host_factor);
      all.own_us += applied.own_us;
      all.default_us += applied.default_us;
      for (const auto& [op, n] : applied.unknown_ops) all.unknown_ops[op] += n;
    }
    name_unknown_ops(all, result.notes);
  } else if (host_factor != 1) {
    for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
      scale_host_time(recorded, RankClassId{c}, result.costs, host_factor);
    }
  }
  if (options.median_ranks) {
    level_ranks(recorded, result.costs);
    result.notes.emplace_back(
        "every rank computes and launches as fast as the median rank, and starts with it");
  }
  { STEPCAST_ASSIGN(static_cast<ReplayScores&>(result), score_replay(recorded, result.costs)); }

  // The band: all kernels at their fast and slow end, the host at its own, and what the structure misses.
  const double alone = longest_step(result);
  const double step = repeated_step(recorded, result.costs, alone).us;
  if (step > alone) {
    result.notes.push_back(
        fmt::format("a step alone ends on the CPU after {:.1f} ms; repeated, it takes the {:.1f} ms that its "
                    "GPU work takes",
                    alone / 1e3, step / 1e3));
  }
  double down = kStructureBand, up = kStructureBand;
  for (Costs* edge : {&prices.low, &prices.high}) {
    if (options.kernels == KernelTimeSource::recorded && !how.price_unrecorded && !changes_prices(options))
      break;
    copy_host(recorded, result.costs, *edge);
    STEPCAST_ASSIGN(const ReplayScores scores, score_replay(recorded, *edge));
    double& side = edge == &prices.low ? down : up;
    const double at_edge = repeated_step(recorded, *edge, longest_step(scores)).us;
    side = std::hypot(side, step > 0 ? at_edge / step - 1 : 0);
  }
  const bool other_machine = options.platform != nullptr && options.recorded_on != nullptr &&
                             options.platform->device.name != options.recorded_on->device.name;
  const double host_band = options.host == HostTimeSource::overheads ? kOverheadBand
                           : other_machine                           ? kOtherHostBand
                                                                     : 0;
  if (host_band > 0) {
    STEPCAST_ASSIGN(const double fast, step_with_host(recorded, result.costs, 1 - host_band));
    STEPCAST_ASSIGN(const double slow, step_with_host(recorded, result.costs, 1 + host_band));
    down = std::hypot(down, step > 0 ? 1 - fast / step : 0);
    up = std::hypot(up, step > 0 ? slow / step - 1 : 0);
  }
  if (other_machine && options.host == HostTimeSource::recorded) {
    result.notes.push_back(fmt::format(
        "the host of {} counts as fast as the one that recorded; say otherwise with --what-if host=FACTORx",
        options.platform->name));
  }
  result.step = {Microseconds{step}, Microseconds{step * (1 - std::min(down, 0.95))},
                 Microseconds{step * (1 + up)}, weakest(result.coverage, options)};
  return result;
}

Result<TracePrediction> predict_trace(std::span<const RecordedInput> inputs,
                                      const TracePredictionOptions& options) {
  STEPCAST_ASSIGN(RecordedProgram recorded, rebuild_program(inputs, options.rebuild));
  if (options.second_inputs.empty()) return predict_recorded(std::move(recorded), options);
  if (!options.change.batch) {
    return Error{"recordings of two batches say how a step grows with the batch, and no batch is asked for"}
        .advice("ask for one with --batch, or leave the second recording out");
  }
  STEPCAST_ASSIGN(RecordedProgram second, rebuild_program(options.second_inputs, options.rebuild));
  const std::int64_t wanted = options.change.batch->wanted;
  const BatchPair pair{&recorded, options.change.batch->recorded, &second, options.second_batch};
  STEPCAST_ASSIGN(const Costs at_batch, between_batches(pair, wanted));
  const bool first = &pair.nearer(wanted) == &recorded;
  RecordedProgram structure = std::move(first ? recorded : second);
  const bool changes_structure = options.overlap != OverlapChange::as_recorded || options.bucket_mb > 0 ||
                                 options.recompute != RecomputedPart::none;
  if (!changes_structure) return predict_recorded(std::move(structure), options, &at_batch);
  // What runs twice or in other buckets does so at the wanted batch.
  STEPCAST_ASSIGN(structure, detail::with_durations(std::move(structure), at_batch));
  TracePredictionOptions at_its_batch = options;
  at_its_batch.change.batch.reset();
  STEPCAST_ASSIGN(TracePrediction result, predict_recorded(std::move(structure), at_its_batch));
  result.notes.push_back(batch_pair_note(wanted, pair.first_batch, pair.second_batch));
  result.step.source = weaker(result.step.source, EstimateSource::fitted);
  return result;
}

Result<TracePrediction> predict_untimed(std::span<const UntimedRank> ranks,
                                        const TracePredictionOptions& options) {
  if (options.platform == nullptr) {
    return Error{"execution traces hold no times"}.advice(
        "name a platform to take them from, or give the profiler traces of the same ranks, too");
  }
  STEPCAST_ASSIGN(const HostOverheads overheads, HostOverheads::of(*options.platform));
  STEPCAST_ASSIGN(RecordedProgram untimed, untimed_program(ranks, overheads.launch_table()));
  TracePredictionOptions from_models = options;
  from_models.kernels = KernelTimeSource::models;
  from_models.host = HostTimeSource::overheads;
  STEPCAST_ASSIGN(TracePrediction result, predict_recorded(std::move(untimed), from_models));
  result.notes.emplace_back(
      "no profiler trace: host times are means of the platform's overheads, kernel times those of its "
      "models");
  return result;
}

}  // namespace stepcast
