// stepcast shard: how to spread embedding tables over GPUs, chosen by the simulated step, without running anything.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_writer.h"
#include "stepcast/base/one_line.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/units.h"
#include "stepcast/base/version.h"
#include "stepcast/describe/dlrm_job.h"
#include "stepcast/describe/measured_indices.h"
#include "stepcast/describe/presets.h"
#include "stepcast/describe/torchrec_plan.h"
#include "stepcast/plan/sharders.h"
#include "stepcast/plan/sharding_search.h"
#include "stepcast/plan/table_sets.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/dlrm_step.h"
#include "stepcast/report/sharding_document.h"
#include "stepcast/report/text_table.h"

#include "outputs.h"
#include "progress.h"
#include "report_output.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

using Align = TextTable::Align;

// Shardings of one job err alike, but for the tables that they place differently: differences below this share of
// the step are not told apart.
constexpr double kTellApart = 0.02;

struct Options {
  std::string model = "dlrm-multi-gpu", tables, indices, generate, save_tables, platform = "dgx-h100", output;
  std::int64_t n_gpus = 0, gpus_per_node = 0, global_batch = 0;
  std::vector<std::string> sharders, plans;
  std::uint64_t seed = 1;
  std::size_t evaluations = SearchOptions{}.max_evaluations;
  double seconds = SearchOptions{}.max_seconds;
  bool json = false;
  ReportOptions report;
  const CLI::App* app = nullptr;
};

struct Candidate {
  ShardingPlan plan;
  DlrmStep step;
  double expected_us = 0;  // what it is judged by
};

double lookup_us(const DlrmRank& rank) { return rank.lookup_us + rank.lookup_backward_us; }
double most_lookups(const DlrmStep& step) {
  double most = 0;
  for (const DlrmRank& rank : step.ranks) most = std::max(most, lookup_us(rank));
  return most;
}
double most_sent(const DlrmStep& step) {
  double most = 0;
  for (const DlrmRank& rank : step.ranks) most = std::max(most, rank.sent_bytes);
  return most;
}

Result<std::vector<Candidate>> candidates(const Options& options, DlrmStepModel& steps) {
  std::vector<ShardingPlan> plans;
  const Dlrm& model = steps.model();
  const double weights = model.tables.front().bytes();
  const SharderOptions with{.memory_bytes = steps.table_memory_bytes(),
                            .state_factor = steps.shard_bytes({.table = 0}) / std::max(1.0, weights),
                            .seed = options.seed};
  std::vector<std::string> names = options.sharders;
  if (names.empty()) {
    for (const Sharder sharder : kSharders) names.emplace_back(to_string(sharder));
    names.emplace_back("search");
  }
  for (const std::string& name : names) {
    if (name == "search") {
      plans.push_back(search_sharding(steps, {.seed = options.seed,
                                              .max_evaluations = options.evaluations,
                                              .max_seconds = options.seconds})
                          .plan);
      continue;
    }
    const std::optional<Sharder> sharder = parse_sharder(name);
    if (!sharder) {
      return Error::at("", "--sharders")
          .found(fmt::format("`{}`", name))
          .expected("naive, random, size, lookup, norm_lookup, size_lookup or search");
    }
    plans.push_back(shard(model, steps.n_ranks(), *sharder, with));
  }
  for (const std::string& file : options.plans) {
    STEPCAST_ASSIGN(const std::string text, read_file(file));
    STEPCAST_ASSIGN(ShardingPlan plan, parse_torchrec_plan(text, file, model, steps.n_ranks()));
    plans.push_back(std::move(plan));
  }
  std::vector<Candidate> all;
  for (ShardingPlan& plan : plans) {
    const double expected_us = steps.expected_us(plan, true);
    STEPCAST_ASSIGN(DlrmStep step, steps.predict(plan));
    all.push_back({std::move(plan), std::move(step), expected_us});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    if (a.step.fits != b.step.fits) return a.step.fits;
    return a.expected_us < b.expected_us;
  });
  return all;
}

std::string verdict(const std::vector<Candidate>& all) {
  const Candidate& best = all.front();
  if (!best.step.fits) return "No sharding fits the memory of the GPUs.";
  const Candidate* next = all.size() > 1 && all[1].step.fits ? &all[1] : nullptr;
  if (all.size() == 1) return fmt::format("{} fits; no other sharding was asked for.", best.plan.name);
  if (next == nullptr) return fmt::format("{} is the only one that fits.", best.plan.name);
  const double gain = next->expected_us / best.expected_us - 1;
  if (gain < kTellApart) {
    return fmt::format(
        "{} and {} cannot be told apart: {:.1f} % between their expected steps, and less than {:.0f} % is "
        "within what the model of a table errs.",
        best.plan.name, next->plan.name, 100 * gain, 100 * kTellApart);
  }
  return fmt::format("{} is expected to be the fastest, {:.1f} % before {}.", best.plan.name, 100 * gain,
                     next->plan.name);
}

std::string text_of(const std::vector<Candidate>& all, const DlrmStepModel& steps, double least_us) {
  TextTable table{{{"sharding", Align::left},
                   {"expected\nms"},
                   {"step\nms"},
                   {"p10\nms"},
                   {"p90\nms"},
                   {"lookups of\nbusiest ms"},
                   {"imbalance"},
                   {"sent by\nbusiest MB"},
                   {"exchange\nms"},
                   {"memory\nGiB"},
                   {"samples\nper s"},
                   {"", Align::left}}};
  for (const Candidate& c : all) {
    const DlrmRank& worst = c.step.ranks[static_cast<std::size_t>(c.step.worst_rank)];
    const double us = c.step.time.time.value();
    const bool on_gpu = worst.memory_bytes <= c.step.available_bytes;
    const std::string note =
        c.step.fits ? ""
        : on_gpu    ? fmt::format("does not fit: tables need more than {:.0f} GiB of host memory",
                                  c.step.host_available_bytes / kGiB)
                    : fmt::format("does not fit: rank {} needs {:.1f} GiB of {:.1f}", c.step.worst_rank,
                                  worst.memory_bytes / kGiB, c.step.available_bytes / kGiB);
    table.row({c.plan.name, table_number(c.expected_us * 1e-3, 3), table_number(us * 1e-3, 3),
               table_number(c.step.time.p10.value() * 1e-3, 3),
               table_number(c.step.time.p90.value() * 1e-3, 3), table_number(most_lookups(c.step) * 1e-3, 3),
               table_number(c.step.lookup_imbalance, 2), table_number(most_sent(c.step) * 1e-6, 1),
               table_number(c.step.exchange_us * 1e-3, 3), table_number(worst.memory_bytes / kGiB, 1),
               table_number(static_cast<double>(steps.training().global_batch) / us * 1e6, 0), note});
  }
  const Candidate& best = all.front();
  std::string text = table.text() + "\n" + verdict(all) + "\n";
  if (const double above = best.step.time.time.value() / least_us - 1; best.step.fits && above >= 0) {
    text +=
        fmt::format("No placement of whole tables takes less than {:.3f} ms, which is {:.1f} % below {}.\n",
                    least_us * 1e-3, 100 * (1 - 1 / (1 + above)), best.plan.name);
  }
  text += "\n";
  TextTable ranks{{{"rank"},
                   {"tables"},
                   {"lookup\nms"},
                   {"backward\nms"},
                   {"tables\nGiB"},
                   {"memory\nGiB"},
                   {"sent MB"}}};
  std::vector<std::size_t> held(best.step.ranks.size(), 0);
  for (const TableShard& s : shards_of(steps.model(), best.plan, steps.n_ranks()))
    ++held[static_cast<std::size_t>(s.rank)];
  constexpr std::size_t kMostRanks = 32;
  for (std::size_t r = 0; r < std::min(best.step.ranks.size(), kMostRanks); ++r) {
    const DlrmRank& rank = best.step.ranks[r];
    ranks.row({std::to_string(r), std::to_string(held[r]), table_number(rank.lookup_us * 1e-3, 3),
               table_number(rank.lookup_backward_us * 1e-3, 3), table_number(rank.table_bytes / kGiB, 2),
               table_number(rank.memory_bytes / kGiB, 2), table_number(rank.sent_bytes * 1e-6, 1)});
  }
  text += fmt::format("Ranks of {}:\n{}", best.plan.name, ranks.text());
  if (best.step.ranks.size() > kMostRanks)
    text += fmt::format("and {} more\n", best.step.ranks.size() - kMostRanks);
  return text;
}

std::string json_of(const std::vector<Candidate>& all, const DlrmStepModel& steps, double least_us) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", "stepcast.shard/1").field("version", version());
  json.field("model", steps.model().name)
      .field("n_gpus", steps.n_ranks())
      .field("global_batch_samples", steps.training().global_batch);
  json.field("verdict", verdict(all)).field("least_step_time_ms", least_us * 1e-3);
  json.key("shardings").begin_array();
  for (const Candidate& c : all) {
    json.begin_object();
    json.field("name", c.plan.name).field("fits", c.step.fits);
    json.field("expected_step_time_ms", c.expected_us * 1e-3)
        .field("step_time_ms", c.step.time.time.value() * 1e-3)
        .field("step_time_p10_ms", c.step.time.p10.value() * 1e-3);
    json.field("step_time_p90_ms", c.step.time.p90.value() * 1e-3)
        .field("lookup_imbalance", c.step.lookup_imbalance);
    json.field("exchange_ms", c.step.exchange_us * 1e-3).field("bound_ms", c.step.bound_us * 1e-3);
    json.key("ranks").begin_array();
    for (const DlrmRank& rank : c.step.ranks) {
      json.begin_object();
      json.field("lookup_ms", rank.lookup_us * 1e-3)
          .field("lookup_backward_ms", rank.lookup_backward_us * 1e-3);
      json.field("memory_GiB", rank.memory_bytes / kGiB)
          .field("host_memory_GiB", rank.host_bytes / kGiB)
          .field("sent_bytes", rank.sent_bytes);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return std::move(json).text() + "\n";
}

// As the page shows it.
ShardingAnswer answer_of(const std::vector<Candidate>& all, const DlrmStepModel& steps,
                         const Options& options, double least_us) {
  ShardingAnswer answer{.model = steps.model().name,
                        .platform = options.platform,
                        .n_gpus = steps.n_ranks(),
                        .global_batch_samples = steps.training().global_batch,
                        .verdict = verdict(all),
                        .least_step_ms = least_us * 1e-3,
                        .memory_GiB = all.front().step.available_bytes / kGiB,
                        .shardings = {},
                        .json = json_of(all, steps, least_us)};
  for (const Candidate& c : all) {
    ShardingCandidate one{.name = c.plan.name,
                          .step = c.step.time,
                          .fits = c.step.fits,
                          .lookup_imbalance = c.step.lookup_imbalance,
                          .exchange_ms = c.step.exchange_us * 1e-3,
                          .ranks = {}};
    for (const DlrmRank& rank : c.step.ranks) {
      one.ranks.push_back({.lookup_ms = rank.lookup_us * 1e-3,
                           .lookup_backward_ms = rank.lookup_backward_us * 1e-3,
                           .memory_GiB = rank.memory_bytes / kGiB,
                           .sent_MB = rank.sent_bytes * 1e-6});
    }
    for (const TableShard& s : shards_of(steps.model(), c.plan, steps.n_ranks()))
      ++one.ranks[static_cast<std::size_t>(s.rank)].tables;
    answer.shardings.push_back(std::move(one));
  }
  return answer;
}

Status check_options(const Options& options) {
  if (!is_dlrm_job(options.model) && find_preset(options.model)) {
    return Error::at("", "--model")
        .found(fmt::format("`{}`, a transformer", options.model.substr(0, 60)))
        .expected("a recommendation model")
        .advice("`stepcast plan` searches the layouts of transformers");
  }
  const bool draws = options.sharders.empty() || !options.generate.empty() ||
                     std::any_of(options.sharders.begin(), options.sharders.end(),
                                 [](const std::string& s) { return s == "random" || s == "search"; });
  if (!draws && options.app->get_option("--seed")->count() > 0)
    return Error{"--seed belongs to the sharders random and search, and to --generate"}.advice(
        "leave it out");
  return Ok{};
}

Result<int> run(const Options& options) {
  STEPCAST_TRY(check_options(options));
  STEPCAST_ASSIGN(Platform platform, load_platform(options.platform));
  std::string platform_note;
  if (const auto node = node_instead_of(platform, options.n_gpus)) {
    platform_note = node_note(options.platform, *node);
    STEPCAST_ASSIGN(platform, load_platform(*node));
  }
  std::vector<std::filesystem::path> inputs{options.model, options.tables, options.indices};
  inputs.insert(inputs.end(), platform.files.begin(), platform.files.end());
  inputs.insert(inputs.end(), options.plans.begin(), options.plans.end());
  std::optional<OutputFile> output;
  if (!options.output.empty()) {
    STEPCAST_ASSIGN(output, OutputFile::at(options.output, inputs));
  }
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs));
  std::optional<OutputFile> tables;
  if (!options.save_tables.empty()) {
    STEPCAST_ASSIGN(tables, OutputFile::at(options.save_tables, inputs));
  }
  STEPCAST_ASSIGN(DlrmJob job, read_dlrm_job(options.model));
  if (!options.tables.empty()) {
    STEPCAST_ASSIGN(job.model.tables, read_embedding_tables(options.tables));
  }
  if (!options.indices.empty()) STEPCAST_TRY(read_indices(options.indices, job.model));
  if (options.global_batch > 0) {
    job.global_batch = options.global_batch;
    job.batch_per_rank.reset();
  }
  if (!options.generate.empty()) {
    STEPCAST_ASSIGN(job.model.tables, generate_task(options.generate, options.n_gpus,
                                                    platform.device.memory_size.value(), options.seed));
  }
  if (options.gpus_per_node > 0) {
    std::string note;
    adapt_to({.gpus_per_node = options.gpus_per_node}, platform, note);
    STEPCAST_TRY(platform.check());
  }
  STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(job.model, job.training_on(options.n_gpus),
                                                             platform, options.n_gpus));
  if (tables) STEPCAST_TRY(tables->write(tables_csv(job.model.tables)));
  std::optional<ProgressLine> progress{std::in_place, fmt::format("shard over {} GPUs", options.n_gpus)};
  STEPCAST_ASSIGN(const std::vector<Candidate> all, candidates(options, steps));
  progress.reset();
  const double least_us = steps.least_step_us();
  if (output && !all.front().step.fits) return Error{"no sharding fits: no plan is written"};
  if (report.is_wanted())
    STEPCAST_TRY(report.give(sharding_document(answer_of(all, steps, options, least_us))));
  if (!report.is_markdown()) {
    print("{}", options.json ? json_of(all, steps, least_us) : text_of(all, steps, least_us));
  }
  if (output) {
    STEPCAST_TRY(output->write(
        torchrec_plan_json(job.model, all.front().plan, options.n_gpus, steps.gpus_per_node())));
    if (!options.json && !report.is_markdown())
      print("\nPlan of {} written to {}\n", all.front().plan.name, in_one_line(options.output));
  }
  if (!platform_note.empty() && !options.json && !report.is_markdown()) print("\nnote: {}\n", platform_note);
  if (!options.json) report.note();
  return kSuccess;
}

}  // namespace

Verb shard_verb() {
  return {"shard", "choose how embedding tables are spread over GPUs", [](CLI::App& app) {
            auto options = std::make_shared<Options>();
            options->app = &app;
            app.add_option("--tables", options->tables,
                           "CSV file of the embedding tables (docs/dlrm.md); default: those of the model");
            app.add_option("--indices", options->indices,
                           ".npz file of the indices of a batch: how often rows are looked up");
            app.add_option("--generate", options->generate,
                           "tables drawn from a set with published totals instead of --tables: 2021, 2022, "
                           "2021-heavy or 2022-heavy, by --seed")
                ->excludes("--tables")
                ->excludes("--indices");
            add_output_option(app, "--save-tables", options->save_tables, "write the tables as a CSV file");
            app.add_option("--model", options->model, "preset or file of a recommendation model")
                ->capture_default_str();
            app.add_option("--gpus", options->n_gpus, "GPUs in all")->required()->check(CLI::Range(1, 65536));
            app.add_option("--platform", options->platform, "name of a shipped platform, or a platform file")
                ->capture_default_str();
            app.add_option("--gpus-per-node", options->gpus_per_node,
                           "GPUs of a node, where not as the platform has")
                ->check(CLI::Range(1, 1024));
            app.add_option("--global-batch-size", options->global_batch, "samples per step")
                ->check(CLI::Range(1, 1 << 30));
            app.add_option("--sharders", options->sharders,
                           "naive, random, size, lookup, norm_lookup, size_lookup, search (default: all)")
                ->delimiter(',');
            app.add_option("--plan", options->plans, "TorchRec plans to compare with");
            app.add_option("--seed", options->seed, "of the random sharder, the search and --generate")
                ->capture_default_str();
            app.add_option("--evaluations", options->evaluations, "most steps that the search simulates")
                ->capture_default_str();
            app.add_option("--seconds", options->seconds, "most time that the search takes")
                ->capture_default_str();
            add_output_option(app, "-o,--output", options->output,
                              "write the winner as a TorchRec plan (JSON)");
            app.add_flag("--json", options->json, "print one JSON object");
            add_report_options(app, options->report, options->json);
            return [options] { return run(*options); };
          }};
}

}  // namespace stepcast::cli
