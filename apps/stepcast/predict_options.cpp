#include "predict_options.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/base/words.h"
#include "stepcast/describe/dlrm_job.h"
#include "stepcast/workload/framework_rule.h"

#include "rl_flags.h"

namespace stepcast::cli {
namespace {

constexpr QuestionSet bit(Question question) { return 1U << static_cast<unsigned>(question); }
constexpr QuestionSet kTraces = bit(Question::traces), kRecommendation = bit(Question::recommendation),
                      kDescribed = bit(Question::described), kRl = bit(Question::post_training),
                      kSteps = kDescribed | bit(Question::log);  // of a description, whole or beside a log

constexpr char kFooter[] =
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
    "  stepcast predict --trace traces/ --platform 8xmi300x --what-if host=1.5x";

void add_subject(PredictOptions& o) {
  DescribedStep& step = o.described.step;
  o.flags.begin("What is trained, and where", kSteps | kRecommendation);
  o.flags.add("--model", &o.shared.model,
              "name of a preset, a Hugging Face config.json, or a recommendation model (docs/dlrm.md)");
  o.flags.add("--ignore-key", &step.request.job.ignored_model_keys,
              "key of config.json that is read as if it were not there; several with commas",
              {.with_commas = true, .one_word = true}, kSteps);
  o.flags.add(
      "--image-size", &step.request.job.vision.image_size,
      "pixels of an image in either direction, of ResNet, VGG, ViT, DiT and vision towers (docs/models.md)",
      {}, kSteps);
  o.flags.add("--images", &step.request.job.vision.images,
              "images in a sequence, of a config.json with a vision tower; otherwise one", {}, kSteps);
  o.flags.add("--text-only", &step.request.job.vision.text_only,
              "of a config.json with a vision tower: the language model alone", {}, kSteps);
  o.flags.add("--platform", &o.shared.platform, "name of a shipped platform, or a platform file",
              {.shows_default = true}, kEveryQuestion);
  o.flags.add(
      "--gpus", &o.shared.n_gpus,
      "GPUs in all; what the layout leaves is data parallel. Several, as 4,16,128, are shown side by side",
      {.above_zero = true, .with_commas = true});
  o.flags.add("--pools", &o.described.pools,
              "several pools of GPUs instead of --gpus and --platform, as 64xh100+64xa100, each with its "
              "zone if it has "
              "one: 64xh100@east; --gpus takes them, too",
              {}, kDescribed);
  o.flags.add("--zone", &o.described.zones,
              "of pools: its price of a GPU-hour and what its nodes together send to others: "
              "east:price=2.5,bandwidth=400Gbps,latency=20ms",
              {}, kDescribed);
  o.flags.add("--nodes", &step.nodes, "nodes of the platform, instead of --gpus", {}, kSteps);
  o.flags.add("--gpus-per-node", &o.shared.gpus_per_node,
              "GPUs that the fast links of a node join, if different from the platform");
  o.flags.add("--dtype", &o.shared.dtype,
              "bf16, fp16, fp32, or fp8 or fp4 (products alone, on top of bf16); --trace and recommendation "
              "models: tf32, too",
              {.one_of = {"bf16", "fp16", "fp32", "fp8", "fp4", "tf32"}}, kSteps | kTraces | kRecommendation);
  o.flags.add("--framework", &step.framework, "whose kernels and overlaps: " + framework_names(), {}, kSteps);
  o.flags.add("--framework-date", &step.request.job.settings.framework_date,
              "month of its release, as 2024-05: attention kernels and memory as then; otherwise the newest",
              {}, kSteps);
}

// Those that `plan` takes as lists mean the same here.
void add_layout(PredictOptions& o) {
  DescribedStep& step = o.described.step;
  JobSettings& s = step.request.job.settings;
  o.flags.begin("Layout and batch", kSteps);
  o.flags.add("--tp,--tensor-model-parallel-size", &s.tensor, "tensor parallel degree");
  o.flags.add("--pp,--pipeline-model-parallel-size", &s.pipeline, "pipeline parallel degree");
  o.flags.add("--vp,--num-virtual-stages-per-pipeline-rank", &s.virtual_stages,
              "chunks of layers per pipeline stage");
  o.flags.add("--schedules", &step.words.schedule,
              "schedule of the pipeline: 1f1b, interleaved, zero-bubble, zb-v, v-half, v-min, dualpipe");
  o.flags.add("--cp,--context-parallel-size", &s.context, "context parallel degree");
  o.flags.add("--ep,--expert-model-parallel-size", &s.expert, "expert parallel degree");
  o.flags.add("--etp,--expert-tensor-parallel-size", &s.expert_tensor, "tensor parallel degree of experts");
  o.flags.add("--expert-load", &s.expert_load,
              "how tokens spread over experts: balanced, power-law:1.2, or a file with the load of every "
              "expert; prints what the busiest rank costs");
  o.flags.add("--sharding", &step.words.sharding,
              "none, zero1, zero2, zero3 (fsdp); default: what the framework does");
  o.flags.add("--sp", &step.words.sequence_parallel, "sequence parallelism: on, off");
  o.flags.add("--mbs,--micro-batch-size", &o.described.micro_batches,
              "sequences per micro-batch, one or several; max: the most that fit",
              {.above_zero = true, .takes_max = true, .with_commas = true});
  o.flags.add("--gbs,--global-batch-size", &o.shared.global_batches,
              "sequences per step, one or several; max: the most that fit without accumulation",
              {.above_zero = true, .takes_max = true, .with_commas = true}, kSteps | kRecommendation);
  o.flags.add("--seq,--seq-length", &s.seq_len_tokens, "tokens per sequence", {.above_zero = true});
  o.flags.add("--lora-rank", &s.lora_rank,
              "rank of low-rank adapters (LoRA) on attention; the weights of the model are frozen",
              {.above_zero = true});
  o.flags.add(
      "--reference-model,--dpo", &s.reference_model,
      "a frozen copy of the model runs forward in front of the trained one, as in DPO and KTO; --gbs counts "
      "sequences, two of each pair");
  o.flags.add("--packed-mean-tokens", &s.packed_mean_tokens,
              "mean length of the sequences that are packed into one of --seq tokens", {.above_zero = true});
}

void add_other_software(PredictOptions& o) {
  DescribedStep& step = o.described.step;
  o.flags.begin("Descriptions of other software", kSteps);
  o.flags.add("--command-line", &step.command_line,
              "a whole command line of Megatron-LM, verl, OpenRLHF or NeMo-RL, or the launch script that "
              "holds it; flags "
              "override it");
  o.flags.add("--strict", &step.request.job.strict,
              "refuse a command line or config with a flag or key that is not known, instead of leaving it "
              "out with a note");
  o.flags.add(
      "--config", &step.config,
      "a config of NeMo 2, Megatron-Bridge, Axolotl, LLaMA-Factory, TRL, Hugging Face's Trainer, Nanotron, "
      "torchtune, MaxText, NeMo-RL, verl (YAML or JSON) or TorchTitan (TOML); flags override it");
  o.flags.add("--torchtitan", &step.torchtitan, "a TorchTitan job config (TOML); flags override it");
  o.flags.add("--deepspeed", &step.deepspeed, "a DeepSpeed config (JSON); flags override it");
  o.flags.add("--from-log", &o.log.log,
              "the log of a training run: forecasts what it ran, from the settings that it prints and the "
              "other flags, and compares (docs/logs.md)",
              {}, bit(Question::log));
  o.flags.begin("Recommendation models", kRecommendation);
  o.flags.add(
      "--tables", &o.recommendation.tables,
      "CSV file of the embedding tables, or a folder with execution traces of all ranks (default: those "
      "of the model)");
  o.flags.add("--indices", &o.recommendation.indices,
              ".npz file of the indices of a batch (default: a power law)");
  o.flags.add("--plan", &o.recommendation.plan, "TorchRec's sharding plan (default: found by search)");
  o.flags.add("--stack", &o.recommendation.stack, kStackFlag);
  o.flags.add("--release,--round", &o.recommendation.release, kReleaseFlag);
  o.flags.add("--exchange-dtype", &o.recommendation.exchange_dtype, kExchangeFlag);
}

constexpr char kRecorded[] = "Recorded traces on another machine (--trace)";

void add_recorded(PredictOptions& o) {
  PredictTraceRequest& r = o.traces.request;
  o.flags.begin(kRecorded, kTraces);
  o.flags.add("--trace", &r.places,
              "predict recorded ranks instead: a folder with their traces, or the files", {}, kEveryQuestion);
  o.flags.add("--recorded-on", &r.recorded_on,
              "the platform to take for the recording machine (default: the one with its GPU)");
  o.flags.add("--kernels", &r.kernels,
              "times of GPU work as recorded, from models of the platform, or recorded times the ratio of "
              "the models (default: ratio with --platform, recorded without)",
              {.one_of = {"recorded", "models", "ratio"}});
  o.flags.add("--host", &r.host, "times of CPU threads as recorded, or from the overheads of the platform",
              {.one_of = {"recorded", "overheads"}});
  o.flags.add("--step", &r.step,
              "number N of ProfilerStep#N (default: the median one of those that all ranks have)");
  o.flags.add("--shapes-of-step", &r.shapes_of_step,
              "the step with the shapes of this one, as sequences of other lengths have them");
  o.flags.add("--ranks", &o.traces.ranks, "only these ranks, e.g. 0,2-5");
  o.flags.add("--ranks-from", &r.ranks_from, "where the rank stands in the files' names, as in 'host{}_gpu'");
  o.flags.add("--batch", &o.shared.batches,
              "samples per rank, instead of the recorded ones, and of recommendation models; several, as "
              "64,128,256, are shown side by side",
              {.with_commas = true}, kTraces | kRecommendation);
  o.flags.add("--recorded-batch", &o.traces.recorded_batches,
              "samples per rank that were recorded (default: as the shapes show), and behind a comma those "
              "of --second-trace",
              {.with_commas = true});
  o.flags.add("--second-trace", &r.second_places,
              "the same ranks recorded at another batch, a folder or files");
  o.flags.add("--samples-per-step", &r.samples_per_step, "samples that all ranks take per step",
              {.above_zero = true});
  o.flags.add("--tokens-per-step", &r.tokens_per_step, "tokens that all ranks take per step",
              {.above_zero = true});
}

void add_changes_of_recorded(PredictOptions& o) {
  PredictTraceRequest& r = o.traces.request;
  o.flags.begin(kRecorded, kTraces);
  o.flags.add("--like-median-rank", &r.median_ranks,
              "no stragglers, every rank computes and launches as fast as the median rank");
  o.flags.add("--barrier", &r.barrier, "all ranks begin the step at one moment, as behind a barrier");
  o.flags.add("--overlap", &r.overlap,
              "none (no computation during a transfer) or perfect (nothing waits for transfers)",
              {.one_of = {"none", "perfect"}});
  o.flags.add("--bucket-size-mb", &r.bucket_mb,
              "size of gradient buckets in MiB (DistributedDataParallel's bucket_cap_mb)",
              {.above_zero = true});
  o.flags.add("--recompute", &o.shared.recompute,
              "full (every block of layers runs its forward again before its backward), selective (the core "
              "of attention does); of a description: none, too",
              {.one_of = {"none", "full", "selective"}}, kSteps | kTraces);
  o.flags.add("--data-parallel-ranks", &r.data_parallel_ranks,
              "number of ranks in the transfers that all recorded ranks share", {.above_zero = true});
  o.flags.add("--links-of", &o.shared.links_of,
              "transfers go over the links of this platform, PCIe instead of NVLink say; of recommendation "
              "models, too",
              {}, kTraces | kRecommendation);
  o.flags.add("--rank-platform", &r.rank_platforms,
              "RANK=PLATFORM, this rank computes on another device; may be given several times");
  o.flags.add("--all-steps", &r.spread.all_steps,
              "every recorded step by itself: p50, p90, p99, what their spread comes from");
  o.flags.add("--scenarios", &r.spread.scenarios,
              "number of straggler scenarios, drawn from the measured steps or ranks",
              {.range = {{1, 10'000'000}}});
  // Of a description it is Megatron-LM's, and changes nothing.
  o.flags.add("--seed", &o.shared.seed, "of the scenarios", {.shows_default = true}, kTraces | kSteps);
  o.flags.add("--jitter", &r.spread.jitter,
              "draw this instead: 5% (host and GPU), host=10%, gpu=2%, network=20%", {.with_commas = true});
}

// That a step of training takes and one of reinforcement learning has no answer to.
constexpr std::string_view kOfTrainingAlone =
    "--seq --packed-mean-tokens --torchtitan --deepspeed --explain --require-fit --timeline --chakra "
    "--per-rank --sensitivity --train-tokens --train-samples --train-iterations --gpu-hour-price "
    "--gpu-power-watts --carbon-intensity --power-limit --background-load --pools --zone --failures "
    "--recovery --seed";

constexpr char kResult[] = "Result";

void add_result(CLI::App& app, PredictOptions& o) {
  PredictRequest& r = o.described.step.request;
  o.flags.begin(kResult);
  o.flags.add(
      "--what-if", &o.shared.what_if,
      "how it would be with faster parts: nvlink=2x, network, communication, gpu, compute, gemm, attention, "
      "memory_bound, host; "
      "recommendation models: reuse=2x, rank_skew=1.3x, too",
      {.with_commas = true});
  o.flags.add("--background-load", &r.background_load,
              "what other jobs ask of the links between switches, as a share of what these pass: 0 to 1 "
              "(docs/shared-clusters.md)",
              {}, kDescribed);
  o.flags.add("--power-limit", &o.described.power_limit,
              "power limit of each GPU, as 500W: computation takes longer, nodes draw less", {}, kDescribed);
  o.flags.add("--layout", &o.described.open_layout,
              "of a layout that is not given: fastest (what `stepcast plan` chooses, without --what-if), "
              "least-memory (the plainest that fits), or replanned (the fastest with --what-if)",
              {.one_of = {"fastest", "least-memory", "replanned"}}, kDescribed);
  o.flags.add("--replan", &o.described.replans,
              "of several GPUs or batches: a layout for each where none is given, not that of the first", {},
              kDescribed);
  o.flags.add(
      "--explain", &r.explained,
      "the operations of a layer, or of a recommendation model's slowest rank, with times and sources", {},
      kDescribed | kRecommendation);
  o.flags.add("--require-fit", &o.described.require_fit, "exit with code 3 if the memory does not suffice",
              {}, kDescribed);
  o.flags.add("--timeline", &o.shared.timeline,
              "write the step as Chrome trace JSON, compressed if the name ends in .gz", {.is_output = true});
  o.flags.add("--chakra", &o.shared.chakra,
              "write the step as Chakra execution traces into this folder, one per rank or pipeline stage",
              {}, kSteps | kTraces);
  o.flags.add("--per-rank", &o.shared.chakra_per_rank,
              "one Chakra trace of every rank, and comm_groups.json, as ASTRA-sim reads them",
              {.needs = "--chakra"}, kSteps | kTraces);
  o.flags.add("--sensitivity", &o.shared.sensitivity,
              "which resource would make the step how much shorter if it were 10 % faster", {},
              kDescribed | kTraces | kRecommendation);
  o.flags.add("--json", &o.shared.json, "print one JSON object (docs/json.md)");
  add_report_options(app, o.shared.report, o.shared.json);
  for (const char* name : {"--report", "--format"}) o.flags.add_declared(name);
}

void add_training(PredictOptions& o) {
  TrainingBudget& budget = o.shared.budget;
  constexpr QuestionSet kOfTokens = kSteps | kTraces;
  const FlagValues above{.above_zero = true};
  o.flags.begin("A whole training");
  o.flags.add("--train-tokens", &budget.tokens, "tokens to train on: steps, days, GPU-hours", above,
              kOfTokens);
  o.flags.add("--train-samples", &budget.samples, "sequences to train on, instead of tokens", above);
  o.flags.add("--train-iterations", &budget.iterations, "steps to train, instead of tokens", above);
  o.flags.add("--gpu-hour-price", &budget.price_per_gpu_hour, "price of a GPU-hour", above);
  o.flags.add("--failures", &budget.failures, kFailuresFlag, {}, kDescribed);
  o.flags.add("--recovery", &budget.recovery, kRecoveryFlag, {.with_commas = true}, kDescribed);
  o.flags.add("--gpu-power-watts", &budget.power_per_gpu_W,
              "power of a GPU with its share of the host, where it was measured; otherwise it is forecast",
              above);
  o.flags.add("--carbon-intensity", &budget.carbon_g_per_kWh, "of the electricity, g CO2 per kWh", above);
}

bool means_something(const GivenFlag& flag, Question question) {
  if (question != Question::post_training) return (flag.of & bit(question)) != 0;
  return (flag.of & (kRl | kDescribed)) != 0 && !is_among(flag.name, kOfTrainingAlone);
}

Error misplaced(const GivenFlag& flag, Question question) {
  if (flag.of == kRl && question == Question::recommendation)
    return Error{fmt::format("{} means nothing for a recommendation model", flag.name)}.advice(
        "post-training is of a language model");
  if (flag.of == kRl)
    return Error{fmt::format("{} belongs to --rl", flag.name)}.advice("name an algorithm, too");
  if (question == Question::post_training)
    return Error{fmt::format("{} means nothing for a step of post-training", flag.name)};
  if (question == Question::traces) {
    return Error{fmt::format("{} describes a step; with --trace the step is the recorded one", flag.name)}
        .advice("leave one of the two out");
  }
  if (question == Question::recommendation && flag.of != kTraces)
    return Error{fmt::format("{} means nothing for a recommendation model", flag.name)};
  if ((flag.of & kTraces) != 0 && (flag.of & kSteps) == 0)
    return Error{fmt::format("{} belongs to --trace", flag.name)}.advice(
        flag.name == "--batch" ? "sequences per step of a description are --gbs" : "name the traces, too");
  if (flag.of == kRecommendation) return Error{fmt::format("{} belongs to recommendation models", flag.name)};
  return Error{fmt::format("{} is not for --from-log", flag.name)}.advice("predict the run without its log");
}

}  // namespace

void declare_predict_options(CLI::App& app, PredictOptions& options) {
  app.allow_extras();
  app.footer(kFooter);
  add_subject(options);
  add_layout(options);
  add_other_software(options);
  add_rl_flags(options.flags, options.rl, kRl);
  add_recorded(options);
  add_changes_of_recorded(options);
  add_result(app, options);
  add_training(options);
}

Result<Question> question_of(const PredictOptions& options) {
  const DescribedStep& step = options.described.step;
  const Question question = !options.traces.request.places.empty() ? Question::traces
                            : is_dlrm_job(options.shared.model)    ? Question::recommendation
                            : !options.log.log.empty()             ? Question::log
                            : !options.rl.algorithm.empty() || names_rl_config(step.config, step.command_line)
                                ? Question::post_training
                                : Question::described;
  for (const GivenFlag& flag : options.flags.given())
    if (!means_something(flag, question)) return misplaced(flag, question);
  const std::vector<std::string> remaining = options.flags.remaining();
  if (!remaining.empty() && question == Question::traces)
    return Error{fmt::format("{} is not known together with --trace", remaining.front())};
  if (!remaining.empty() && question == Question::recommendation)
    return Error{fmt::format("{} is not known", remaining.front())};
  return question;
}

}  // namespace stepcast::cli
