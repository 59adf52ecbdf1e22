// stepcast predict: the time of a training step from a description.

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/describe/job.h"
#include "stepcast/describe/megatron.h"
#include "stepcast/describe/software_defaults.h"
#include "stepcast/operation/dtype.h"

#include "outputs.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::string framework, dtype;
  std::string command_line, torchtitan, deepspeed;
  PredictRequest request;
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
          .expected("megatron, nemo, torchtitan, fsdp, deepspeed or libai");
    }
  }
  if (!options.dtype.empty()) {
    job.settings.fp8 = options.dtype == "fp8";
    job.settings.dtype = options.dtype == "fp8" ? DType::bf16 : parse_dtype(options.dtype);
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

Result<int> run(const Options& options) {
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
      "predict", "predict a training step from a description: model, layout, platform", [](CLI::App& app) {
        auto options = std::make_shared<Options>();
        options->app = &app;
        app.allow_extras();
        app.footer(
            "Flags of Megatron-LM that are not listed here are understood as they are. What is said in "
            "several\n"
            "places holds in this order, the later the stronger: the model and our defaults, the habits of\n"
            "--framework, --command-line, --torchtitan or --deepspeed, flags. Example:\n"
            "  stepcast predict --model llama-3-70b --platform dgx-h100 --gpus 512 --tp 4 --pp 4 \\\n"
            "    --global-batch-size 512 --sequence-parallel --use-distributed-optimizer");
        app.add_option("--model", options->request.job.model,
                       "name of a preset, or a Hugging Face config.json");
        app.add_option("--platform", options->request.platform,
                       "name of a shipped platform, or a platform file")
            ->capture_default_str();
        app.add_option("--gpus", options->request.job.n_gpus,
                       "GPUs in all; what the layout leaves is data parallel");
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
        app.add_option("--dtype", options->dtype, "bf16, fp16, fp32 or fp8 (hybrid, on top of bf16)")
            ->check(CLI::IsMember({"bf16", "fp16", "fp32", "fp8"}));
        app.add_option("--framework", options->framework,
                       "whose kernels and overlaps: megatron, nemo, torchtitan, fsdp, deepspeed, libai");
        app.add_option("--command-line", options->command_line,
                       "a whole Megatron-LM command line; flags beside it hold against it");
        app.add_option("--torchtitan", options->torchtitan,
                       "a TorchTitan job config (TOML); flags beside it hold against it");
        app.add_option("--deepspeed", options->deepspeed,
                       "a DeepSpeed config (JSON); flags beside it hold against it");
        app.add_option("--what-if", options->request.what_if,
                       "how it would be with faster parts: nvlink=2x, network, gemm, attention, memory_bound")
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
