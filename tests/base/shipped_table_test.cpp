#include "stepcast/base/shipped_table.h"

#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::shipped_table_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ShippedTable, IsTheTextOfItsFile) {
  EXPECT_THAT(std::string{shipped_table("framework_ops.csv")}, StartsWith("group,names,role,rule,note\n"));
  EXPECT_TRUE(shipped_table("no_such.csv").empty());
}

TEST(ShippedTable, WhatIsWrongWithOneStopsTheProgramWithItsWords) {
  EXPECT_EQ(as_shipped(Result<int>{7}), 7);
  try {
    (void)as_shipped(Result<int>{Error::at("ours.csv", "line 3").found("`x`").expected("a number")});
    FAIL() << "no exception";
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("ours.csv: line 3: found `x`, expected a number"));
  }
}

}  // namespace
}  // namespace stepcast::shipped_table_test
