#include "lab/published_forecast.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/trace_forecast.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/readers.h"

#include "lab/published_algorithm.h"
#include "lab/published_overheads.h"

namespace stepcast {

namespace {

Result<Platform> platform_of(const std::string& name, const std::string& gpu) {
  if (!name.empty()) return load_platform(name);
  Result<PlatformChoice> choice = platform_for(
      {.name = {}, .gpu = gpu, .gpus_per_node = 0, .network_kind = {}, .node_bandwidth_Gbps = {}});
  if (!choice) {
    return Error{"the published algorithm takes kernel times from models of a GPU"}
        .found(gpu.empty() ? "no name of a GPU in the traces" : fmt::format("\"{}\"", gpu))
        .advice("name the platform that has it with --platform");
  }
  return std::move(choice->platform);
}

std::string recorded_gpu(const TraceSet& traces) {
  for (const RecordedRank& rank : traces.ranks)
    if (!rank.devices.empty() && !rank.devices.front().name.empty()) return rank.devices.front().name;
  return {};
}

// Overheads of other jobs on that host, extracted by the published rules.
Result<HostOverheads> overheads_of_traces(const std::vector<std::filesystem::path>& places) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(places));
  std::vector<TraceListing::Other> skipped;
  OverheadSamples samples;
  for (const TraceSet& set : read_trace_sets(listing, {}, skipped))
    for (const RecordedRank& rank : set.ranks) samples.add(published_overheads(rank));
  return published_host_overheads(samples);
}

Result<Forecast> forecast_of(const std::vector<UntimedRank>& ranks, const HostOverheads& overheads,
                             const Platform& platform, const std::string& name) {
  TracePredictionOptions how{
      .platform = &platform, .kernels = KernelTimeSource::models, .host = HostTimeSource::overheads};
  StepPricer prices{platform, how.assumptions};
  STEPCAST_ASSIGN(PublishedTraceStep step, published_step(ranks, overheads, prices));
  TracePrediction prediction;
  prediction.recorded = std::move(step.recorded);
  prediction.costs = Costs{prediction.recorded.program};
  prediction.coverage = std::move(step.coverage);
  {
    STEPCAST_ASSIGN(static_cast<ReplayScores&>(prediction),
                    score_replay(prediction.recorded, prediction.costs));
  }
  const Microseconds longest{prediction.longest_step_us()};
  prediction.step = {longest, longest, longest, EstimateSource::fitted};
  prediction.notes.emplace_back(
      "the published algorithm (Lin et al., TPDS 2024) by its own rules; it gives no band, loads no data and "
      "gives work that it does not know no time. Kernel times are those of the platform's models");
  const FlatProgram flat{prediction.recorded.program};
  Forecast forecast = trace_forecast({.prediction = prediction, .options = how, .traces = name}, flat,
                                     TaskTimes::simulated(flat, prediction.timeline));
  forecast.layout.insert(forecast.layout.begin(), {"published_algorithm", true});
  return forecast;
}

Result<Forecast> forecast_of_execution_traces(const TraceListing& listing,
                                              const PublishedTraceRequest& request) {
  STEPCAST_ASSIGN(const std::vector<ExecutionTrace> traces,
                  read_execution_traces(listing, {.ranks = {}, .threads = 0}));
  STEPCAST_ASSIGN(const Platform platform, platform_of(request.platform, {}));
  HostOverheads overheads;
  if (request.overheads_from.empty()) {
    STEPCAST_ASSIGN(overheads, HostOverheads::of(platform));
  } else {
    STEPCAST_ASSIGN(overheads, overheads_of_traces(request.overheads_from));
  }
  std::vector<UntimedRank> ranks;
  for (const ExecutionTrace& trace : traces) ranks.push_back({&trace, *trace.rank, 0});
  return forecast_of(ranks, overheads, platform, listing.name);
}

}  // namespace

Result<Forecast> published_trace_forecast(const PublishedTraceRequest& request) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(request.places));
  if (listing.kind() == SourceKindId::execution) return forecast_of_execution_traces(listing, request);
  if (listing.kind() != SourceKindId::profiler) {
    return Error{"the published algorithm reads operators of PyTorch"}
        .in_file(listing.files().front().string())
        .expected("profiler traces with the execution traces of the same ranks");
  }
  TraceSetOptions how{.step = request.step, .progress = request.progress};
  STEPCAST_ASSIGN(const TraceSet traces, read_trace_set(listing, how));
  STEPCAST_ASSIGN(const Platform platform, platform_of(request.platform, recorded_gpu(traces)));
  STEPCAST_ASSIGN(const RecordedProgram recorded, rebuild_program(traces.inputs(), {.step = request.step}));
  OverheadSamples samples;
  std::vector<UntimedRank> ranks;
  for (std::size_t r = 0; r < traces.ranks.size(); ++r) {
    const RecordedStepFacts& facts = recorded.facts[r];
    if (!traces.execution_traces[r]) {
      return Error::at(recorded.files[r].profiler, "", "no execution trace belongs to this profiler trace")
          .advice(
              "the published algorithm reads the operators from execution traces; record them with "
              "ExecutionTraceObserver");
    }
    samples.add(published_overheads(traces.ranks[r]));
    ranks.push_back(
        {&*traces.execution_traces[r], facts.rank, facts.step_us.start_us, facts.step_us.length_us()});
  }
  const HostOverheads overheads = published_host_overheads(samples);
  STEPCAST_ASSIGN(Forecast forecast, forecast_of(ranks, overheads, platform, traces.name));
  forecast.notes.insert(forecast.notes.end(), traces.notes.begin(), traces.notes.end());
  return forecast;
}

Result<Forecast> published_step_forecast(const PredictRequest& request) {
  STEPCAST_ASSIGN(const ResolvedJob job, resolve(request.job));
  if (leaves_layout_open(request.job)) {
    return Error{"the published composition is of a layout that is given"}.advice(
        "say how the model is spread, as in --tp 4 --pp 4 --mbs 1 --gbs 256");
  }
  PredictRequest as_said = request;
  as_said.open_layout = OpenLayout::as_said;
  STEPCAST_ASSIGN(Forecast forecast, Session{}.predict(as_said));
  STEPCAST_ASSIGN(PlatformChoice meant,
                  load_meant_platform(request.platform, static_cast<std::int64_t>(forecast.n_gpus)));
  Platform& platform = meant.platform;
  std::string adapted;
  if (request.job.gpus_per_node) adapt_to({.gpus_per_node = *request.job.gpus_per_node}, platform, adapted);
  StepModel steps{platform};
  STEPCAST_ASSIGN(const PricedStep priced, steps.price(job.model, job.layout));
  STEPCAST_ASSIGN(const PublishedComponents parts, published_components(priced, job.layout));
  const PublishedStep step = compose_as_published(parts);
  forecast.published = ForecastPublished{.step_time_ms = step.step_us() * 1e-3,
                                         .longest_forward_ms = step.longest_forward_us * 1e-3,
                                         .longest_backward_ms = step.longest_backward_us * 1e-3,
                                         .passes_ms = step.passes_us * 1e-3,
                                         .all_reduce_ms = step.all_reduce_us * 1e-3,
                                         .update_ms = step.update_us * 1e-3};
  return forecast;
}

PublishedLayerSplit published_layer_split(std::int64_t n_layers, std::int64_t n_stages) {
  const std::int64_t units = n_layers + 5;
  return {(units + n_stages - 1) / n_stages - 2, units / n_stages, units / n_stages - 3};
}

PublishedStep compose_as_published(const PublishedComponents& c) {
  // Head and middle stages send forwards, middle and tail stages send backwards. Senders wait.
  PublishedStep step{
      .longest_forward_us =
          std::max({c.head.forward_us + c.p2p_us, c.middle.forward_us + c.p2p_us, c.tail.forward_us}),
      .longest_backward_us =
          std::max({c.head.backward_us, c.middle.backward_us + c.p2p_us, c.tail.backward_us + c.p2p_us})};
  step.passes_us = static_cast<double>(c.micro_batches - 1 + c.n_stages) *
                   (step.longest_forward_us + step.longest_backward_us);
  if (c.data_parallel <= 1) return step;  // as published: no optimizer in this case
  step.all_reduce_us = c.head.all_reduce_us;
  for (const PublishedStage* stage : {&c.head, &c.middle, &c.tail})
    step.update_us = std::max(step.update_us, stage->optimizer_us + stage->all_gather_us);
  return step;
}

Result<PublishedComponents> published_components(const PricedStep& step, const Layout& layout) {
  if (layout.pipeline.schedule != PipelineSchedule::one_f_one_b && layout.degrees.pipeline > 1) {
    return Error{fmt::format("the published method has no formula for the schedule {}: use 1f1b",
                             to_string(layout.pipeline.schedule))};
  }
  if (step.layers.size() != 1) {
    return Error{
        fmt::format("the published method has no formula for layers of {} kinds: use a dense model and one "
                    "recomputation for all",
                    step.layers.size())};
  }
  std::int64_t n_layers = 0;
  for (const ChunkWork& chunk : step.work.chunks)
    for (const ChunkWork::Run& run : chunk.runs) n_layers += run.count;
  PublishedComponents c{.n_stages = step.work.stages,
                        .micro_batches = step.work.micro_batches,
                        .data_parallel = layout.degrees.data,
                        .p2p_us = step.schedule.boundary_us};
  const PublishedLayerSplit split = published_layer_split(n_layers, c.n_stages);
  if (std::min({split.head, split.middle, split.tail}) < 0) {
    return Error{fmt::format("{} layers on {} stages leave the published tail {} layers: use fewer stages",
                             n_layers, c.n_stages, split.tail)};
  }
  const PricedStep::Layer& layer = step.layers.front();
  const auto fill = [&](PublishedStage& stage, std::int64_t layers, std::size_t s) {
    const auto n = static_cast<double>(layers);
    stage.forward_us = n * layer.forward.time_us;
    stage.backward_us = n * layer.backward.time_us;
    stage.all_reduce_us = step.schedule.reduce_at_end_us[s];
    stage.all_gather_us = step.schedule.gather_after_step_us[s];
    stage.optimizer_us = step.schedule.optimizer_us[s];
  };
  const std::size_t last = step.work.stages - 1;
  fill(c.head, split.head, 0);
  fill(c.middle, split.middle, last > 1 ? 1 : 0);
  fill(c.tail, split.tail, last);
  c.head.forward_us += step.embedding.forward.time_us;
  c.head.backward_us += step.embedding.backward.time_us;
  c.tail.forward_us += step.head.forward.time_us;
  c.tail.backward_us += step.head.backward.time_us;
  return c;
}

}  // namespace stepcast
