// stepcast sweep: many predictions or plans from one file, on one machine or on a cluster.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
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
#include "stepcast/base/output_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"
#include "stepcast/report/sweep_document.h"
#include "stepcast/sweep/sweep_folder.h"
#include "stepcast/sweep/sweep_shard.h"
#include "stepcast/sweep/sweep_spec.h"

#include "option_list.h"
#include "outputs.h"
#include "progress.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct SweepOptions {
  ReportOptions report;
  std::string spec, folder, shard, merged, point;
  std::optional<std::uint32_t> shards;
  unsigned threads = 0;
  bool extends = false, lists = false, status = false, json = false;
};

Result<SweepShard> shard_of(const SweepOptions& options) {
  if (!options.shard.empty()) {
    if (options.shards)
      return Error{"--shard i/n already gives n; --shards is for jobs in which the cluster gives i"}.advice(
          "leave it out");
    return parse_shard(options.shard);
  }
  return shard_of_environment(
      [](const std::string& name) -> std::optional<std::string> {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing sets any here
        const char* value = std::getenv(name.c_str());
        if (value == nullptr) return std::nullopt;
        return std::string{value};
      },
      options.shards);
}

Result<int> list(const SweepSpec& spec, const SweepOptions& options) {
  if (options.json) {
    for (const SweepPoint& point : spec.points) print("{}\n", point.json());
    return kSuccess;
  }
  ReportTable table{"point< | settings<"};
  table.indent = 0;
  for (const SweepPoint& point : spec.points) table.row({point.id, point.json()});
  print("{}{} points\n", report_text(table, terminal_columns()), table_count(spec.points.size()));
  if (spec.n_repeated > 0) print("{} combinations were duplicates\n", table_count(spec.n_repeated));
  return kSuccess;
}

// The rows of all shards. A sweep can have many thousands.
Result<SweepRows> rows_of(const SweepFolder& folder, const SweepSpec& spec) {
  const ProgressLine progress{"sweep: reading rows"};
  return folder.rows(spec);
}

Result<int> merge(const SweepSpec& spec, const SweepOptions& options) {
  STEPCAST_ASSIGN(const SweepFolder folder, SweepFolder::existing(options.folder, spec));
  if (folder.would_be_row_file(options.merged)) {
    return Error::at(options.merged, "", "has the name of a shard's rows, in their folder")
        .advice("name another file, such as results.csv");
  }
  std::vector<std::filesystem::path> inputs = folder.own_files();
  inputs.emplace_back(options.spec);
  STEPCAST_ASSIGN(const OutputFile output, OutputFile::at(options.merged, inputs));
  const std::string ending = std::filesystem::path{options.merged}.extension().string();
  constexpr std::array<std::string_view, 4> kEndings{".csv", ".jsonl", ".json", ".ndjson"};
  if (output.is_regular() && std::ranges::find(kEndings, ending) == kEndings.end()) {
    Error error = Error::at("", "--merge")
                      .found(fmt::format("`{}`", options.merged.substr(0, 80)))
                      .expected("a name that ends in .jsonl (JSON lines) or .csv");
    if (ending != ".parquet") return error;
    return std::move(error).advice(
        "Python writes Parquet of them: stepcast.Table.of_jsonl(\"all.jsonl\").to_parquet(\"all.parquet\")");
  }
  STEPCAST_ASSIGN(const SweepRows rows, rows_of(folder, spec));
  STEPCAST_ASSIGN(const std::string text,
                  options.merged.ends_with(".csv") ? merged_csv(spec, rows) : merged_rows(spec, rows));
  STEPCAST_TRY(output.write(text));
  if (!output.is_regular()) return kSuccess;
  STEPCAST_ASSIGN(const SweepOutcome outcome, sweep_outcome(spec, rows));
  print("{} rows written to {}\n{}", table_count(outcome.n), in_one_line(options.merged), outcome.text());
  return kSuccess;
}

void print_status(const SweepSpec& spec, const SweepOutcome& outcome) {
  print("{} of {} points done\n{}", table_count(outcome.n), table_count(spec.points.size()), outcome.text());
}

Result<int> status(const SweepSpec& spec, const SweepOptions& options) {
  STEPCAST_ASSIGN(const SweepFolder folder, SweepFolder::existing(options.folder, spec));
  STEPCAST_ASSIGN(const SweepRows rows, rows_of(folder, spec));
  STEPCAST_ASSIGN(const SweepOutcome outcome, sweep_outcome(spec, rows));
  if (options.json) {
    print("{}\n", sweep_status_json(
                      {spec.hash, spec.points.size(), outcome.n, outcome.n_failed, outcome.n_too_large}));
    return kSuccess;
  }
  print_status(spec, outcome);
  return kSuccess;
}

Result<int> page(const SweepSpec& spec, const SweepOptions& options) {
  STEPCAST_ASSIGN(const SweepFolder folder, SweepFolder::existing(options.folder, spec));
  std::vector<std::filesystem::path> inputs = folder.own_files();
  inputs.emplace_back(options.spec);
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs));
  STEPCAST_ASSIGN(const SweepRows rows, rows_of(folder, spec));
  STEPCAST_ASSIGN(const SweepOutcome outcome, sweep_outcome(spec, rows));
  STEPCAST_ASSIGN(const ReportDocument document, sweep_document(spec, rows));
  STEPCAST_TRY(report.give(document));
  print_status(spec, outcome);
  report.note();
  return kSuccess;
}

Result<int> one_point(const SweepSpec& spec, const SweepOptions& options) {
  const SweepPoint* point = spec.find(options.point);
  if (point == nullptr) {
    return Error::at("", "--point")
        .found(fmt::format("`{}`", options.point.substr(0, 40)))
        .expected(fmt::format("the id of one of the {} points (--list)", spec.points.size()));
  }
  const Session session;
  std::optional<ProgressLine> progress{std::in_place, "sweep: one point"};
  STEPCAST_ASSIGN(const std::string row, session.run(*point));
  progress.reset();
  print("{}\n", row);
  return kSuccess;
}

Result<int> run_sweep(const SweepOptions& options) {
  if (options.json && !options.lists && !options.status && options.point.empty()) {
    return Error{"--json needs --list or --status"}.advice(
        "leave it out: rows are JSON, and --merge writes them to one file");
  }
  STEPCAST_ASSIGN(const SweepSpec spec, read_sweep(options.spec));
  if (options.lists) return list(spec, options);
  if (!options.point.empty()) return one_point(spec, options);
  if (options.folder.empty()) {
    return Error{"-o is required"}.expected("the folder of the rows").advice("--list prints only the points");
  }
  if (!options.merged.empty()) return merge(spec, options);
  if (options.status) return status(spec, options);
  if (!options.report.file.empty()) return page(spec, options);

  SweepRun sweep;
  sweep.folder = options.folder;
  sweep.threads = options.threads;
  sweep.extends = options.extends;
  STEPCAST_ASSIGN(sweep.shard, shard_of(options));
  std::optional<ProgressLine> progress{std::in_place, "sweep"};
  sweep.progress = [&](std::size_t done, std::size_t all) {
    progress->say(fmt::format("sweep: {} of {} points", table_count(done), table_count(all)));
  };
  const Session session;
  STEPCAST_ASSIGN(const SweepReport report, session.sweep(spec, sweep));
  progress.reset();
  const SweepShard& shard = sweep.shard;
  const std::string origin = shard.origin.empty() ? "" : fmt::format(" (by {})", shard.origin);
  print("{}: {} points", in_one_line(options.spec), table_count(spec.points.size()));
  if (spec.n_repeated > 0) print(", {} duplicate combinations left out", table_count(spec.n_repeated));
  if (shard.count > 1)
    print("; shard {}/{}{}: {}", shard.index, shard.count, origin, table_count(report.n_points));
  print("\n{} had a row before, {} were run: {}\n", table_count(report.n_before), table_count(report.n_run),
        in_one_line(report.file.string()));
  STEPCAST_ASSIGN(const SweepFolder folder, SweepFolder::existing(options.folder, spec));
  STEPCAST_ASSIGN(const SweepRows rows, rows_of(folder, spec));
  STEPCAST_ASSIGN(const SweepOutcome outcome,
                  sweep_outcome(spec, rows, [&](const SweepPoint& point) { return shard.has(point); }));
  print("{}", outcome.text());
  // Only for whole sweeps: repeating a single shard would not help.
  if (shard.count == 1 && outcome.n > 0 && outcome.n_failed == outcome.n) {
    return Error{outcome.n == 1 ? std::string{"the only point cannot be run"}
                                : fmt::format("none of the {} points can be run", table_count(outcome.n))}
        .advice("the rows say why (error)");
  }
  return kSuccess;
}

}  // namespace

Verb sweep_verb() {
  return {
      "sweep", "predict or plan all combinations of the lists in a file, here or on a cluster",
      [](CLI::App& app) {
        auto options = std::make_shared<SweepOptions>();
        app.footer(
            "The file (TOML or JSON, docs/sweeps.md) has lists of models, platforms, numbers of GPUs, "
            "flags:\n  mode = \"predict\"                                      # or \"plan\"\n  model = "
            "[\"llama-3-8b\", \"llama-3-70b\"]\n  platform = \"dgx-h100\"\n  gpus = [64, 128, 256]\n  "
            "layouts = [{ tp = 8, pp = 1 }, { tp = 4, pp = 4 }]    # values used together\nA second run "
            "computes only the missing rows.");
        app.add_option("SPEC", options->spec, "the file")->required();
        app.add_option("-o,--output", options->folder, "folder of the rows, shared by all shards");
        app.add_option("--shard", options->shard,
                       "run only part i of n, counted from 0 (default: from a Slurm array or an Indexed Job "
                       "of Kubernetes, else all)");
        app.add_option("--shards", options->shards,
                       "number of parts, if the cluster gives the index of this one (JOB_COMPLETION_INDEX)")
            ->check(CLI::Range(1, 1'000'000));
        app.add_option("--threads", options->threads, "CPU threads (0: all); the rows are the same")
            ->capture_default_str();
        app.add_flag("--extend", options->extends,
                     "continue a folder that was begun with fewer points than the spec has now");
        CLI::Option* merged = add_output_option(
            app, "--merge", options->merged,
            "write the rows of all shards to one file, .jsonl or .csv, in the order of the spec");
        CLI::Option* lists = app.add_flag("--list", options->lists, "print the points, run nothing");
        CLI::Option* status =
            app.add_flag("--status", options->status, "print the number of points done, run nothing");
        CLI::Option* point =
            app.add_option("--point", options->point, "print the row of the point with this id, run nothing");
        CLI::Option* report =
            add_output_option(app, "--report", options->report.file,
                              "write a page (.html) with a table of the rows of all shards, run nothing");
        // Each of these options replaces a run and excludes the others.
        const std::vector<CLI::Option*> instead{merged, lists, status, point, report};
        for (CLI::Option* one : instead) {
          for (CLI::Option* other : instead)
            if (one != other) one->excludes(other);
          for (const char* of_run : {"--shard", "--shards", "--extend"})
            one->excludes(app.get_option(of_run));
        }
        app.add_flag("--json", options->json, "print JSON, with --list or --status");
        return [options] { return run_sweep(*options); };
      }};
}

}  // namespace stepcast::cli
