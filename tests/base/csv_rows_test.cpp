#include "stepcast/base/csv_rows.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::csv_rows_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CsvRows, CellsAreTrimmedUnquotedAndFoundByName) {
  auto rows = CsvRows::open("a, b ,\"c, d\"\n1,\" x \"\"y\"\" \",\n\n 3 ,,7\n", "f.csv");
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  EXPECT_THAT(rows->columns(), ElementsAre("a", "b", "c, d"));
  EXPECT_TRUE(rows->check_names().ok());
  ASSERT_TRUE(rows->next().value());
  EXPECT_EQ(rows->line(), 2U);
  EXPECT_EQ(rows->cell("b"), "x \"y\"");
  EXPECT_EQ(rows->cell("none"), "");
  EXPECT_FALSE(rows->has("none"));
  ASSERT_TRUE(rows->next().value());
  EXPECT_EQ(rows->line(), 4U);  // a blank line is no row
  EXPECT_EQ(rows->extent("a").value(), 3);
  EXPECT_EQ(rows->extent("b", 1, 9).value(), 9);
  EXPECT_FALSE(rows->next().value());
}

TEST(CsvRows, NumbersAreCheckedWhereTheyStand) {
  auto rows = CsvRows::open("n,x,t\n4096.0,-1,maybe\n1.5,nan,yes\n", "f.csv");
  ASSERT_TRUE(rows.ok());
  ASSERT_TRUE(rows->next().value());
  EXPECT_EQ(rows->extent("n").value(), 4096);  // as data frames write whole numbers
  EXPECT_EQ(rows->number("x", -2).value(), -1);
  EXPECT_EQ(rows->number("x", 0).error().message(),
            "f.csv: line 2, column x: found `-1`, expected a number of at least 0");
  EXPECT_THAT(rows->truth("t", false).error().message(), HasSubstr("line 2, column t: found `maybe`"));
  EXPECT_TRUE(rows->truth("none", true).value());
  ASSERT_TRUE(rows->next().value());
  EXPECT_FALSE(rows->extent("n").ok());
  EXPECT_FALSE(rows->number("x", 0).ok());
  EXPECT_TRUE(rows->truth("t", false).value());
}

TEST(CsvRows, SeveralExtentsAtOnce) {
  auto rows = CsvRows::open("m,n,batch\n8,16,\n0,1,2\n", "f.csv");
  ASSERT_TRUE(rows.ok() && rows->next().value());
  std::int64_t m = 0, n = 0, batch = 0;
  ASSERT_TRUE(rows->extents({{"m", &m}, {"n", &n}, {"batch", &batch, 1, 4}}).ok());
  EXPECT_EQ(m, 8);
  EXPECT_EQ(n, 16);
  EXPECT_EQ(batch, 4);
  ASSERT_TRUE(rows->next().value());
  EXPECT_THAT(rows->extents({{"n", &n}, {"m", &m}}).error().message(), HasSubstr("line 3, column m"));
}

TEST(CsvRows, SaysWhatIsWrongWithALine) {
  EXPECT_THAT(CsvRows::open("", "f.csv").error().message(), HasSubstr("the file is empty"));
  EXPECT_THAT(CsvRows::open("\n , \n", "f.csv").error().message(), HasSubstr("the file is empty"));
  auto twice = CsvRows::open("a,b,a\n", "f.csv");
  ASSERT_TRUE(twice.ok());
  EXPECT_THAT(twice->check_names().error().message(), HasSubstr("two columns named `a`"));
  auto short_row = CsvRows::open("a,b\n1\n", "f.csv");
  ASSERT_TRUE(short_row.ok());
  EXPECT_EQ(short_row->next().error().message(),
            "f.csv: line 2: a row, found 1 cells, expected 2, as in the header");
}

}  // namespace
}  // namespace stepcast::csv_rows_test
