// analyze_replay() calls the analyses one after another and collects their results as values. Both forecasts
// use the same program and costs, and differ in the times of the tasks only.
#include "stepcast/analyze/replay_analysis.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/baseline.h"
#include "stepcast/analyze/binding.h"
#include "stepcast/analyze/collective_list.h"

namespace stepcast {
namespace {

// Reports show the operators that differ most between ranks.
constexpr std::size_t kOperatorsCompared = 50;

// The facts about the files of each rank.
std::vector<ReplayInput> inputs_of(const RecordedProgram& recorded) {
  std::vector<ReplayInput> inputs;
  for (std::size_t c = 0; c < recorded.files.size(); ++c) {
    const RecordedFileFacts& files = recorded.files[c];
    ReplayInput input;
    input.rank = recorded.facts[c].rank;
    input.world_size = files.world_size;
    input.profiler = files.profiler;
    if (files.execution_trace) input.execution_trace = *files.execution_trace;
    if (!files.device.empty()) input.device = files.device;
    input.events = files.event_count;
    input.skipped = files.skipped;
    input.special_steps = files.special_steps;
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// Fills in recorded and measured waiting, in the order of the collectives of the simulated forecast.
void add_waits(const Replay& replay, const ReplayTimes& times, ReplayAnalysis& analysis) {
  std::map<CollectiveId, double> longest;
  for (const CollectiveWait& wait : replay.collective_waits) {
    double& of_collective = longest[wait.collective];
    of_collective = std::max(of_collective, wait.recorded_us);
  }
  std::map<CollectiveId, std::vector<double>> measured;
  for (const CollectiveOccurrence& occurrence : collective_occurrences(times.flat, times.measured)) {
    std::vector<double>& waits = measured[occurrence.collective];
    for (const CollectiveArrival& member : occurrence.members) waits.push_back(member.wait_us);
  }
  for (const CollectiveOccurrence& occurrence : collective_occurrences(times.flat, times.simulated)) {
    if (occurrence.members.empty()) continue;  // the forecast does not list them
    analysis.recorded_longest_wait_us.push_back(longest[occurrence.collective]);
    analysis.measured_wait_us.push_back(measured[occurrence.collective]);
  }
}

}  // namespace

CriticalPathOptions to_end_of_step(const RecordedProgram& recorded, const FlatProgram& flat,
                                   std::span<const Interval> steps) {
  CriticalPathOptions to_end;
  double latest = 0;
  for (std::size_t c = 0; c < steps.size(); ++c) {
    const RecordedStepFacts& facts = recorded.facts[c];
    const double end = steps[c].end_us;
    // Only a later end replaces the first one: on a tie the lowest rank class wins.
    if (!facts.step_end_task.valid() || (to_end.to_rank && end <= latest + kTimeToleranceUs)) continue;
    latest = end;
    to_end.to_rank = RankClassId{c};
    to_end.to_task = flat.flat(
        {.rank_class = RankClassId{c}, .rank = 0, .instance = InstanceId{0}, .task = facts.step_end_task});
    to_end.to_start = facts.step_ends_at_start;
  }
  return to_end;
}

const ReplayVariant* ReplayAnalysis::variant(std::string_view name) const {
  for (const ReplayVariant& variant : variants)
    if (variant.name == name) return &variant;
  return nullptr;
}

Result<ReplayTimes> replay_times(const Replay& replay) {
  FlatProgram flat{replay.recorded.program};
  TaskTimes simulated = TaskTimes::referring_to(flat, replay.timeline);
  STEPCAST_ASSIGN(TaskTimes measured, TaskTimes::measured(flat, replay.recorded.measured));
  return ReplayTimes{.flat = std::move(flat),
                     .costs = replay.costs,
                     .simulated = std::move(simulated),
                     .measured = std::move(measured)};
}

namespace {

// The members that are the same in the simulated and in the measured forecast.
Forecast asked_of(const TraceSet& traces, const Replay& replay, const ReplayAnalysisOptions& options) {
  const RecordedProgram& recorded = replay.recorded;
  Forecast asked;
  asked.traces = traces.name;
  if (!recorded.facts.empty() && recorded.facts.front().step_number >= 0)
    asked.step = recorded.facts.front().step_number;
  for (const RecordedFileFacts& file : recorded.files)
    // Ranks may have recorded on different devices; the forecast names the first.
    if (!file.device.empty() && !asked.gpu) asked.gpu = file.device;
  asked.throughput.samples_per_step = options.samples_per_step;
  asked.throughput.tokens_per_step = options.tokens_per_step;
  // All durations of work were recorded.
  asked.coverage.measured = 1;
  return asked;
}

// Fills in both forecasts: of the simulated step and of the measured step.
void add_forecasts(const TraceSet& traces, const Replay& replay, const ReplayTimes& times,
                   std::span<const Interval> simulated_steps, const ReplayAnalysisOptions& options,
                   ReplayAnalysis& analysis) {
  const RecordedProgram& recorded = replay.recorded;
  std::vector<Interval> measured_steps;
  // Measured windows are those of the record, simulated windows those of the replay.
  for (const RecordedStepFacts& facts : recorded.facts) measured_steps.push_back(facts.step_us);
  Forecast simulated = asked_of(traces, replay, options), measured = simulated;
  simulated.kind = "replay";
  simulated.notes = traces.notes;
  simulated.notes.insert(simulated.notes.end(), recorded.notes.begin(), recorded.notes.end());
  measured.kind = "measurement";
  const auto forecast = [&](const TaskTimes& of, std::span<const Interval> steps, Forecast asked) {
    return make_forecast({.flat = times.flat,
                          .costs = times.costs,
                          .times = of,
                          .windows = steps,
                          .rank_start_us = recorded.start_offset_us,
                          .path = to_end_of_step(recorded, times.flat, steps)},
                         std::nullopt, std::move(asked), options.forecast);
  };
  analysis.simulated = forecast(times.simulated, simulated_steps, std::move(simulated));
  analysis.measured = forecast(times.measured, measured_steps, std::move(measured));
}

// Fills in the causes of delay in the simulated step, and the rates that were achieved.
void add_causes(const RecordedProgram& recorded, const ReplayTimes& times, std::span<const Interval> steps,
                const Platform* platform, ReplayAnalysis& analysis) {
  const std::span<const double> starts = recorded.start_offset_us;
  analysis.culprits = find_culprits({.flat = times.flat,
                                     .times = times.simulated,
                                     .costs = times.costs,
                                     .windows = steps,
                                     .rank_start_us = starts,
                                     .tie_us = recorded.clock_uncertainty_us});
  analysis.operators =
      compare_operators(operator_times(times.flat, times.simulated, steps), kOperatorsCompared);
  analysis.awaited = awaited_operators(times.flat, times.simulated, times.costs, steps, starts);
  analysis.groups = traffic_by_group(analysis.simulated, platform);
  // Collectives with members that were not recorded come last, since their times include waiting.
  std::vector<GroupTraffic> absent = traffic_of_absent_ranks(times.flat, times.simulated, steps, platform);
  std::move(absent.begin(), absent.end(), std::back_inserter(analysis.groups));
  analysis.rates = achieved_rates(times.flat, times.simulated, steps, analysis.simulated, platform);
  if (platform != nullptr) analysis.platform = platform->name;
}

// Fills in the published baseline.
void add_baseline(const RecordedProgram& recorded, const Costs& costs, ReplayAnalysis& analysis) {
  const StreamBaseline baseline = stream_baseline(recorded.program, costs);
  analysis.baseline_ms = baseline.time_us * 1e-3;
  if (!baseline.rank_class.valid()) return;
  analysis.baseline_class = baseline.rank_class.index();
  const std::vector<Lane>& lanes = recorded.program.rank_class(baseline.rank_class).lanes;
  if (baseline.lane < lanes.size()) analysis.baseline_stream = lanes[baseline.lane].name;
}

}  // namespace

ReplayAnalysis analyze_replay(const TraceSet& traces, const Replay& replay, const ReplayTimes& times,
                              StepBinding binding, const ReplayAnalysisOptions& options) {
  const RecordedProgram& recorded = replay.recorded;
  std::vector<Interval> steps;
  for (const ReplayedRank& rank : replay.ranks) steps.push_back(rank.simulated_step);
  ReplayAnalysis analysis;
  analysis.inputs = inputs_of(recorded);
  analysis.shape_groups = recorded.shape_groups;
  add_forecasts(traces, replay, times, steps, options, analysis);
  add_causes(recorded, times, steps, options.platform, analysis);
  analysis.binding = binding;
  analysis.ranks = replay.ranks;
  analysis.facts = recorded.facts;
  analysis.warning = far_off_warning(recorded, replay);
  analysis.global_window = replay.global_window;
  analysis.kernel_start = replay.kernel_start;
  analysis.collective_waits = replay.collective_waits;
  analysis.variants = replay.variants;
  // Constants refer to names by number, so they are converted to text here.
  for (const LearnedConstant& constant : recorded.constants) {
    analysis.constants.push_back({.name = describe(constant.delay, recorded.program.names),
                                  .value_us = constant.value_us,
                                  .clean = constant.clean,
                                  .all = constant.all,
                                  .fallback = constant.fallback});
  }
  add_waits(replay, times, analysis);
  add_baseline(recorded, times.costs, analysis);
  return analysis;
}

}  // namespace stepcast
