#include <algorithm>
#include <iterator>
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
  std::vector<std::filesystem::path> files;
  for (const char* below : {"", "iterations", "embedding", "modern/embedding", "field"})
    std::ranges::move(csv_files_in(*below == 0 ? data : data / below), std::back_inserter(files));
  std::ranges::sort(files);
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
