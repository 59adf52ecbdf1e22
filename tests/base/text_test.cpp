#include "stepcast/base/text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::text_test {
namespace {

TEST(Text, LowersAsciiAlone) {
  EXPECT_EQ(lower("NCCL_AllReduce-9Z[@`{"), "nccl_allreduce-9z[@`{");
  EXPECT_EQ(lower("\xc3\x84"), "\xc3\x84") << "a letter beyond ASCII stays";
}

TEST(Text, KnowsDigits) {
  EXPECT_TRUE(is_digit('0') && is_digit('9'));
  EXPECT_FALSE(is_digit('/') || is_digit(':') || is_digit('a'));
}

TEST(Text, JoinsWithWhatStandsBetween) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(join(std::vector<std::string>{"", "b", ""}), ", b, ");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, " + "), "a + b");
}

}  // namespace
}  // namespace stepcast::text_test
