// Replays of recorded traces.
#include <functional>
#include <set>
#include <utility>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/analyze/step_spread.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/output_file.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/predict/replay.h"
#include "stepcast/report/perfetto.h"
#include "stepcast/trace/recorded_steps.h"
#include "stepcast/trace/trace_set.h"

namespace stepcast {

using detail::indexed_inputs;
using detail::output_at;
using detail::pipeline_step;
using detail::PipelineStep;
using detail::recorded_device;
using detail::recorded_pictures;
using detail::spread_options;
using detail::trace_set_options;

namespace {

// With the comparison, what `add_to` adds to the simulated step, the training that was asked for, and the time line.
Result<Replayed> analysed(const ReplayRequest& request, const std::optional<OutputFile>& timeline,
                          const TraceSet& traces, const Replay& result,
                          const std::function<Status(Forecast&)>& add_to) {
  STEPCAST_ASSIGN(const ReplayTimes times, replay_times(result));
  // Peaks and links stand beside what was achieved where a platform has that GPU.
  const Result<PlatformChoice> platform = platform_for({.name = {},
                                                        .gpu = recorded_device(traces),
                                                        .gpus_per_node = 0,
                                                        .network_kind = {},
                                                        .node_bandwidth_Gbps = {}});
  STEPCAST_ASSIGN(
      ReplayAnalysis analysis,
      analyze_replay(traces, result, times,
                     {.samples_per_step = request.samples_per_step,
                      .tokens_per_step = request.tokens_per_step,
                      .platform = platform.ok() ? &platform->platform : nullptr,
                      .forecast = {.collectives = 0, .path_names = 0, .path_steps = request.path_steps}}));
  for (Forecast* forecast : {&analysis.simulated, &analysis.measured}) {
    STEPCAST_TRY(add_training(*forecast, request.budget));
  }
  STEPCAST_TRY(add_to(analysis.simulated));
  if (timeline) {
    STEPCAST_TRY(write_perfetto(*timeline, times.flat, times.costs, times.simulated,
                                request.timeline_with_measured ? &times.measured : nullptr));
  }
  Replayed replayed;
  if (request.pictures) {
    std::vector<Interval> windows;
    for (const ReplayedRank& rank : result.ranks) windows.push_back(rank.simulated_step);
    replayed.pictures = recorded_pictures(times.flat, times.costs, times.simulated, windows, result.recorded);
  }
  replayed.simulated = analysis.simulated;
  replayed.measured = analysis.measured;
  replayed.analysis = std::make_shared<const ReplayAnalysis>(std::move(analysis));
  return replayed;
}

// Graphs of operations hold no measured step to compare with.
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

Result<Replayed> replay_pipeline(const ReplayRequest& request, const TraceListing& listing) {
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline, output_at(request.timeline, listing.files()));
  STEPCAST_ASSIGN(PipelineStep step, pipeline_step(listing, request.step, request.ranks));
  ReplayOptions how;
  how.compare_variants = false;  // there are no launches to leave out
  STEPCAST_ASSIGN(const Replay result, stepcast::replay_recorded(std::move(step.program), how));
  TraceSet named;
  named.name = listing.name;
  return analysed(request, timeline, named, result, [](Forecast&) -> Status { return Ok{}; });
}

}  // namespace

Result<Replayed> Session::replay(const ReplayRequest& request) const {
  STEPCAST_ASSIGN(const TraceListing listing,
                  list_traces(request.places, {.ranks = request.ranks, .ranks_from = request.ranks_from}));
  if (listing.is_chakra()) return replay_graphs(*this, request);
  if (listing.is_pipeline()) return replay_pipeline(request, listing);
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline, output_at(request.timeline, listing.files()));
  STEPCAST_ASSIGN(const TraceSet traces, read_trace_set(listing, trace_set_options(request)));
  ReplayOptions how;
  how.rebuild.step = request.step;
  how.rebuild.own_delays = request.own_delays;
  how.smallest_handoff = request.smallest_handoff;
  STEPCAST_ASSIGN(const SpreadOptions spread, spread_options(request.spread, request.threads));
  STEPCAST_ASSIGN(const std::vector<RecordedInput> inputs, indexed_inputs(traces, request.threads));
  STEPCAST_ASSIGN(const Replay result, stepcast::replay(inputs, how));
  const std::set<std::int64_t> common = common_steps(traces);
  const auto replay_step = [&](std::int64_t step, const ShowStep& show) -> Status {
    ReplayOptions of_step = how;
    of_step.rebuild.step = step;
    of_step.compare_variants = false;
    STEPCAST_ASSIGN(const Replay replay, stepcast::replay(inputs, of_step));
    show(replay.recorded, replay.costs, replay);
    return Ok{};
  };
  return analysed(request, timeline, traces, result, [&](Forecast& simulated) {
    return add_spread(spread, std::vector<std::int64_t>{common.begin(), common.end()}, replay_step,
                      result.recorded, result.costs, simulated);
  });
}

}  // namespace stepcast
