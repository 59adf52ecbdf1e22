#include "lab/power_suites.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::power_suites_test {
namespace {

const TestScore& test_named(const SuiteResult& result, const std::string& name) {
  return *std::ranges::find(result.tests, name, &TestScore::test);
}

double of_constant(const TestScore& test) {
  const auto found = std::ranges::find(test.extras, "of_constant_pct", &ExtraMetric::name);
  return found == test.extras.end() ? -1 : found->value;
}

// Trainings that the rule itself says.
std::vector<LimitedRun> drawn_from(const PowerLimitRule& rule) {
  std::vector<LimitedRun> runs;
  for (const double mean_W : {60.0, 120.0, 160.0, 200.0, 240.0}) {
    for (const double limit_W : {100.0, 125.0, 150.0, 175.0, 200.0, 225.0}) {
      LimitedRun run{.gpu = "X", .name = "", .draw = {40, 250, mean_W}, .limit_W = limit_W};
      const DrawUnderLimit is = under_limit(rule, run.draw, limit_W);
      run.slow_down = is.slow_down;
      run.mean_W = is.mean_W;
      runs.push_back(run);
    }
  }
  return runs;
}

TEST(FittedPowerLimit, FindsTheRuleThatMadeTheRuns) {
  const PowerLimitRule truth{.exponent = 1.6, .clock_bound = 0.55, .held = 0.95, .spread = 0.5};
  const std::vector<LimitedRun> runs = drawn_from(truth);
  const PowerLimitRule found = fitted_power_limit(runs);
  double error = 0, before = 0;
  for (const LimitedRun& run : runs) {
    error += std::abs(under_limit(found, run.draw, run.limit_W).slow_down / run.slow_down - 1);
    before += std::abs(under_limit({}, run.draw, run.limit_W).slow_down / run.slow_down - 1);
  }
  EXPECT_LT(error / static_cast<double>(runs.size()), 0.01);
  EXPECT_LT(error, 0.4 * before);
}

TEST(PowerLimitsSuite, ScoresRowsBelowTheTopLimit) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.path() / "power_limits.csv"}
      << "gpu,model,dataset,optimizer,batch_size_samples,power_limit_W,time_per_epoch_s,average_power_W\n"
         "A,m,d,o,8,100,20,99\nA,m,d,o,8,200,10,180\nB,m,d,o,8,100,10,50\nB,m,d,o,8,200,10,50\n";
  const Result<SuiteResult> result = validate_power_limits(folder.path());
  ASSERT_TRUE(result.ok()) << result.error().message();
  const TestScore& trivial = test_named(*result, "trivial_slow_down");
  ASSERT_EQ(trivial.sets.size(), 2U);
  EXPECT_DOUBLE_EQ(trivial.sets[0].rows[0].measured, 2);
  EXPECT_DOUBLE_EQ(trivial.sets[0].rows[0].predicted, 1.8);
  EXPECT_DOUBLE_EQ(trivial.sets[1].rows[0].predicted, 1);
  EXPECT_EQ(test_named(*result, "slowed_rows").pooled.n, 1U);
  EXPECT_DOUBLE_EQ(test_named(*result, "trivial_watts").sets[0].rows[0].predicted, 100);
  EXPECT_EQ(result->skipped[0].n, 2U);
}

TEST(PowerLimitsSuite, BeatsTheTrivialAnswerOnAGpuThatWasLeftOut) {
  SKIP_WITHOUT_DATA();
  const Result<SuiteResult> result = validate_power_limits(*test::measured_data() / "field");
  ASSERT_TRUE(result.ok()) << result.error().message();
  for (const std::string what : {"slow_down", "slowed_rows", "watts"}) {
    const double trivial = test_named(*result, "trivial_" + what).pooled.mape;
    EXPECT_LT(test_named(*result, what).pooled.mape, 0.7 * trivial) << what;
    EXPECT_LT(test_named(*result, "shipped_" + what).pooled.mape, 0.7 * trivial) << what;
  }
}

TEST(NodePowerSuite, IsNoWorseThanTheConstantOfEitherClass) {
  SKIP_WITHOUT_DATA();
  const Result<SuiteResult> result = validate_node_power(*test::measured_data() / "field");
  ASSERT_TRUE(result.ok()) << result.error().message();
  for (const std::string what : {"one_node", "several_nodes"}) {
    const TestScore& test = test_named(*result, what);
    EXPECT_LE(of_constant(test), 100) << what;
    EXPECT_LT(test.overall.mape, 0.9 * test_named(*result, "limit_" + what).overall.mape) << what;
  }
}

}  // namespace
}  // namespace stepcast::power_suites_test
