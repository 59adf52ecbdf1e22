#include "stepcast/base/spelled_number.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::test::spelled_number_test {
namespace {

using ::testing::HasSubstr;

TEST(SpelledNumber, WholeOnesCountInPowersOf1024) {
  for (const auto& [said, meant] : {std::pair{"8k", "8192"},
                                    {"1M", "1048576"},
                                    {"1e3", "1000"},
                                    {"010", "10"},
                                    {"9007199254740993", "9007199254740993"}}) {
    std::string text = said;
    EXPECT_EQ(spell_out_whole(text), "") << said;
    EXPECT_EQ(text, meant) << said;
  }
  for (std::string text : {"-1", "1.5", "8x", "", "nan"})
    EXPECT_THAT(spell_out_whole(text), HasSubstr("expected a whole number")) << text;
}

TEST(SpelledNumber, OthersCountInPowersOf1000) {
  for (const auto& [said, meant] :
       {std::pair{"15T", "15000000000000"}, {"1.5k", "1500"}, {"2B", "2000000000"}}) {
    std::string text = said;
    EXPECT_EQ(spell_out_number(text), "") << said;
    EXPECT_DOUBLE_EQ(std::stod(text), std::stod(meant)) << said;
  }
  for (std::string text : {"inf", "T", "1e30", "3x"})
    EXPECT_THAT(spell_out_number(text), HasSubstr("expected")) << text;
}

}  // namespace
}  // namespace stepcast::test::spelled_number_test
