// Replays of recorded traces: simulates the recorded step and compares it with the measured one.
#include <memory>
#include <utility>
#include <vector>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/analyze/step_series.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/detail/trace_request.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/output_file.h"
#include "stepcast/predict/replay.h"
#include "stepcast/report/perfetto.h"
#include "stepcast/sources/recorded_source.h"

namespace stepcast {
namespace {

// Compares the simulated with the measured step. `platform`: peaks and links of the recording machine, for
// utilisation; null if no platform has its GPU.
ReplayAnalysis compared(const ReplayRequest& request, const RecordedSource& source, const Replay& result,
                        const ReplayTimes& times, StepBinding binding, const Platform* platform) {
  return analyze_replay(source.traces(), result, times, binding,
                        {.samples_per_step = request.samples_per_step,
                         .tokens_per_step = request.tokens_per_step,
                         .platform = platform,
                         .forecast = {.collectives = 0, .path_names = 0, .path_steps = request.path_steps}});
}

// Traces that are graphs of operations have no measured step, so they are predicted with recorded durations instead.
Result<Replayed> replay_graphs(const Session& session, const ReplayRequest& request) {
  PredictTraceRequest as_recorded;
  as_recorded.places = request.places;
  as_recorded.ranks = request.ranks;
  as_recorded.ranks_from = request.ranks_from;
  as_recorded.path_steps = request.path_steps;
  as_recorded.threads = request.threads;
  as_recorded.budget = request.budget;
  as_recorded.samples_per_step = request.samples_per_step;
  as_recorded.tokens_per_step = request.tokens_per_step;
  as_recorded.timeline = request.timeline;
  as_recorded.keeps = request.keeps;
  Replayed replayed;
  if (request.pictures) {
    STEPCAST_ASSIGN(Report answer, session.report(as_recorded));
    replayed.simulated = std::move(answer.forecast);
    replayed.pictures = std::move(answer.pictures);
  } else {
    STEPCAST_ASSIGN(replayed.simulated, session.predict(as_recorded));
  }
  replayed.simulated.kind = "replay";
  return replayed;
}

}  // namespace

Result<Replayed> Session::replay(const ReplayRequest& request) const {
  STEPCAST_ASSIGN(const TraceListing listing, detail::listing_of(request.places, request));
  const SourceKind& kind = source_kind(listing.kind());
  if (kind.times == RecordedTimes::none) return no_profiler_trace(listing);
  STEPCAST_TRY(check_asks(kind, listing, detail::asks_of(request)));
  if (kind.times == RecordedTimes::some) return replay_graphs(*this, request);
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline,
                  detail::output_at(request.timeline, listing.files()));
  STEPCAST_ASSIGN(const SpreadOptions spread, detail::spread_options(request.spread, request.threads));
  STEPCAST_ASSIGN(const std::unique_ptr<RecordedSource> source,
                  kind.open(listing, detail::trace_set_options(request)));
  // Several steps are needed for spreads. Otherwise the traces may be released after the step (last_program).
  const bool several_steps = request.spread.all_steps || request.spread.scenarios > 0;
  // Rebuilds and simulates one recorded step. `compare_variants`: also score simpler replay rules.
  const auto replay_of = [&](std::optional<std::int64_t> step, bool compare_variants) -> Result<Replay> {
    const RebuildOptions how{// Pieces of host tasks are not needed here.
                             .step = step,
                             .own_delays = request.own_delays,
                             .host_pieces = false};
    STEPCAST_ASSIGN(RecordedProgram recorded,
                    several_steps ? source->program(how) : source->last_program(how));
    return replay_recorded(
        std::move(recorded),
        {.rebuild = {}, .smallest_handoff = request.smallest_handoff, .compare_variants = compare_variants});
  };
  const SimulateStep simulate = [&](std::int64_t step, const ShowStep& show) -> Status {
    STEPCAST_ASSIGN(const Replay of_step, replay_of(step, false));
    show(of_step.recorded, of_step.costs, of_step);
    return Ok{};
  };

  STEPCAST_ASSIGN(const Replay result, replay_of(request.step, kind.has_launches));
  if (request.keeps && result.recorded.facts.size() <= detail::kMostKeptRanks) {
    STEPCAST_ASSIGN(RecordedBase base, recorded_base(result.recorded));
    request.keeps(std::make_shared<const KeptStep>(
        KeptStep{result.recorded, std::move(base), listing, &kind, source->device()}));
  }
  STEPCAST_ASSIGN(StepBinding binding, step_binding(result.recorded, result.costs, result.timeline));
  STEPCAST_ASSIGN(const ReplayTimes times, replay_times(result));
  // The platform is optional: without it, peaks and links are not shown.
  const Result<std::shared_ptr<const Platform>> platform = impl_->platform_with(source->device());
  ReplayAnalysis analysis =
      compared(request, *source, result, times, binding, platform ? platform->get() : nullptr);
  for (Forecast* forecast : {&analysis.simulated, &analysis.measured})
    STEPCAST_TRY(add_training(*forecast, request.budget));
  STEPCAST_TRY(
      add_spread(spread, source->steps(), simulate, result.recorded, result.costs, analysis.simulated));
  if (timeline) {
    STEPCAST_TRY(
        write_perfetto(*timeline, {.flat = times.flat,
                                   .costs = times.costs,
                                   .times = times.simulated,
                                   .measured = request.timeline_with_measured ? &times.measured : nullptr}));
  }
  Replayed replayed;
  if (request.pictures) {
    std::vector<Interval> steps;
    for (const ReplayedRank& rank : result.ranks) steps.push_back(rank.simulated_step);
    replayed.pictures =
        detail::recorded_pictures(times.flat, times.costs, times.simulated, steps, result.recorded,
                                  to_end_of_step(result.recorded, times.flat, steps));
  }
  replayed.simulated = analysis.simulated;
  replayed.measured = analysis.measured;
  replayed.analysis = std::make_shared<const ReplayAnalysis>(std::move(analysis));
  return replayed;
}

}  // namespace stepcast
