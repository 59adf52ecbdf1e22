// stepcast-lab validate: score predictions against measured data.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/platform/platform_file.h"

#include "lab/program/lab_verbs.h"
#include "lab/reference_pages.h"
#include "lab/suite.h"
#include "lab/validation_report.h"
#include "outputs.h"
#include "progress.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::string suite;
  std::filesystem::path data;
  bool json = false;
  std::string rows;
  std::string output;
  std::vector<std::string> platforms;
  SuiteOptions how;
};

constexpr std::string_view kAll = "all";

std::string suite_names() {
  std::string names;
  for (const Suite& suite : builtin_suites()) names += fmt::format("{}, ", suite.name);
  return names + std::string{kAll};
}

// The accuracy page is published, so it names the folder of measured data as the documentation does.
std::string accuracy_page_without_places(const std::vector<SuiteResult>& results,
                                         const std::filesystem::path& data, const std::string& folder) {
  const std::string place = data.generic_string();
  std::string shown = place;
  const char* known = std::getenv("STEPCAST_DATA");  // NOLINT(concurrency-mt-unsafe): one thread here
  std::error_code ignored;
  if (known != nullptr && std::filesystem::equivalent(known, data, ignored)) shown = "$STEPCAST_DATA";
  std::string page = accuracy_page(results, shown, folder);
  if (place.empty() || place == shown) return page;
  for (std::size_t at = page.find(place); at != std::string::npos; at = page.find(place, at + shown.size()))
    page.replace(at, place.size(), shown);
  return page;
}

// The folder of the page: its path without extension.
std::filesystem::path folder_of(const OutputFile& page) {
  std::filesystem::path folder = page.path();
  folder.replace_extension();
  if (folder == page.path()) folder += "_sets";
  return folder;
}

std::filesystem::path table_of(const std::filesystem::path& folder, std::string_view name) {
  return folder / fmt::format("{}.csv", name);
}

constexpr std::string_view kTargets = "targets";

// Checks the tables that the page of `options` writes to its folder. None may be an input or the file of --rows.
Status check_tables(const Options& options, const OutputFile& page,
                    const std::vector<std::filesystem::path>& inputs) {
  if (!page.is_regular()) return Ok{};
  const std::filesystem::path folder = folder_of(page);
  std::vector<std::filesystem::path> tables{table_of(folder, kTargets)};
  for (const Suite& suite : builtin_suites())
    if (options.suite == kAll || options.suite == suite.name) tables.push_back(table_of(folder, suite.name));
  const auto real = [](const std::filesystem::path& file) {
    std::error_code failure;
    const std::filesystem::path place =
        std::filesystem::weakly_canonical(std::filesystem::absolute(file, failure), failure);
    return failure ? file : place;
  };
  std::error_code ignored;
  for (const std::filesystem::path& table : tables) {
    if (std::filesystem::is_regular_file(table, ignored)) STEPCAST_TRY(OutputFile::at(table, inputs));
    if (!options.rows.empty() && real(table) == real(options.rows)) {
      return Error::at(options.rows, "", "is the place of --rows and of a table that --output writes")
          .advice("name another file");
    }
  }
  return Ok{};
}

// Writes the page, and to its folder a table for each suite and one of all targets. If the page is not a regular file, such
// as /dev/stdout, only the page is written.
Status write_accuracy(const std::vector<SuiteResult>& results, const std::filesystem::path& data,
                      const OutputFile& page) {
  const std::filesystem::path folder = folder_of(page);
  if (page.is_regular()) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem)
      return Error::at(folder.string(), fmt::format("cannot make the folder: {}", problem.message()));
    for (const SuiteResult& result : results)
      STEPCAST_TRY(write_file(table_of(folder, result.suite), accuracy_csv(result)));
    STEPCAST_TRY(write_file(table_of(folder, kTargets), accuracy_targets_csv(results)));
  }
  return page.write(accuracy_page_without_places(results, data, folder.filename().string()));
}

// Flags that only some suites use.
struct FlagOfSuites {
  const char* flag;
  std::array<std::string_view, 3> suites;
};
constexpr FlagOfSuites kFlagsOfSuites[] = {{"--seeds", {"dlrm"}},
                                           {"--batches", {"dlrm"}},
                                           {"--published", {"kernels"}},
                                           {"--platform", {"kernels", "iterations", "dlrm"}}};

Status check_suite(const CLI::App& app, const Options& options) {
  if (options.suite == kAll) {
    std::error_code ignored;
    if (std::filesystem::exists(options.data, ignored) &&
        !std::filesystem::is_directory(options.data, ignored)) {
      return Error::at(options.data.string(), "")
          .found("a file")
          .expected("the folder of all measured data, with a folder for each suite")
          .advice("name one suite for one file");
    }
    return Ok{};
  }
  for (const FlagOfSuites& of : kFlagsOfSuites) {
    if (app.get_option(of.flag)->count() == 0) continue;
    if (std::ranges::find(of.suites, options.suite) != of.suites.end()) continue;
    std::string names;
    for (const std::string_view suite : of.suites)
      if (!suite.empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", suite);
    return Error{
        fmt::format("{} means nothing for the suite {}; it belongs to {}", of.flag, options.suite, names)}
        .advice("leave it out");
  }
  return Ok{};
}

// "GPU=FILE": the name of a GPU in the data, and the platform file for it.
Result<SuiteOptions> suite_options(const Options& options) {
  SuiteOptions how = options.how;
  for (const std::string& text : options.platforms) {
    const std::size_t sign = text.find('=');
    if (sign == std::string::npos || sign == 0 || sign + 1 == text.size()) {
      return Error{"--platform"}.found(text).expected(
          "GPU=FILE, the name of a GPU in the data and its platform");
    }
    how.platforms.emplace_back(text.substr(0, sign), text.substr(sign + 1));
    STEPCAST_TRY(load_platform(how.platforms.back().second.string()));
  }
  return how;
}

Result<int> run(const Options& options) {
  STEPCAST_ASSIGN(const SuiteOptions how, suite_options(options));
  const bool all = options.suite == kAll;
  const std::string output = all && options.output.empty() ? "docs/accuracy.md" : options.output;
  std::vector<std::filesystem::path> places = {options.data};
  for (const auto& [gpu, file] : how.platforms) places.emplace_back(file);
  for (const std::filesystem::path& file : {how.targets, how.published})
    if (!file.empty()) places.push_back(file);
  const std::vector<std::filesystem::path> inputs = input_files(places);
  std::optional<OutputFile> rows, page;
  if (!options.rows.empty()) {
    STEPCAST_ASSIGN(rows, OutputFile::at(options.rows, inputs));
  }
  if (!output.empty()) {
    STEPCAST_ASSIGN(page, OutputFile::at(output, inputs));
    STEPCAST_TRY(check_tables(options, *page, inputs));
  }
  std::vector<SuiteResult> results;
  std::optional<ProgressLine> progress{std::in_place, fmt::format("validate {}", options.suite)};
  if (all) {
    for (const Suite& suite : builtin_suites()) {
      progress->say(fmt::format("validate {}, suite {} of {}", suite.name, results.size() + 1,
                                builtin_suites().size()));
      STEPCAST_ASSIGN(SuiteResult result, run_suite(suite, options.data, how));
      results.push_back(std::move(result));
    }
  } else {
    const Suite* suite = find_suite(options.suite);
    if (suite == nullptr)
      return Error{fmt::format("there is no validation suite '{}'", options.suite)}.expected(suite_names());
    STEPCAST_ASSIGN(SuiteResult result, run_suite(*suite, options.data, how));
    results.push_back(std::move(result));
  }
  progress.reset();
  if (rows) STEPCAST_TRY(rows->write(validation_rows_csv(results)));
  if (page) STEPCAST_TRY(write_accuracy(results, options.data, *page));
  if (options.json) {
    print("{}", all ? validation_json(results) : validation_json(results.front()));
    return kSuccess;
  }
  for (const SuiteResult& result : results) print("{}", validation_text(result));
  if (page) print("\nWritten to {}\n", output);
  return kSuccess;
}

}  // namespace

Verb lab_validate_verb() {
  return {
      "validate", "score predictions against measured data", [](CLI::App& app) {
        auto options = std::make_shared<Options>();
        app.add_option("SUITE", options->suite, fmt::format("one of {}", suite_names()))
            ->check([](const std::string& suite) {
              return suite == kAll || find_suite(suite)
                         ? std::string{}
                         : fmt::format("found `{}`, expected one of {}", suite.substr(0, 40), suite_names());
            })
            ->required();
        app.add_option("--data", options->data, "folder or file with the measured data")->required();
        app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
        add_output_option(app, "--rows", options->rows, "write every row with measured and predicted as CSV");
        add_output_option(
            app, "--output", options->output,
            "write the scores as a page in Markdown, and sets and targets as CSV into the folder of the "
            "same name next to it (suite all: docs/accuracy.md, docs/accuracy/)");
        app.add_option("--protocol", options->how.protocol, "shipped or refit, where the suite has a choice");
        app.add_option("--platform", options->platforms,
                       "GPU=FILE: the platform of a GPU that no shipped platform describes (suites kernels, "
                       "iterations, dlrm)")
            ->allow_extra_args(false);
        app.add_option("--targets", options->how.targets,
                       "what numbers should be, instead of the shipped targets (data/targets.csv)");
        app.add_option("--published", options->how.published,
                       "errors published elsewhere to compare with, instead of data/published.csv");
        app.add_option("--seeds", options->how.seeds,
                       "of cases that a suite draws itself: dlrm's sharding tasks, 20 for each seed")
            ->delimiter(',');
        app.add_option(
               "--batches", options->how.batches,
               "that such a case is the mean of: those of dlrm are 2, those of the published study 30")
            ->check(CLI::Range(1, 1000));
        app.add_option("--threads", options->how.threads, "threads to use (0: all)")->capture_default_str();
        return [options, &app]() -> Result<int> {
          STEPCAST_TRY(check_suite(app, *options));
          return run(*options);
        };
      }};
}

}  // namespace stepcast::cli
