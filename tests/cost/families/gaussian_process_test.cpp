#include "stepcast/cost/families/gaussian_process.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::test::gaussian_process_test {
namespace {

using ::testing::HasSubstr;

double value_at(const GaussianProcess& process, std::vector<float> row) {
  std::vector<double> sums{0};
  process.add(row, row.size(), 1, sums);
  return sums[0];
}

// Two points along the second of three features, at 1 and 3 of its units.
GaussianProcess::Parameters two_points() {
  return {.scale = {0, 0.5F, 0}, .points = {50, 150}, .weights = {0.4F, -0.2F}};
}

TEST(GaussianProcess, AddsWhatPointsWeighByTheirDistance) {
  const auto process = GaussianProcess::make(two_points(), 3);
  ASSERT_TRUE(process.ok()) << process.error().message();
  // One unit of the feature is half a unit of distance.
  EXPECT_NEAR(value_at(*process, {9, 1, 9}), 0.4 - 0.2 / 4, 1e-6);
  EXPECT_NEAR(value_at(*process, {-9, 2, 5}), (0.4 - 0.2) / (1.25 * 1.25), 1e-6);
  EXPECT_NEAR(value_at(*process, {0, 1000, 0}), 0, 1e-6);
}

TEST(GaussianProcess, ReadsWhatItWrites) {
  const auto process = GaussianProcess::make(two_points(), 3);
  ASSERT_TRUE(process.ok());
  const auto again = GaussianProcess::read(process->write(), 3);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->write(), process->write());
  EXPECT_EQ(value_at(*again, {0, 1.7F, 0}), value_at(*process, {0, 1.7F, 0}));
}

TEST(GaussianProcess, RefusesWhatCannotBe) {
  const auto problem = [](GaussianProcess::Parameters p) {
    const auto made = GaussianProcess::make(std::move(p), 3);
    return made.ok() ? std::string{} : made.error().message();
  };
  EXPECT_THAT(problem({.scale = {1}, .points = {1}, .weights = {1}}),
              HasSubstr("`scale` has 1 numbers (must be 3)"));
  EXPECT_THAT(problem({.scale = {1, -1, 0}, .points = {1, 1}, .weights = {1}}),
              HasSubstr("must not be negative"));
  EXPECT_THAT(problem({.scale = {1, 1, 0}, .points = {1}, .weights = {1}}),
              HasSubstr("`points` has 1 numbers (must be 2)"));
  EXPECT_THAT(problem({.scale = {1, 1, 0}}), HasSubstr("0 points (must be 1 to 512)"));
  GaussianProcess::Parameters many{.scale = {0, 0, 0}, .weights = std::vector<float>(513, 1.F)};
  EXPECT_THAT(problem(many), HasSubstr("513 points"));
}

}  // namespace
}  // namespace stepcast::test::gaussian_process_test
