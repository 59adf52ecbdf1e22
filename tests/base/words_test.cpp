#include "stepcast/base/words.h"

#include <string>

#include <gtest/gtest.h>

namespace stepcast::words_test {
namespace {

static_assert(is_among("i64", "long int64 i64"));
static_assert(!is_among("int", "long int64 i64"));
static_assert(!is_among("", "") && !is_among("a", ""));

TEST(Words, AreSeenInOrderUntilOneIsTaken) {
  std::string seen;
  EXPECT_TRUE(any_word("a bc d", [&](std::string_view word) {
    seen.append(word).append("|");
    return word == "bc";
  }));
  EXPECT_EQ(seen, "a|bc|");
}

}  // namespace
}  // namespace stepcast::words_test
