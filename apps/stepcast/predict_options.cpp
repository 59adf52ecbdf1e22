#include "predict_options.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "described_step.h"
#include "option_values.h"
#include "outputs.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

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

void declare_predict_options(CLI::App& app, PredictOptions& options) {
  options.app = &app;
  app.allow_extras();
  app.footer(
      "Memory, as flags of Megatron-LM; all of its flags that change a step are understood\n"
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
  app.add_option("--model", options.request.job.model,
                 "name of a preset, a Hugging Face config.json, or a recommendation model (docs/dlrm.md)");
  app.add_option("--ignore-key", options.request.job.ignored_model_keys,
                 "key of config.json that is read as if it were not there; several with commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--tables", options.tables, "recommendation models: CSV file of the embedding tables");
  app.add_option("--indices", options.indices,
                 "recommendation models: .npz file of the indices of a batch (default: a power law)");
  app.add_option("--plan", options.plan,
                 "recommendation models: TorchRec's sharding plan (default: found by search)");
  app.add_option("--platform", options.request.platform, "name of a shipped platform, or a platform file")
      ->capture_default_str();
  app.add_option("--gpus", options.gpus,
                 "GPUs in all; what the layout leaves is data parallel. Recommendation models: several, "
                 "as 4,16,128, are shown side by side")
      ->delimiter(',')
      ->check(above_zero);
  app.add_option("--nodes", options.nodes, "nodes of the platform, instead of --gpus");
  app.add_option("--gpus-per-node", options.request.job.gpus_per_node,
                 "GPUs that the fast links of a node join, if different from the platform");
  app.add_option("--tp,--tensor-model-parallel-size", options.request.job.settings.tensor,
                 "tensor parallel degree");
  app.add_option("--pp,--pipeline-model-parallel-size", options.request.job.settings.pipeline,
                 "pipeline parallel degree");
  app.add_option("--cp,--context-parallel-size", options.request.job.settings.context,
                 "context parallel degree");
  app.add_option("--ep,--expert-model-parallel-size", options.request.job.settings.expert,
                 "expert parallel degree");
  app.add_option("--expert-load", options.request.job.settings.expert_load,
                 "how tokens spread over experts: balanced, power-law:1.2, or a file with the load of "
                 "every expert; prints what the busiest rank costs");
  app.add_option("--mbs,--micro-batch-size", options.request.job.settings.micro_batch_sequences,
                 "sequences per micro-batch")
      ->check(above_zero);
  app.add_option("--gbs,--global-batch-size", options.request.job.settings.global_batch_sequences,
                 "sequences per step")
      ->check(above_zero);
  app.add_option("--seq,--seq-length", options.request.job.settings.seq_len_tokens, "tokens per sequence")
      ->check(above_zero);
  app.add_option("--lora-rank", options.request.job.settings.lora_rank,
                 "rank of low-rank adapters (LoRA) on attention; the weights of the model are frozen")
      ->check(above_zero);
  app.add_option("--packed-mean-tokens", options.request.job.settings.packed_mean_tokens,
                 "mean length of the sequences that are packed into one of --seq tokens")
      ->check(above_zero);
  app.add_option("--dtype", options.dtype,
                 "bf16, fp16, fp32, or fp8 or fp4 (products alone, on top of bf16); --trace: tf32, too")
      ->check(CLI::IsMember({"bf16", "fp16", "fp32", "fp8", "fp4", "tf32"}));
  app.add_option("--framework", options.framework,
                 "whose kernels and overlaps: megatron, nemo, torchtitan, fsdp, deepspeed, neox, pytorch, "
                 "libai");
  app.add_option("--command-line", options.command_line,
                 "a whole Megatron-LM command line, or the launch script that holds it; flags override it");
  app.add_option("--torchtitan", options.torchtitan, "a TorchTitan job config (TOML); flags override it");
  app.add_option("--deepspeed", options.deepspeed, "a DeepSpeed config (JSON); flags override it");
  app.add_option("--from-log", options.from_log,
                 "the log of a training run: forecasts what it ran, from the settings that it prints and "
                 "the other flags, and compares (docs/logs.md)");
  app.add_option("--trace", options.traces.places,
                 "predict recorded ranks instead: a folder with their traces, or the files");
  app.add_option("--recorded-on", options.traces.recorded_on,
                 "--trace: the platform to take for the recording machine (default: the one "
                 "with its GPU)");
  app.add_option("--kernels", options.traces.kernels,
                 "--trace: times of GPU work as recorded, from models of the platform, or recorded "
                 "times the ratio of the models (default: ratio with --platform, recorded without)")
      ->check(CLI::IsMember({"recorded", "models", "ratio"}));
  app.add_option("--host", options.traces.host,
                 "--trace: times of CPU threads as recorded, or from the overheads of the platform")
      ->check(CLI::IsMember({"recorded", "overheads"}));
  app.add_option("--step", options.traces.step,
                 "--trace: number N of ProfilerStep#N (default: the last that all ranks have)");
  app.add_option("--ranks", options.ranks, "--trace: only these ranks, e.g. 0,2-5");
  app.add_option("--ranks-from", options.traces.ranks_from,
                 "--trace: where the rank stands in the files' names, as in 'host{}_gpu'");
  app.add_flag("--like-median-rank", options.traces.median_ranks,
               "--trace: no stragglers, every rank computes and launches as fast as the median rank");
  app.add_option("--batch", options.batches,
                 "samples per rank, with --trace instead of the recorded ones, and of recommendation models; "
                 "several, as 64,128,256, are shown side by side")
      ->delimiter(',');
  app.add_option("--recorded-batch", options.recorded_batches,
                 "--trace: samples per rank that were recorded (default: as the shapes show), and behind a "
                 "comma those of --second-trace")
      ->delimiter(',');
  app.add_option("--second-trace", options.traces.second_places,
                 "--trace: the same ranks recorded at another batch, a folder or files");
  app.add_option("--overlap", options.traces.overlap,
                 "--trace: none (no computation during a transfer) or perfect (nothing waits for transfers)")
      ->check(CLI::IsMember({"none", "perfect"}));
  app.add_option("--bucket-size-mb", options.traces.bucket_mb,
                 "--trace: size of gradient buckets in MiB (DistributedDataParallel's "
                 "bucket_cap_mb)")
      ->check(above_zero);
  app.add_option("--recompute", options.traces.recompute,
                 "--trace: full (every block of layers runs its forward again before its backward) or "
                 "selective (the core of attention does)")
      ->check(CLI::IsMember({"full", "selective"}));
  app.add_option("--data-parallel-ranks", options.traces.data_parallel_ranks,
                 "--trace: number of ranks in the transfers that all recorded ranks share")
      ->check(above_zero);
  app.add_option("--links-of", options.traces.links_of,
                 "--trace: transfers go over the links of this platform, PCIe instead of NVLink say");
  app.add_option("--rank-platform", options.traces.rank_platforms,
                 "--trace: RANK=PLATFORM, this rank computes on another device; may be given several times");
  app.add_flag("--all-steps", options.traces.spread.all_steps,
               "--trace: every recorded step by itself: p50, p90, p99, what their spread comes from");
  app.add_option("--scenarios", options.traces.spread.scenarios,
                 "--trace: number of straggler scenarios, drawn from the measured steps or ranks")
      ->check(CLI::Range(1, 10000000));
  app.add_option("--seed", options.traces.spread.seed, "--trace: of the scenarios")->capture_default_str();
  app.add_option("--jitter", options.traces.spread.jitter,
                 "--trace: draw this instead: 5% (host and GPU), host=10%, gpu=2%, network=20%")
      ->delimiter(',');
  app.add_option("--samples-per-step", options.traces.samples_per_step,
                 "--trace: samples that all ranks take per step")
      ->check(above_zero);
  app.add_option("--tokens-per-step", options.traces.tokens_per_step,
                 "--trace: tokens that all ranks take per step")
      ->check(above_zero);
  app.add_option(
         "--what-if", options.request.what_if,
         "how it would be with faster parts: nvlink=2x, network, gemm, attention, memory_bound, host; "
         "recommendation models: reuse=2x, rank_skew=1.3x, too")
      ->delimiter(',');
  app.add_option("--train-tokens", options.request.budget.tokens,
                 "tokens to train on: steps, days, GPU-hours")
      ->check(above_zero);
  app.add_option("--train-samples", options.request.budget.samples,
                 "sequences to train on, instead of tokens")
      ->check(above_zero);
  app.add_option("--train-iterations", options.request.budget.iterations, "steps to train, instead of tokens")
      ->check(above_zero);
  app.add_option("--gpu-hour-price", options.request.budget.price_per_gpu_hour, "price of a GPU-hour")
      ->check(above_zero);
  app.add_option("--gpu-power-watts", options.request.budget.power_per_gpu_W,
                 "power of a GPU with its share of the host")
      ->check(above_zero);
  app.add_flag("--explain", options.request.explained, "the operations of a layer with times and sources");
  app.add_flag("--require-fit", options.require_fit, "exit with code 3 if the memory does not suffice");
  add_output_option(app, "--timeline", options.timeline,
                    "write the step as Chrome trace JSON, compressed if the name ends in .gz");
  app.add_option("--chakra", options.chakra,
                 "write the step as Chakra execution traces into this folder, one per rank or pipeline stage")
      ->check([](const std::string& folder) {
        return folder.empty() ? std::string{"found no name, expected a folder"} : std::string{};
      });
  app.add_flag("--per-rank", options.chakra_per_rank,
               "one Chakra trace of every rank, and comm_groups.json, as ASTRA-sim reads them")
      ->needs("--chakra");
  app.add_flag("--sensitivity", options.sensitivity,
               "which resource would make the step how much shorter if it were 10 % faster");
  app.add_flag("--json", options.json, "print one JSON object (docs/json.md)");
  add_report_options(app, options.report, options.json);
  group_options(app);
}

}  // namespace stepcast::cli
