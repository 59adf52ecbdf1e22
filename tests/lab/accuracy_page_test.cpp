#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"

#include "lab/reference_pages.h"
#include "lab/suite.h"
#include "lab/target.h"
#include "tests/support/paths.h"

namespace stepcast::accuracy_page_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One relative test with two sets and a group, one whose errors are absolute.
SuiteResult result() {
  SuiteResult result;
  result.suite = "kernels";
  TestScore rows;
  rows.test = "held_out_rows";
  rows.protocol = "refit";
  rows.unit = "us";
  SetScore a, b;
  a.set = "gpu/a";
  a.group = "gemm, bf16";
  a.n_fit = 7;
  a.rows = {{"row 1", 100, 110, 90, 130}, {"row 2", 100, 90, 95, 130}};
  b.set = "gpu/b";
  b.rows = {{"row 3", 100, 120, 90, 130}};
  b.extras = {{"below_bound_n", 2, ExtraMetric::Over::sum}};
  rows.sets = {a, b};
  rows.finish();
  TestScore starts;
  starts.test = "kernel_starts";
  starts.protocol = "recorded";
  starts.unit = "us";
  starts.relative = false;
  SetScore s;
  s.set = "gpu/a";
  s.rows = {{"rank 0", 0, 4, {}, {}}};
  s.extras = {{"worst_p95_us", 9.5, ExtraMetric::Over::max}};
  starts.sets = {s};
  starts.finish();
  result.tests = {rows, starts};
  result.targets = {{.what = "held_out_rows: mean |error| %", .value = 15, .must = 20, .aim = 10},
                    {.what = "held_out_rows, set gpu/b: mean |error| %", .value = 20, .must = 10},
                    {.what = "held_out_rows, all rows: bias %", .value = 20, .aim = 10}};
  for (int i = 0; i < 6; ++i)
    result.skipped.push_back({"file " + std::to_string(i), "reason " + std::to_string(i)});
  return result;
}

std::string page() {
  const std::vector<SuiteResult> results{result()};
  return accuracy_page(results, "$STEPCAST_DATA", "accuracy");
}

TEST(AccuracyPage, HasARowPerTestAndItsTargets) {
  // Means over two sets: errors 10 and 20, bias 0 and 20; every interval holds its measurement of 100.
  EXPECT_THAT(page(), HasSubstr("| held_out_rows | refit | 2 | 3 | 15.00 | 15.00 |"));
  EXPECT_THAT(page(), HasSubstr("| +10.00 | 100.0 |"));
  EXPECT_THAT(page(), HasSubstr("| 1 of 2 | below_bound_n 2 |"));  // the one without a must counts nowhere
  EXPECT_THAT(
      page(),
      HasSubstr("| kernel_starts | recorded | 1 | 1 | - | - | - | - | - | - | - | - | worst_p95_us 9.500 |"));
  EXPECT_THAT(page(),
              HasSubstr(R"(| held_out_rows, all rows: bias % | 20.00 | - | \<= 10 | no must; aim missed |)"));
  EXPECT_THAT(page(), HasSubstr(R"(| held_out_rows, set gpu/b: mean \|error\| % | 20.00 |)"));
  EXPECT_THAT(page(),
              Not(HasSubstr(R"(| held_out_rows: mean \|error\| % |)")));  // met, short of its aim alone
}

TEST(AccuracyPage, LeavesSetsToTheTablesAndManyReasonsToTheTool) {
  EXPECT_THAT(page(), HasSubstr("[accuracy/kernels.csv](accuracy/kernels.csv)"));
  EXPECT_THAT(page(), Not(HasSubstr("| gpu/a |")));
  EXPECT_THAT(
      page(),
      HasSubstr("- file 2: reason 2\n- 3 further reasons, which `stepcast validate kernels` prints\n"));
}

TEST(AccuracyCsv, HasEveryNumberOfEverySet) {
  const std::string csv = accuracy_csv(result());
  EXPECT_THAT(csv, HasSubstr("\nheld_out_rows,refit,us,set gpu/a,2,7,10.0000,10.0000,"));
  EXPECT_THAT(csv, HasSubstr("\nheld_out_rows,refit,us,\"group gemm, bf16\",2,,10.0000,"));
  EXPECT_THAT(csv, HasSubstr(",below_bound_n 2\n"));
  EXPECT_THAT(csv, HasSubstr("\nkernel_starts,recorded,us,overall,1,,,,,,,,,,,,,,,worst_p95_us 9.500\n"));
  auto rows = CsvRows::open(csv, "kernels.csv");
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  std::size_t n = 0;
  for (auto more = rows->next(); more.ok() && *more; more = rows->next()) ++n;
  EXPECT_EQ(n, 8U);  // two tests: overall and rows each, one group, three sets
}

// What the project says of itself.
TEST(ShippedAccuracy, FitsOnAPage) {
  const auto text = read_file(test::source_dir() / "docs" / "accuracy.md");
  ASSERT_TRUE(text.ok()) << text.error().message();
  // Forty lines for each suite.
  EXPECT_LE(std::count(text->begin(), text->end(), '\n'), 40 * std::ssize(builtin_suites()));
}

TEST(ShippedAccuracy, HasEveryNumberThatATargetNames) {
  const auto targets = read_targets(test::source_dir() / "data" / "targets.csv");
  ASSERT_TRUE(targets.ok()) << targets.error().message();
  ASSERT_GT(targets->size(), 60U);
  for (const TargetRow& target : *targets) {
    const auto text = read_file(test::source_dir() / "docs" / "accuracy" / (target.suite + ".csv"));
    ASSERT_TRUE(text.ok()) << text.error().message();
    // The row that the target is about; what is taken over several sets or groups stands for itself.
    std::string of = target.of;
    if (const std::size_t at = of.find("of group "); at != std::string::npos) of = of.substr(at + 3);
    if (of.starts_with("mean of groups ")) of = "group " + of.substr(15, of.find(';') - 15);
    if (!of.starts_with("set ") && !of.starts_with("group ") && of != "rows") of = "overall";
    const std::string metric = target.metric.substr(0, target.metric.find(' '));
    auto rows = CsvRows::open(*text, target.suite + ".csv");
    ASSERT_TRUE(rows.ok()) << rows.error().message();
    bool found = false;
    for (auto more = rows->next(); more.ok() && *more; more = rows->next()) {
      if (rows->cell("test") != target.test && target.test != "*") continue;
      if (rows->cell("of") != of) continue;
      const std::string extras = "; " + std::string{rows->cell("extras")};
      found = found || !rows->cell(metric).empty() || extras.find("; " + metric + " ") != std::string::npos;
    }
    EXPECT_TRUE(found) << "docs/accuracy/" << target.suite << ".csv has no " << metric << " of "
                       << target.test << ", " << of << ": does the target name what no longer exists?";
  }
}

}  // namespace
}  // namespace stepcast::accuracy_page_test
