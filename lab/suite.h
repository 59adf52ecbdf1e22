// A validation suite scores one kind of prediction against measured data. All suites report the same way.
//
// A new suite is one file with a function that a SuiteResult is made in, and one line in builtin_suites().
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

// A number beside the metrics, and how those of several sets become one.
struct ExtraMetric {
  enum class Over : std::uint8_t { mean, max, sum };
  std::string name;  // with its unit: "p95_us"
  double value = 0;
  Over over = Over::mean;
};

struct SetScore {
  std::string set;
  std::string group;        // sets of one kind, scored together; empty: of none
  std::uint64_t n_fit = 0;  // rows that something was fitted to
  Metrics metrics;          // n counts rows also where errors are absolute only
  std::vector<ExtraMetric> extras;
  std::vector<ScoredRow> rows;
};

// The sets of one group together.
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
  bool relative = true;  // false: rows have no relative errors, only `extras` tell
  std::vector<SetScore> sets;
  Metrics overall;                  // mean over sets
  Metrics pooled;                   // all rows together
  std::vector<ExtraMetric> extras;  // over the sets that have them
  std::vector<GroupScore> groups;   // by name

  // The set of this name, which is made if there is none.
  SetScore& set_of(std::string_view name);
  // Scores the sets from their rows, and the whole from its sets.
  void finish();
};

// Of times in microseconds, by what was fitted without the rows.
[[nodiscard]] TestScore refit_test(std::string_view name);
// Those of the tests that have sets, moved from where they are and finished.
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
  std::vector<std::string> worst;  // the rows that are farthest off, each with where its prediction goes

  // Appends those of the tests that have sets.
  void add(std::vector<TestScore> more);
  void add(TestScore test);
};

// One prediction of a step beside its measurement; both in ms.
[[nodiscard]] ScoredRow scored_step(std::string row, double measured_ms, const Forecast& forecast);

// Calls `row` for every row of a CSV file. Errors: those of the file, and of `row`.
[[nodiscard]] Status each_row(const std::filesystem::path& file,
                              const std::function<Status(const CsvRows&)>& row);
// Columns of a row that hold whole numbers from 1 on, 1 where they are empty, and what they set.
[[nodiscard]] Status read_sizes(
    const CsvRows& rows,
    std::initializer_list<std::pair<std::string_view, std::optional<std::int64_t>*>> sizes);

struct SuiteOptions {
  unsigned threads = 0;  // 0: one per hardware thread
  std::string protocol;  // empty: the suite's own
  // Platform files for GPUs that no shipped platform describes, by the name of the GPU in the data.
  std::vector<std::pair<std::string, std::filesystem::path>> platforms;
  // Instead of the files that ship (data/targets.csv, data/published.csv); empty: those.
  std::filesystem::path targets, published;
  // Of the studies that draw their own cases (validate dlrm: sharding tasks); empty: the suite's own.
  std::vector<std::uint64_t> seeds;
  // That such a study takes the mean over (validate dlrm: what the reference says of a sharding); 0: the suite's own.
  std::size_t batches = 0;
};

struct Suite {
  std::string_view name;
  std::string_view summary;
  std::string_view data_folder;  // where its data lies in the folder of all measured data
  std::function<Result<SuiteResult>(const std::filesystem::path& data, const SuiteOptions& options)> run;
};

// Folders of later tables, beside the older ones: DATA/../modern/kernels and DATA/../newer/kernels of DATA/kernels. None of a
// folder that is one of them, and none that are not there.
[[nodiscard]] std::vector<std::filesystem::path> later_folders(const std::filesystem::path& data);

// Runs the suite, leaves out what nothing was fitted for and adds the targets. `place` is the folder of all measured data,
// with a folder for each kind, or any other folder or file, which is taken as it is.
[[nodiscard]] Result<SuiteResult> run_suite(const Suite& suite, const std::filesystem::path& place,
                                            const SuiteOptions& options);

// Sets of a test of the protocol "refit" that nothing was fitted for (n_fit 0) are named in `skipped` instead,
// and so is a test that has no other: they would say nothing about fitting.
void leave_out_unfitted(SuiteResult& result);

[[nodiscard]] std::span<const Suite> builtin_suites();
[[nodiscard]] const Suite* find_suite(std::string_view name);

}  // namespace stepcast
