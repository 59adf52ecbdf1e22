#include "stepcast/base/duration_text.h"

#include <gtest/gtest.h>

namespace stepcast::duration_text_test {
namespace {

TEST(DurationText, TimesHaveTheUnitOfTheirSizeAndTheDigitsOfTheirBand) {
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
}  // namespace stepcast::duration_text_test
