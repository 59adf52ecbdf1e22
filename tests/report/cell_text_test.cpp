#include "stepcast/report/cell_text.h"

#include <limits>

#include <gtest/gtest.h>

namespace stepcast::cell_text_test {
namespace {

TEST(CellText, FormatsNumbersForPeople) {
  EXPECT_EQ(table_number(1234567.891, 2), "1,234,567.89");
  EXPECT_EQ(table_number(-1234, 0), "-1,234");
  EXPECT_EQ(table_number(999, 1), "999.0");
  EXPECT_EQ(table_number(-0.001, 2), "0.00");
  EXPECT_EQ(table_number(std::numeric_limits<double>::infinity(), 2), "-");
  EXPECT_EQ(table_amount(1234.5, 0), "1,234");
  EXPECT_EQ(table_amount(20.13, 1), "20.1");
  EXPECT_EQ(table_amount(5.189, 0), "5.19");
  EXPECT_EQ(table_amount(0.01285, 1), "0.013");
  EXPECT_EQ(table_amount(0, 1), "0.0");
  EXPECT_EQ(table_number_or_blank(0.0001, 2), "");
  EXPECT_EQ(table_number_or_blank(0.5, 2), "0.50");
  EXPECT_EQ(table_signed(0.031, 2), "+0.03");
  EXPECT_EQ(table_signed(-1.2, 1), "-1.2");
  EXPECT_EQ(table_signed(0.0001, 2), "0.00");
  EXPECT_EQ(table_count(1234567), "1,234,567");
  EXPECT_EQ(table_bytes(-1), "-");
  EXPECT_EQ(table_bytes(512), "512 B");
  EXPECT_EQ(table_bytes(24576), "24.0 KiB");
  EXPECT_EQ(table_bytes(1.5 * 1024 * 1024), "1.5 MiB");
}

TEST(CellText, ShortensByCharactersNotBytes) {
  EXPECT_EQ(shorten("short", 10), "short");
  EXPECT_EQ(shorten("a long kernel name", 8), "a long..");
  EXPECT_EQ(shorten("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 3), "\xc3\xa9..");
}

}  // namespace
}  // namespace stepcast::cell_text_test
