#include "stepcast/retrace/prediction_band.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast {
namespace {

// What a replay of a record with its own times misses (docs/accuracy.md): the least half-width of any band.
constexpr double kStructureBand = 0.01;
// Half-width of the band of host time that was not recorded on the machine that is predicted: assumed. The
// first where means of the same operators stand in for it, the second where the host is another one that
// counts as equally fast.
constexpr double kOverheadBand = 0.08, kOtherHostBand = 0.20;

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
    if (detail::is_kernel_or_copy(block.tasks()[t].kind) && !left_over[t])
      of_lane[block.lane_codes()[t]] += duration_us[t];
  }
  if (of_lane.empty()) return {};
  const auto busiest = std::max_element(of_lane.begin(), of_lane.end());
  return {static_cast<std::uint16_t>(busiest - of_lane.begin()), *busiest};
}

// The longest step with every piece of host time scaled.
Result<double> step_with_host(const RecordedProgram& recorded, Costs costs, double factor) {
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const Block& block = recorded.program.block(detail::block_id(recorded, c));
    const std::span<double> us = costs.duration_us(detail::block_id(recorded, c));
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (recorded.program.works.host(block.tasks()[t].work) != nullptr) us[t] *= factor;
    }
  }
  STEPCAST_ASSIGN(const ReplayScores scores, score_replay(recorded, costs));
  return repeated_step(recorded, costs, scores.longest_step_us()).us;
}

// Host times of one Costs in another one.
void copy_host(const RecordedProgram& recorded, const Costs& from, Costs& to) {
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const BlockId id = detail::block_id(recorded, c);
    const Block& block = recorded.program.block(id);
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (!detail::is_kernel_or_copy(block.tasks()[t].kind) &&
          block.tasks()[t].kind != TaskKind::collective) {
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
  if (changes_gpu_times(options)) source = weaker(source, EstimateSource::fitted);
  if (options.host == HostTimeSource::overheads) source = weaker(source, EstimateSource::fitted);
  return source;
}

// How far the step may be shorter and longer than stated, as shares of it.
struct Band {
  double down = kStructureBand, up = kStructureBand;

  // One more cause, independent of the others.
  void add(double step_us, double shortest_us, double longest_us) {
    if (!(step_us > 0)) return;
    down = std::hypot(down, shortest_us / step_us - 1);
    up = std::hypot(up, longest_us / step_us - 1);
  }
};

// The step with all GPU work at one end of its band.
Result<double> step_with_gpu_times(const EditedStep& step, Costs& edge) {
  copy_host(step.recorded, step.prices.costs, edge);
  STEPCAST_ASSIGN(const ReplayScores scores, score_replay(step.recorded, edge));
  return repeated_step(step.recorded, edge, scores.longest_step_us()).us;
}

bool is_other_machine(const TracePredictionOptions& options) {
  return options.platform != nullptr && options.recorded_on != nullptr &&
         options.platform->device.name != options.recorded_on->device.name;
}

}  // namespace

RepeatedStep repeated_step(const RecordedProgram& recorded, const Costs& costs, double longest_us) {
  RepeatedStep step{.us = longest_us};
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    if (recorded.facts[c].step_number < 0) continue;
    const Block& block = recorded.program.block(detail::block_id(recorded, c));
    const BusyStream busy = busiest_stream(block, costs.duration_us(detail::block_id(recorded, c)));
    if (busy.us <= busiest_stream(block, block.duration_us()).us || busy.us <= step.us) continue;
    step = {busy.us, RankClassId{c}, {}};
    const std::vector<bool> left_over = left_over_tasks(block);
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (block.lane_codes()[t] == busy.lane && detail::is_kernel_or_copy(block.tasks()[t].kind) &&
          !left_over[t])
        step.tasks.push_back(t);
    }
  }
  return step;
}

Result<Estimate> estimate_step(EditedStep& step, const ReplayScores& scores,
                               const TracePredictionOptions& options, std::vector<std::string>& notes) {
  const double alone_us = scores.longest_step_us();
  const double step_us = repeated_step(step.recorded, step.prices.costs, alone_us).us;
  if (step_us > alone_us) {
    notes.push_back(
        fmt::format("a step alone ends on the CPU after {:.1f} ms; repeated, it takes the {:.1f} ms that its "
                    "GPU work takes",
                    alone_us / 1e3, step_us / 1e3));
  }
  Band band;
  const bool as_recorded = options.kernels == KernelTimeSource::recorded && !step.pricing.price_unrecorded &&
                           !changes_gpu_times(options);
  if (!as_recorded) {
    STEPCAST_ASSIGN(const double fast_us, step_with_gpu_times(step, step.prices.low));
    STEPCAST_ASSIGN(const double slow_us, step_with_gpu_times(step, step.prices.high));
    band.add(step_us, fast_us, slow_us);
  }
  const bool other_machine = is_other_machine(options);
  const double host_band = options.host == HostTimeSource::overheads ? kOverheadBand
                           : other_machine                           ? kOtherHostBand
                                                                     : 0;
  if (host_band > 0) {
    STEPCAST_ASSIGN(const double fast_us, step_with_host(step.recorded, step.prices.costs, 1 - host_band));
    STEPCAST_ASSIGN(const double slow_us, step_with_host(step.recorded, step.prices.costs, 1 + host_band));
    band.add(step_us, fast_us, slow_us);
  }
  if (other_machine && options.host == HostTimeSource::recorded) {
    notes.push_back(fmt::format(
        "the host of {} counts as fast as the one that recorded; say otherwise with --what-if host=FACTORx",
        options.platform->name));
  }
  return Estimate{Microseconds{step_us}, Microseconds{step_us * (1 - std::min(band.down, 0.95))},
                  Microseconds{step_us * (1 + band.up)}, weakest(step.prices.coverage, options)};
}

}  // namespace stepcast
