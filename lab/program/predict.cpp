// stepcast-lab predict: forecasts by published methods, for comparison.

#include <memory>
#include <string>

#include "stepcast/report/forecast_document.h"
#include "stepcast/report/forecast_json.h"

#include "described_step.h"
#include "lab/program/lab_verbs.h"
#include "lab/published_forecast.h"
#include "option_list.h"
#include "progress.h"

namespace stepcast::cli {
namespace {

struct Options {
  bool published_algorithm = false, published = false, json = false;
  PublishedTraceRequest traces;
  std::string platform;
  DescribedStep step;
  CLI::App* app = nullptr;  // has the flags of Megatron-LM
};

Result<Forecast> forecast_traces(const Options& options) {
  if (!options.app->remaining().empty())
    return Error{fmt::format("{} is not known here", options.app->remaining().front())};
  if (!options.step.request.job.model.empty())
    return Error{"--published-algorithm predicts recorded ranks"}.advice("leave --model out");
  PublishedTraceRequest request = options.traces;
  request.platform = options.platform;
  if (request.places.empty())
    return Error{"--published-algorithm predicts recorded ranks"}.advice("name them with --trace");
  ProgressLine progress{"predict from traces"};
  request.progress = progress.reading("predict from traces");
  return published_trace_forecast(request);
}

Result<Forecast> forecast_step(const Options& options) {
  if (!options.traces.places.empty())
    return Error{"--published composes a described step"}.advice(
        "for recorded ranks say --published-algorithm");
  DescribedStep step = options.step;
  step.megatron_flags = options.app->remaining();
  step.own_flags = flags_of(*options.app);
  step.platform_is_named = !options.platform.empty();
  if (step.platform_is_named) step.request.platform = options.platform;
  STEPCAST_ASSIGN(const PredictRequest request, request_of(step));
  STEPCAST_ASSIGN(Forecast forecast, published_step_forecast(request));
  add_notes(step, forecast);
  return forecast;
}

Result<int> run(const Options& options) {
  if (options.published == options.published_algorithm) {
    return Error{"there are two published methods"}.expected(
        "--published-algorithm (of recorded ranks) or --published (of a described step)");
  }
  STEPCAST_ASSIGN(const Forecast forecast,
                  options.published ? forecast_step(options) : forecast_traces(options));
  print("{}", options.json ? forecast_json(forecast) : forecast_text(forecast));
  return kSuccess;
}

}  // namespace

Verb lab_predict_verb() {
  return {
      "predict", "forecast by a published method that ours is compared with", [](CLI::App& app) {
        auto options = std::make_shared<Options>();
        options->app = &app;
        app.allow_extras();
        app.footer(
            "A described step takes flags of Megatron-LM, too. Examples:\n"
            "  stepcast-lab predict --trace examples/dlrm_4gpu --published-algorithm\n"
            "  stepcast-lab predict --model gpt3-175b --gpus 64 --tp 8 --pp 8 --mbs 1 --gbs 64 --published");
        app.add_flag("--published-algorithm", options->published_algorithm,
                     "recorded ranks by Algorithm 1 of Lin et al. (TPDS 2024), from execution traces");
        app.add_option("--trace", options->traces.places,
                       "a folder with the traces of the ranks, or the files");
        app.add_option("--overheads-from", options->traces.overheads_from,
                       "profiler traces of such a host, where there are execution traces alone");
        app.add_option("--step", options->traces.step,
                       "number N of ProfilerStep#N (default: the last that all ranks have)");
        app.add_flag("--published", options->published,
                     "a described step: also the composition of Zhang et al. (HiPC 2025)");
        JobSettings& settings = options->step.request.job.settings;
        app.add_option("--model", options->step.request.job.model,
                       "name of a preset, or a Hugging Face config.json");
        app.add_option("--gpus", options->step.request.job.n_gpus, "total number of GPUs")->check(above_zero);
        app.add_option("--tp", settings.tensor, "tensor parallel degree");
        app.add_option("--pp", settings.pipeline, "pipeline parallel degree");
        app.add_option("--mbs", settings.micro_batch_sequences, "sequences per micro-batch")
            ->check(above_zero);
        app.add_option("--gbs", settings.global_batch_sequences, "sequences per step")->check(above_zero);
        app.add_option("--seq", settings.seq_len_tokens, "tokens per sequence")->check(above_zero);
        app.add_option("--platform", options->platform,
                       "name of a shipped platform, or a platform file (default: the one with the GPU that "
                       "recorded; of a described step dgx-h100)");
        app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
        return [options] { return run(*options); };
      }};
}

}  // namespace stepcast::cli
