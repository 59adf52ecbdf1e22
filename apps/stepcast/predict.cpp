// stepcast predict: the time of a training step from a description, or from recorded traces under other
// circumstances.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/describe/job.h"
#include "stepcast/describe/megatron.h"
#include "stepcast/describe/software_defaults.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/trace/trace_set.h"

#include "outputs.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::string framework, dtype;
  std::string command_line, torchtitan, deepspeed;
  PredictRequest request;
  PredictTraceRequest traces;
  std::string ranks;
  bool json = false;
  std::string timeline;
  CLI::App* app = nullptr;  // holds the flags that Megatron knows and we pass on
};

Result<Job> job_of(const Options& options) {
  Job job = options.request.job;
  if (!options.framework.empty()) {
    job.framework = parse_framework(options.framework);
    if (job.framework == Framework::unknown) {
      return Error::at("", "--framework")
          .found(fmt::format("`{}`", options.framework))
          .expected("megatron, nemo, torchtitan, fsdp, deepspeed, neox, pytorch or libai");
    }
  }
  if (!options.dtype.empty()) {
    job.settings.fp8 = options.dtype == "fp8";
    job.settings.fp4 = options.dtype == "fp4";
    job.settings.dtype = options.dtype.starts_with("fp8") || options.dtype.starts_with("fp4")
                             ? DType::bf16
                             : parse_dtype(options.dtype);
  }
  STEPCAST_ASSIGN(MegatronWords words, parse_megatron_flags(options.app->remaining()));
  job.settings = over(words.settings, job.settings);
  job.not_modelled = std::move(words.not_modelled);
  if (!options.command_line.empty()) job.command_line = options.command_line;
  if (!options.torchtitan.empty()) {
    STEPCAST_ASSIGN(job.torchtitan, read_config_text(options.torchtitan));
  }
  if (!options.deepspeed.empty()) {
    STEPCAST_ASSIGN(job.deepspeed, read_config_text(options.deepspeed));
  }
  return job;
}

std::string above_zero(const std::string& text) {
  return std::strtod(text.c_str(), nullptr) > 0 ? std::string{}
                                                : fmt::format("found {}, expected a number above 0", text);
}

// Options that mean something with --trace; all others describe a step.
constexpr std::array<std::string_view, 19> kOfTraces = {"--trace",
                                                        "--platform",
                                                        "--recorded-on",
                                                        "--kernels",
                                                        "--host",
                                                        "--step",
                                                        "--ranks",
                                                        "--like-median-rank",
                                                        "--what-if",
                                                        "--samples-per-step",
                                                        "--train-tokens",
                                                        "--train-samples",
                                                        "--train-iterations",
                                                        "--gpu-hour-price",
                                                        "--gpu-power-watts",
                                                        "--timeline",
                                                        "--json",
                                                        "--tokens-per-step",
                                                        "--published-algorithm"};
// Of these, the ones that mean nothing without.
constexpr std::array<std::string_view, 9> kOfTracesAlone = {"--recorded-on",
                                                            "--kernels",
                                                            "--host",
                                                            "--step",
                                                            "--ranks",
                                                            "--like-median-rank",
                                                            "--samples-per-step",
                                                            "--tokens-per-step",
                                                            "--published-algorithm"};

Status check_options(const Options& options) {
  const bool traces = !options.traces.places.empty();
  for (const CLI::Option* option : options.app->get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    const bool of_traces = std::find(kOfTraces.begin(), kOfTraces.end(), name) != kOfTraces.end();
    const bool alone = std::find(kOfTracesAlone.begin(), kOfTracesAlone.end(), name) != kOfTracesAlone.end();
    if (traces && !of_traces && name != "--help") {
      return Error{fmt::format("{} describes a step; with --trace the step is the recorded one", name)}
          .advice("leave one of the two out");
    }
    if (!traces && alone)
      return Error{fmt::format("{} belongs to --trace", name)}.advice("name the traces, too");
  }
  if (traces && !options.app->remaining().empty()) {
    return Error{fmt::format("{} is not known beside --trace", options.app->remaining().front())};
  }
  return Ok{};
}

Result<Forecast> forecast_of_traces(const Options& options, const Session& session) {
  PredictTraceRequest request = options.traces;
  request.timeline = options.timeline;
  request.what_if = options.request.what_if;
  request.budget = options.request.budget;
  const bool platform_named = options.app->get_option("--platform")->count() > 0;
  if (platform_named) request.platform = options.request.platform;
  if (!options.ranks.empty()) {
    STEPCAST_ASSIGN(request.ranks, parse_ranks(options.ranks));
  }
  return session.predict(request);
}

Result<int> run(const Options& options) {
  STEPCAST_TRY(check_options(options));
  if (!options.traces.places.empty()) {
    const Session session;
    STEPCAST_ASSIGN(const Forecast forecast, forecast_of_traces(options, session));
    fmt::print("{}", options.json ? forecast_json(forecast) : forecast_text(forecast));
    if (!options.timeline.empty() && !options.json) {
      fmt::print("\nTimeline written to {}: open it at https://ui.perfetto.dev\n", options.timeline);
    }
    return kSuccess;
  }
  PredictRequest request = options.request;
  request.timeline = options.timeline;
  STEPCAST_ASSIGN(request.job, job_of(options));
  const Session session;
  STEPCAST_ASSIGN(const Forecast forecast, session.predict(request));
  if (options.json) {
    fmt::print("{}", forecast_json(forecast));
    return kSuccess;
  }
  if (request.explained) fmt::print("{}\n", explained_text(forecast));
  fmt::print("{}", forecast_text(forecast));
  if (!options.timeline.empty()) {
    fmt::print("\nTimeline written to {}: open it at https://ui.perfetto.dev\n", options.timeline);
  }
  return kSuccess;
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
            "Flags of Megatron-LM that are not listed here are understood as they are. What is said in "
            "several\n"
            "places holds in this order, the later the stronger: the model and our defaults, the habits of\n"
            "--framework, --command-line, --torchtitan or --deepspeed, flags. Example:\n"
            "  stepcast predict --model llama-3-70b --platform dgx-h100 --gpus 512 --tp 4 --pp 4 \\\n"
            "    --global-batch-size 512 --sequence-parallel --use-distributed-optimizer\n"
            "  stepcast predict --trace traces/ --platform 8xmi300x --what-if host=1.5x");
        app.add_option("--model", options->request.job.model,
                       "name of a preset, or a Hugging Face config.json");
        app.add_option("--platform", options->request.platform,
                       "name of a shipped platform, or a platform file")
            ->capture_default_str();
        app.add_option("--gpus", options->request.job.n_gpus,
                       "GPUs in all; what the layout leaves is data parallel");
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
        app.add_option("--mbs,--micro-batch-size", options->request.job.settings.micro_batch_sequences,
                       "sequences per micro-batch");
        app.add_option("--gbs,--global-batch-size", options->request.job.settings.global_batch_sequences,
                       "sequences per step");
        app.add_option("--seq,--seq-length", options->request.job.settings.seq_len_tokens,
                       "tokens per sequence");
        app.add_option("--lora-rank", options->request.job.settings.lora_rank,
                       "rank of low-rank adapters (LoRA) on attention; the weights of the model are frozen");
        app.add_option("--packed-mean-tokens", options->request.job.settings.packed_mean_tokens,
                       "mean length of the sequences that are packed into one of --seq tokens");
        app.add_option("--dtype", options->dtype,
                       "bf16, fp16, fp32, or fp8 or fp4 (products alone, on top of bf16)")
            ->check(CLI::IsMember({"bf16", "fp16", "fp32", "fp8", "fp4"}));
        app.add_option(
            "--framework", options->framework,
            "whose kernels and overlaps: megatron, nemo, torchtitan, fsdp, deepspeed, neox, pytorch, "
            "libai");
        app.add_option("--command-line", options->command_line,
                       "a whole Megatron-LM command line; flags beside it hold against it");
        app.add_option("--torchtitan", options->torchtitan,
                       "a TorchTitan job config (TOML); flags beside it hold against it");
        app.add_option("--deepspeed", options->deepspeed,
                       "a DeepSpeed config (JSON); flags beside it hold against it");
        app.add_option("--trace", options->traces.places,
                       "predict recorded ranks instead: a folder with their traces, or the files");
        app.add_option(
            "--recorded-on", options->traces.recorded_on,
            "--trace: the platform that stands for the machine that recorded (default: the one with "
            "its GPU)");
        app.add_option(
               "--kernels", options->traces.kernels,
               "--trace: times of GPU work as recorded, from models of the platform, or recorded times the "
               "ratio of the models (default: ratio with --platform, recorded without)")
            ->check(CLI::IsMember({"recorded", "models", "ratio"}));
        app.add_option("--host", options->traces.host,
                       "--trace: times of CPU threads as recorded, or from the overheads of the platform")
            ->check(CLI::IsMember({"recorded", "overheads"}));
        app.add_option("--step", options->traces.step,
                       "--trace: number N of ProfilerStep#N (default: the last that all ranks have)");
        app.add_option("--ranks", options->ranks, "--trace: only these ranks, e.g. 0,2-5");
        app.add_flag("--like-median-rank", options->traces.median_ranks,
                     "--trace: no stragglers, every rank computes and launches as fast as the median rank");
        app.add_flag(
            "--published-algorithm", options->traces.published_algorithm,
            "--trace: Algorithm 1 of Lin et al. (TPDS 2024) by its own rules instead, from execution traces");
        app.add_option("--samples-per-step", options->traces.samples_per_step,
                       "--trace: samples that all ranks take per step")
            ->check(above_zero);
        app.add_option("--tokens-per-step", options->traces.tokens_per_step,
                       "--trace: tokens that all ranks take per step")
            ->check(above_zero);
        app.add_option(
               "--what-if", options->request.what_if,
               "how it would be with faster parts: nvlink=2x, network, gemm, attention, memory_bound, host")
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
        add_output_option(app, "--timeline", options->timeline,
                          "write the step as Chrome trace JSON, compressed if the name ends in .gz");
        app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
        return [options] { return run(*options); };
      }};
}

}  // namespace stepcast::cli
