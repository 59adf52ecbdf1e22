#include "lab/target.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/kernel_sets.h"
#include "lab/shipped_data.h"
#include "lab/suite.h"

namespace stepcast::target_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::string_view kHeader = "suite,test,of,metric,must,aim\n";

Result<std::vector<TargetRow>> parsed(std::string_view row) {
  return parse_targets(std::string{kHeader} + std::string{row} + "\n", "targets.csv");
}

TargetRow one(std::string_view row) {
  auto rows = parsed(row);
  EXPECT_TRUE(rows.ok()) << rows.error().message();
  return rows.ok() && rows->size() == 1 ? rows->front() : TargetRow{};
}

// A set of one row per error in percent, measured 100.
SetScore set_of(std::string name, std::string group, const std::vector<double>& errors_percent) {
  SetScore set;
  set.set = std::move(name);
  set.group = std::move(group);
  set.n_fit = 10;
  for (const double e : errors_percent) set.rows.push_back({"row", 100, 100 + e, 95, 115});
  return set;
}

// Groups x (sets a: 10 and 20 %, b: 4 %) and y (set c: 1 %); a second test without groups.
SuiteResult result() {
  SuiteResult result;
  result.suite = "kernels";
  TestScore test;
  test.test = "held_out";
  test.protocol = "refit";
  test.sets = {set_of("a", "x", {10, 20}), set_of("b", "x", {4}), set_of("c", "y", {1})};
  test.sets[0].extras = {{"lost_n", 2, ExtraMetric::Over::sum}};
  test.finish();
  TestScore other;
  other.test = "other";
  other.protocol = "refit";
  other.sets = {set_of("d", "", {8})};
  other.sets[0].extras = {{"lost_n", 3, ExtraMetric::Over::sum}};
  other.finish();
  result.tests = {test, other};
  return result;
}

double value(std::string_view row) { return target_value(result(), one(row)).value_or(-1); }

TEST(Targets, NameANumberOfATest) {
  EXPECT_NEAR(value("kernels,held_out,set a,mape,<= 1,"), 15, 1e-9);  // (10 + 20) / 2
  EXPECT_NEAR(value("kernels,held_out,set a,max_ape,<= 1,"), 20, 1e-9);
  EXPECT_NEAR(value("kernels,held_out,group x,mape,<= 1,"), 9.5, 1e-9);       // (15 + 4) / 2
  EXPECT_NEAR(value("kernels,held_out,overall,mape,<= 1,"), 20.0 / 3, 1e-9);  // (15 + 4 + 1) / 3
  EXPECT_NEAR(value("kernels,held_out,rows,mape,<= 1,"), 35.0 / 4, 1e-9);     // (10 + 20 + 4 + 1) / 4
  EXPECT_NEAR(value("kernels,held_out,largest set,mape,<= 1,"), 15, 1e-9);
  EXPECT_NEAR(value("kernels,held_out,smallest set,mape,<= 1,"), 1, 1e-9);
  EXPECT_NEAR(value("kernels,held_out,largest group,mape,<= 1,"), 9.5, 1e-9);
  EXPECT_NEAR(value("kernels,held_out,smallest group,mape,<= 1,"), 1, 1e-9);
  EXPECT_NEAR(value("kernels,held_out,largest set of group x,median_ape,<= 1,"), 15, 1e-9);
  EXPECT_NEAR(value("kernels,held_out,mean of groups x; y,mape,<= 1,"), 5.25, 1e-9);       // (9.5 + 1) / 2
  EXPECT_NEAR(value("kernels,held_out,share of sets,mape <= 4,>= 90,"), 200.0 / 3, 1e-6);  // b and c
  // Bands reach from 95 to 115 and all was measured as 100.
  EXPECT_NEAR(value("kernels,held_out,rows,interval_coverage,50 to 90,"), 100, 1e-9);
  EXPECT_NEAR(value("kernels,held_out,set a,lost_n,<= 1,"), 2, 1e-9);
  EXPECT_NEAR(value("kernels,*,overall,lost_n,<= 1,"), 5, 1e-9);  // 2 + 3
}

TEST(Targets, OfWhatTheResultDoesNotHaveAreLeftOut) {
  for (const char* row :
       {"kernels,nobody,overall,mape,<= 1,", "kernels,held_out,set z,mape,<= 1,",
        "kernels,held_out,group z,mape,<= 1,", "kernels,held_out,mean of groups x; z,mape,<= 1,",
        "kernels,held_out,overall,spearman,<= 1,", "collectives,held_out,overall,mape,<= 1,"}) {
    EXPECT_THAT(targets_of(result(), std::vector{one(row)}), IsEmpty()) << row;
  }
}

TEST(Targets, SayWhatTheyMean) {
  const auto what = [](std::string_view row) {
    const std::vector<Target> targets = targets_of(result(), std::vector{one(row)});
    return targets.empty() ? std::string{} : targets.front().what;
  };
  EXPECT_EQ(what("kernels,held_out,overall,mape,<= 1,"), "held_out: mean |error| %");
  EXPECT_EQ(what("kernels,held_out,group x,median_ape,<= 1,"), "held_out, group x: median |error| %");
  EXPECT_EQ(what("kernels,held_out,rows,interval_coverage,1 to 2,"),
            "held_out, all rows: % between p10 and p90");
  EXPECT_EQ(what("kernels,held_out,share of sets,mape <= 11,>= 90,"),
            "held_out: % of sets with mean |error| % <= 11");
  EXPECT_EQ(what("kernels,*,overall,lost_n,<= 0,"), "all tests: lost_n");
}

TEST(Targets, AreMetByWhatTheyMustBeAndNotByWhatIsAimedAt) {
  Target target = one("kernels,held_out,overall,mape,<= 6,<= 4").target;
  target.value = 5;
  EXPECT_EQ(target.met(), true);
  EXPECT_EQ(target.aim_met(), false);
  target.value = 4;
  EXPECT_EQ(target.aim_met(), true);
  target.value = 6.5;
  EXPECT_EQ(target.met(), false);

  target = one("kernels,held_out,overall,mape,>= 90,>= 98").target;
  target.value = 93;
  EXPECT_EQ(target.met(), true);
  EXPECT_EQ(target.aim_met(), false);

  target = one("kernels,held_out,overall,mape,75 to 90,").target;
  EXPECT_EQ(target.aim_met(), std::nullopt);
  for (const auto& [v, met] : {std::pair{74.9, false}, {75.0, true}, {90.0, true}, {90.1, false}}) {
    target.value = v;
    EXPECT_EQ(target.met(), met) << v;
  }
}

TEST(Targets, WithoutAMustAreNeverMet) {
  Target target = one("kernels,held_out,overall,mape,,<= 4").target;
  target.value = 3;
  EXPECT_EQ(target.met(), std::nullopt);
  EXPECT_EQ(target.aim_met(), true);
  target.value = 5;
  EXPECT_EQ(target.met(), std::nullopt);
  EXPECT_EQ(target.aim_met(), false);
}

TEST(Targets, ABrokenRowIsNamedWithItsLineAndColumn) {
  const auto message = [](std::string_view row) {
    auto rows = parsed(row);
    return rows.ok() ? std::string{} : rows.error().message();
  };
  EXPECT_THAT(
      message("kernels,held_out,everything,mape,<= 1,"),
      ::testing::AllOf(StartsWith("targets.csv: line 2"), HasSubstr("of"), HasSubstr("found `everything`"),
                       HasSubstr("expected overall, rows, set NAME")));
  EXPECT_THAT(message("kernels,held_out,overall,mape,< 1,"),
              ::testing::AllOf(HasSubstr("line 2"), HasSubstr("must"),
                               HasSubstr("\"<= X\", \">= X\" or \"X to Y\"")));
  EXPECT_THAT(message("kernels,held_out,overall,mape,<= nan,"), HasSubstr("\"<= X\""));
  EXPECT_THAT(message("kernels,held_out,overall,mape,90 to 75,"), HasSubstr("\"X to Y\""));
  EXPECT_THAT(message("kernels,held_out,overall,mape,,"), HasSubstr("expected a bound here or as aim"));
  EXPECT_THAT(message("kernels,held_out,overall,mape,<= 1,>= 2"),
              HasSubstr("to the same side as what must be"));
  EXPECT_THAT(message("kernels,held_out,share of sets,mape,>= 1,"), HasSubstr("\"mape <= 11\""));
  EXPECT_THAT(message("kernels,,overall,mape,<= 1,"), HasSubstr("expected a name"));
  const auto header = parse_targets("suite,test,metric,must,aim\n", "targets.csv");
  ASSERT_FALSE(header.ok());
  EXPECT_THAT(header.error().message(), HasSubstr("no column 'of'"));
}

TEST(Unfitted, SetsAndTestsAreNeitherScoredNorMet) {
  SuiteResult scored = result();
  scored.tests[0].sets[1].n_fit = 0;
  scored.tests[1].sets[0].n_fit = 0;
  TestScore shipped = scored.tests[1];
  shipped.test = "shipped";
  shipped.protocol = "shipped";
  scored.tests.push_back(shipped);
  leave_out_unfitted(scored);
  // b is gone from the first test; of the second nothing is left; the shipped one fits nothing and stays.
  ASSERT_EQ(scored.tests.size(), 2U);
  ASSERT_EQ(scored.tests[0].sets.size(), 2U);
  EXPECT_NEAR(scored.tests[0].overall.mape, 8, 1e-9);  // (15 + 1) / 2
  EXPECT_EQ(scored.tests[1].test, "shipped");
  ASSERT_EQ(scored.skipped.size(), 2U);
  EXPECT_EQ(scored.skipped[0].what, "held_out: b");
  EXPECT_EQ(scored.skipped[1].what, "other: d");
  EXPECT_THAT(scored.skipped[1].why, HasSubstr("nothing was left to fit"));
  EXPECT_THAT(targets_of(scored, std::vector{one("kernels,other,overall,mape,<= 100,")}), IsEmpty());
}

TEST(ShippedTargets, CanBeReadAndNameSuitesThatExist) {
  const auto file = shipped_data_file("targets.csv");
  ASSERT_TRUE(file);
  const auto rows = read_targets(*file);
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  std::set<std::string> suites;
  for (const TargetRow& row : *rows) {
    EXPECT_NE(find_suite(row.suite), nullptr) << row.suite;
    suites.insert(row.suite);
  }
  EXPECT_THAT(suites,
              ElementsAre("ab_pairs", "collectives", "dlrm", "dry_run", "fsdp_experts", "goodput", "hybrid",
                          "iterations", "kernels", "measured", "megatron_lines", "networks", "node_power",
                          "overheads", "power_limits", "predict", "replay", "rl", "siblings", "tpu"));
  EXPECT_FALSE(shipped_data_file("no such file"));
}

TEST(PublishedErrors, AreOfTwoDevicesAndOneWork) {
  const auto file = shipped_data_file("published.csv");
  ASSERT_TRUE(file);
  const auto errors = PublishedErrors::read(*file);
  ASSERT_TRUE(errors.ok()) << errors.error().message();
  EXPECT_EQ(errors->size(), 78U);  // 39 operators and directions on each of two devices
  EXPECT_EQ(errors->mape_percent("A100-SXM4-80GB", "linear1", Direction::forward), 5.61);
  EXPECT_EQ(errors->mape_percent("GH200-120GB", "softmax", Direction::backward), 5.13);
  EXPECT_EQ(errors->mape_percent("a100 sxm4 80gb", "lastStage_optimizer", Direction::forward), 3.66);
  EXPECT_FALSE(errors->mape_percent("A100-SXM4-80GB", "lastStage_optimizer", Direction::backward));
  EXPECT_FALSE(errors->mape_percent("Tesla T4", "softmax", Direction::forward));
  EXPECT_FALSE(errors->mape_percent("A100-SXM4-80GB", "conv2d", Direction::forward));
}

TEST(PublishedErrors, ABrokenRowIsNamedWithItsLineAndColumn) {
  const auto message = [](std::string_view row) {
    auto errors = PublishedErrors::parse(
        "gpu,operator,direction,mape_percent,source\n" + std::string{row} + "\n", "published.csv");
    return errors.ok() ? std::string{} : errors.error().message();
  };
  EXPECT_THAT(
      message("A100,bmm,sideways,4,paper"),
      ::testing::AllOf(StartsWith("published.csv: line 2"), HasSubstr("expected forward or backward")));
  EXPECT_THAT(message("A100,bmm,forward,0,paper"), HasSubstr("expected a number above 0"));
  EXPECT_THAT(message("A100,bmm,forward,4,"), HasSubstr("expected where the error is published"));
  EXPECT_THAT(message(",bmm,forward,4,paper"), HasSubstr("expected a name"));
}

}  // namespace
}  // namespace stepcast::target_test
