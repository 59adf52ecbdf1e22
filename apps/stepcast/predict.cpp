// stepcast predict: the time of a training step from a description.

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/describe/job.h"
#include "stepcast/describe/megatron.h"
#include "stepcast/describe/software_defaults.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/published_composition.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/step_program.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/report/perfetto.h"
#include "stepcast/report/step_report.h"
#include "stepcast/simulate/engine.h"
#include "stepcast/workload/memory.h"
#include "stepcast/workload/nearest_layout.h"

#include "outputs.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::string platform = "dgx-h100", framework, dtype;
  std::string command_line, torchtitan, deepspeed;
  Job job;
  std::vector<std::string> what_if;
  bool json = false, explain = false, published = false;
  std::string timeline;
  TrainingBudget budget;
  CLI::App* app = nullptr;  // holds the flags that Megatron knows and we pass on
};

Result<Job> job_of(const Options& options) {
  Job job = options.job;
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

Status write_timeline(const OutputFile& file, const PricedStep& step, const Layout& layout,
                      StepPricer& pricer) {
  STEPCAST_ASSIGN(Program program, step_program(step, layout, pricer));
  // One rank of every stage: the others do the same.
  for (std::size_t c = 0; c < program.rank_classes().size(); ++c) program.set_multiplicity(RankClassId{c}, 1);
  const Costs costs{program};
  const FlatProgram flat{program};
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(program));
  STEPCAST_ASSIGN(const Timeline timeline, plan.simulate(costs));
  return write_perfetto(file, flat, costs, TaskTimes::simulated(flat, timeline));
}

std::string above_zero(const std::string& text) {
  return std::strtod(text.c_str(), nullptr) > 0 ? std::string{}
                                                : fmt::format("found {}, expected a number above 0", text);
}

Result<int> run(const Options& options) {
  STEPCAST_ASSIGN(const Job asked, job_of(options));
  STEPCAST_ASSIGN(const ResolvedJob job, resolve(asked));
  std::vector<std::string> notes = job.notes;
  STEPCAST_ASSIGN(const Platform platform, load_platform(options.platform));
  std::optional<OutputFile> timeline;
  if (!options.timeline.empty()) {
    std::vector<std::filesystem::path> inputs = platform.files;
    inputs.insert(inputs.end(), {options.job.model, options.torchtitan, options.deepspeed});
    STEPCAST_ASSIGN(timeline, OutputFile::at(options.timeline, inputs));
  }
  for (const std::string& setting : job.not_modelled)
    notes.push_back(fmt::format("not modelled: {}", setting));

  StepAssumptions assume;
  STEPCAST_TRY(apply_what_if(options.what_if, assume));
  StepModel steps{platform, assume};
  STEPCAST_ASSIGN(const StepPrediction prediction, steps.predict(job.model, job.layout));
  STEPCAST_ASSIGN(const PricedStep step, steps.price(job.model, job.layout));
  STEPCAST_ASSIGN(const MemoryForecast memory,
                  memory_forecast(step.work, job.model, job.layout, platform.device.memory_size));
  for (const std::string& note : prediction.notes) notes.push_back(note);
  if (memory.verdict == MemoryVerdict::does_not_fit) {
    const auto nearest = nearest_layout_that_fits(job.model, job.layout, platform.device.memory_size);
    notes.push_back(fmt::format("does not fit into the memory of {}; {}", platform.device.name,
                                nearest ? "nearest layout that does: " + nearest->change
                                        : std::string{"no layout on as many GPUs does that was tried"}));
  }
  if (options.published) {
    STEPCAST_ASSIGN(const PublishedComponents parts, published_components(step, job.layout));
    notes.push_back(
        fmt::format("composed as published from the same prices (docs/published-method.md): {:.1f} ms",
                    compose_as_published(parts).step_us() / 1e3));
  }
  const StepReport report{&job.model, &job.layout, &platform, &prediction, &memory, options.budget, notes};
  if (timeline) {
    STEPCAST_TRY(write_timeline(*timeline, step, job.layout, steps.pricer()));
  }
  if (options.explain && !options.json) {
    STEPCAST_ASSIGN(const std::vector<ExplainedList> lists, explain(step, steps.pricer()));
    fmt::print("{}\n", explain_text(lists));
  }
  fmt::print("{}", options.json ? step_json(report) : step_text(report));
  if (timeline && !options.json) {
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
        app.add_option("--model", options->job.model, "name of a preset, or a Hugging Face config.json");
        app.add_option("--platform", options->platform, "name of a shipped platform, or a platform file")
            ->capture_default_str();
        app.add_option("--gpus", options->job.n_gpus, "GPUs in all; what the layout leaves is data parallel");
        app.add_option("--tp,--tensor-model-parallel-size", options->job.settings.tensor,
                       "tensor parallel degree");
        app.add_option("--pp,--pipeline-model-parallel-size", options->job.settings.pipeline,
                       "pipeline parallel degree");
        app.add_option("--cp,--context-parallel-size", options->job.settings.context,
                       "context parallel degree");
        app.add_option("--ep,--expert-model-parallel-size", options->job.settings.expert,
                       "expert parallel degree");
        app.add_option("--mbs,--micro-batch-size", options->job.settings.micro_batch_sequences,
                       "sequences per micro-batch");
        app.add_option("--gbs,--global-batch-size", options->job.settings.global_batch_sequences,
                       "sequences per step");
        app.add_option("--seq,--seq-length", options->job.settings.seq_len_tokens, "tokens per sequence");
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
        app.add_option("--what-if", options->what_if,
                       "how it would be with faster parts: nvlink=2x, network, gemm, attention, memory_bound")
            ->delimiter(',');
        app.add_option("--train-tokens", options->budget.tokens, "tokens to train on: steps, days, GPU-hours")
            ->check(above_zero);
        app.add_option("--gpu-hour-price", options->budget.price_per_gpu_hour, "price of a GPU-hour")
            ->check(above_zero);
        app.add_option("--gpu-power-watts", options->budget.power_per_gpu_W,
                       "power of a GPU with its share of the host")
            ->check(above_zero);
        app.add_flag("--explain", options->explain, "the operations of a layer with times and sources");
        app.add_flag("--published", options->published,
                     "beside ours, the composition of the published operator-level method");
        add_output_option(app, "--timeline", options->timeline,
                          "write the step as Chrome trace JSON, compressed if the name ends in .gz");
        app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
        return [options] { return run(*options); };
      }};
}

}  // namespace stepcast::cli
