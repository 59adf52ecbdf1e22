#include "stepcast/retrace/prediction_band.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/duration_text.h"
#include "stepcast/predict/step_orbit.h"
#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast {
namespace {

// Minimum half-width of any band: what a replay with recorded times misses (docs/accuracy.md).
constexpr double kStructureBand = 0.01;
// Half-widths of the band of host times not recorded on the predicted machine. The first applies to overheads learned from one
// job, which do not show the variation between jobs: 80 % of 72 pairs of jobs on an H100 and an H200 are within (`validate
// overheads`; 0.32 for the H200 alone). The second applies if another host is assumed equally fast: assumed.
constexpr double kOneJobBand = 0.56, kOtherHostBand = 0.20;
// The same if the means come from other programs. In 80 % of 57 host-bound steps of an H100 and an H200, dry runs with the host
// times of the other machine err by at most this share (`validate dry_run`).
constexpr double kOtherProgramBand = 0.21;

// Ratio of host-bound step times without and with the profiler: the minimum of six captures of an H100 and an H200 that were
// also measured without one. The range is 0.21 to 0.79 and varies more between jobs than between machines.
constexpr double kLeastOfProfiled = 0.21;
// A step is host-bound if such a host shortens it by at least this share.
constexpr double kHostDecides = 0.05;

// The step time in us with all host times multiplied by `factor`.
Result<double> step_with_host(const RecordedProgram& recorded, StepOrbit& orbit, Costs costs, double factor) {
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const Block& block = recorded.program.block(detail::block_id(recorded, c));
    const std::span<double> us = costs.duration_us(detail::block_id(recorded, c));
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (recorded.program.works.host(block.tasks()[t].work) != nullptr) us[t] *= factor;
    }
  }
  STEPCAST_ASSIGN(const StepPeriod period, orbit.period(costs));
  return period.us;
}

// Copies host times and delays from one Costs to another.
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

// The weakest source of the prediction: a measurement only if the record itself is asked for and its replay agrees.
EstimateSource weakest(const Coverage& coverage, const RecordedBase& base,
                       const TracePredictionOptions& options) {
  const bool measured =
      options.kernels == KernelTimeSource::recorded || coverage.gpu_share(EstimateSource::measured) > 0.5;
  EstimateSource source = measured ? EstimateSource::measured : EstimateSource::fitted;
  if (coverage.gpu_share(EstimateSource::fitted) > 0.5) source = EstimateSource::fitted;
  if (coverage.gpu_share(EstimateSource::analytic) > 0.5) source = EstimateSource::analytic;
  if (coverage.gpu_share(EstimateSource::assumed) > 0.5) source = EstimateSource::assumed;
  if (changes_gpu_times(options)) source = weaker(source, EstimateSource::fitted);
  if (options.host == HostTimeSource::overheads) source = weaker(source, EstimateSource::fitted);
  // A hypothetical step was not measured.
  if (source == EstimateSource::measured && rests_on_what_if(options)) return EstimateSource::assumed;
  // Recorded durations on rebuilt dependencies are a measurement only of the recorded step, and only if both agree.
  const bool is_the_record = asks_as_recorded(options) && base.measured_us > 0 &&
                             base.band() <= kStructureBand && base.repaired <= kMuchRepaired;
  return is_the_record ? source : weaker(source, EstimateSource::fitted);
}

// How much shorter and longer the step may be, as shares of the step time.
struct Band {
  double down = kStructureBand, up = kStructureBand;

  // Adds a cause that is independent of the others, by the root of the sum of squares.
  void add(double step_us, double shortest_us, double longest_us) {
    if (!(step_us > 0)) return;
    down = std::hypot(down, shortest_us / step_us - 1);
    up = std::hypot(up, longest_us / step_us - 1);
  }
};

// The step time in us with all GPU work at one edge of its band.
Result<double> step_with_gpu_times(const EditedStep& step, StepOrbit& orbit, Costs& edge) {
  copy_host(step.recorded, step.prices.costs, edge);
  STEPCAST_ASSIGN(const StepPeriod period, orbit.period(edge));
  return period.us;
}

// True if the predicted GPU differs from the one that represents the recording machine.
bool is_other_machine(const TracePredictionOptions& options) {
  return options.platform != nullptr && options.recorded_on != nullptr &&
         options.platform->device.name != options.recorded_on->device.name;
}

// Smaller relative differences between the single step and the step in a sequence are not reported.
constexpr double kShownChange = 1e-3;

// Explains why a step in a sequence takes another time than a single one.
std::string repeated_note(const RecordedProgram& recorded, const StepPeriod& period) {
  std::string note =
      fmt::format("a single step ends on the CPU after {}; in a sequence of steps each takes {}",
                  duration_text(period.alone_us * 1e-3, 4), duration_text(period.us * 1e-3, 4));
  if (period.us < period.alone_us) return note + ", because its data loader continues meanwhile";
  if (!period.bound_by_stream()) return note + ", because it waits for work or data of the previous step";
  const Lane& lane = recorded.program.rank_class(period.rank_class).lanes[period.lane];
  return note + fmt::format(", the time of the work of {} of rank {}", lane.name,
                            recorded.facts[period.rank_class.index()].rank);
}

}  // namespace

Result<RepeatedStep> estimate_step(EditedStep& step, const ReplayScores& scores, const RecordedBase& base,
                                   const TracePredictionOptions& options, std::vector<std::string>& notes) {
  StepOrbit orbit{step.recorded};
  STEPCAST_ASSIGN(StepPeriod period, orbit.period(step.prices.costs, scores.timeline));
  const double step_us = period.us;
  RepeatedStep repeated;
  if (std::abs(period.us - period.alone_us) > kShownChange * period.alone_us) {
    notes.push_back(repeated_note(step.recorded, period));
    repeated.settled = std::move(period.settled);
  }
  Band band;
  band.down = band.up = std::hypot(kStructureBand, base.band());
  // Recorded GPU times have no band; otherwise simulate the step with all GPU times at p10 and at p90.
  const bool as_recorded = options.kernels == KernelTimeSource::recorded && !step.pricing.price_unrecorded &&
                           !changes_gpu_times(options);
  if (!as_recorded) {
    STEPCAST_ASSIGN(const double fast_us, step_with_gpu_times(step, orbit, step.prices.low));
    STEPCAST_ASSIGN(const double slow_us, step_with_gpu_times(step, orbit, step.prices.high));
    band.add(step_us, step_us + step.prices.together_low * (fast_us - step_us),
             step_us + step.prices.together_high * (slow_us - step_us));
  }
  const bool other_machine = is_other_machine(options);
  const bool other_program = step.recorded.is_dry_run;
  // Host times of another program, machine or job have a band; recorded ones on the same machine have none.
  const double host_band = other_program                               ? kOtherProgramBand
                           : options.host == HostTimeSource::overheads ? step.host_band.value_or(kOneJobBand)
                           : other_machine                             ? kOtherHostBand
                                                                       : 0;
  if (host_band > 0) {
    STEPCAST_ASSIGN(const double fast_us,
                    step_with_host(step.recorded, orbit, step.prices.costs, 1 / (1 + host_band)));
    STEPCAST_ASSIGN(const double slow_us,
                    step_with_host(step.recorded, orbit, step.prices.costs, 1 + host_band));
    band.add(step_us, fast_us, slow_us);
  }
  if (options.host == HostTimeSource::recorded) {
    const bool asks_record = asks_as_recorded(options);
    STEPCAST_ASSIGN(const double shortest_us,
                    step_with_host(step.recorded, orbit, step.prices.costs, kLeastOfProfiled));
    if (shortest_us < (1 - kHostDecides) * step_us) {
      if (!asks_record) band.add(step_us, shortest_us, step_us);
      notes.push_back(fmt::format(
          "profilers slow the host, which determines {:.0f} % of this step. Without a profiler it may take "
          "only {}{}. For host times from elsewhere: --host overheads",
          100 * (1 - shortest_us / step_us), duration_text(shortest_us * 1e-3),
          asks_record ? "" : ", included in p10"));
    }
  }
  if (other_machine && options.host == HostTimeSource::recorded) {
    notes.push_back(fmt::format(
        "the host of {} is assumed to be as fast as the recorded one. Change it with --what-if host=FACTORx",
        options.platform->name));
  }
  repeated.time = {Microseconds{step_us}, Microseconds{step_us * (1 - std::min(band.down, 0.95))},
                   Microseconds{step_us * (1 + band.up)}, weakest(step.prices.coverage, base, options)};
  return repeated;
}

}  // namespace stepcast
