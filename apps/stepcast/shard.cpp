// stepcast shard: finds a placement of embedding tables on GPUs by simulated step time, without running a model.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/one_line.h"
#include "stepcast/base/units.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/recommend/dlrm_job.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/sharding_document.h"

#include "command_line.h"
#include "given_flags.h"
#include "option_list.h"
#include "outputs.h"
#include "progress.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct ShardOptions {
  ShardRequest request;
  std::string save_tables, output;
  std::vector<std::string> plans;
  std::string now, stack, release, dtype, exchange_dtype;
  bool json = false;
  ReportOptions report;
  const CLI::App* app = nullptr;
};

Status check_options(const ShardOptions& options) {
  const ShardRequest& request = options.request;
  const std::vector<std::string>& sharders = request.choices.sharders;
  if (!is_dlrm_job(request.model) && find_preset(request.model)) {
    return Error::at("", "--model")
        .found(fmt::format("`{}`, a transformer", request.model.substr(0, 60)))
        .expected("a recommendation model")
        .advice("`stepcast plan` searches the layouts of transformers");
  }
  const bool draws =
      (sharders.empty() && options.now.empty()) || !request.generate.empty() ||
      std::ranges::any_of(sharders, [](const std::string& s) { return s == "random" || s == "search"; });
  if (!draws && options.app->get_option("--seed")->count() > 0)
    return Error{"--seed belongs to the sharders random and search, and to --generate"}.advice(
        "leave it out");
  return Ok{};
}

// Input files, which a report must not overwrite.
Result<std::vector<std::filesystem::path>> inputs_of(const ShardRequest& request) {
  std::vector<std::filesystem::path> inputs{request.model, request.tables, request.indices,
                                            request.choices.now};
  inputs.insert(inputs.end(), request.choices.plans.begin(), request.choices.plans.end());
  STEPCAST_ASSIGN(const Platform platform, load_platform(request.platform));
  inputs.insert(inputs.end(), platform.files.begin(), platform.files.end());
  return inputs;
}

// "t3 from rank 1 to rank 0", for the tables that move.
std::string moves_of(const Dlrm& model, const ShardingPlan& from, const ShardingPlan& to) {
  constexpr std::size_t kMostNamed = 4;
  const auto place = [](const TablePlan& table) {
    return table.ranks.size() == 1 ? fmt::format("rank {}", table.ranks.front())
                                   : fmt::format("{} ranks ({})", table.ranks.size(), to_string(table.kind));
  };
  std::string text;
  std::size_t moved = 0;
  for (std::size_t t = 0; t < std::min(from.tables.size(), to.tables.size()); ++t) {
    if (from.tables[t] == to.tables[t] || ++moved > kMostNamed) continue;
    text += fmt::format("{}{} from {} to {}", text.empty() ? "" : ", ", model.tables[t].name,
                        place(from.tables[t]), place(to.tables[t]));
  }
  return "move " + text + (moved > kMostNamed ? fmt::format(" and {} more tables", moved - kMostNamed) : "");
}

ForecastAction action_of(const ShardingComparison& all, const ComparedSharding& given,
                         const ComparedSharding& then, Flags flags) {
  constexpr double kMs = 1e-3;
  ForecastAction action;
  action.change = then.plan.name;
  action.reason = moves_of(all.model, given.plan, then.plan);
  action.step_time_ms = then.step.time.time.value() * kMs;
  action.promised_step_time_ms = then.expected_us * kMs;
  action.saved_ms = (given.expected_us - then.expected_us) * kMs;
  action.saved_percent = 100 * (1 - then.expected_us / given.expected_us);
  const double uncertain_ms = kShardingsAlike * given.expected_us * kMs;
  action.saved_p10_ms = action.saved_ms - uncertain_ms;
  action.saved_p90_ms = action.saved_ms + uncertain_ms;
  action.certainty = given.step.fits ? "clear" : "fits";
  action.peak_memory_GiB = then.fullest().memory_bytes / kGiB;
  action.memory_change_GiB = (then.fullest().memory_bytes - given.fullest().memory_bytes) / kGiB;
  action.n_gpus = static_cast<std::uint64_t>(all.n_gpus);
  flags.push_back({"--output", {"sharding.json"}});
  std::vector<std::string> words = words_of(flags);
  words.insert(words.begin(), "shard");
  action.command = command_of(words);
  return action;
}

// The savings of the best sharding, and of a few moves. Nothing without a current plan to compare with.
std::optional<ForecastAdvice> what_to_change(const ShardingComparison& all) {
  const auto given = std::ranges::find_if(all.shardings, &ComparedSharding::is_given);
  if (given == all.shardings.end() || given->expected_us <= 0) return std::nullopt;
  constexpr std::string_view kOfOutput = "-o --output --save-tables --json --report --format";
  Flags flags = flags_in(given_words(), Question::recommendation);
  std::erase_if(flags, [&](const Flag& flag) { return is_among(flag.name, kOfOutput); });
  const auto is_worth_it = [&](const ComparedSharding& then) {
    return !then.is_given && then.step.fits && then.plan.tables.size() == given->plan.tables.size() &&
           (!given->step.fits || then.expected_us < (1 - kShardingsAlike) * given->expected_us);
  };
  ForecastAdvice advice;
  const ComparedSharding* best = all.first_torchrec_plan();
  if (best != nullptr && is_worth_it(*best)) advice.actions.push_back(action_of(all, *given, *best, flags));
  std::erase_if(flags, [](const Flag& flag) { return flag.name == "--sharders" || flag.name == "--plan"; });
  for (const ComparedSharding& one : all.shardings)
    if (one.is_resharded && &one != best && is_worth_it(one))
      advice.actions.push_back(action_of(all, *given, one, flags));
  if (advice.actions.empty()) {
    advice.sentence =
        fmt::format("Nothing to gain: no compared sharding is more than {1:.0f} % faster than {0}.",
                    given->plan.name, 100 * kShardingsAlike);
    return advice;
  }
  const ForecastAction& first = advice.actions.front();
  advice.sentence = given->step.fits
                        ? fmt::format("With {0} the step takes {1} less ({3:.1f} % of {2}).", first.change,
                                      duration_text(first.saved_ms), duration_text(given->expected_us * 1e-3),
                                      first.saved_percent)
                        : fmt::format("{} does not fit; {} fits and takes {}.", given->plan.name,
                                      first.change, duration_text(first.promised_step_time_ms));
  return advice;
}

Result<int> run_shard(const ShardOptions& options) {
  STEPCAST_TRY(check_options(options));
  ShardRequest request = options.request;
  request.choices.plans.assign(options.plans.begin(), options.plans.end());
  request.choices.now = options.now;
  request.settings = {{"stack", options.stack},
                      {"release", options.release},
                      {"dtype", options.dtype},
                      {"exchange_dtype", options.exchange_dtype}};
  request.plan = options.output;
  request.tables_csv = options.save_tables;
  STEPCAST_ASSIGN(const std::vector<std::filesystem::path> inputs, inputs_of(request));
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs));
  std::optional<ProgressLine> progress{std::in_place, fmt::format("shard over {} GPUs", request.n_gpus)};
  STEPCAST_ASSIGN(ShardingComparison all, Session{}.shard(request));
  all.what_to_change = what_to_change(all);
  progress.reset();
  STEPCAST_TRY(report.answer(sharding_document(all, request.platform),
                             options.json ? sharding_json(all) : std::string{}));
  if (report.replaces_text()) return kSuccess;
  if (options.json) return kSuccess;
  if (!options.output.empty())
    print("\nPlan of {} written to {}\n", all.first_torchrec_plan()->plan.name, in_one_line(options.output));
  for (const std::string& note : all.notes) print("\nnote: {}\n", note);
  report.note();
  return kSuccess;
}

void add_shard_flags(CLI::App& app, ShardOptions& o) {
  ShardRequest& r = o.request;
  FlagList flags{app};
  flags.add(
      "--tables", &r.tables,
      "CSV file of the embedding tables, or a folder with execution traces of all ranks (docs/dlrm.md); "
      "default: those of the model");
  flags.add("--indices", &r.indices, ".npz file with the embedding indices of a batch");
  flags.add("--generate", &r.generate,
            "random tables from a set with published totals, instead of --tables: 2021, 2022, 2021-heavy or "
            "2022-heavy (see --seed)");
  app.get_option("--generate")->excludes("--tables")->excludes("--indices");
  flags.add("--save-tables", &o.save_tables, "write the tables as a CSV file", {.is_output = true});
  flags.add("--model", &r.model, "preset or file of a recommendation model", {.shows_default = true});
  flags.add("--gpus", &r.n_gpus, "total number of GPUs", {.range = {{1, 65536}}, .required = true});
  flags.add("--platform", &r.platform, "name of a shipped platform, or a platform file",
            {.shows_default = true});
  flags.add("--gpus-per-node", &r.gpus_per_node, "GPUs per node, if different from the platform",
            {.range = {{1, 1024}}});
  flags.add("--gbs,--global-batch-size", &r.global_batch, "samples per step", {.range = {{1, 1 << 30}}});
  constexpr QuestionSet kOf = bit(Question::recommendation);
  flags.add(*find_option("--stack", kOf), &o.stack);
  flags.add(*find_option("--release", kOf), &o.release);
  flags.add("--dtype", &o.dtype, "type of the dense part: fp32, tf32, fp16, bf16");
  flags.add(*find_option("--exchange-dtype", kOf), &o.exchange_dtype);
  flags.add("--sharders", &r.choices.sharders,
            "naive, random, size, lookup, norm_lookup, size_lookup, search, stack (as the software does) "
            "(default: all)",
            {.with_commas = true});
  flags.add("--plan", &o.plans, "TorchRec plans to compare with");
  flags.add("--now", &o.now,
            "TorchRec plan of the running job, or the folder of its traces. Compared with --plan and with a "
            "plan that moves few tables; others only with --sharders");
  flags.add("--seed", &r.choices.seed, "random seed of the random sharder, the search and --generate",
            {.shows_default = true});
  flags.add("--evaluations", &r.choices.max_evaluations, "largest number of steps that the search simulates",
            {.shows_default = true});
  flags.add("--seconds", &r.choices.max_seconds, "time limit of the search",
            {.above_zero = true, .shows_default = true});
  flags.add("-o,--output", &o.output, "write the best sharding as a TorchRec plan (JSON)",
            {.is_output = true});
  flags.add("--json", &o.json, "print one JSON object");
  add_report_options(app, o.report, o.json);
}

}  // namespace

Verb shard_verb() {
  return {"shard", "choose the sharding of embedding tables over GPUs", [](CLI::App& app) {
            auto options = std::make_shared<ShardOptions>();
            options->app = &app;
            add_shard_flags(app, *options);
            return [options] { return run_shard(*options); };
          }};
}

}  // namespace stepcast::cli
