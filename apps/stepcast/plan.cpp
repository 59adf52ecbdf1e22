// stepcast plan: finds the fastest layouts of a training on a number of GPUs, the ones that are tied with it,
// and why others are not listed.

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
#include "stepcast/api/subject.h"
#include "stepcast/base/file.h"
#include "stepcast/base/one_line.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/spelled_number.h"
#include "stepcast/base/units.h"
#include "stepcast/cost/node_power.h"
#include "stepcast/describe/gpu_pools.h"
#include "stepcast/plan/job_pool.h"
#include "stepcast/plan/job_words.h"
#include "stepcast/plan/layout_fixes.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/nearby_layouts.h"
#include "stepcast/plan/plan_alternatives.h"
#include "stepcast/plan/restriction_words.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/report/plan_answer.h"

#include "command_line.h"
#include "described_step.h"
#include "given_flags.h"
#include "in_process.h"
#include "option_list.h"
#include "outputs.h"
#include "plan_options.h"
#include "progress.h"
#include "verbs.h"

namespace stepcast::cli {

Result<Job> job_of(const PlanOptions& options) {
  return job_in_words({.framework = options.framework, .dtypes = options.space.dtypes},
                      options.flags.remaining(), options.job, options.flags.names());
}

// Parses prices: "2" for all platforms, or "dgx-a100=1.2" for one.
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

// The numbers of GPUs, ascending and without repetition. A range gives its ends, and between them powers of
// two and three times these, which have useful divisors.
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

// The platform with this name; for the name of a GPU, its usual node.
Result<NamedPlatform> platform_of(const std::string& name, const PlanOptions& options) {
  const bool one_gpu = options.n_gpus == std::vector<std::int64_t>{1};
  STEPCAST_ASSIGN(PlatformChoice meant, load_meant_platform(name, one_gpu ? 1 : 2, options.gpus_per_node));
  return NamedPlatform{meant.note.empty() ? name : meant.platform.name, std::move(meant.platform)};
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

// Plans a whole training: numbers of GPUs and platforms.
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
  // With one platform and one number of GPUs only the layouts remain to be compared.
  const bool one_machine = platforms.size() == 1 && options.n_gpus.size() == 1;
  if (one_machine && options.flags.is_given("--top")) goal.layouts_of_each = options.top;
  std::optional<ProgressLine> progress{std::in_place, "plan a training"};
  TrainingAnswer answer{.plan = {}, .goal = goal, .top = options.top};
  STEPCAST_ASSIGN(answer.plan, plan_training(request, platforms, options.n_gpus, goal));
  progress.reset();
  const ReportDocument document = training_document(answer);
  return report.finish(document, options.json ? document.json : std::string{});
}

// Plans several trainings that share the GPUs.
Result<int> run_jobs(const PlanOptions& options, const PlanRequest& request) {
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  STEPCAST_ASSIGN(const std::string text, read_file(options.jobs));
  STEPCAST_ASSIGN(const std::vector<PoolJob> jobs, parse_pool_jobs(text, options.jobs));
  TrainingGoal goal;
  STEPCAST_ASSIGN(const std::vector<NamedPlatform> platforms, priced_platforms(options, goal));
  std::optional<ProgressLine> progress{std::in_place, "plan jobs"};
  STEPCAST_ASSIGN(JobPool pool, plan_jobs(request, platforms.front(), options.n_gpus.front(), jobs));
  pool.currency = options.goal.currency;
  progress.reset();
  const ReportDocument document = jobs_document(pool);
  return report.finish(document, options.json ? document.json : std::string{});
}

Status check_jobs(const PlanOptions& options) {
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
    return Error{"several numbers of GPUs or platforms can only be compared for a whole training"}.advice(
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
        .found(fmt::format("`{}` for a fixed number of GPUs, for which the fastest step is also the cheapest",
                           options.objective))
        .advice("add --train-tokens, or say --objective time");
  if (options.at_most &&
      (trains || !options.from.empty() || !options.jitter.empty() || options.objective == "memory")) {
    return Error{"--at-most looks for the shortest step of one plan"}.advice(
        "leave out --train-tokens (--gpus 64..512 compares a range), --from, --jitter and --objective "
        "memory");
  }
  if (options.from.empty() && options.gpus.empty()) return Error{"--gpus is required"};
  if (!options.zones.empty() && !plans_pools(options))
    return Error{"--zone needs pools of GPUs"}.advice("name them: --gpus 64xh100@east+64xa100@west");
  const bool described = !options.job.model.empty() || !options.flags.remaining().empty();
  if (options.from.empty() && !described) {
    return Error{"no model is named"}
        .expected(
            "--model with the name of a preset or a config.json, or Megatron's flags from --num-layers on")
        .advice("`stepcast plan --help` shows an example");
  }
  return Ok{};
}

Result<PlanRequest> request_of(const PlanOptions& options) {
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
  return request;
}

// The given command line for the GPUs and the batch of `other`.
std::string command_of_alternative(const PlanAlternative& other) {
  Flags flags = flags_in(given_words(), Question::plan);
  std::erase_if(flags, [](const Flag& flag) {
    return flag.name == "--gpus" || flag.name == "--gbs" || is_of_output(flag, Question::plan);
  });
  flags.push_back({"--gpus", {fmt::format("{}", other.n_gpus)}});
  flags.push_back({"--gbs", {fmt::format("{}", other.global_batch)}});
  std::vector<std::string> words = words_of(flags);
  words.insert(words.begin(), "plan");
  return command_of(words);
}

// The plan for the given GPUs, or for the best of at most these. `subject` receives what it was compared with.
Result<LayoutPlan> asked_plan(const PlanOptions& options, const PlanRequest& request,
                              const Platform& platform, PlanSubject& subject) {
  if (options.at_most) {
    STEPCAST_ASSIGN(PlanAtMost best, plan_at_most(request, platform));
    subject.gpu_limit = request.n_gpus;
    subject.alternatives = std::move(best.alternatives);
    for (PlanAlternative& other : subject.alternatives) other.command = command_of_alternative(other);
    return std::move(best.plan);
  }
  STEPCAST_ASSIGN(LayoutPlan plan, plan_layouts(request, platform));
  LayoutSpace space = plan.space;
  std::erase_if(space.tensor,
                [&](std::int64_t degree) { return plan.prototypes.model().n_heads % degree != 0; });
  if (auto note = note_of_batch(space, plan.prototypes.global_batch(), platform.node.gpus_per_node))
    plan.notes.push_back(std::move(*note));
  return plan;
}

// Plans layouts for one number of GPUs on one platform.
Result<int> run_layouts(const PlanOptions& options, PlanRequest request) {
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
  PlanSubject subject{named.name, platform.device.name, options.top, std::nullopt, options.why};
  STEPCAST_ASSIGN(LayoutPlan plan, asked_plan(options, request, platform, subject));
  for (const std::string& setting : request.job.not_modelled)
    plan.notes.push_back(fmt::format("not modelled: {}", setting));
  if (plan.found.priced.empty()) return why_none(plan, layout_fixes(request, platform));
  if (csv) {
    STEPCAST_ASSIGN(const std::string rows, options.csv.ends_with(".jsonl")
                                                ? Result<std::string>{plan_jsonl(plan)}
                                                : plan_csv(plan, platform));
    progress.reset();
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
  if (running) subject.now = layout_now(*running, plan, platform);
  progress.reset();
  const ReportDocument document = plan_document(plan_answer(plan, subject));
  STEPCAST_TRY(report.answer(document, options.json ? document.json : std::string{}));
  if (options.json || report.replaces_text()) return kSuccess;
  if (csv)
    print("\nAll {} priced layouts written to {}\n", plan.found.priced.size(), in_one_line(options.csv));
  report.note();
  return kSuccess;
}

Result<int> run_plan(const PlanOptions& options) {
  STEPCAST_ASSIGN(const Question question, question_of(options));
  if (question == Question::plan_rl) return run_post_training(options);
  STEPCAST_TRY(check_options(options));
  if (question == Question::plan_pools) return run_pools(options);
  STEPCAST_ASSIGN(PlanRequest request, request_of(options));
  if (question == Question::plan_jobs) return run_jobs(options, request);
  if (options.goal.tokens > 0) return run_training(options, request, options.goal);
  return run_layouts(options, std::move(request));
}

constexpr char kFooter[] =
    "Lists restrict the search: --tp 4,8 --recompute none. Other flags of\n"
    "Megatron-LM apply to all layouts (`stepcast reference megatron-flags`).";

constexpr VerbHeading kPlanHeadings[] = {
    {OptionHeading::subject, "Job and machine"},
    {OptionHeading::training, "A whole training: which machine, how many GPUs"},
    {OptionHeading::layout, "Space: lists, as in 1,2,4"},
    {OptionHeading::rl, kRlHeading},
    {OptionHeading::result, "Result"}};

std::vector<FlagTarget> targets_of(PlanOptions& o) {
  return {
#define STEPCAST_OPTION(flags, heading, questions, goes_to, ...) FlagTarget{goes_to},
#define PLAN(member) &o.member
#include "stepcast/sweep/option_table.def"  // NOLINT(bugprone-suspicious-include): a list that several read
  };
}

}  // namespace

void declare_plan_options(CLI::App& app, PlanOptions& options) {
  app.allow_extras();
  app.footer(kFooter);
  options.flags.add_table(kPlanHeadings, kPlanQuestions, targets_of(options));
  read_format(app, options.json);
}

Result<Question> question_of(const PlanOptions& options) {
  const bool is_config = options.from.ends_with(".yaml") || options.from.ends_with(".yml");
  const Subject& subject = subject_of(
      job_as_named(options.job.model, is_config ? options.from : "", is_config ? "" : options.from),
      options.rl);
  if (subject.planner != "plan")
    return Error{fmt::format("{} is {}", options.job.model, subject.called)}.advice(
        fmt::format("`stepcast {}` plans these", subject.planner));
  const Question question = subject.question == Question::post_training ? Question::plan_rl
                            : !options.jobs.empty()                     ? Question::plan_jobs
                            : plans_pools(options)                      ? Question::plan_pools
                                                                        : Question::plan;
  for (const GivenFlag& flag : options.flags.given()) {
    if ((flag.of & bit(question)) != 0) continue;
    if ((flag.of & kPlanQuestions) == bit(Question::plan_rl))
      return Error{fmt::format("{} belongs to --rl", flag.name)}.advice("name an algorithm, too");
    if (question != Question::plan_jobs)
      return Error{fmt::format("{} is not supported for {}", flag.name,
                               question == Question::plan_rl ? "a step of post-training" : "pools of GPUs")}
          .advice("leave it out");
    return Error{fmt::format("{} belongs to one training, --jobs names several", flag.name)}.advice(
        "leave one of the two out");
  }
  return question;
}

Verb plan_verb() {
  return {"plan", "search the layouts of a training: the fastest, ties, and rejected ones",
          [](CLI::App& app) {
            auto options = std::make_shared<PlanOptions>(app);
            declare_plan_options(app, *options);
            return [options]() -> Result<int> {
              if (!plans_pools(*options)) {
                STEPCAST_ASSIGN(options->n_gpus, gpu_counts(options->gpus));
              }
              return run_plan(*options);
            };
          }};
}

}  // namespace stepcast::cli
