#include "lab/metrics.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "lab/suite.h"

namespace stepcast::metrics_test {
namespace {

ScoredRow row(double measured, double predicted) { return {"", measured, predicted, {}, {}}; }

TEST(Metrics, ByHand) {
  // Errors +10 %, -20 %, +30 %, 0 %; apes 10, 20, 30, 0.
  const std::vector<ScoredRow> rows{row(100, 110), row(100, 80), row(10, 13), row(50, 50)};
  const Metrics m = score(rows);
  EXPECT_EQ(m.n, 4U);
  EXPECT_NEAR(m.mape, 15, 1e-9);
  EXPECT_NEAR(m.median_ape, 15, 1e-9);  // between 10 and 20
  EXPECT_NEAR(m.p80_ape, 24, 1e-9);     // position 0.8 x 3 = 2.4: 20 + 0.4 x 10
  EXPECT_NEAR(m.p90_ape, 27, 1e-9);     // 2.7
  EXPECT_NEAR(m.max_ape, 30, 1e-9);
  EXPECT_EQ(m.min_ape, 0);
  EXPECT_NEAR(m.sd_ape, std::sqrt((25 + 25 + 225 + 225) / 4.0), 1e-9);
  EXPECT_NEAR(m.bias, 5, 1e-9);  // (10 - 20 + 30 + 0) / 4
  const double ln = (std::log(0.1004) + std::log(0.2004) + std::log(0.3004) + std::log(0.0004)) / 4;
  EXPECT_NEAR(m.gmae, 100 * std::exp(ln), 1e-9);
  EXPECT_FALSE(m.interval_coverage);
}

TEST(Metrics, RowsWithoutAMeasurementHaveNoRelativeError) {
  EXPECT_EQ(score(std::vector<ScoredRow>{row(0, 5), row(-1, 5)}).n, 0U);
  EXPECT_EQ(score({}).n, 0U);
}

TEST(Metrics, CoverageStandsBesideTheWidth) {
  // Widths 20 % and 100 %; the second measurement lies outside.
  std::vector<ScoredRow> rows{row(100, 100), row(100, 40)};
  rows[0].p10 = 90, rows[0].p90 = 110;
  rows[1].p10 = 20, rows[1].p90 = 60;
  const Metrics m = score(rows);
  EXPECT_NEAR(*m.interval_coverage, 50, 1e-9);
  EXPECT_NEAR(*m.interval_width_median, 60, 1e-9);
  // The second lies 40 beyond an interval of 40, over a prediction of 40: (20 + 100 + 10 * 100) / 2.
  EXPECT_NEAR(*m.interval_score, 560, 1e-9);
}

TEST(Metrics, IntervalsThatFollowTheRowsScoreBetterThanOneWidth) {
  std::vector<ScoredRow> rows;
  for (int i = 0; i < 40; ++i) {
    const double off = i % 2 == 0 ? 2 : 40;  // half of the rows are known well
    rows.push_back(row(i % 4 < 2 ? 100 + off : 100 - off, 100));
    rows.back().p10 = 100 - off;
    rows.back().p90 = 100 + off;
  }
  EXPECT_LT(*score(rows).interval_score_of_best, 0.8);
  for (ScoredRow& r : rows) r.p10 = 10, r.p90 = 190;
  EXPECT_GT(*score(rows).interval_score_of_best, 1.5);
}

TEST(Metrics, MeanOverSetsIsNotTheMeanOverRows) {
  const Metrics a = score(std::vector<ScoredRow>{row(100, 110), row(100, 110), row(100, 110)});
  const Metrics b = score(std::vector<ScoredRow>{row(100, 130)});
  const std::vector<Metrics> sets{a, b, Metrics{}};  // a set without rows does not count
  const Metrics mean = mean_over_sets(sets);
  EXPECT_EQ(mean.n, 4U);
  EXPECT_NEAR(mean.mape, 20, 1e-9);
  EXPECT_NEAR(mean.max_ape, 30, 1e-9);
}

TEST(TestScore, CombinesExtrasOverSets) {
  TestScore test;
  test.relative = false;
  for (const double value : {2.0, 4.0}) {
    SetScore set;
    set.rows = {row(0, value)};
    set.extras = {{"worst_us", value, ExtraMetric::Over::max},
                  {"agree_n", value, ExtraMetric::Over::sum},
                  {"share", value, ExtraMetric::Over::mean}};
    test.sets.push_back(set);
  }
  test.finish();
  EXPECT_EQ(test.overall.n, 2U);
  EXPECT_EQ(test.extras[0].value, 4);
  EXPECT_EQ(test.extras[1].value, 6);
  EXPECT_EQ(test.extras[2].value, 3);
}

TEST(Suites, AreFoundByName) {
  ASSERT_NE(find_suite("replay"), nullptr);
  EXPECT_EQ(find_suite("replay")->data_folder, "traces");
  EXPECT_EQ(find_suite("weather"), nullptr);
}

TEST(Metrics, AFactorScalesForecastAndInterval) {
  const ScoredRow row = scaled({"run", 100, 80, 70.0, std::nullopt, ""}, 1.5);
  EXPECT_DOUBLE_EQ(row.measured, 100);
  EXPECT_DOUBLE_EQ(row.predicted, 120);
  EXPECT_DOUBLE_EQ(row.p10.value(), 105);
  EXPECT_FALSE(row.p90.has_value());
}

}  // namespace
}  // namespace stepcast::metrics_test
