#include "stepcast/base/recent.h"

#include <string>

#include <gtest/gtest.h>

namespace stepcast::recent_test {
namespace {

TEST(Recent, ForgetsWhatWasNotAskedForTheLongest) {
  Recent<int, std::string> known{2};
  known.of(1) = "one";
  known.of(2) = "two";
  EXPECT_EQ(known.of(1), "one");  // so that 2 is the one that goes
  known.of(3) = "three";
  EXPECT_EQ(known.size(), 2U);
  EXPECT_EQ(known.of(1), "one");
  EXPECT_EQ(known.find_if([](int key) { return key == 2; }), nullptr);
  EXPECT_EQ(known.of(3), "three");
  EXPECT_EQ(known.of(2), "");  // made anew
}

TEST(Recent, CopiesAreTheirOwn) {
  Recent<int, std::string> first{2};
  first.of(1) = "one";
  Recent<int, std::string> second = first;
  second.of(1) = "other";
  EXPECT_EQ(first.of(1), "one");
  EXPECT_EQ(second.of(1), "other");
}

}  // namespace
}  // namespace stepcast::recent_test
