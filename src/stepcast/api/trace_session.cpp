// Predictions from recorded traces. TraceQuestion holds a request with its opened traces and answers its parts.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/sensitivity.h"
#include "stepcast/analyze/step_forecast.h"
#include "stepcast/analyze/step_series.h"
#include "stepcast/analyze/trace_forecast.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/detail/trace_request.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/text.h"
#include "stepcast/report/chakra_export.h"
#include "stepcast/report/perfetto.h"
#include "stepcast/retrace/sample_ranks.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/recorded_source.h"

namespace stepcast {
namespace {

using Files = std::vector<std::filesystem::path>;

// A request with everything that it needs in memory.
struct TraceQuestion {
  const PredictTraceRequest& request;
  TraceListing listing, second_listing;  // the second is empty for one recording
  const SourceKind& kind;
  TracePredictionOptions how;
  std::unique_ptr<RecordedSource> source{}, second{};
  std::optional<RecordedProgram> shapes_of{};  // the step that provides other shapes

  // Input files, which outputs must not overwrite.
  [[nodiscard]] Files files(const detail::TracePlatforms& platforms) const {
    Files all = listing.files();
    for (const Files& more : {platforms.files(), second_listing.files()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Opens the traces, and the second recording if there is one.
  Status open() {
    const TraceSetOptions options = detail::trace_set_options(request);
    STEPCAST_ASSIGN(source, kind.open(listing, options));
    if (request.shapes_of_step) {
      RebuildOptions of_step = how.rebuild;
      of_step.step = request.shapes_of_step;
      STEPCAST_ASSIGN(shapes_of, source->program(of_step, how.platform));
      how.change.shapes_of = &*shapes_of;
    }
    if (request.second_places.empty()) return Ok{};
    STEPCAST_ASSIGN(second, kind.open(second_listing, options));
    return Ok{};
  }

  // The prediction of one step; nothing: the default step. `kept` gets a copy of the recorded step, if the
  // request wants it and it is possible.
  [[nodiscard]] Result<TracePrediction> predict(std::optional<std::int64_t> step,
                                                std::shared_ptr<KeptStep>* kept = nullptr) const {
    TracePredictionOptions of_step = how;
    of_step.rebuild.step = step;
    STEPCAST_ASSIGN(RecordedProgram recorded, source->program(of_step.rebuild, how.platform));
    if (kept != nullptr && request.keeps && second == nullptr && !shapes_of &&
        recorded.facts.size() <= detail::kMostKeptRanks)
      *kept = std::make_shared<KeptStep>(KeptStep{recorded, {}, listing, &kind, source->device()});
    if (shapes_of && number_of(recorded) == number_of(*shapes_of)) {
      of_step.change.shapes_of = nullptr;
      STEPCAST_ASSIGN(TracePrediction as_is, predict_recorded(std::move(recorded), of_step));
      as_is.notes.push_back(
          fmt::format("--shapes-of-step {}: the step has these shapes already", *request.shapes_of_step));
      return as_is;
    }
    if (second == nullptr) return predict_recorded(std::move(recorded), of_step);
    STEPCAST_ASSIGN(RecordedProgram other, second->program(of_step.rebuild, how.platform));
    return predict_between(std::move(recorded), std::move(other), of_step);
  }

  // N of ProfilerStep#N; -1 for traces without steps.
  static std::int64_t number_of(const RecordedProgram& step) {
    return step.facts.empty() ? -1 : step.facts.front().step_number;
  }

  // Samples of all ranks per step: from the request, else the requested batch times the number of ranks that
  // read samples. Nothing if unknown. Errors: those of sample_ranks().
  [[nodiscard]] Result<std::optional<double>> samples(const TracePrediction& prediction) const {
    if (request.samples_per_step || request.batch == 0) return request.samples_per_step;
    std::int64_t ranks = request.data_parallel_ranks;
    if (ranks == 0) {
      STEPCAST_ASSIGN(ranks, sample_ranks(prediction.recorded));
    }
    return std::optional{static_cast<double>(request.batch) * static_cast<double>(ranks)};
  }

  // The forecast document of a prediction.
  [[nodiscard]] Result<Forecast> forecast(const TracePrediction& prediction, const FlatProgram& flat,
                                          const TaskTimes& times) const {
    STEPCAST_ASSIGN(const std::optional<double> samples_per_step, samples(prediction));
    Forecast forecast =
        trace_forecast({.prediction = prediction,
                        .options = how,
                        .traces = listing.name,
                        .samples_per_step = samples_per_step,
                        .tokens_per_step = request.tokens_per_step},
                       flat, times, {.collectives = request.collectives, .path_steps = request.path_steps});
    const std::vector<std::string>& notes = source->traces().notes;
    forecast.notes.insert(forecast.notes.end(), notes.begin(), notes.end());
    if (!request.what_if.empty()) forecast.layout.push_back({"what_if", join(request.what_if)});
    return forecast;
  }

  // Adds the distribution of the predicted step over the recorded steps and scenarios.
  [[nodiscard]] Status add_spread(const SpreadOptions& spread, const TracePrediction& prediction,
                                  Forecast& forecast) const {
    const SimulateStep simulate = [&](std::int64_t step, const ShowStep& show) -> Status {
      STEPCAST_ASSIGN(const TracePrediction of_step, predict(step));
      show(of_step.recorded, of_step.costs, of_step);
      return Ok{};
    };
    return stepcast::add_spread(spread, source->steps(), simulate, prediction.recorded, prediction.costs,
                                forecast);
  }

  // Adds the memory of a GPU, if the request changes it or a dry run recorded it.
  void add_memory(const TracePrediction& prediction, Forecast& forecast) const {
    const bool changed = how.change.batch || how.recompute != RecomputedPart::none;
    const bool counted = std::ranges::any_of(source->traces().execution_traces,
                                             [](const auto& trace) { return trace && trace->dry_run; });
    if (!counted && (!changed || source->traces().ranks.empty())) return;
    double batch_ratio = 1;
    if (how.change.batch) {
      const std::int64_t recorded_batch = request.recorded_batch > 0
                                              ? request.recorded_batch
                                              : batch_of(prediction.recorded).value_or(request.batch);
      batch_ratio = static_cast<double>(request.batch) / static_cast<double>(recorded_batch);
    }
    add_recorded_memory(source->traces().execution_traces, how.machine(), batch_ratio, prediction.recomputed,
                        forecast);
  }
};

// Writes the timeline and the Chakra traces that the request asks for.
Status write_files(const PredictTraceRequest& request, const std::optional<OutputFile>& timeline,
                   const TracePrediction& prediction, const FlatProgram& flat, const TaskTimes& times,
                   const Files& inputs) {
  if (timeline)
    STEPCAST_TRY(write_perfetto(*timeline, {.flat = flat, .costs = prediction.costs, .times = times}));
  const RecordedProgram& recorded = prediction.recorded;
  if (!request.chakra.empty() && request.chakra_per_rank) {
    STEPCAST_TRY(write_chakra_per_rank(request.chakra, flat, prediction.costs, steps_of(recorded),
                                       RankTable::of_single_ranks(recorded.program), inputs));
  } else if (!request.chakra.empty()) {
    STEPCAST_TRY(
        write_chakra(request.chakra, operation_graphs(flat, prediction.costs, steps_of(recorded)), inputs));
  }
  return Ok{};
}

}  // namespace

Result<StepTime> Session::step_time(const PredictTraceRequest& request, const KeptStep& step) const {
  STEPCAST_ASSIGN(TracePredictionOptions how, detail::prediction_options(request));
  detail::TracePlatforms platforms;
  STEPCAST_TRY(platforms.load(
      request, [&](const std::string& name) { return impl_->platform(name); }, how));
  STEPCAST_TRY(check_asks(*step.kind, step.listing, detail::asks_of(request)));
  detail::fit_to_kind(*step.kind, request, how);
  STEPCAST_TRY(platforms.find_recorded_on(
      step.device, *step.kind, [&](const std::string& gpu) { return impl_->platform_with(gpu); }, how));
  STEPCAST_ASSIGN(const TracePrediction prediction, predict_recorded(step.recorded, how, &step.base));
  const Estimate& of = prediction.step;
  return StepTime{of.time.value() * 1e-3, of.p10.value() * 1e-3, of.p90.value() * 1e-3};
}

Result<Forecast> Session::predict(const PredictTraceRequest& request, const Extras& extras) const {
  STEPCAST_ASSIGN(TracePredictionOptions how, detail::prediction_options(request));
  STEPCAST_ASSIGN(TraceListing listing, detail::listing_of(request.places, request));
  const SourceKind& kind = source_kind(listing.kind());
  detail::TracePlatforms platforms;
  STEPCAST_TRY(platforms.load(
      request, [&](const std::string& name) { return impl_->platform(name); }, how));
  TraceQuestion question{request, std::move(listing), {}, kind, std::move(how)};
  if (!request.second_places.empty()) {
    STEPCAST_ASSIGN(question.second_listing, detail::listing_of(request.second_places, request));
  }
  const Files inputs = question.files(platforms);
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline, detail::output_at(request.timeline, inputs));
  STEPCAST_ASSIGN(const SpreadOptions spread, detail::spread_options(request.spread, request.threads));
  STEPCAST_TRY(check_asks(kind, question.listing, detail::asks_of(request)));
  detail::fit_to_kind(kind, request, question.how);
  STEPCAST_TRY(question.open());
  STEPCAST_TRY(platforms.find_recorded_on(
      question.source->device(), kind, [&](const std::string& gpu) { return impl_->platform_with(gpu); },
      question.how));

  std::shared_ptr<KeptStep> kept;
  STEPCAST_ASSIGN(const TracePrediction prediction, question.predict(request.step, &kept));
  if (kept != nullptr) {
    kept->base = prediction.base;
    request.keeps(std::move(kept));
  }
  const FlatProgram flat{prediction.recorded.program};
  // `times`: the step alone. `in_a_row`: the step in a sequence of equal steps, which the forecast is about.
  const TaskTimes times = TaskTimes::simulated(flat, prediction.timeline);
  const TaskTimes in_a_row = TaskTimes::simulated(flat, prediction.step_timeline());
  STEPCAST_ASSIGN(Forecast forecast, question.forecast(prediction, flat, in_a_row));
  STEPCAST_TRY(add_training(forecast, request.budget));
  STEPCAST_TRY(question.add_spread(spread, prediction, forecast));
  question.add_memory(prediction, forecast);
  if (extras.sensitivity != nullptr) {
    STEPCAST_ASSIGN(*extras.sensitivity, trace_sensitivity(prediction, question.how, flat, times));
  }
  if (extras.pictures != nullptr)
    *extras.pictures = detail::recorded_pictures(flat, prediction.costs, in_a_row, prediction.step_windows(),
                                                 prediction.recorded, path_of_step(prediction, flat));
  STEPCAST_TRY(write_files(request, timeline, prediction, flat, times, inputs));
  return forecast;
}

}  // namespace stepcast
