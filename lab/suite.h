// A validation suite scores one kind of prediction against measured data. All suites have the same form of result.
//
// To add a suite: one file with a function that returns a SuiteResult, and one line in builtin_suites().
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"

#include "lab/metrics.h"
#include "lab/target.h"

namespace stepcast {

class CsvRows;
struct Forecast;

// A number in addition to the metrics, and how it is combined over sets.
struct ExtraMetric {
  enum class Over : std::uint8_t { mean, max, sum };
  std::string name;  // with its unit: "p95_us"
  double value = 0;
  Over over = Over::mean;
};

struct SetScore {
  std::string set;
  std::string group;        // sets with equal group are also scored together; empty: none
  std::uint64_t n_fit = 0;  // rows used for fitting
  Metrics metrics;          // n also counts rows with only absolute errors
  std::vector<ExtraMetric> extras;
  std::vector<ScoredRow> rows;
};

// Scores of the sets of one group.
struct GroupScore {
  std::string group;
  std::uint64_t n_sets = 0;
  Metrics overall;  // mean over its sets
  std::vector<ExtraMetric> extras;
};

struct TestScore {
  std::string test;
  std::string protocol;  // "recorded", "shipped", "refit"
  std::string unit;      // of the rows: "ms", "us", "percent"
  bool relative = true;  // false: rows have no relative errors, and only `extras` is meaningful
  std::vector<SetScore> sets;
  Metrics overall;                  // mean over sets
  Metrics pooled;                   // all rows together
  std::vector<ExtraMetric> extras;  // over the sets that have them
  std::vector<GroupScore> groups;   // by name

  // The set with this name; created if there is none.
  SetScore& set_of(std::string_view name);
  // Computes the scores of sets from their rows, and those of the test from its sets.
  void finish();
};

// A test of times in microseconds, fitted without the tested rows.
[[nodiscard]] TestScore refit_test(std::string_view name);
// Moves out and finishes the tests that have sets.
[[nodiscard]] std::vector<TestScore> finished(std::initializer_list<TestScore*> tests);

struct Skipped {
  std::string what;
  std::string why;
  std::uint64_t n = 1;
};

struct SuiteResult {
  std::string suite;
  std::vector<TestScore> tests;  // the primary test first
  std::vector<Target> targets;
  std::vector<Skipped> skipped;
  std::vector<std::string>
      worst;  // the rows with the largest errors, each with the breakdown of its prediction

  // Appends the tests that have sets.
  void add(std::vector<TestScore> more);
  void add(TestScore test);
};

// A predicted step and its measurement; both in ms.
[[nodiscard]] ScoredRow scored_step(std::string row, double measured_ms, const Forecast& forecast);

// Calls `row` for every row of a CSV file. Errors: those of the file, and of `row`.
[[nodiscard]] Status each_row(const std::filesystem::path& file,
                              const std::function<Status(const CsvRows&)>& row);
// Reads columns with whole numbers of at least 1 into the given fields. Empty cells are 1.
[[nodiscard]] Status read_sizes(
    const CsvRows& rows,
    std::initializer_list<std::pair<std::string_view, std::optional<std::int64_t>*>> sizes);

struct SuiteOptions {
  unsigned threads = 0;  // 0: one per hardware thread
  std::string protocol;  // empty: the default of the suite
  // Platform files for GPUs without a shipped platform, by the name of the GPU in the data.
  std::vector<std::pair<std::string, std::filesystem::path>> platforms;
  // Replace the shipped files (data/targets.csv, data/published.csv); empty: the shipped files.
  std::filesystem::path targets, published;
  // Seeds of studies that draw random cases (validate dlrm: sharding tasks); empty: default of the suite.
  std::vector<std::uint64_t> seeds;
  // Number of batches of the mean in such a study (validate dlrm: the time of a sharding by the reference); 0: default of
  // the suite.
  std::size_t batches = 0;
};

struct Suite {
  std::string_view name;
  std::string_view summary;
  std::string_view data_folder;  // its folder in the folder of all measured data
  std::function<Result<SuiteResult>(const std::filesystem::path& data, const SuiteOptions& options)> run;
};

// Folders of later tables: DATA/../modern/kernels and DATA/../newer/kernels of DATA/kernels. Empty for a folder that is one
// of them; missing folders are left out.
[[nodiscard]] std::vector<std::filesystem::path> later_folders(const std::filesystem::path& data);

// Runs the suite, leaves out sets without a fit and adds the targets. `place` is the folder of all measured data, with a
// folder for each kind, or any other folder or file, which is used unchanged.
[[nodiscard]] Result<SuiteResult> run_suite(const Suite& suite, const std::filesystem::path& place,
                                            const SuiteOptions& options);

// Moves sets without a fit (n_fit 0) of tests with protocol "refit" to `skipped`, and tests with only such sets, because
// they do not score a fit.
void leave_out_unfitted(SuiteResult& result);

[[nodiscard]] std::span<const Suite> builtin_suites();
[[nodiscard]] const Suite* find_suite(std::string_view name);

}  // namespace stepcast
