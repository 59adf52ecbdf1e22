// stepcast predict: the time of a training step from a description, or from recorded traces under other
// circumstances.

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/one_line.h"
#include "stepcast/describe/dlrm_job.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/report/batch_series.h"
#include "stepcast/report/log_document.h"
#include "stepcast/report/log_report.h"
#include "stepcast/report/scaling_series.h"
#include "stepcast/report/series_document.h"
#include "stepcast/trace/file_ranks.h"

#include "described_step.h"
#include "option_values.h"
#include "outputs.h"
#include "predict_options.h"
#include "progress.h"
#include "report_output.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

using Options = PredictOptions;

// The request for a described step.
DescribedStep described(const Options& options) {
  DescribedStep step;
  step.request = options.request;
  step.request.timeline = options.timeline;
  step.request.chakra = options.chakra;
  step.request.chakra_per_rank = options.chakra_per_rank;
  step.framework = options.framework;
  step.dtype = options.dtype;
  step.command_line = options.command_line;
  step.torchtitan = options.torchtitan;
  step.deepspeed = options.deepspeed;
  step.megatron_flags = options.app->remaining();
  step.own_flags = flags_of(*options.app);
  step.nodes = options.nodes;
  step.platform_is_named = options.app->get_option("--platform")->count() > 0;
  return step;
}

// Those that mean something with --trace, too; all others describe a step.
constexpr auto kOfBoth = std::to_array<std::string_view>(
    {"--sensitivity", "--chakra", "--per-rank", "--report", "--format", "--trace", "--platform", "--what-if",
     "--train-tokens", "--train-samples", "--train-iterations", "--gpu-hour-price", "--gpu-power-watts",
     "--timeline", "--json", "--dtype"});

std::vector<std::filesystem::path> inputs_of(const Options& options) {
  const PredictRequest& request = options.request;
  std::vector<std::filesystem::path> inputs = options.traces.places;
  inputs.insert(inputs.end(), options.traces.second_places.begin(), options.traces.second_places.end());
  for (const std::string& file :
       {request.job.model, request.platform, options.tables, options.indices, options.plan,
        options.command_line, options.torchtitan, options.deepspeed}) {
    std::error_code ignored;
    if (!file.empty() && std::filesystem::is_regular_file(file, ignored)) inputs.emplace_back(file);
  }
  return inputs;
}

// The run of a log, forecast and held against it.
Result<int> run_log(const Options& options) {
  for (const char* flag : {"--sensitivity", "--explain", "--require-fit"}) {
    if (options.app->get_option(flag)->count() > 0)
      return Error{fmt::format("{} is not for --from-log", flag)}.advice("predict the run without its log");
  }
  PredictLogRequest request;
  request.log = options.from_log;
  const DescribedStep step = described(options);
  STEPCAST_ASSIGN(request.request, request_of(step));
  if (!step.platform_is_named) request.request.platform.clear();
  std::vector<std::filesystem::path> inputs = inputs_of(options);
  inputs.emplace_back(options.from_log);
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs));
  request.pictures = report.is_wanted();
  const Session session;
  std::optional<ProgressLine> progress{std::in_place, "predict from a log"};
  request.progress = progress->reading("predict from a log");
  STEPCAST_ASSIGN(const PredictedLog predicted, session.predict(request));
  progress.reset();
  if (report.is_wanted()) {
    STEPCAST_TRY(report.give(log_forecast_document(predicted.forecast, *predicted.run, predicted.comparison,
                                                   predicted.illustrations())));
    if (report.is_markdown()) return kSuccess;
  }
  print("{}", options.json ? predicted_log_json(predicted.forecast, *predicted.run, predicted.comparison)
                           : predicted_log_text(predicted.forecast, *predicted.run, predicted.comparison));
  if (!options.timeline.empty() && !options.json) {
    print_timeline_note(options.timeline);
  }
  if (!options.json) report.note();
  return kSuccess;
}

Status check_options(const Options& options) {
  if (options.sensitivity && options.json) {
    for (const char* flag : {"--explain", "--train-tokens", "--train-samples", "--train-iterations"}) {
      if (options.app->get_option(flag)->count() > 0)
        return Error{
            fmt::format("--sensitivity --json prints sensitivities alone, without what {} asks for", flag)}
            .advice("ask twice, or leave out --json");
    }
  }
  const bool traces = !options.traces.places.empty();
  for (const CLI::Option* option : options.app->get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    const bool alone = std::find(kOfTracesAlone.begin(), kOfTracesAlone.end(), name) != kOfTracesAlone.end();
    const bool of_traces = alone || std::find(kOfBoth.begin(), kOfBoth.end(), name) != kOfBoth.end();
    if (traces && !of_traces && name != "--help") {
      return Error{fmt::format("{} describes a step; with --trace the step is the recorded one", name)}
          .advice("leave one of the two out");
    }
    if (name == "--batch" && is_dlrm_job(options.request.job.model)) continue;
    if (name == "--links-of" && is_dlrm_job(options.request.job.model)) continue;
    if (name == "--seed" && !traces && options.traces.spread.scenarios == 0) continue;  // Megatron-LM's
    if (!traces && alone)
      return Error{fmt::format("{} belongs to --trace", name)}.advice("name the traces, too");
  }
  if (traces && !options.app->remaining().empty()) {
    return Error{fmt::format("{} is not known together with --trace", options.app->remaining().front())};
  }
  return Ok{};
}

Result<PredictTraceRequest> request_of_traces(const Options& options) {
  PredictTraceRequest request = options.traces;
  request.timeline = options.timeline;
  request.chakra = options.chakra;
  request.chakra_per_rank = options.chakra_per_rank;
  request.what_if = options.request.what_if;
  request.budget = options.request.budget;
  request.dtype = options.dtype;
  const bool platform_named = options.app->get_option("--platform")->count() > 0;
  if (platform_named) request.platform = options.request.platform;
  if (!options.ranks.empty()) {
    STEPCAST_ASSIGN(request.ranks, parse_ranks(options.ranks));
  }
  for (const auto& [flag, batches] :
       {std::pair{"--batch", options.batches}, std::pair{"--recorded-batch", options.recorded_batches}}) {
    for (const std::int64_t batch : batches) {
      if (batch < 1)
        return Error::at("", flag).found(fmt::format("{}", batch)).expected("samples per rank, from 1 on");
    }
  }
  if (options.recorded_batches.size() > 2) {
    return Error::at("", "--recorded-batch")
        .found(fmt::format("{} batches", options.recorded_batches.size()))
        .expected("that of --trace, and that of --second-trace behind a comma");
  }
  if (!options.recorded_batches.empty()) request.recorded_batch = options.recorded_batches[0];
  if (options.recorded_batches.size() == 2) request.second_batch = options.recorded_batches[1];
  if (options.batches.size() == 1) request.batch = options.batches.front();
  return request;
}

// Prints a forecast and writes its page. `explained`: its operations were asked for.
Status give_forecast(const Options& options, const ReportOutput& report, const Report& answer,
                     bool explained) {
  const auto json = [&] {
    Forecast plain = answer.forecast;
    if (!explained) plain.explained.clear();
    return forecast_json(plain);
  };
  ForecastIllustrations how = answer.illustrations();
  how.made_for = report.made_for();
  how.explains = explained;
  how.prints_sensitivity = options.sensitivity;
  ReportDocument document = forecast_document(answer.forecast, how);
  if (report.is_wanted()) document.json = json();
  return report.answer(document, !options.json         ? std::string{}
                                 : options.sensitivity ? sensitivity_json(answer.sensitivity)
                                                       : json());
}

// One forecast for each batch, in ascending order.
Result<int> predict_batches(const Options& options, PredictTraceRequest request, const Session& session) {
  if (options.sensitivity) {
    return Error{"sensitivities are those of one batch"}.advice("name one with --batch");
  }
  if (!request.timeline.empty()) {
    return Error{"a time line shows one batch"}.advice("name one with --batch, or leave out --timeline");
  }
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  std::vector<std::int64_t> batches = options.batches;
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  std::vector<BatchForecast> series;
  for (const std::int64_t batch : batches) {
    request.batch = batch;
    STEPCAST_ASSIGN(Forecast forecast, session.predict(request));
    series.push_back({batch, std::move(forecast)});
  }
  STEPCAST_TRY(report.answer(batch_series_document(series, report.made_for()),
                             options.json ? batch_series_json(series) : std::string{}));
  if (!options.json) report.note();
  return kSuccess;
}

// Which ranks share a file: those of a class do the same.
void note_chakra(const Options& options, const Forecast& forecast) {
  if (options.chakra.empty()) return;
  print("\nChakra traces written to {}\n",
        in_one_line((std::filesystem::path{options.chakra} / "step.*.et").string()));
  if (options.chakra_per_rank) {
    print("  one of every rank; their process groups stand in comm_groups.json\n");
    return;
  }
  for (std::size_t c = 0; c < forecast.classes.size(); ++c) {
    const ForecastClass& one = forecast.classes[c];
    if (one.n_ranks < 2) continue;
    print(
        "  step.{}.et: one rank of {}, for the {} that do the same; transfers among them are in a group of "
        "their own\n",
        c, one.name, one.n_ranks);
  }
}

// What else was written; machines read the answer alone.
void note_files(const Options& options, const ReportOutput& report, const Forecast& forecast) {
  if (options.json || report.is_markdown()) return;
  if (!options.timeline.empty()) print_timeline_note(options.timeline);
  note_chakra(options, forecast);
  report.note();
}

// Options that a recommendation model has; and those that nothing else has.
constexpr std::array<std::string_view, 20> kOfDlrm = {"--model",
                                                      "--report",
                                                      "--format",
                                                      "--platform",
                                                      "--gpus",
                                                      "--gpus-per-node",
                                                      "--gbs",
                                                      "--what-if",
                                                      "--train-samples",
                                                      "--train-iterations",
                                                      "--gpu-hour-price",
                                                      "--gpu-power-watts",
                                                      "--timeline",
                                                      "--json",
                                                      "--tables",
                                                      "--indices",
                                                      "--batch",
                                                      "--links-of",
                                                      "--plan",
                                                      "--help"};
constexpr std::array<std::string_view, 3> kOfDlrmAlone = {"--tables", "--indices", "--plan"};

Status refuse(const Options& options, std::span<const std::string_view> names, std::string_view why,
              bool others = false) {
  for (const CLI::Option* option : options.app->get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    if ((std::find(names.begin(), names.end(), name) == names.end()) == others)
      return Error{fmt::format("{} {}", name, why)};
  }
  return Ok{};
}

Result<int> run_dlrm(const Options& options) {
  STEPCAST_TRY(refuse(options, kOfDlrm, "means nothing for a recommendation model", true));
  if (!options.app->remaining().empty())
    return Error{fmt::format("{} is not known", options.app->remaining().front())};
  PredictDlrmRequest request;
  request.model = options.request.job.model;
  request.tables = options.tables;
  request.indices = options.indices;
  request.plan = options.plan;
  request.platform = options.request.platform;
  request.n_gpus = options.request.job.n_gpus.value_or(0);
  request.gpus_per_node = options.request.job.gpus_per_node;
  request.global_batch = options.request.job.settings.global_batch_sequences;
  request.what_if = options.request.what_if;
  request.budget = options.request.budget;
  request.timeline = options.timeline;
  request.links_of = options.traces.links_of;
  if (!options.batches.empty() && request.global_batch) {
    return Error{"--batch is samples per rank, --gbs of all ranks"}.advice("leave one of the two out");
  }
  if (!options.batches.empty()) request.batch_per_rank = options.batches.front();
  for (const std::int64_t batch : options.batches) {
    if (batch < 1 || batch > 1 << 30)
      return Error::at("", "--batch").found(fmt::format("{}", batch)).expected("samples per rank, from 1 on");
  }
  const Session session;
  if (options.gpus.size() > 1 || options.batches.size() > 1) {
    if (!request.timeline.empty() || !request.plan.empty()) {
      return Error{"a time line and a plan are of one step"}.advice("name one number of GPUs and one batch");
    }
    STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
    STEPCAST_ASSIGN(const std::vector<ScalingPoint> series,
                    session.predict_series(request, options.gpus, options.batches));
    STEPCAST_TRY(report.answer(scaling_series_document(series, report.made_for()),
                               options.json ? scaling_series_json(series) : std::string{}));
    if (!options.json) report.note();
    return kSuccess;
  }
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  Report answer;
  if (report.is_wanted()) {
    STEPCAST_ASSIGN(answer, session.report(request));
  } else {
    STEPCAST_ASSIGN(answer.forecast, session.predict(request));
  }
  STEPCAST_TRY(give_forecast(options, report, answer, true));
  note_files(options, report, answer.forecast);
  return kSuccess;
}

// As much of an answer as was asked for.
template <class Request>
Status answer_into(Report& answer, const Request& request, const Options& options, const ReportOutput& report,
                   const Session& session) {
  if (report.is_wanted()) {
    STEPCAST_ASSIGN(answer, session.report(request));
  } else if (options.sensitivity) {
    STEPCAST_ASSIGN(Sensitive sensitive, session.sensitivity(request));
    answer.forecast = std::move(sensitive.forecast);
    answer.sensitivity = std::move(sensitive.sensitivity);
  } else {
    STEPCAST_ASSIGN(answer.forecast, session.predict(request));
  }
  return Ok{};
}

Result<int> run(const Options& options) {
  STEPCAST_TRY(check_options(options));
  if (!options.traces.places.empty()) {
    const Session session;
    STEPCAST_ASSIGN(PredictTraceRequest request, request_of_traces(options));
    if (options.batches.size() > 1) return predict_batches(options, request, session);
    std::optional<ProgressLine> progress{std::in_place, "predict from traces"};
    request.progress = progress->reading("predict from traces");
    STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
    Report sensitive;
    STEPCAST_TRY(answer_into(sensitive, request, options, report, session));
    progress.reset();
    STEPCAST_TRY(give_forecast(options, report, sensitive, true));
    note_files(options, report, sensitive.forecast);
    return kSuccess;
  }
  if (is_dlrm_job(options.request.job.model)) return run_dlrm(options);
  STEPCAST_TRY(refuse(options, kOfDlrmAlone, "belongs to recommendation models"));
  if (options.gpus.size() > 1) {
    return Error::at("", "--gpus")
        .found("several values")
        .expected("one; several are for recommendation models");
  }
  if (!options.from_log.empty()) return run_log(options);
  const DescribedStep step = described(options);
  STEPCAST_ASSIGN(const PredictRequest request, request_of(step));
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  const Session session;
  Report sensitive;
  Forecast& forecast = sensitive.forecast;
  STEPCAST_TRY(answer_into(sensitive, request, options, report, session));
  add_notes(step, forecast);
  const bool fits = !forecast.memory || forecast.memory->margin_GiB >= 0;
  const int code = options.require_fit && !fits ? kDoesNotFit : kSuccess;
  STEPCAST_TRY(give_forecast(options, report, sensitive, request.explained));
  note_files(options, report, forecast);
  return code;
}

}  // namespace

Verb predict_verb() {
  return {"predict", "predict a training step from a description, or from traces on another machine",
          [](CLI::App& app) {
            auto options = std::make_shared<Options>();
            declare_predict_options(app, *options);
            return [options] {
              if (!options->gpus.empty()) options->request.job.n_gpus = options->gpus.front();
              return run(*options);
            };
          }};
}

// A prediction that is asked for its files.
Verb export_verb() {
  Verb verb = predict_verb();
  verb.name = "export";
  verb.summary = "write a recorded or described step as Chakra execution traces";
  verb.declare = [declare = verb.declare](CLI::App& app) {
    Action action = declare(app);
    app.get_option("--chakra")->required();
    app.footer(
        "Takes what `predict` takes. Examples:\n"
        "  stepcast export --trace traces/ --chakra out/\n"
        "  stepcast export --model llama-3-8b --platform dgx-h100 --gpus 64 --pp 4 --gbs 128 --seq 8192 "
        "--chakra out/ --per-rank");
    return action;
  };
  return verb;
}

}  // namespace stepcast::cli
