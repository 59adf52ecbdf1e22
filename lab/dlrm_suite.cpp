#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "stepcast/base/file.h"

#include "lab/dlrm_lookups.h"
#include "lab/dlrm_runs.h"
#include "lab/sharding_study.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

// The CSV files of a folder and of the folders below it that hold measurements of recommendation models.
std::vector<std::filesystem::path> csv_files(const std::filesystem::path& data) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(data, ignored)) return {data};
  std::vector<std::filesystem::path> folders{data, data / "iterations", data / "embedding",
                                             data / "modern" / "embedding", data / "field"};
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file(ignored) && (name.ends_with(".csv") || name.ends_with(".csv.gz")))
        files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace

Result<SuiteResult> validate_dlrm(const std::filesystem::path& data, const SuiteOptions& options) {
  SuiteResult result{.suite = "dlrm"};
  std::vector<MeasuredLookup> lookups;
  std::vector<DlrmRun> runs;
  const std::vector<std::filesystem::path> files = csv_files(data);
  for (const std::filesystem::path& file : files) {
    STEPCAST_ASSIGN(const std::string text, read_file(file));
    if (looks_like_lookups(text)) {
      STEPCAST_ASSIGN(std::vector<MeasuredLookup> more, parse_lookups(text, file.string()));
      std::move(more.begin(), more.end(), std::back_inserter(lookups));
    } else if (looks_like_dlrm_runs(text)) {
      STEPCAST_ASSIGN(std::vector<DlrmRun> more, parse_dlrm_runs(text, file.string()));
      std::move(more.begin(), more.end(), std::back_inserter(runs));
    } else if (files.size() == 1) {
      return Error::at(file.string(), "the header")
          .found("no file of recommendation models")
          .expected("the columns of dlrm_runs.csv or tbe_kernels_in_traces.csv (docs/dlrm.md)");
    }
  }
  score_dlrm_runs(runs, options, result);
  score_lookups(lookups, options, result);
  // The studies take minutes and none of these files: with the whole collection only. A folder of it, as iterations, is
  // scored by its rows alone.
  std::error_code ignored;
  if (std::filesystem::is_directory(data / "traces" / "dlrm8", ignored))
    STEPCAST_TRY(score_described_trace(data / "traces" / "dlrm8", result));
  if (std::filesystem::is_directory(data / "dlrm_tables", ignored)) {
    STEPCAST_TRY(score_shardings(options, result));
    STEPCAST_TRY(score_learned_lookups(options, result));
  }
  if (result.tests.empty()) {
    return Error::at(data.string(), "the folder", "holds no measurements of recommendation models")
        .expected("files with the columns of dlrm_runs.csv or tbe_kernels_in_traces.csv (docs/dlrm.md)");
  }
  return result;
}

}  // namespace stepcast
