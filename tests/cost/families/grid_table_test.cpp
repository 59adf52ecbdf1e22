#include "stepcast/cost/families/grid_table.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::test::grid_table_test {
namespace {

using ::testing::HasSubstr;

double value_at(const GridTable& table, std::vector<float> row) {
  std::vector<double> sums{0};
  table.add(row, row.size(), 1, sums);
  return sums[0];
}

TEST(GridTable, IsLinearBetweenKnotsAndConstantOutside) {
  const auto table = GridTable::make({.axes = {{.feature = 1, .knots = {0, 2}}}, .values = {1, 5}}, 2);
  ASSERT_TRUE(table.ok()) << table.error().message();
  EXPECT_DOUBLE_EQ(value_at(*table, {9, 0.5F}), 2);
  EXPECT_DOUBLE_EQ(value_at(*table, {9, -3}), 1);
  EXPECT_DOUBLE_EQ(value_at(*table, {9, 7}), 5);
}

TEST(GridTable, OfTwoAxesIsBilinear) {
  const auto table = GridTable::make(
      {.axes = {{.feature = 0, .knots = {0, 1}}, {.feature = 1, .knots = {0, 1}}}, .values = {0, 1, 2, 5}},
      2);
  ASSERT_TRUE(table.ok()) << table.error().message();
  EXPECT_DOUBLE_EQ(value_at(*table, {0, 1}), 1);
  EXPECT_DOUBLE_EQ(value_at(*table, {1, 0}), 2);
  EXPECT_DOUBLE_EQ(value_at(*table, {0.5F, 0.5F}), 2);  // (0 + 1 + 2 + 5) / 4
  const auto again = GridTable::read(table->write(), 2);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->write(), table->write());
}

TEST(GridTable, OfOneKnotIsConstant) {
  const auto table = GridTable::make({.axes = {{.feature = 0, .knots = {3}}}, .values = {4}}, 1);
  ASSERT_TRUE(table.ok());
  EXPECT_DOUBLE_EQ(value_at(*table, {0}), 4);
  EXPECT_DOUBLE_EQ(value_at(*table, {9}), 4);
}

TEST(GridTable, RefusesKnotsOutOfOrderAndWrongLengths) {
  EXPECT_THAT(
      GridTable::make({.axes = {{.feature = 0, .knots = {1, 1}}}, .values = {4, 4}}, 1).error().message(),
      HasSubstr("must increase"));
  EXPECT_THAT(
      GridTable::make({.axes = {{.feature = 0, .knots = {1, 2}}}, .values = {4}}, 1).error().message(),
      HasSubstr("`values` has 1 numbers (must be 2)"));
  EXPECT_THAT(GridTable::make({.axes = {{.feature = 5, .knots = {1}}}, .values = {4}}, 1).error().message(),
              HasSubstr("feature 5 of 1"));
}

}  // namespace
}  // namespace stepcast::test::grid_table_test
