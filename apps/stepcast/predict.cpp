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
#include "stepcast/report/perfetto.h"
#include "stepcast/report/step_report.h"
#include "stepcast/simulate/engine.h"

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

// "gemm=1.2x,nvlink=2x": so many times as fast.
Status apply_what_if(const std::vector<std::string>& changes, StepAssumptions& assume) {
  struct Knob {
    std::string_view name;
    double StepAssumptions::*factor;
  };
  constexpr Knob kKnobs[] = {{"gemm", &StepAssumptions::gemm_factor},
                             {"attention", &StepAssumptions::attention_factor},
                             {"memory_bound", &StepAssumptions::memory_bound_factor},
                             {"communication", &StepAssumptions::communication_factor},
                             {"nvlink", &StepAssumptions::intra_node_factor},
                             {"network", &StepAssumptions::inter_node_factor}};
  for (const std::string& change : changes) {
    const std::size_t equals = change.find('=');
    std::string value = equals == std::string::npos ? "" : change.substr(equals + 1);
    if (!value.empty() && value.back() == 'x') value.pop_back();
    char* end = nullptr;
    const double speed = value.empty() ? 0 : std::strtod(value.c_str(), &end);
    const Knob* knob = nullptr;
    for (const Knob& k : kKnobs) {
      if (k.name == change.substr(0, equals)) knob = &k;
    }
    if (knob == nullptr || end == nullptr || *end != '\0' || !(speed >= 0.01 && speed <= 100)) {
      return Error::at("", "--what-if")
          .found(fmt::format("`{}`", change))
          .expected(
              "NAME=FACTORx with gemm, attention, memory_bound, communication, nvlink or network, such as "
              "nvlink=2x");
    }
    assume.*(knob->factor) /= speed;
  }
  return Ok{};
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

// The change of the layout that needs least and makes it fit: recomputation, sharded states, more tensor or
// pipeline parallelism on the same GPUs.
std::optional<std::string> nearest_that_fits(const Transformer& model, const Layout& layout, Bytes memory) {
  struct Change {
    std::string text;
    Layout layout;
  };
  std::vector<Change> changes;
  const auto consider = [&](const Layout& base, const std::string& prefix) {
    changes.push_back({prefix, base});
    Layout sharded = base;
    if (sharded.sharding.kind == Sharding::none) sharded.sharding.kind = Sharding::zero1;
    changes.push_back({prefix + (prefix.empty() ? "" : ", ") + "the distributed optimizer", sharded});
    Layout recomputed = sharded;
    recomputed.layer.recompute.kind = Recompute::full;
    changes.push_back({prefix + (prefix.empty() ? "" : ", ") + "full recomputation", recomputed});
  };
  consider(layout, "");
  for (const std::int64_t more : {2, 4, 8, 16}) {
    for (const bool tensor : {true, false}) {
      if (layout.degrees.data % more != 0) continue;
      Layout larger = layout;
      larger.degrees.data /= more;
      (tensor ? larger.degrees.tensor : larger.degrees.pipeline) *= more;
      consider(larger, tensor ? fmt::format("tensor_parallel {}", larger.degrees.tensor)
                              : fmt::format("pipeline_parallel {}", larger.degrees.pipeline));
    }
  }
  for (const Change& change : changes) {
    if (change.text.empty() || !check(change.layout, model)) continue;
    const Result<MemoryForecast> forecast = memory_forecast(model, change.layout, memory);
    if (forecast && forecast->verdict != MemoryVerdict::does_not_fit) return change.text;
  }
  return std::nullopt;
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
  STEPCAST_ASSIGN(const MemoryForecast memory,
                  memory_forecast(job.model, job.layout, platform.device.memory_size));
  for (const std::string& note : prediction.notes) notes.push_back(note);
  if (memory.verdict == MemoryVerdict::does_not_fit) {
    const auto nearest = nearest_that_fits(job.model, job.layout, platform.device.memory_size);
    notes.push_back(fmt::format("does not fit into the memory of {}; {}", platform.device.name,
                                nearest ? "nearest layout that does: " + *nearest
                                        : std::string{"no layout on as many GPUs does that was tried"}));
  }
  if (options.published) {
    STEPCAST_ASSIGN(const PricedStep step, steps.price(job.model, job.layout));
    STEPCAST_ASSIGN(const PublishedComponents parts, published_components(step, job.layout));
    notes.push_back(
        fmt::format("composed as published from the same prices (docs/published-method.md): {:.1f} ms",
                    compose_as_published(parts).step_us() / 1e3));
  }
  const StepReport report{&job.model, &job.layout, &platform, &prediction, &memory, options.budget, notes};
  if (options.explain || timeline) {
    STEPCAST_ASSIGN(const PricedStep step, steps.price(job.model, job.layout));
    if (timeline) {
      STEPCAST_TRY(write_timeline(*timeline, step, job.layout, steps.pricer()));
    }
    if (options.explain && !options.json) {
      STEPCAST_ASSIGN(const std::vector<ExplainedList> lists, explain(step, steps.pricer()));
      fmt::print("{}\n", explain_text(lists));
    }
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
