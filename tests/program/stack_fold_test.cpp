#include "stepcast/program/stack_fold.h"

#include <gtest/gtest.h>

namespace stepcast::stack_fold_test {
namespace {

TEST(StackFold, TellsEachFrameOnceFromTheOutermostInward) {
  OpStacks stacks;
  const StackId root = stacks.push(StackId{}, NameId{0U}), inner = stacks.push(root, NameId{1U});
  const StackId other = stacks.push(root, NameId{2U});
  StackFold<int> depth(stacks);
  int asked = 0;
  const auto deeper = [&](int outer, StackId) {
    ++asked;
    return outer + 1;
  };
  EXPECT_EQ(depth.of(StackId{}, deeper), 0);
  EXPECT_EQ(depth.of(inner, deeper), 2);
  EXPECT_EQ(depth.of(other, deeper), 2);
  EXPECT_EQ(depth.of(root, deeper), 1);
  EXPECT_EQ(asked, 3);
}

// Each frame inside the one before: nothing calls itself for them.
TEST(StackFold, GoesAsDeepAsItMust) {
  constexpr int kDepth = 1'000'000;
  OpStacks stacks;
  StackId stack;
  for (int i = 0; i < kDepth; ++i) stack = stacks.push(stack, NameId{0U});
  StackFold<int> depth(stacks);
  EXPECT_EQ(depth.of(stack, [](int outer, StackId) { return outer + 1; }), kDepth);
}

}  // namespace
}  // namespace stepcast::stack_fold_test
