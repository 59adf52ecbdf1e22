// stepcast shard: how to spread embedding tables over GPUs, chosen by the simulated step, without running anything.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/one_line.h"
#include "stepcast/describe/dlrm_job.h"
#include "stepcast/describe/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/sharding_document.h"
#include "stepcast/report/sharding_report.h"

#include "outputs.h"
#include "progress.h"
#include "report_output.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  ShardRequest request;
  std::string save_tables, output;
  std::vector<std::string> plans;
  bool json = false;
  ReportOptions report;
  const CLI::App* app = nullptr;
};

Status check_options(const Options& options) {
  const ShardRequest& request = options.request;
  const std::vector<std::string>& sharders = request.choices.sharders;
  if (!is_dlrm_job(request.model) && find_preset(request.model)) {
    return Error::at("", "--model")
        .found(fmt::format("`{}`, a transformer", request.model.substr(0, 60)))
        .expected("a recommendation model")
        .advice("`stepcast plan` searches the layouts of transformers");
  }
  const bool draws = sharders.empty() || !request.generate.empty() ||
                     std::any_of(sharders.begin(), sharders.end(),
                                 [](const std::string& s) { return s == "random" || s == "search"; });
  if (!draws && options.app->get_option("--seed")->count() > 0)
    return Error{"--seed belongs to the sharders random and search, and to --generate"}.advice(
        "leave it out");
  return Ok{};
}

// That a page must not be written over.
Result<std::vector<std::filesystem::path>> inputs_of(const ShardRequest& request) {
  std::vector<std::filesystem::path> inputs{request.model, request.tables, request.indices};
  inputs.insert(inputs.end(), request.choices.plans.begin(), request.choices.plans.end());
  STEPCAST_ASSIGN(const Platform platform, load_platform(request.platform));
  inputs.insert(inputs.end(), platform.files.begin(), platform.files.end());
  return inputs;
}

Result<int> run(const Options& options) {
  STEPCAST_TRY(check_options(options));
  ShardRequest request = options.request;
  request.choices.plans.assign(options.plans.begin(), options.plans.end());
  request.plan = options.output;
  request.tables_csv = options.save_tables;
  STEPCAST_ASSIGN(const std::vector<std::filesystem::path> inputs, inputs_of(request));
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs));
  std::optional<ProgressLine> progress{std::in_place, fmt::format("shard over {} GPUs", request.n_gpus)};
  STEPCAST_ASSIGN(const ShardingComparison all, Session{}.shard(request));
  progress.reset();
  if (report.is_wanted()) STEPCAST_TRY(report.give(sharding_document(all, request.platform)));
  if (report.is_markdown()) return kSuccess;
  print("{}", options.json ? sharding_json(all) : sharding_text(all));
  if (options.json) return kSuccess;
  if (!options.output.empty())
    print("\nPlan of {} written to {}\n", all.shardings.front().plan.name, in_one_line(options.output));
  for (const std::string& note : all.notes) print("\nnote: {}\n", note);
  report.note();
  return kSuccess;
}

}  // namespace

Verb shard_verb() {
  return {
      "shard", "choose how embedding tables are spread over GPUs", [](CLI::App& app) {
        auto options = std::make_shared<Options>();
        options->app = &app;
        app.add_option("--tables", options->request.tables,
                       "CSV file of the embedding tables (docs/dlrm.md); default: those of the model");
        app.add_option("--indices", options->request.indices,
                       ".npz file of the indices of a batch: how often rows are looked up");
        app.add_option("--generate", options->request.generate,
                       "tables drawn from a set with published totals instead of --tables: 2021, 2022, "
                       "2021-heavy or 2022-heavy, by --seed")
            ->excludes("--tables")
            ->excludes("--indices");
        add_output_option(app, "--save-tables", options->save_tables, "write the tables as a CSV file");
        app.add_option("--model", options->request.model, "preset or file of a recommendation model")
            ->capture_default_str();
        app.add_option("--gpus", options->request.n_gpus, "GPUs in all")
            ->required()
            ->check(CLI::Range(1, 65536));
        app.add_option("--platform", options->request.platform,
                       "name of a shipped platform, or a platform file")
            ->capture_default_str();
        app.add_option("--gpus-per-node", options->request.gpus_per_node,
                       "GPUs of a node, where not as the platform has")
            ->check(CLI::Range(1, 1024));
        app.add_option("--global-batch-size", options->request.global_batch, "samples per step")
            ->check(CLI::Range(1, 1 << 30));
        app.add_option("--sharders", options->request.choices.sharders,
                       "naive, random, size, lookup, norm_lookup, size_lookup, search (default: all)")
            ->delimiter(',');
        app.add_option("--plan", options->plans, "TorchRec plans to compare with");
        app.add_option("--seed", options->request.choices.seed,
                       "of the random sharder, the search and --generate")
            ->capture_default_str();
        app.add_option("--evaluations", options->request.choices.max_evaluations,
                       "most steps that the search simulates")
            ->capture_default_str();
        app.add_option("--seconds", options->request.choices.max_seconds, "most time that the search takes")
            ->capture_default_str();
        add_output_option(app, "-o,--output", options->output, "write the winner as a TorchRec plan (JSON)");
        app.add_flag("--json", options->json, "print one JSON object");
        add_report_options(app, options->report, options->json);
        return [options] { return run(*options); };
      }};
}

}  // namespace stepcast::cli
