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
#include "stepcast/describe/dlrm_job.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/report/batch_series.h"
#include "stepcast/report/log_report.h"
#include "stepcast/report/scaling_series.h"
#include "stepcast/trace/file_ranks.h"

#include "described_step.h"
#include "option_values.h"
#include "outputs.h"
#include "progress.h"
#include "report_output.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::string framework, dtype;
  std::string command_line, torchtitan, deepspeed, from_log;
  PredictRequest request;
  PredictTraceRequest traces;
  std::string ranks;
  bool json = false, require_fit = false, sensitivity = false;
  std::optional<std::int64_t> nodes;
  std::vector<std::int64_t> batches, recorded_batches, gpus;
  std::string timeline, chakra;
  bool chakra_per_rank = false;
  ReportOptions report;
  std::string tables, indices, plan;  // of recommendation models
  CLI::App* app = nullptr;            // holds the flags that Megatron knows and we pass on
};

// What the flags say of a step that nobody recorded.
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
  step.nodes = options.nodes;
  step.platform_is_named = options.app->get_option("--platform")->count() > 0;
  return step;
}

// Options that mean something with --trace alone, and those that mean something with it, too; all others describe a
// step.
constexpr auto kOfTracesAlone = std::to_array<std::string_view>({"--recorded-on",
                                                                 "--kernels",
                                                                 "--host",
                                                                 "--step",
                                                                 "--ranks",
                                                                 "--ranks-from",
                                                                 "--batch",
                                                                 "--recorded-batch",
                                                                 "--second-trace",
                                                                 "--like-median-rank",
                                                                 "--tokens-per-step",
                                                                 "--overlap",
                                                                 "--bucket-size-mb",
                                                                 "--recompute",
                                                                 "--data-parallel-ranks",
                                                                 "--samples-per-step",
                                                                 "--links-of",
                                                                 "--rank-platform",
                                                                 "--published-algorithm",
                                                                 "--all-steps",
                                                                 "--scenarios",
                                                                 "--seed",
                                                                 "--jitter"});
constexpr auto kOfBoth = std::to_array<std::string_view>(
    {"--sensitivity", "--chakra", "--per-rank", "--report", "--format", "--trace", "--platform", "--what-if",
     "--train-tokens", "--train-samples", "--train-iterations", "--gpu-hour-price", "--gpu-power-watts",
     "--timeline", "--json", "--dtype"});

// The run of a log, forecast and held against it.
Result<int> run_log(const Options& options) {
  for (const char* flag : {"--sensitivity", "--explain", "--published", "--require-fit", "--report"}) {
    if (options.app->get_option(flag)->count() > 0)
      return Error{fmt::format("{} is not for --from-log", flag)}.advice("predict the run without its log");
  }
  if (options.report.format == "md") return Error{"--format md is not for --from-log"}.advice("json or text");
  PredictLogRequest request;
  request.log = options.from_log;
  const DescribedStep step = described(options);
  STEPCAST_ASSIGN(request.request, request_of(step));
  if (!step.platform_is_named) request.request.platform.clear();
  const Session session;
  std::optional<ProgressLine> progress{std::in_place, "predict from a log"};
  request.progress = progress->reading("predict from a log");
  STEPCAST_ASSIGN(const PredictedLog predicted, session.predict(request));
  progress.reset();
  print("{}", options.json ? predicted_log_json(predicted.forecast, *predicted.run, predicted.comparison)
                           : predicted_log_text(predicted.forecast, *predicted.run, predicted.comparison));
  if (!options.timeline.empty() && !options.json) {
    print("\nTimeline written to {}: open it at https://ui.perfetto.dev\n", options.timeline);
  }
  return kSuccess;
}

Status check_options(const Options& options) {
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
    if (!traces && alone)
      return Error{fmt::format("{} belongs to --trace", name)}.advice("name the traces, too");
  }
  if (traces && !options.app->remaining().empty()) {
    return Error{fmt::format("{} is not known beside --trace", options.app->remaining().front())};
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

// A report is of one answer.
Status check_one_answer(const Options& options) {
  if (options.report.file.empty() && options.report.format != "md") return Ok{};
  return Error{"a report shows one forecast"}.advice(
      "name one batch and one number of GPUs, or leave out --report and --format md");
}

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

// The page and the Markdown of a forecast; their JSON is what --json prints.
Status give_report(const ReportOutput& report, const Illustrated& answer, bool explained) {
  ReportDocument document = forecast_document(answer.forecast, answer.illustrations());
  if (!explained && !answer.forecast.explained.empty()) {
    Forecast plain = answer.forecast;
    plain.explained.clear();
    document.json = forecast_json(plain);
  }
  return report.give(document);
}

// One forecast for each batch, in ascending order.
Result<int> predict_batches(const Options& options, PredictTraceRequest request, const Session& session) {
  if (options.sensitivity) {
    return Error{"sensitivities are those of one batch"}.advice("name one with --batch");
  }
  STEPCAST_TRY(check_one_answer(options));
  if (!request.timeline.empty()) {
    return Error{"a time line shows one batch"}.advice("name one with --batch, or leave out --timeline");
  }
  std::vector<std::int64_t> batches = options.batches;
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  std::vector<BatchForecast> series;
  for (const std::int64_t batch : batches) {
    request.batch = batch;
    STEPCAST_ASSIGN(Forecast forecast, session.predict(request));
    series.push_back({batch, std::move(forecast)});
  }
  print("{}", options.json ? batch_series_json(series) : batch_series_text(series));
  return kSuccess;
}

// Which ranks share a file: those of a class do the same.
void note_chakra(const Options& options, const Forecast& forecast) {
  if (options.chakra.empty() || options.json) return;
  print("\nChakra traces written to {}\n", (std::filesystem::path{options.chakra} / "step.*.et").string());
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
    STEPCAST_TRY(check_one_answer(options));
    STEPCAST_ASSIGN(const std::vector<ScalingPoint> series,
                    session.predict_series(request, options.gpus, options.batches));
    print("{}", options.json ? scaling_series_json(series) : scaling_series_text(series));
    return kSuccess;
  }
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  Illustrated answer;
  if (report.is_wanted()) {
    STEPCAST_ASSIGN(answer, session.illustrate(request));
    STEPCAST_TRY(give_report(report, answer, true));
    if (report.is_markdown()) return kSuccess;
  } else {
    STEPCAST_ASSIGN(answer.forecast, session.predict(request));
  }
  print("{}", options.json ? forecast_json(answer.forecast) : forecast_text(answer.forecast));
  if (!options.timeline.empty() && !options.json) {
    print("\nTimeline written to {}: open it at https://ui.perfetto.dev\n", options.timeline);
  }
  if (!options.json) report.note();
  return kSuccess;
}

// As much of an answer as was asked for.
template <class Request>
Status answer_into(Illustrated& answer, const Request& request, const Options& options,
                   const ReportOutput& report, const Session& session) {
  if (report.is_wanted()) {
    STEPCAST_ASSIGN(answer, session.illustrate(request));
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
    Illustrated sensitive;
    STEPCAST_TRY(answer_into(sensitive, request, options, report, session));
    progress.reset();
    if (report.is_wanted()) STEPCAST_TRY(give_report(report, sensitive, true));
    if (report.is_markdown()) return kSuccess;
    if (options.json) {
      print("{}", options.sensitivity ? sensitivity_json(sensitive.sensitivity)
                                      : forecast_json(sensitive.forecast));
    } else {
      print("{}", forecast_text(sensitive.forecast));
      if (options.sensitivity) print("{}", sensitivity_text(sensitive.sensitivity));
    }
    if (!options.timeline.empty() && !options.json) {
      print("\nTimeline written to {}: open it at https://ui.perfetto.dev\n", options.timeline);
    }
    note_chakra(options, sensitive.forecast);
    if (!options.json) report.note();
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
  Illustrated sensitive;
  Forecast& forecast = sensitive.forecast;
  STEPCAST_TRY(answer_into(sensitive, request, options, report, session));
  add_notes(step, forecast);
  const bool fits = !forecast.memory || forecast.memory->margin_GiB >= 0;
  const int code = options.require_fit && !fits ? kDoesNotFit : kSuccess;
  if (report.is_wanted()) STEPCAST_TRY(give_report(report, sensitive, request.explained));
  if (report.is_markdown()) return code;
  if (!request.explained) forecast.explained.clear();
  if (options.json) {
    print("{}", options.sensitivity ? sensitivity_json(sensitive.sensitivity) : forecast_json(forecast));
    return code;
  }
  if (request.explained) print("{}\n", explained_text(forecast));
  print("{}", forecast_text(forecast));
  if (options.sensitivity) print("{}", sensitivity_text(sensitive.sensitivity));
  if (!options.timeline.empty()) {
    print("\nTimeline written to {}: open it at https://ui.perfetto.dev\n", options.timeline);
  }
  note_chakra(options, forecast);
  report.note();
  return code;
}

// Under headings in --help; what is not named here stands under the last one.
void group_options(CLI::App& app) {
  constexpr std::string_view kTrace = "Recorded traces on another machine";
  constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
      {"model", "What is trained, and where"},
      {"ignore-key", "What is trained, and where"},
      {"platform", "What is trained, and where"},
      {"gpus", "What is trained, and where"},
      {"nodes", "What is trained, and where"},
      {"gpus-per-node", "What is trained, and where"},
      {"framework", "What is trained, and where"},
      {"dtype", "What is trained, and where"},
      {"command-line", "Descriptions of other software"},
      {"torchtitan", "Descriptions of other software"},
      {"deepspeed", "Descriptions of other software"},
      {"from-log", "Descriptions of other software"},
      {"train-tokens", "A whole training"},
      {"train-samples", "A whole training"},
      {"train-iterations", "A whole training"},
      {"gpu-hour-price", "A whole training"},
      {"gpu-power-watts", "A whole training"},
      {"json", "Result"},
      {"report", "Result"},
      {"format", "Result"},
      {"explain", "Result"},
      {"published", "Result"},
      {"sensitivity", "Result"},
      {"timeline", "Result"},
      {"chakra", "Result"},
      {"require-fit", "Result"},
      {"what-if", "Result"}};
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_name() == "--help") continue;
    const auto is_in = [&](std::string_view name) { return option->check_lname(std::string{name}); };
    option->group("Layout and batch");
    for (const auto& [name, group] : kGroups) {
      if (is_in(name)) option->group(std::string{group});
    }
    for (const std::string_view name : kOfTracesAlone) {
      if (is_in(name.substr(2))) option->group(std::string{kTrace});
    }
    if (is_in("trace")) option->group(std::string{kTrace});
  }
}

}  // namespace

Verb predict_verb() {
  return {
      "predict", "predict a training step from a description, or from traces on another machine",
      [](CLI::App& app) {
        auto options = std::make_shared<Options>();
        options->app = &app;
        app.allow_extras();
        app.footer(
            "Memory, as flags of Megatron-LM, of which all that change a step are understood as they are\n"
            "(`stepcast reference megatron-flags`):\n"
            "  --use-distributed-optimizer                 ZeRO-1: optimizer states are sharded\n"
            "  --zero-stage 0|1|2|3, --use-megatron-fsdp   ZeRO, FSDP: gradients and weights, too (or "
            "--framework fsdp)\n"
            "  --recompute-granularity full|selective      recompute layers, or the core of attention\n"
            "  --sequence-parallel                         with --tp: norms are split as well\n"
            "  --optimizer-cpu-offload                     optimizer states in the memory of the host\n"
            "Without any of these and without a degree, the usual layout that needs least and fits is taken "
            "and named.\n"
            "Numbers: 8k is 8192, 15T is 15e12, 1e3 is 1000. What is said in several places holds in this "
            "order, the\n"
            "later the stronger: the model and our defaults, the habits of --framework, --command-line, "
            "--torchtitan\n"
            "or --deepspeed, flags. Exit code 3: --require-fit and it does not fit. Examples:\n"
            "  stepcast predict --model llama-3-8b --gpus 8\n"
            "  stepcast predict --model llama-3-70b --platform dgx-h100 --gpus 512 --tp 4 --pp 4 --gbs 512 "
            "\\\n"
            "    --sequence-parallel --use-distributed-optimizer\n"
            "  stepcast predict --trace traces/ --platform 8xmi300x --what-if host=1.5x");
        app.add_option(
            "--model", options->request.job.model,
            "name of a preset, a Hugging Face config.json, or a recommendation model (docs/dlrm.md)");
        app.add_option("--ignore-key", options->request.job.ignored_model_keys,
                       "key of config.json that is read as if it were not there; several with commas")
            ->delimiter(',')
            ->allow_extra_args(false);
        app.add_option("--tables", options->tables,
                       "recommendation models: CSV file of the embedding tables");
        app.add_option("--indices", options->indices,
                       "recommendation models: .npz file of the indices of a batch (default: a power law)");
        app.add_option("--plan", options->plan,
                       "recommendation models: TorchRec's sharding plan (default: found by search)");
        app.add_option("--platform", options->request.platform,
                       "name of a shipped platform, or a platform file")
            ->capture_default_str();
        app.add_option(
               "--gpus", options->gpus,
               "GPUs in all; what the layout leaves is data parallel. Recommendation models: several, "
               "as 4,16,128, are shown side by side")
            ->delimiter(',');
        app.add_option("--nodes", options->nodes, "nodes of the platform, instead of --gpus");
        app.add_option(
            "--gpus-per-node", options->request.job.gpus_per_node,
            "GPUs that the fast links of a node join, where they are not as many as the platform has");
        app.add_option("--tp,--tensor-model-parallel-size", options->request.job.settings.tensor,
                       "tensor parallel degree");
        app.add_option("--pp,--pipeline-model-parallel-size", options->request.job.settings.pipeline,
                       "pipeline parallel degree");
        app.add_option("--cp,--context-parallel-size", options->request.job.settings.context,
                       "context parallel degree");
        app.add_option("--ep,--expert-model-parallel-size", options->request.job.settings.expert,
                       "expert parallel degree");
        app.add_option("--expert-load", options->request.job.settings.expert_load,
                       "how tokens spread over experts: balanced, power-law:1.2, or a file with the load of "
                       "every expert; prints what the busiest rank costs");
        app.add_option("--mbs,--micro-batch-size", options->request.job.settings.micro_batch_sequences,
                       "sequences per micro-batch")
            ->check(above_zero);
        app.add_option("--gbs,--global-batch-size", options->request.job.settings.global_batch_sequences,
                       "sequences per step")
            ->check(above_zero);
        app.add_option("--seq,--seq-length", options->request.job.settings.seq_len_tokens,
                       "tokens per sequence")
            ->check(above_zero);
        app.add_option("--lora-rank", options->request.job.settings.lora_rank,
                       "rank of low-rank adapters (LoRA) on attention; the weights of the model are frozen");
        app.add_option("--packed-mean-tokens", options->request.job.settings.packed_mean_tokens,
                       "mean length of the sequences that are packed into one of --seq tokens");
        app.add_option("--dtype", options->dtype,
                       "bf16, fp16, fp32, or fp8 or fp4 (products alone, on top of bf16); --trace: tf32, too")
            ->check(CLI::IsMember({"bf16", "fp16", "fp32", "fp8", "fp4", "tf32"}));
        app.add_option(
            "--framework", options->framework,
            "whose kernels and overlaps: megatron, nemo, torchtitan, fsdp, deepspeed, neox, pytorch, "
            "libai");
        app.add_option("--command-line", options->command_line,
                       "a whole Megatron-LM command line, or the launch script that holds it; flags beside "
                       "it hold against it");
        app.add_option("--torchtitan", options->torchtitan,
                       "a TorchTitan job config (TOML); flags beside it hold against it");
        app.add_option("--deepspeed", options->deepspeed,
                       "a DeepSpeed config (JSON); flags beside it hold against it");
        app.add_option(
            "--from-log", options->from_log,
            "the log of a training run: forecasts what it ran, from the settings that it prints and "
            "the flags beside it, and compares (docs/logs.md)");
        app.add_option("--trace", options->traces.places,
                       "predict recorded ranks instead: a folder with their traces, or the files");
        app.add_option("--recorded-on", options->traces.recorded_on,
                       "--trace: the platform that stands for the machine that recorded (default: the one "
                       "with its GPU)");
        app.add_option("--kernels", options->traces.kernels,
                       "--trace: times of GPU work as recorded, from models of the platform, or recorded "
                       "times the ratio of the models (default: ratio with --platform, recorded without)")
            ->check(CLI::IsMember({"recorded", "models", "ratio"}));
        app.add_option("--host", options->traces.host,
                       "--trace: times of CPU threads as recorded, or from the overheads of the platform")
            ->check(CLI::IsMember({"recorded", "overheads"}));
        app.add_option("--step", options->traces.step,
                       "--trace: number N of ProfilerStep#N (default: the last that all ranks have)");
        app.add_option("--ranks", options->ranks, "--trace: only these ranks, e.g. 0,2-5");
        app.add_option("--ranks-from", options->traces.ranks_from,
                       "--trace: where the rank stands in the files' names, as in 'host{}_gpu'");
        app.add_flag("--like-median-rank", options->traces.median_ranks,
                     "--trace: no stragglers, every rank computes and launches as fast as the median rank");
        app.add_option(
               "--batch", options->batches,
               "samples per rank, with --trace instead of the recorded ones, and of recommendation models; "
               "several, as 64,128,256, are shown side by side")
            ->delimiter(',');
        app.add_option(
               "--recorded-batch", options->recorded_batches,
               "--trace: samples per rank that were recorded (default: as the shapes show), and behind a "
               "comma those of --second-trace")
            ->delimiter(',');
        app.add_option("--second-trace", options->traces.second_places,
                       "--trace: the same ranks recorded at another batch, a folder or files");
        app.add_option(
               "--overlap", options->traces.overlap,
               "--trace: none (no computation beside a transfer) or perfect (nothing waits for transfers)")
            ->check(CLI::IsMember({"none", "perfect"}));
        app.add_option("--bucket-size-mb", options->traces.bucket_mb,
                       "--trace: gradients are reduced in buckets of so many MiB (DistributedDataParallel's "
                       "bucket_cap_mb)")
            ->check(above_zero);
        app.add_option("--recompute", options->traces.recompute,
                       "--trace: full (every block of layers runs its forward again before its backward) or "
                       "selective (the core of attention does)")
            ->check(CLI::IsMember({"full", "selective"}));
        app.add_option("--data-parallel-ranks", options->traces.data_parallel_ranks,
                       "--trace: so many ranks join the transfers that all recorded ranks share");
        app.add_option("--links-of", options->traces.links_of,
                       "--trace: transfers go over the links of this platform, PCIe instead of NVLink say");
        app.add_option(
            "--rank-platform", options->traces.rank_platforms,
            "--trace: RANK=PLATFORM, this rank computes on another device; may be given several times");
        app.add_flag(
            "--published-algorithm", options->traces.published_algorithm,
            "--trace: Algorithm 1 of Lin et al. (TPDS 2024) by its own rules instead, from execution traces");
        app.add_flag("--all-steps", options->traces.spread.all_steps,
                     "--trace: every recorded step by itself: p50, p90, p99, what their spread comes from");
        app.add_option("--scenarios", options->traces.spread.scenarios,
                       "--trace: so many straggler scenarios, drawn from the measured steps or ranks")
            ->check(CLI::Range(1, 10000000));
        app.add_option("--seed", options->traces.spread.seed, "--trace: of the scenarios")
            ->capture_default_str();
        app.add_option("--jitter", options->traces.spread.jitter,
                       "--trace: draw this instead: 5% (host and GPU), host=10%, gpu=2%, network=20%")
            ->delimiter(',');
        app.add_option("--samples-per-step", options->traces.samples_per_step,
                       "--trace: samples that all ranks take per step")
            ->check(above_zero);
        app.add_option("--tokens-per-step", options->traces.tokens_per_step,
                       "--trace: tokens that all ranks take per step")
            ->check(above_zero);
        app.add_option(
               "--what-if", options->request.what_if,
               "how it would be with faster parts: nvlink=2x, network, gemm, attention, memory_bound, host; "
               "recommendation models: reuse=2x, rank_skew=1.3x, too")
            ->delimiter(',');
        app.add_option("--train-tokens", options->request.budget.tokens,
                       "tokens to train on: steps, days, GPU-hours")
            ->check(above_zero);
        app.add_option("--train-samples", options->request.budget.samples,
                       "sequences to train on, instead of tokens")
            ->check(above_zero);
        app.add_option("--train-iterations", options->request.budget.iterations,
                       "steps to train, instead of tokens")
            ->check(above_zero);
        app.add_option("--gpu-hour-price", options->request.budget.price_per_gpu_hour, "price of a GPU-hour")
            ->check(above_zero);
        app.add_option("--gpu-power-watts", options->request.budget.power_per_gpu_W,
                       "power of a GPU with its share of the host")
            ->check(above_zero);
        app.add_flag("--explain", options->request.explained,
                     "the operations of a layer with times and sources");
        app.add_flag("--published", options->request.published,
                     "beside ours, the composition of the published operator-level method");
        app.add_flag("--require-fit", options->require_fit,
                     "exit with code 3 if the memory does not suffice");
        add_output_option(app, "--timeline", options->timeline,
                          "write the step as Chrome trace JSON, compressed if the name ends in .gz");
        app.add_option(
               "--chakra", options->chakra,
               "write the step as Chakra execution traces into this folder, one per rank or pipeline stage")
            ->check([](const std::string& folder) {
              return folder.empty() ? std::string{"found no name, expected a folder"} : std::string{};
            });
        app.add_flag("--per-rank", options->chakra_per_rank,
                     "one Chakra trace of every rank, and comm_groups.json, as ASTRA-sim reads them")
            ->needs("--chakra");
        app.add_flag("--sensitivity", options->sensitivity,
                     "which resource would make the step how much shorter if it were 10 % faster");
        app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
        add_report_options(app, options->report, options->json);
        group_options(app);
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
