// Predictions from recorded traces.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/step_forecast.h"
#include "stepcast/analyze/step_sensitivity.h"
#include "stepcast/analyze/step_spread.h"
#include "stepcast/analyze/trace_forecast.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/detail/trace_request.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/text.h"
#include "stepcast/describe/layout_choice.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/trace_changes.h"
#include "stepcast/predict/trace_memory.h"
#include "stepcast/predict/trace_prediction.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/report/chakra_export.h"
#include "stepcast/report/perfetto.h"
#include "stepcast/trace/graph_program.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/recorded_steps.h"
#include "stepcast/trace/trace_set.h"
#include "stepcast/workload/memory.h"

namespace stepcast {

using detail::check_chakra;
using detail::check_pipeline;
using detail::check_untimed;
using detail::host_time_source;
using detail::indexed_inputs;
using detail::kernel_time_source;
using detail::output_at;
using detail::parse_rank_platform;
using detail::pipeline_step;
using detail::PipelineStep;
using detail::read_changes;
using detail::recorded_device;
using detail::recorded_pictures;
using detail::spread_options;
using detail::trace_set_options;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::vector<UntimedRank> untimed_ranks(const std::vector<ExecutionTrace>& traces) {
  std::vector<UntimedRank> ranks;
  for (const ExecutionTrace& trace : traces) ranks.push_back({&trace, *trace.rank, 0});
  return ranks;
}

bool any_timed(const std::vector<OperationGraph>& graphs) {
  return std::any_of(graphs.begin(), graphs.end(), [](const OperationGraph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [](const GraphNode& node) { return node.duration_us > 0; });
  });
}

Result<std::shared_ptr<const Platform>> platform_that_recorded(const TraceSet& traces) {
  const std::string gpu = recorded_device(traces);
  Result<PlatformChoice> choice = platform_for(
      {.name = {}, .gpu = gpu, .gpus_per_node = 0, .network_kind = {}, .node_bandwidth_Gbps = {}});
  if (!choice.ok()) {
    return Error{"no platform has the GPU that recorded the traces"}
        .found(gpu.empty() ? "no name of a GPU" : fmt::format("\"{}\"", gpu))
        .advice(
            "name a similar one with --recorded-on, or take the times of models with --kernels "
            "models");
  }
  return std::make_shared<const Platform>(std::move(choice->platform));
}

// Samples of all ranks per step: what was said, else the batch of every rank that was asked for.
std::optional<double> samples_of(const PredictTraceRequest& request, const TracePrediction& prediction) {
  if (request.samples_per_step || request.batch == 0) return request.samples_per_step;
  const auto recorded = static_cast<std::int64_t>(prediction.recorded.facts.size());
  return static_cast<double>(request.batch) *
         static_cast<double>(request.data_parallel_ranks > 0 ? request.data_parallel_ranks : recorded);
}

// What the step takes of a GPU's memory at the predicted batch, from the tensors of the execution traces: the rank that
// takes most. Nothing where there are none.
std::optional<ForecastMemory> memory_of(const TraceSet& traces, const Platform* platform, double batch_ratio,
                                        const std::vector<std::vector<SequenceRange>>& recomputed) {
  // What a CUDA context and the libraries take beside the tensors: assumed.
  constexpr double kContextGiB = 1;
  std::optional<ForecastMemory> memory;
  for (std::size_t r = 0; r < traces.execution_traces.size(); ++r) {
    const std::optional<ExecutionTrace>& trace = traces.execution_traces[r];
    if (!trace) continue;
    const TraceMemory of_rank =
        trace_memory(*trace, r < recomputed.size() ? recomputed[r] : std::vector<SequenceRange>{});
    if (of_rank.at(1).value() <= 0) continue;
    ForecastStageMemory parts;
    parts.weights_GiB = of_rank.persistent.value() / kGiB;
    parts.gradients_GiB = of_rank.gradients.value() / kGiB;
    parts.activations_GiB = of_rank.activations.value() * batch_ratio / kGiB;
    parts.reserve_GiB = kContextGiB;
    parts.total_GiB = of_rank.at(batch_ratio).value() / kGiB + kContextGiB;
    if (memory && memory->peak_memory_GiB >= parts.total_GiB) continue;
    memory.emplace();
    memory->stages = {parts};
    memory->peak_memory_GiB = parts.total_GiB;
  }
  if (!memory || platform == nullptr || platform->device.memory_size.value() <= 0) return std::nullopt;
  memory->available_GiB = platform->device.memory_size.value() / kGiB;
  memory->margin_GiB = memory->available_GiB - memory->peak_memory_GiB;
  memory->verdict = to_string(memory->margin_GiB < 0 ? MemoryVerdict::does_not_fit
                              : memory->margin_GiB < 0.05 * memory->available_GiB ? MemoryVerdict::tight
                                                                                  : MemoryVerdict::fits);
  return memory;
}

}  // namespace

Result<Forecast> Session::predict(const PredictTraceRequest& request, const Extras& extras) const {
  TracePredictionOptions how;
  STEPCAST_ASSIGN(how.kernels, kernel_time_source(request));
  STEPCAST_ASSIGN(how.host, host_time_source(request));
  STEPCAST_TRY(apply_what_if(request.what_if, how.assumptions));
  how.rebuild.step = request.step;
  how.median_ranks = request.median_ranks;
  STEPCAST_TRY(read_changes(request, how));
  STEPCAST_ASSIGN(const TraceListing listing,
                  list_traces(request.places, {.ranks = request.ranks, .ranks_from = request.ranks_from}));
  std::vector<std::filesystem::path> files_read = listing.files();
  const auto reads = [&](const std::vector<std::filesystem::path>& files) {
    files_read.insert(files_read.end(), files.begin(), files.end());
  };
  std::shared_ptr<const Platform> platform, recorded_on;
  if (!request.platform.empty()) {
    STEPCAST_ASSIGN(platform, impl_->platform(request.platform));
    reads(platform->files);
  }
  how.platform = platform.get();
  std::shared_ptr<const Platform> links;
  if (!request.links_of.empty()) {
    STEPCAST_ASSIGN(links, impl_->platform(request.links_of));
    reads(links->files);
  }
  how.links = links.get();
  std::vector<std::shared_ptr<const Platform>> of_ranks;
  for (const std::string& text : request.rank_platforms) {
    STEPCAST_ASSIGN(const auto named, parse_rank_platform(text));
    STEPCAST_ASSIGN(std::shared_ptr<const Platform> of_rank, impl_->platform(named.second));
    how.rank_platforms.push_back({named.first, of_rank.get()});
    reads(of_rank->files);
    of_ranks.push_back(std::move(of_rank));
  }
  if (!request.recorded_on.empty()) {
    STEPCAST_ASSIGN(const std::shared_ptr<const Platform> machine, impl_->platform(request.recorded_on));
    reads(machine->files);
  }
  std::optional<TraceListing> second_listing;
  if (!request.second_places.empty()) {
    STEPCAST_ASSIGN(second_listing, list_traces(request.second_places,
                                                {.ranks = request.ranks, .ranks_from = request.ranks_from}));
    reads(second_listing->files());
  }
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline, output_at(request.timeline, files_read));
  const bool changed = changes_prices(how);
  STEPCAST_ASSIGN(const SpreadOptions spread, spread_options(request.spread, request.threads));
  std::vector<std::int64_t> steps;  // to predict each by itself, with `predict_step`
  SimulateStep predict_step;
  const auto forecast_of = [&](const TracePrediction& prediction, const std::string& name,
                               const std::vector<std::string>& notes) -> Result<Forecast> {
    const FlatProgram flat{prediction.recorded.program};
    const TaskTimes times = TaskTimes::simulated(flat, prediction.timeline);
    Forecast forecast =
        trace_forecast({.prediction = prediction,
                        .options = how,
                        .traces = name,
                        .samples_per_step = samples_of(request, prediction),
                        .tokens_per_step = request.tokens_per_step},
                       flat, times, {.collectives = request.collectives, .path_steps = request.path_steps});
    forecast.notes.insert(forecast.notes.end(), notes.begin(), notes.end());
    if (!request.what_if.empty()) forecast.layout.push_back({"what_if", join(request.what_if)});
    STEPCAST_TRY(add_training(forecast, request.budget));
    STEPCAST_TRY(add_spread(spread, steps, predict_step, prediction.recorded, prediction.costs, forecast));
    if (extras.sensitivity != nullptr) {
      STEPCAST_ASSIGN(*extras.sensitivity, trace_sensitivity(prediction, how, flat, times));
    }
    if (extras.pictures != nullptr) {
      std::vector<Interval> windows;
      for (const ReplayedRank& rank : prediction.ranks) windows.push_back(rank.simulated_step);
      *extras.pictures = recorded_pictures(flat, prediction.costs, times, windows, prediction.recorded);
    }
    if (timeline) STEPCAST_TRY(write_perfetto(*timeline, flat, prediction.costs, times));
    if (!request.chakra.empty() && request.chakra_per_rank) {
      STEPCAST_TRY(
          write_chakra_per_rank(request.chakra, flat, prediction.costs, prediction.recorded.start_offset_us,
                                RankTable::of_single_ranks(prediction.recorded.program), files_read));
    } else if (!request.chakra.empty()) {
      STEPCAST_TRY(write_chakra(request.chakra,
                                operation_graphs(flat, prediction.costs, prediction.recorded.start_offset_us),
                                files_read));
    }
    return forecast;
  };
  if (listing.is_pipeline()) {
    STEPCAST_TRY(check_pipeline(request, listing.timelines.front()));
    if (platform != nullptr) {
      return Error{"pipeline timelines hold no operations, so they cannot be moved to another GPU"}
          .in_file(listing.timelines.front().string())
          .advice("leave --platform out; --what-if nvlink=2x speeds its transfers up");
    }
    STEPCAST_ASSIGN(PipelineStep recorded, pipeline_step(listing, request.step, request.ranks));
    STEPCAST_ASSIGN(const TracePrediction prediction, predict_recorded(std::move(recorded.program), how));
    return forecast_of(prediction, listing.name, {});
  }
  if (listing.is_chakra()) {
    STEPCAST_TRY(check_chakra(request));
    // The GPU that a Chakra trace comes from is not in the file.
    if (request.kernels.empty() && request.recorded_on.empty()) how.kernels = KernelTimeSource::recorded;
    if (!request.recorded_on.empty()) {
      STEPCAST_ASSIGN(recorded_on, impl_->platform(request.recorded_on));
      how.recorded_on = recorded_on.get();
    }
    how.price_unrecorded = true;
    STEPCAST_ASSIGN(const std::vector<OperationGraph> graphs,
                    read_operation_graphs(listing, {.ranks = request.ranks, .threads = request.threads}));
    STEPCAST_ASSIGN(RecordedProgram recorded, graph_program(graphs));
    if (platform == nullptr && !any_timed(graphs)) {
      return Error{"no node of these Chakra traces has a duration"}
          .in_file(graphs.front().file)
          .advice("`stepcast predict --trace ... --platform NAME` takes times from the models of a platform");
    }
    STEPCAST_ASSIGN(const TracePrediction prediction, predict_recorded(std::move(recorded), how));
    return forecast_of(prediction, listing.name, {});
  }
  if (listing.profiler.empty() && !listing.execution.empty()) {
    STEPCAST_TRY(check_untimed(request));
    if (changed || how.recompute != RecomputedPart::none || how.overlap != OverlapChange::as_recorded) {
      return Error{"execution traces alone hold no times that other work could be relative to"}.advice(
          "give the profiler traces of the same ranks, too");
    }
    STEPCAST_ASSIGN(const std::vector<ExecutionTrace> traces,
                    read_execution_traces(listing, {.ranks = request.ranks, .threads = request.threads}));
    how.kernels = KernelTimeSource::models;
    how.host = HostTimeSource::overheads;
    STEPCAST_ASSIGN(const TracePrediction prediction, predict_untimed(untimed_ranks(traces), how));
    return forecast_of(prediction, listing.name, {});
  }
  STEPCAST_ASSIGN(const TraceSet traces, read_trace_set(listing, trace_set_options(request)));
  if (!request.recorded_on.empty()) {
    STEPCAST_ASSIGN(recorded_on, impl_->platform(request.recorded_on));
  } else if (how.kernels == KernelTimeSource::ratio || changed) {
    STEPCAST_ASSIGN(recorded_on, platform_that_recorded(traces));
  } else if (how.recompute != RecomputedPart::none) {  // for its memory alone
    Result<std::shared_ptr<const Platform>> machine = platform_that_recorded(traces);
    if (machine) recorded_on = *machine;
  }
  how.recorded_on = recorded_on.get();
  std::optional<TraceSet> second;
  if (second_listing) {
    STEPCAST_ASSIGN(second, read_trace_set(*second_listing, trace_set_options(request)));
    how.second_inputs = second->inputs();
  }
  STEPCAST_ASSIGN(const std::vector<RecordedInput> inputs, indexed_inputs(traces, request.threads));
  for (const std::int64_t step : common_steps(traces)) steps.push_back(step);
  predict_step = [&](std::int64_t step, const ShowStep& show) -> Status {
    TracePredictionOptions of_step = how;
    of_step.rebuild.step = step;
    STEPCAST_ASSIGN(const TracePrediction prediction, predict_trace(inputs, of_step));
    show(prediction.recorded, prediction.costs, prediction);
    return Ok{};
  };
  STEPCAST_ASSIGN(const TracePrediction prediction, predict_trace(inputs, how));
  STEPCAST_ASSIGN(Forecast forecast, forecast_of(prediction, traces.name, traces.notes));
  if (how.change.batch || how.recompute != RecomputedPart::none) {
    double batch_ratio = 1;
    if (how.change.batch) {
      const std::int64_t recorded_batch = request.recorded_batch > 0
                                              ? request.recorded_batch
                                              : batch_of(prediction.recorded).value_or(request.batch);
      batch_ratio = static_cast<double>(request.batch) / static_cast<double>(recorded_batch);
    }
    const Platform* machine = how.platform != nullptr ? how.platform : how.recorded_on;
    forecast.memory = memory_of(traces, machine, batch_ratio, prediction.recomputed);
    forecast.notes.emplace_back(
        forecast.memory
            ? "memory is that of the tensors that the execution trace names, and 1 GiB besides: what kernels "
              "and the allocator take on top is not in it"
        : machine == nullptr ? "memory is not known: no platform has the GPU that recorded"
                             : "memory is not known: no execution trace names the tensors of the step");
    if (const auto before = memory_of(traces, machine, batch_ratio, {});
        how.recompute != RecomputedPart::none && before) {
      forecast.notes.push_back(fmt::format(
          "activations take {:.2f} GiB with recomputation and {:.2f} without",
          forecast.memory->stages.front().activations_GiB, before->stages.front().activations_GiB));
    }
  }
  return forecast;
}

}  // namespace stepcast
