#include "stepcast/base/scan.h"

#include <cstdint>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::scan_test {
namespace {

TEST(Scan, TakesAllOfATextOrNothing) {
  EXPECT_EQ(scan<std::int64_t>("8192"), 8192);
  EXPECT_EQ(scan<double>("-1e3"), -1000);
  for (const char* text : {"", " 8", "8 ", "8k", "+8", "99999999999999999999"})
    EXPECT_EQ(scan<std::int64_t>(text), std::nullopt) << text;
}

TEST(Scan, LeavesWhatIsBehindANumber) {
  std::string_view text = "2.5GB/s";
  EXPECT_EQ(scan_front<double>(text), 2.5);
  EXPECT_EQ(text, "GB/s");
  EXPECT_EQ(scan_front<double>(text), std::nullopt);
  EXPECT_EQ(text, "GB/s");
}

TEST(Scan, ReadsNumbersWithTheirUnits) {
  constexpr ScanUnit kWatts[] = {{"", 1}, {"W", 1}, {"kW", 1e3}};
  EXPECT_EQ(scan_with_unit("40kW", kWatts), 40'000);
  EXPECT_EQ(scan_with_unit("500", kWatts), 500);
  for (const char* text : {"", "kW", "0W", "-1W", "5GW", "5 W", "nan"})
    EXPECT_EQ(scan_with_unit(text, kWatts), std::nullopt) << text;
}

TEST(Split, KeepsEmptyWords) {
  EXPECT_THAT(split("a,,b", ','), ::testing::ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ','), ::testing::ElementsAre(""));
}

}  // namespace
}  // namespace stepcast::scan_test
