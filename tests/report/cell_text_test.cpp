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

TEST(CellText, TimesHaveTheUnitOfTheirSizeAndTheDigitsOfTheirBand) {
  EXPECT_EQ(duration_text(6717.7), "6.72 s");
  EXPECT_EQ(duration_text(152.34), "152 ms");
  EXPECT_EQ(duration_text(1.5234), "1.52 ms");
  EXPECT_EQ(duration_text(0.0841), "84.1 us");
  EXPECT_EQ(duration_text(999.7), "1.00 s");
  EXPECT_EQ(duration_text(123456), "123 s");
  EXPECT_EQ(duration_text(1234567), "1,235 s");
  EXPECT_EQ(duration_text(-12.34), "-12.3 ms");
  EXPECT_EQ(duration_text(0), "0.00 ms");
  EXPECT_EQ(duration_text(6717.7, 6226.5, 7651.2), "6.72 s");
  EXPECT_EQ(duration_text(20.834, 20.80, 20.90), "20.83 ms");  // an interval of 0.5 %
  EXPECT_EQ(band_text(6717.7, 6226.5, 7651.2), "p10 6.23, p90 7.65");
  EXPECT_EQ(band_text(900, 800, 1100), "p10 800, p90 1,100");
  EXPECT_EQ(band_text(10, 10, 10), "");
}

}  // namespace
}  // namespace stepcast::cell_text_test
