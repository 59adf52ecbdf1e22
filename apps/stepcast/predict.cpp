// stepcast predict: the time of a training step from a description, or from recorded traces under changed conditions.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/one_line.h"
#include "stepcast/base/words.h"
#include "stepcast/cost/node_power.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/report/log_document.h"
#include "stepcast/report/scaling_series.h"
#include "stepcast/trace/file_ranks.h"

#include "command_line.h"
#include "described_step.h"
#include "given_flags.h"
#include "in_process.h"
#include "outputs.h"
#include "predict_options.h"
#include "progress.h"
#include "trace_changes.h"
#include "verbs.h"
#include "what_to_change.h"

namespace stepcast::cli {
namespace {

// The request for a described step. Errors: a power limit in another unit than watts.
Result<DescribedStep> described(const PredictOptions& options) {
  const SharedOptions& shared = options.shared;
  DescribedStep step = options.step;
  PredictRequest& request = step.request;
  if (!shared.n_gpus.empty()) request.job.n_gpus = shared.n_gpus.front();
  JobSettings& settings = request.job.settings;
  if (!shared.global_batches.empty()) settings.global_batch_sequences = shared.global_batches.front();
  if (!options.described.micro_batches.empty())
    settings.micro_batch_sequences = options.described.micro_batches.front();
  for (const auto& [asked, largest] : {std::pair{&settings.micro_batch_sequences, LargestBatch::micro},
                                       std::pair{&settings.global_batch_sequences, LargestBatch::global}}) {
    if (*asked != kLargest) continue;
    asked->reset();
    request.largest = largest;
  }
  if (!options.described.power_limit.empty()) {
    STEPCAST_ASSIGN(request.power_limit_W, parse_watts(options.described.power_limit, "--power-limit"));
  }
  if (!options.described.pools.empty()) {
    for (const char* flag : {"--gpus", "--nodes", "--platform"})
      if (options.flags.is_given(flag))
        return Error{fmt::format("--pools and {} say the same thing", flag)}.advice(
            "leave one of the two out");
    request.pools = options.described.pools;
  }
  request.zones = options.described.zones;
  if (request.pools.empty() && !request.zones.empty())
    return Error{"--zone needs pools of GPUs"}.advice("name them: --gpus 64xh100@east+64xa100@west");
  request.timeline = shared.timeline;
  request.chakra = shared.chakra;
  step.megatron_flags = options.flags.remaining();
  step.own_flags = options.flags.names();
  step.platform_is_named = !request.pools.empty() || options.flags.is_given("--platform");
  return step;
}

std::vector<std::filesystem::path> inputs_of(const PredictOptions& options) {
  const PredictTraceRequest& traces = options.traces.request;
  const DescribedStep& step = options.step;
  const PredictDlrmRequest& recommendation = options.recommendation.request;
  std::vector<std::filesystem::path> inputs =
      files_among({step.request.job.model, step.request.platform, recommendation.tables,
                   recommendation.indices, recommendation.plan, step.command_line, step.torchtitan,
                   step.deepspeed, step.config, options.log.log});
  for (const auto& places : {traces.places, traces.second_places})
    inputs.insert(inputs.end(), places.begin(), places.end());
  return inputs;
}

// Sensitivities as JSON cannot be combined with other outputs.
Status check_sensitivity(const PredictOptions& options) {
  if (!options.shared.sensitivity || !options.shared.json) return Ok{};
  for (const char* flag : {"--explain", "--train-tokens", "--train-samples", "--train-iterations"})
    if (options.flags.is_given(flag))
      return Error{fmt::format("--sensitivity --json prints only sensitivities, not the output of {}", flag)}
          .advice("run it twice, or leave out --json");
  return Ok{};
}

Status check_batches(std::string_view flag, const std::vector<std::int64_t>& batches, std::int64_t most) {
  for (const std::int64_t batch : batches)
    if (batch < 1 || batch > most)
      return Error::at("", std::string{flag})
          .found(fmt::format("{}", batch))
          .expected("samples per rank, from 1 on");
  return Ok{};
}

Result<PredictTraceRequest> request_of_traces(const PredictOptions& options) {
  const SharedOptions& shared = options.shared;
  const PredictRequest& step = options.step.request;
  const std::vector<std::int64_t>& recorded = options.traces.recorded_batches;
  PredictTraceRequest request = options.traces.request;
  request.timeline = shared.timeline;
  request.chakra = shared.chakra;
  request.chakra_per_rank = step.chakra_per_rank;
  request.what_if = step.what_if;
  request.budget = step.budget;
  request.dtype = options.step.dtype;
  request.links_of = shared.links_of;
  request.spread.seed = shared.seed;
  if (options.flags.is_given("--platform")) request.platform = step.platform;
  if (options.step.words.recompute == "none") {
    return Error::at("", "--recompute")
        .found("`none`")
        .expected("full or selective for recorded traces, or no flag: as recorded");
  }
  request.recompute = options.step.words.recompute;
  if (!options.traces.ranks.empty()) {
    STEPCAST_ASSIGN(request.ranks, parse_ranks(options.traces.ranks));
  }
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  STEPCAST_TRY(check_batches("--batch", shared.batches, kAny));
  STEPCAST_TRY(check_batches("--recorded-batch", recorded, kAny));
  if (recorded.size() > 2) {
    return Error::at("", "--recorded-batch")
        .found(fmt::format("{} batches", recorded.size()))
        .expected("the batch of --trace, and after a comma that of --second-trace");
  }
  if (!recorded.empty()) request.recorded_batch = recorded[0];
  if (recorded.size() == 2) request.second_batch = recorded[1];
  if (shared.batches.size() == 1) request.batch = shared.batches.front();
  return request;
}

// Prints a forecast and writes its report. `explained`: its operations were requested.
Status give_forecast(const PredictOptions& options, const ReportOutput& report, const Report& answer,
                     bool explained) {
  const auto json = [&] {
    Forecast plain = answer.forecast;
    if (!explained) plain.explained.clear();
    return forecast_json(plain);
  };
  ForecastIllustrations how = answer.illustrations();
  how.made_for = report.made_for();
  how.explains = explained;
  how.prints_sensitivity = options.shared.sensitivity;
  ReportDocument document = forecast_document(answer.forecast, how);
  if (report.is_wanted()) document.json = json();
  return report.answer(document, !options.shared.json         ? std::string{}
                                 : options.shared.sensitivity ? sensitivity_json(answer.sensitivity)
                                                              : json());
}

// Forecasts for several batches, in ascending order.
Result<int> predict_batches(const PredictOptions& options, PredictTraceRequest request,
                            const Session& session) {
  if (options.shared.sensitivity)
    return Error{"--sensitivity needs one batch"}.advice("name one with --batch");
  if (!options.described.advice.empty())
    return Error{"--advice needs one batch"}.advice("name one with --batch, or leave out --advice");
  if (!request.timeline.empty())
    return Error{"--timeline needs one batch"}.advice("name one with --batch, or leave out --timeline");
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.shared.report, inputs_of(options)));
  std::vector<std::int64_t> batches = options.shared.batches;
  std::ranges::sort(batches);
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  std::vector<BatchForecast> series;
  std::optional<ProgressLine> progress{std::in_place, "predict from traces"};
  for (const std::int64_t batch : batches) {
    request.batch = batch;
    request.progress = progress->reading(
        fmt::format("predict from traces: batch {} of {}", series.size() + 1, batches.size()));
    STEPCAST_ASSIGN(Forecast forecast, session.predict(request));
    series.push_back({batch, std::move(forecast)});
  }
  progress.reset();
  return report.finish(batch_series_document(series, report.made_for()),
                       options.shared.json ? batch_series_json(series) : std::string{});
}

// Prints which ranks share a trace file: the ranks of a class have equal steps.
void note_chakra(const PredictOptions& options, const Forecast& forecast) {
  if (options.shared.chakra.empty()) return;
  print("\nChakra traces written to {}\n",
        in_one_line((std::filesystem::path{options.shared.chakra} / "step.*.et").string()));
  if (options.step.request.chakra_per_rank) {
    print("  one per rank; their process groups are in comm_groups.json\n");
    return;
  }
  for (std::size_t c = 0; c < forecast.classes.size(); ++c) {
    const ForecastClass& one = forecast.classes[c];
    if (one.n_ranks < 2) continue;
    print(
        "  step.{}.et: one rank of {}, for {} equal ranks; transfers among them have their own process "
        "group\n",
        c, one.name, one.n_ranks);
  }
}

// Prints which other files were written; not with JSON.
void note_files(const PredictOptions& options, const ReportOutput& report, const Forecast& forecast) {
  if (options.shared.json || report.replaces_text()) return;
  if (!options.shared.timeline.empty()) print_timeline_note(options.shared.timeline);
  note_chakra(options, forecast);
  report.note();
}

// Forecasts the run of a log and compares the two.
Result<int> run_log(const PredictOptions& options) {
  PredictLogRequest request;
  request.log = options.log.log;
  STEPCAST_ASSIGN(const DescribedStep step, described(options));
  STEPCAST_ASSIGN(request.request, request_of(step));
  if (!step.platform_is_named) request.request.platform.clear();
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.shared.report, inputs_of(options)));
  request.pictures = report.is_wanted();
  request.anchors = step.measured.empty();
  const Session session;
  std::optional<ProgressLine> progress{std::in_place, "predict from a log"};
  request.progress = progress->reading("predict from a log");
  STEPCAST_ASSIGN(PredictedLog predicted, session.predict(request));
  progress.reset();
  if (request.anchors && predicted.forecast.anchor) {
    Report answer{std::move(predicted.forecast), std::move(predicted.sensitivity),
                  std::move(predicted.pictures)};
    STEPCAST_TRY(give_forecast(options, report, answer, step.request.explained));
    note_files(options, report, answer.forecast);
    return kSuccess;
  }
  ForecastIllustrations how = predicted.illustrations();
  how.made_for = report.made_for();
  STEPCAST_TRY(report.answer(
      log_forecast_document(predicted.forecast, *predicted.run, predicted.comparison, how),
      options.shared.json ? predicted_log_json(predicted.forecast, *predicted.run, predicted.comparison)
                          : std::string{}));
  if (report.replaces_text()) return kSuccess;
  if (!options.shared.timeline.empty() && !options.shared.json) print_timeline_note(options.shared.timeline);
  if (!options.shared.json) report.note();
  return kSuccess;
}

bool is_asked_of(std::string_view verb) {
  const std::vector<std::string> given = given_words();
  return !given.empty() && given.front() == verb;
}

Result<int> run_traces(const PredictOptions& options) {
  const Session session;
  STEPCAST_ASSIGN(PredictTraceRequest request, request_of_traces(options));
  if (options.shared.batches.size() > 1) return predict_batches(options, request, session);
  std::optional<ProgressLine> progress{std::in_place, "predict from traces"};
  request.progress = progress->reading("predict from traces");
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.shared.report, inputs_of(options)));
  std::shared_ptr<const KeptStep> kept;
  const bool prints_sensitivities = options.shared.sensitivity && options.shared.json;
  if (wants_advice(options.described.advice) && is_asked_of("predict") && !prints_sensitivities)
    request.keeps = [&](std::shared_ptr<const KeptStep> step) { kept = std::move(step); };
  Report answer;
  if (report.is_wanted()) {
    STEPCAST_ASSIGN(answer, session.report(request));
  } else if (options.shared.sensitivity) {
    STEPCAST_ASSIGN(answer, session.sensitivity(request));
  } else {
    STEPCAST_ASSIGN(answer.forecast, session.predict(request));
  }
  if (kept != nullptr)
    answer.forecast.what_to_change = what_to_change(given_words(), {session, *kept, answer.forecast});
  progress.reset();
  STEPCAST_TRY(give_forecast(options, report, answer, true));
  note_files(options, report, answer.forecast);
  return kSuccess;
}

// The first flag with several values that `subject` accepts only once, or that makes a series; empty if there is none.
std::string_view flag_with_several(const PredictOptions& options, const Subject& subject,
                                   bool takes_several) {
  for (const auto& [flag, values] : {std::pair{"--gpus", &options.shared.n_gpus},
                                     {"--mbs", &options.described.micro_batches},
                                     {"--gbs", &options.shared.global_batches},
                                     {"--batch", &options.shared.batches}})
    if (values->size() > 1 && is_among(flag, subject.several) == takes_several) return flag;
  return {};
}

// Errors: options of a single step in a series; `max` together with a number.
Status check_series(const PredictOptions& options, std::string_view several) {
  for (const GivenFlag& flag : options.flags.given())
    if ((flag.of & bit(Question::series)) == 0 && (flag.of & bit(Question::described)) != 0)
      return Error{fmt::format("{} has several values, but {} needs one step", several, flag.name)}.advice(
          "name one value");
  for (const auto& [flag, values] : {std::pair{"--mbs", &options.described.micro_batches},
                                     std::pair{"--gbs", &options.shared.global_batches}})
    if (std::ranges::find(*values, kLargest) != values->end())
      return Error::at("", flag)
          .found("`max` in a series")
          .expected("numbers, or `max` alone and one value of the other flags");
  return Ok{};
}

// The question about a step of any subject. `words` receives the options of a layout.
Result<StepQuestion> step_of(const PredictOptions& options, Question question, DescribedStep& words) {
  const SharedOptions& shared = options.shared;
  STEPCAST_ASSIGN(words, described(options));
  StepQuestion asked{words.request, options.rl, options.recommendation.request};
  if (is_laid_out(question)) {
    STEPCAST_ASSIGN(asked.step, request_of(words));
  }
  PredictDlrmRequest& recommendation = asked.recommendation;
  recommendation.links_of = shared.links_of;
  recommendation.settings = {{"stack", options.recommendation.stack},
                             {"release", options.recommendation.release},
                             {"dtype", options.step.dtype},
                             {"exchange_dtype", options.recommendation.exchange_dtype}};
  if (!shared.batches.empty() && !shared.global_batches.empty())
    return Error{"--batch is samples per rank, --gbs those of all ranks"}.advice("leave one of the two out");
  if (!shared.batches.empty()) recommendation.batch_per_rank = shared.batches.front();
  STEPCAST_TRY(check_batches("--batch", shared.batches, 1 << 30));
  return asked;
}

// Prints a series of forecasts.
Result<int> run_series(const PredictOptions& options, const Subject& subject, const StepQuestion& question,
                       const DescribedStep& words, std::string_view several) {
  STEPCAST_TRY(check_series(options, several));
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.shared.report, inputs_of(options)));
  StepSeries asked{options.shared.n_gpus, {}, {}, options.described.same_layout, options.shared.batches};
  if (options.described.micro_batches.size() > 1) asked.micro_batches = options.described.micro_batches;
  if (options.shared.global_batches.size() > 1) asked.global_batches = options.shared.global_batches;
  std::optional<ProgressLine> progress{std::in_place, "predict a series"};
  STEPCAST_ASSIGN(std::vector<ScalingPoint> series,
                  subject.series(*session_for_question(question.step.platform), question, asked));
  progress.reset();
  if (is_laid_out(subject.question)) add_notes(words, series.front().forecast);
  return report.finish(scaling_series_document(series, report.made_for()),
                       options.shared.json ? scaling_series_json(series) : std::string{});
}

Result<int> give(const PredictOptions& options, const ReportOutput& report, const RlReport& answer) {
  ReportDocument document = rl_document(answer.forecast);
  add_sensitivity(document, answer.sensitivity, Shown::everywhere);
  STEPCAST_TRY(report.answer(document, !options.shared.json         ? std::string{}
                                       : options.shared.sensitivity ? sensitivity_json(answer.sensitivity)
                                                                    : rl_json(answer.forecast)));
  note_files(options, report, {});
  return kSuccess;
}

Result<int> give(const PredictOptions& options, const ReportOutput& report, const Report& answer) {
  const std::optional<ForecastMemory>& memory = answer.forecast.memory;
  const bool fits = !memory || memory->margin_GiB >= 0;
  STEPCAST_TRY(give_forecast(options, report, answer, options.step.request.explained));
  note_files(options, report, answer.forecast);
  return options.described.require_fit && !fits ? kDoesNotFit : kSuccess;
}

Result<int> run_step(const PredictOptions& options, const Subject& subject) {
  DescribedStep words;
  STEPCAST_ASSIGN(StepQuestion question, step_of(options, subject.question, words));
  STEPCAST_TRY(check_what_ifs(subject, question.step.what_if));
  if (const std::string_view several = flag_with_several(options, subject, true); !several.empty())
    return run_series(options, subject, question, words, several);
  if (options.shared.sensitivity && subject.sensitivity == nullptr)
    return Error{fmt::format("--sensitivity is not supported for {}", subject.called)};
  if (options.described.same_layout && subject.series != nullptr)
    return Error{"--same-layout needs several GPUs or batches"}.advice("as --gpus 64,128,256");
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.shared.report, inputs_of(options)));
  // A terminal with --details shows no other rank classes. The first screen has a sentence about all GPUs, so
  // it needs them.
  question.step.only_critical = options.shared.report.details && !report.is_wanted() &&
                                !options.shared.json && !options.shared.sensitivity &&
                                question.step.chakra.empty();
  const auto ask = report.is_wanted() && subject.report != nullptr ? subject.report
                   : options.shared.sensitivity                    ? subject.sensitivity
                                                                   : subject.predict;
  const std::shared_ptr<const Session> session = session_for_question(question.step.platform);
  std::optional<ProgressLine> progress{std::in_place, "predict a step"};
  STEPCAST_ASSIGN(StepAnswer answer, ask(*session, question));
  if (auto* step = std::get_if<Report>(&answer); step != nullptr && is_laid_out(subject.question)) {
    add_notes(words, step->forecast);
    const bool is_wanted = wants_advice(options.described.advice);
    const bool prints_sensitivities = options.shared.sensitivity && options.shared.json;
    if (is_wanted && is_asked_of("predict") && !prints_sensitivities) {
      progress->say("look for changes that save time");
      step->forecast.what_to_change = what_to_change(given_words(), *session, question.step, step->forecast);
    }
  }
  progress.reset();
  return std::visit([&](const auto& given) { return give(options, report, given); }, answer);
}

Result<int> run_predict(const PredictOptions& options) {
  STEPCAST_TRY(check_sensitivity(options));
  const Subject& subject = subject_of(options);
  STEPCAST_ASSIGN(const Question question, question_of(options, subject));
  const auto asks_largest = [](const std::vector<std::int64_t>& values) {
    return std::ranges::find(values, kLargest) != values.end();
  };
  if ((asks_largest(options.described.micro_batches) || asks_largest(options.shared.global_batches)) &&
      question != Question::described)
    return Error{"--mbs max and --gbs max need a described step"}.advice("say a number");
  if (question == Question::traces) return run_traces(options);
  const std::string_view several = flag_with_several(options, subject, question == Question::log);
  if (!several.empty()) {
    return Error::at("", std::string{several})
        .found("several values")
        .expected(question == Question::log || subject.several.empty()
                      ? "one; lists are for described steps, and lists of GPUs for recommendation models"
                      : fmt::format("one; {} accepts several",
                                    subject.several.substr(subject.several.rfind(' ') + 1)));
  }
  return question == Question::log ? run_log(options) : run_step(options, subject);
}

}  // namespace

namespace {

// Parses `words` into `options`, which are declared on `app`.
Status parse_words(std::vector<std::string> words, CLI::App& app, PredictOptions& options) {
  declare_predict_options(app, options);
  make_strict(app);
  std::ranges::reverse(words);  // CLI11 expects them in reverse order
  try {
    app.parse(std::move(words));
  } catch (const CLI::Error& problem) {
    return Error{problem.what()};
  }
  return Ok{};
}

}  // namespace

Result<PredictRequest> request_in_words(std::vector<std::string> words) {
  CLI::App app;
  PredictOptions options{app};
  STEPCAST_TRY(parse_words(std::move(words), app, options));
  STEPCAST_ASSIGN(const DescribedStep step, described(options));
  return request_of(step);
}

Result<PredictTraceRequest> trace_request_in_words(std::vector<std::string> words) {
  CLI::App app;
  PredictOptions options{app};
  STEPCAST_TRY(parse_words(std::move(words), app, options));
  return request_of_traces(options);
}

Verb predict_verb() {
  return {"predict", "predict a training step from a description, or from traces for another machine",
          [](CLI::App& app) {
            auto options = std::make_shared<PredictOptions>(app);
            declare_predict_options(app, *options);
            return [options] { return run_predict(*options); };
          }};
}

// stepcast export: a prediction that is only made for its output files.
Verb export_verb() {
  Verb verb = predict_verb();
  verb.name = "export";
  verb.summary = "write a recorded or described step as Chakra execution traces";
  verb.declare = [declare = verb.declare](CLI::App& app) {
    Action action = declare(app);
    app.get_option("--chakra")->required();
    app.footer("`export` accepts the flags of `predict`.");
    return action;
  };
  return verb;
}

}  // namespace stepcast::cli
