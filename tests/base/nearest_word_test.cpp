#include "stepcast/base/nearest_word.h"

#include <gtest/gtest.h>

namespace stepcast::nearest_word_test {
namespace {

TEST(NearestWord, FindsWhatWasMeant) {
  const std::vector<std::string> known{"llama-3-8b", "llama-3-70b", "mixtral-8x7b"};
  EXPECT_EQ(nearest_word("Llama3 8B", known), "llama-3-8b");
  EXPECT_EQ(nearest_word("mixtrall_8x7b", known), "mixtral-8x7b");
  EXPECT_EQ(nearest_word("bert", known), std::nullopt);
  EXPECT_EQ(nearest_word("", known), std::nullopt);
  EXPECT_EQ(nearest_word(std::string(1000, 'a'), known), std::nullopt);
}

TEST(NearestWord, ComparesWithoutCaseAndSeparators) { EXPECT_EQ(spelling_core("Llama-3 8_B"), "llama38b"); }

}  // namespace
}  // namespace stepcast::nearest_word_test
