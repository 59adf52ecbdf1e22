// stepcast plan: which layout of a training on so many GPUs is fastest, which others cannot be told from it, and why
// the rest is not among them.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/file.h"
#include "stepcast/base/one_line.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/spelled_number.h"
#include "stepcast/base/units.h"
#include "stepcast/cost/node_power.h"
#include "stepcast/describe/dlrm_job.h"
#include "stepcast/describe/gpu_pools.h"
#include "stepcast/describe/megatron.h"
#include "stepcast/plan/job_pool.h"
#include "stepcast/plan/layout_fixes.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/nearby_layouts.h"
#include "stepcast/plan/restriction_words.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/report/plan_answer.h"
#include "stepcast/workload/framework_rule.h"

#include "in_process.h"
#include "option_list.h"
#include "outputs.h"
#include "plan_options.h"
#include "progress.h"
#include "rl_flags.h"
#include "verbs.h"

namespace stepcast::cli {

Result<Job> job_of(const PlanOptions& options) {
  Job job = options.job;
  if (!options.framework.empty()) {
    STEPCAST_ASSIGN(job.framework, framework_named(options.framework));
  }
  const Words left = options.flags.remaining();
  if (!left.empty() && !left.front().starts_with("-")) {
    return Error{fmt::format("`{}` stands without a flag", left.front().substr(0, 80))}.advice(
        fmt::format("write --model {}", left.front().substr(0, 80)));
  }
  STEPCAST_ASSIGN(MegatronWords words, parse_megatron_flags(left, options.flags.names()));
  if (job.framework) STEPCAST_TRY(check_sharding(*job.framework, words.settings));
  job.settings = over(words.settings, job.settings);
  job.not_modelled = std::move(words.not_modelled);
  // fp8 and fp4 are products on top of what is left in 16 bits.
  std::optional<DType> listed;
  for (const std::string& word : options.space.dtypes) {
    if (word != "fp16" && word != "fp32" && word != "bf16") continue;
    if (words.settings.dtype && parse_dtype(word) != *words.settings.dtype) {
      return Error{
          fmt::format("--dtype {} and --{} contradict each other", word, to_string(*words.settings.dtype))}
          .advice("leave one of the two out");
    }
    if (!listed) listed = parse_dtype(word);
  }
  if (listed) job.settings.dtype = listed;
  return job;
}

// "2" for all of them, or "dgx-a100=1.2" for one each.
Status set_prices(const Words& words, std::vector<NamedPlatform>& platforms, const Words& asked,
                  TrainingGoal& goal) {
  for (const std::string& word : words) {
    const std::size_t equals = word.rfind('=');
    std::string digits = word.substr(equals == std::string::npos ? 0 : equals + 1);
    double price = 0;
    if (spell_out_number(digits).empty())
      std::from_chars(digits.data(), digits.data() + digits.size(), price);
    if (!(price > 0))
      return Error::at("", "--gpu-hour-price")
          .found(fmt::format("`{}`", word.substr(0, 60)))
          .expected("a number above 0, or one for each platform: dgx-a100=1.2,dgx-b200=4");
    if (equals == std::string::npos) {
      if (words.size() > 1)
        return Error::at("", "--gpu-hour-price")
            .found(fmt::format("`{}` together with others", word))
            .expected("one price for all platforms, or PLATFORM=PRICE for each");
      goal.price_per_gpu_hour = price;
      for (NamedPlatform& platform : platforms) platform.price_per_gpu_hour = price;
      return Ok{};
    }
    const auto of = std::ranges::find(asked, word.substr(0, equals));
    if (of == asked.end())
      return Error::at("", "--gpu-hour-price")
          .found(fmt::format("a price of `{}`, which is not compared", word.substr(0, equals)))
          .advice("name it with --platform, too, or leave the price out");
    std::optional<double>& its = platforms[static_cast<std::size_t>(of - asked.begin())].price_per_gpu_hour;
    if (its)
      return Error::at("", "--gpu-hour-price", fmt::format("two prices of {}", *of))
          .advice("leave one of them out");
    its = price;
  }
  for (std::size_t i = 0; i < platforms.size(); ++i)
    if (!words.empty() && !platforms[i].price_per_gpu_hour)
      return Error::at("", "--gpu-hour-price", fmt::format("no price of {}", asked[i]))
          .advice(fmt::format("add {}=PRICE", asked[i]));
  return Ok{};
}

std::vector<std::filesystem::path> inputs_of(const PlanOptions& options) {
  Words files = options.platforms;
  files.insert(files.end(), {options.job.model, options.from, options.jobs});
  return files_among(files);
}

namespace {

constexpr std::int64_t kMostGpus = 1 << 20;

Result<std::int64_t> gpu_count(std::string_view word) {
  std::string digits{word};
  std::int64_t count = 0;
  if (spell_out_whole(digits).empty()) std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (count >= 1 && count <= kMostGpus) return count;
  if (names_gpu_pools(word))
    return Error::at("", "--gpus")
        .found(fmt::format("pools of GPUs, `{}`, together with others", word.substr(0, 40)))
        .expected("one mix, as in --gpus 64xh100+64xa100");
  return Error::at("", "--gpus")
      .found(fmt::format("`{}`", word.substr(0, 40)))
      .expected(fmt::format("whole numbers from 1 to {}, as in 64,128, or a range: 64..4096", kMostGpus));
}

// Ascending, each once. Of a range its ends, and between them powers of two and three times these: what degrees divide.
Result<std::vector<std::int64_t>> gpu_counts(const Words& words) {
  std::vector<std::int64_t> counts;
  for (const std::string& word : words) {
    const std::size_t dots = word.find("..");
    if (dots == std::string::npos) {
      STEPCAST_ASSIGN(const std::int64_t count, gpu_count(word));
      counts.push_back(count);
      continue;
    }
    const auto range_only = [&] {
      return Error::at("", "--gpus").found(fmt::format("`{}`", word.substr(0, 40)));
    };
    if (dots == 0 || dots + 2 == word.size())
      return range_only().expected("a range with two ends, as in 64..4096");
    STEPCAST_ASSIGN(const std::int64_t from, gpu_count(std::string_view{word}.substr(0, dots)));
    STEPCAST_ASSIGN(const std::int64_t to, gpu_count(std::string_view{word}.substr(dots + 2)));
    if (from >= to)
      return range_only()
          .expected("a range from fewer to more")
          .advice(from == to ? fmt::format("say {}", to) : fmt::format("say {}..{}", to, from));
    counts.insert(counts.end(), {from, to});
    for (std::int64_t n = 1; n < to; n *= 2)
      for (const std::int64_t count : {n, 3 * n})
        if (count > from && count < to) counts.push_back(count);
  }
  if (words.size() < 2 && counts.size() < 2) return counts;
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// By its own name, or by that of the node which a GPU stands for.
Result<NamedPlatform> platform_of(const std::string& name, const PlanOptions& options) {
  const bool one_gpu = options.n_gpus == std::vector<std::int64_t>{1};
  STEPCAST_ASSIGN(PlatformChoice meant, load_meant_platform(name, one_gpu ? 1 : 2));
  NamedPlatform found{meant.note.empty() ? name : meant.platform.name, std::move(meant.platform)};
  if (options.gpus_per_node) {
    std::string note;
    adapt_to({.gpus_per_node = *options.gpus_per_node}, found.platform, note);
    STEPCAST_TRY(found.platform.check());
  }
  return found;
}

Result<std::vector<NamedPlatform>> priced_platforms(const PlanOptions& options, TrainingGoal& goal) {
  std::vector<NamedPlatform> platforms;
  for (const std::string& name : options.platforms) {
    STEPCAST_ASSIGN(NamedPlatform platform, platform_of(name, options));
    platforms.push_back(std::move(platform));
  }
  STEPCAST_TRY(set_prices(options.prices, platforms, options.platforms, goal));
  return platforms;
}

// Counts and platforms for a training as a whole.
Result<int> run_training(const PlanOptions& options, const PlanRequest& request, TrainingGoal goal) {
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  if (!options.within.empty()) {
    STEPCAST_ASSIGN(goal.within_days, parse_days(options.within));
  }
  if (!options.failures.empty()) {
    STEPCAST_ASSIGN(goal.run, read_run_assumptions(options.failures, options.recovery));
  }
  if (!options.power_budget.empty()) {
    STEPCAST_ASSIGN(goal.power_budget_W, parse_watts(options.power_budget, "--power-budget"));
  }
  STEPCAST_ASSIGN(const std::vector<NamedPlatform> platforms, priced_platforms(options, goal));
  // One machine leaves nothing to compare but its layouts.
  const bool one_machine = platforms.size() == 1 && options.n_gpus.size() == 1;
  if (one_machine && options.flags.is_given("--top")) goal.layouts_of_each = options.top;
  std::optional<ProgressLine> progress{std::in_place, "plan a training"};
  TrainingAnswer answer{.plan = {}, .goal = goal, .top = options.top};
  STEPCAST_ASSIGN(answer.plan, plan_training(request, platforms, options.n_gpus, goal));
  progress.reset();
  const ReportDocument document = training_document(answer);
  return report.finish(document, options.json ? document.json : std::string{});
}

// Several trainings that share the GPUs.
Result<int> run_jobs(const PlanOptions& options, const PlanRequest& request) {
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  STEPCAST_ASSIGN(const std::string text, read_file(options.jobs));
  STEPCAST_ASSIGN(const std::vector<PoolJob> jobs, parse_pool_jobs(text, options.jobs));
  TrainingGoal goal;
  STEPCAST_ASSIGN(const std::vector<NamedPlatform> platforms, priced_platforms(options, goal));
  std::optional<ProgressLine> progress{std::in_place, "plan jobs"};
  STEPCAST_ASSIGN(const JobPool pool, plan_jobs(request, platforms.front(), options.n_gpus.front(), jobs));
  progress.reset();
  const ReportDocument document = jobs_document(pool);
  return report.finish(document, options.json ? document.json : std::string{});
}

Status check_jobs(const PlanOptions& options) {
  for (const char* flag : {"--model", "--gbs", "--seq", "--from", "--train-tokens", "--within", "--csv",
                           "--jitter", "--failures", "--carbon-intensity", "--power-budget", "--why"})
    if (options.flags.is_given(flag))
      return Error{fmt::format("{} belongs to one training, --jobs names several", flag)}.advice(
          "leave one of the two out");
  if (options.n_gpus.size() != 1 || options.platforms.size() != 1)
    return Error{"--jobs share one pool"}.expected("one number of GPUs and one platform");
  const std::string& wanted = options.objective;
  if (wanted != "time" && wanted != "step-time" && wanted != "money" && wanted != "cost")
    return Error::at("", "--objective")
        .found(fmt::format("`{}` with --jobs", wanted))
        .expected("time or money");
  return Ok{};
}

Status check_options(const PlanOptions& options) {
  if (!options.jobs.empty()) return check_jobs(options);
  const bool trains = options.goal.tokens > 0;
  if (!trains && (options.n_gpus.size() > 1 || options.platforms.size() > 1)) {
    return Error{"several numbers of GPUs or platforms are compared by what a training takes on them"}.advice(
        "add --train-tokens, or name one");
  }
  if (trains && (!options.from.empty() || !options.csv.empty()))
    return Error{"--from and --csv belong to one plan, --train-tokens compares several"}.advice(
        "leave one out");
  if (trains && !options.jitter.empty())
    return Error{"--jitter belongs to one plan, --train-tokens compares several"}.advice("leave one out");
  const std::string& wanted = options.objective;
  if (!trains && (wanted == "cost" || wanted == "money" || wanted == "energy" || wanted == "carbon"))
    return Error::at("", "--objective")
        .found(fmt::format("`{}` for a fixed number of GPUs, where the fastest step costs least",
                           options.objective))
        .advice("add --train-tokens, or say --objective time");
  if (options.from.empty() && options.gpus.empty()) return Error{"--gpus is required"};
  if (!options.zones.empty() && !plans_pools(options))
    return Error{"--zone says where pools of GPUs stand"}.advice(
        "name them: --gpus 64xh100@east+64xa100@west");
  const bool described = !options.job.model.empty() || !options.flags.remaining().empty();
  if (options.from.empty() && !described) {
    return Error{"no model is named"}
        .expected(
            "--model with the name of a preset or a config.json, or Megatron's flags from --num-layers on")
        .advice("`stepcast plan --help` shows an example");
  }
  if (is_dlrm_job(options.job.model))
    return Error{fmt::format("{} is a recommendation model", options.job.model)}.advice(
        "`stepcast shard` plans these");
  return Ok{};
}

Result<int> run_plan(const PlanOptions& options) {
  if (asks_post_training(options)) return run_post_training(options);
  for (const GivenFlag& flag : options.flags.given())
    if (flag.of == kPostTraining)
      return Error{fmt::format("{} belongs to --rl", flag.name)}.advice("name an algorithm, too");
  STEPCAST_TRY(check_options(options));
  if (plans_pools(options)) return run_pools(options);
  PlanRequest request;
  STEPCAST_ASSIGN(request.restrictions, restrictions_of(options.space));
  STEPCAST_ASSIGN(request.job, job_of(options));
  for (const std::string& word : options.space.shardings)
    STEPCAST_TRY(check_sharding(request.job.framework.value_or(Framework::megatron), word));
  STEPCAST_TRY(apply_what_if(options.what_if, request.assumptions));
  if (!options.power_limit.empty()) {
    STEPCAST_ASSIGN(request.power_limit_W, parse_watts(options.power_limit, "--power-limit"));
  }
  if (options.memory_GiB) request.memory_bytes = *options.memory_GiB * kGiB;
  request.top = options.top;
  request.refines = true;
  request.threads = options.threads;
  STEPCAST_ASSIGN(request.objective, parse_objective(options.objective));
  if (!options.jitter.empty()) {
    STEPCAST_ASSIGN(request.jitter, parse_jitter(options.jitter));
  }
  if (!options.jobs.empty()) return run_jobs(options, request);
  if (options.goal.tokens > 0) return run_training(options, request, options.goal);

  const std::shared_ptr<const Session> session = session_for_question(options.platforms.front());
  STEPCAST_ASSIGN(const SearchedPlatform named,
                  session->searched_platform(options.platforms.front(), options.gpus_per_node,
                                             options.n_gpus == std::vector<std::int64_t>{1} ? 1 : 2));
  const Platform& platform = *named.platform;
  request.steps = named.steps.get();
  std::optional<OutputFile> csv;
  if (!options.csv.empty()) {
    std::vector<std::filesystem::path> inputs = platform.files;
    inputs.emplace_back(options.job.model);
    if (!options.from.empty()) inputs.emplace_back(options.from);
    STEPCAST_ASSIGN(csv, OutputFile::at(options.csv, inputs));
  }
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  std::optional<RunningLayout> running;
  if (!options.from.empty()) {
    Job given = request.job;
    if (!options.n_gpus.empty()) given.n_gpus = options.n_gpus.front();
    STEPCAST_ASSIGN(running, read_running_layout(options.from, given));
    request.job = running->job;
  }
  request.n_gpus = !options.n_gpus.empty() ? options.n_gpus.front()
                                           : running->n_gpus.value_or(running->layout.world_size());
  std::optional<ProgressLine> progress{std::in_place, fmt::format("plan on {} GPUs", request.n_gpus)};
  STEPCAST_ASSIGN(LayoutPlan plan, plan_layouts(request, platform));
  progress.reset();
  for (const std::string& setting : request.job.not_modelled)
    plan.notes.push_back(fmt::format("not modelled: {}", setting));
  if (plan.found.priced.empty()) return why_none(plan, layout_fixes(request, platform));
  if (csv) {
    STEPCAST_ASSIGN(const std::string rows, options.csv.ends_with(".jsonl")
                                                ? Result<std::string>{plan_jsonl(plan)}
                                                : plan_csv(plan, platform));
    STEPCAST_TRY(csv->write(rows));
  }
  Status table = Ok{};
  offer_table("priced", [&] {
    Result<std::string> rows = plan_csv(plan, platform);
    if (rows) return *std::move(rows);
    table = std::move(rows).error();
    return std::string{};
  });
  STEPCAST_TRY(table);
  if (named.name != options.platforms.front())
    plan.notes.push_back(node_note(options.platforms.front(), named.name));
  PlanSubject subject{named.name, platform.device.name, options.top, std::nullopt, options.why};
  if (running) subject.now = layout_now(*running, plan, platform);
  const ReportDocument document = plan_document(plan_answer(plan, subject));
  STEPCAST_TRY(report.answer(document, options.json ? document.json : std::string{}));
  if (options.json || report.replaces_text()) return kSuccess;
  if (csv)
    print("\nAll {} priced layouts written to {}\n", plan.found.priced.size(), in_one_line(options.csv));
  report.note();
  return kSuccess;
}

constexpr char kFooter[] =
    "Lists restrict the space: --tp 4,8 --recompute none. Other flags of Megatron-LM hold for all "
    "layouts\n"
    "(`stepcast reference megatron-flags`). Examples:\n"
    "  stepcast plan --model gpt3-175b --platform dgx-a100 --gpus 1024 --gbs 1536\n"
    "  stepcast plan --model llama-3.1-405b --platform dgx-h100 --gpus 2048 --gbs 2048 --dtype "
    "bf16,fp8\n"
    "  stepcast plan --model mixtral-8x7b --gpus 64 --framework torchtitan --max-memory-GiB 70\n"
    "  stepcast plan --from train.sh\n"
    "  stepcast plan --model llama-3-70b --platform dgx-a100,dgx-h100 --gpus 256,512,1024 --gbs 1024 "
    "\\\n"
    "    --train-tokens 2T --within 30d --gpu-hour-price 2";

void add_subject(PlanOptions& o) {
  JobSettings& s = o.job.settings;
  o.flags.begin("What is trained, and where");
  o.flags.add("--model", &o.job.model, "name of a preset, or a Hugging Face config.json");
  o.flags.add("--ignore-key", &o.job.ignored_model_keys,
              "key of config.json that is read as if it were not there; several with commas",
              {.with_commas = true, .one_word = true});
  o.flags.add("--image-size", &o.job.vision.image_size, "pixels of an image in either direction");
  o.flags.add("--images", &o.job.vision.images,
              "images in a sequence, of a config.json with a vision tower; otherwise one");
  o.flags.add("--text-only", &o.job.vision.text_only,
              "of a config.json with a vision tower: the language model alone");
  o.flags.add(
      "--gpus", &o.gpus,
      "GPUs in all; with --train-tokens several, as 512,1024, or a range to search: 64..4096; or pools of "
      "several kinds, as 64xh100+64xa100",
      {.with_commas = true, .one_word = true});
  o.flags.add("--platform", &o.platforms,
              "name of a shipped platform, or a platform file; several with --train-tokens",
              {.with_commas = true, .shows_default = true});
  o.flags.add("--zone", &o.zones, "of pools: east:price=2.5,bandwidth=400Gbps (docs/shared-clusters.md)");
  o.flags.add("--gpus-per-node", &o.gpus_per_node, "GPUs of a node, where not as the platform has",
              {.range = {{1, kMostGpusPerNode}}});
  o.flags.add("--framework", &o.framework, "whose kernels, overlaps and sharding: " + framework_names());
  o.flags.add("--framework-date", &s.framework_date,
              "month of its release, as 2024-05: attention kernels and memory as then; otherwise the newest");
  o.flags.add("--gbs,--global-batch-size", &s.global_batch_sequences,
              "sequences per step (default: four million tokens)", {.above_zero = true});
  o.flags.add("--seq,--seq-length", &s.seq_len_tokens, "tokens per sequence", {.above_zero = true});
  o.flags.add("--what-if", &o.what_if, "as of predict: nvlink=2x, network, gemm, host",
              {.with_commas = true});
  o.flags.add("--power-limit", &o.power_limit, "power limit of each GPU, as 500W");
  o.flags.add(
      "--from", &o.from,
      "what runs now: a launch script of Megatron-LM, a TorchTitan (.toml) or DeepSpeed (.json) "
      "config; better layouts that differ in one, two, three choices. Of a step of post-training: a config "
      "(.yaml) or script of NeMo-RL, verl or OpenRLHF");
  o.flags.add(
      "--jobs", &o.jobs,
      "several trainings that share the GPUs: a TOML file with a table [[job]] for each (docs/plan.md)");
  o.flags.begin("A whole training: which machine, how many GPUs");
  o.flags.add("--train-tokens", &o.goal.tokens, "tokens to train on", {.above_zero = true});
  o.flags.add("--within", &o.within, "deadline: 30d, 12h, 2w");
  o.flags.add("--gpu-hour-price", &o.prices,
              "price of a GPU-hour, or one for each platform: dgx-a100=1.2,dgx-b200=4",
              {.with_commas = true});
  o.flags.add("--carbon-intensity", &o.goal.carbon_g_per_kWh, "of the electricity, g CO2 per kWh",
              {.above_zero = true});
  o.flags.add("--power-budget", &o.power_budget, "that nodes and switches may draw: 800kW, 2.5MW");
  o.flags.add("--failures", &o.failures, kFailuresFlag);
  o.flags.add("--recovery", &o.recovery, kRecoveryFlag, {.with_commas = true});
}

void add_space(PlanOptions& o) {
  RestrictionWords& space = o.space;
  const FlagValues list{.with_commas = true};
  o.flags.begin("Space: lists, as in 1,2,4");
  o.flags.add("--tp,--tensor-model-parallel-size", &space.tensor,
              "tensor parallel (default: divisors, inside a node)", list);
  o.flags.add("--pp,--pipeline-model-parallel-size", &space.pipeline, "pipeline parallel", list);
  o.flags.add("--vp,--num-virtual-stages-per-pipeline-rank", &space.virtual_stages,
              "chunks of layers per pipeline stage", list);
  o.flags.add("--schedules", &space.schedules,
              "1f1b, interleaved, zero-bubble, zb-v, v-half, v-min, dualpipe (default: the first two)", list);
  o.flags.add("--cp,--context-parallel-size", &space.context, "context parallel", list);
  o.flags.add("--ep,--expert-model-parallel-size", &space.expert, "expert parallel", list);
  o.flags.add("--etp,--expert-tensor-parallel-size", &space.expert_tensor,
              "tensor parallel of experts; 0: as --tp", list);
  o.flags.add("--mbs,--micro-batch-size", &space.micro_batch, "sequences per micro-batch", list);
  o.flags.add("--sharding", &space.shardings,
              "none, zero1, zero2, zero3 (fsdp), hybrid:N (shards over the ranks of N nodes); default: what "
              "the framework does",
              list);
  o.flags.add("--recompute", &space.recomputations, "none, selective, full", list);
  o.flags.add("--sp", &space.sequence_parallel, "sequence parallelism: on, off", list);
  o.flags.add("--dtype", &space.dtypes, "bf16, fp16, fp32, fp8, fp4 (default: bf16)", list);
  o.flags.add("--max-memory-GiB", &o.memory_GiB, "of a GPU (default: all it has)", {.above_zero = true});
}

void add_result(CLI::App& app, PlanOptions& o) {
  constexpr char kResult[] = "Result";
  o.flags.begin(kResult);
  o.flags.add(
      "--objective", &o.objective,
      "of the layouts that cannot be told from the fastest: time (the plainest) or memory (most to "
      "spare); of options of a training that are in time: time, money (cost), energy, carbon or memory",
      {.one_of = {"time", "step-time", "money", "cost", "energy", "carbon", "memory"},
       .shows_default = true});
  o.flags.add("--jitter", &o.jitter,
              "speeds of GPUs differ from step to step by so much: 5%, or gpu=5%,network=20%; chosen is the "
              "layout that stands it best",
              {.with_commas = true});
  o.flags.add("--top", &o.top, "layouts to show, or options of a training",
              {.range = {{1, 400}}, .shows_default = true});
  o.flags.add("--why", &o.why,
              "print the space that was searched, and why the other layouts were not priced");
  o.flags.add("--csv", &o.csv, "write all priced layouts: as CSV, or into a .jsonl as JSON objects",
              {.is_output = true});
  o.flags.add("--threads", &o.threads, "0: all; the result is the same", {.shows_default = true});
  o.flags.add("--json", &o.json, "print one JSON object (docs/plan.md)");
  add_report_options(app, o.report, o.json);
  for (const char* name : {"--report", "--format"}) o.flags.add_declared(name);
}

}  // namespace

Verb plan_verb() {
  return {"plan", "search the layouts of a training: fastest, alike, and why not the others",
          [](CLI::App& app) {
            auto options = std::make_shared<PlanOptions>(app);
            app.allow_extras();
            app.footer(kFooter);
            add_subject(*options);
            add_space(*options);
            add_rl_flags(options->flags, options->rl, kPostTraining);
            add_result(app, *options);
            return [options]() -> Result<int> {
              if (!plans_pools(*options)) {
                STEPCAST_ASSIGN(options->n_gpus, gpu_counts(options->gpus));
              }
              return run_plan(*options);
            };
          }};
}

}  // namespace stepcast::cli
