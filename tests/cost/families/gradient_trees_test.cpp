#include "stepcast/cost/families/gradient_trees.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::test::gradient_trees_test {
namespace {

using ::testing::HasSubstr;

// x[3] < 2.25 ? -0.0012 : x[0] < 7.5 ? 0.0005 : 0.004, and a tree that is one leaf of 0.01.
EncodedTrees two_trees() {
  return {.cut_feature = {0, 3},
          .cut_value = {7.5F, 2.25F},
          .splits = {1, -1, 0, -1, -1, -1},
          .leaves = {-12, 5, 40, 100},
          .leaf_scale = 1e-4};
}

std::vector<double> sums_of(const GradientTrees& trees, std::vector<float> rows, std::size_t stride) {
  std::vector<double> sums(rows.size() / stride, 0.0);
  trees.add(rows, stride, 1, sums);
  return sums;
}

TEST(GradientTrees, ARowGoesLeftWhereItIsBelowTheCut) {
  const auto trees = GradientTrees::decode(two_trees(), 4);
  ASSERT_TRUE(trees.ok()) << trees.error().message();
  EXPECT_EQ(trees->size(), 2U);
  const std::vector<double> sums = sums_of(*trees,
                                           {7, 0, 0, 2,      // left
                                            7, 0, 0, 2.25F,  // at the cut: right, then left
                                            7.5F, 0, 0, 9},  // right, right
                                           4);
  EXPECT_NEAR(sums[0], -0.0012 + 0.01, 1e-8);
  EXPECT_NEAR(sums[1], 0.0005 + 0.01, 1e-8);
  EXPECT_NEAR(sums[2], 0.004 + 0.01, 1e-8);
}

TEST(GradientTrees, ManyRowsGiveWhatOneRowGives) {
  const auto trees = GradientTrees::decode(two_trees(), 4);
  ASSERT_TRUE(trees.ok());
  std::vector<float> rows;
  for (int i = 0; i < 333; ++i)
    rows.insert(rows.end(), {static_cast<float>(i % 15), 0, 0, static_cast<float>(i % 5)});
  const std::vector<double> all = sums_of(*trees, rows, 4);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto first = rows.begin() + static_cast<std::ptrdiff_t>(4 * i);
    EXPECT_EQ(sums_of(*trees, {first, first + 4}, 4).front(), all[i]) << i;
  }
}

TEST(GradientTrees, ComeBackFromJsonAsTheyWere) {
  const auto trees = GradientTrees::decode(two_trees(), 4);
  ASSERT_TRUE(trees.ok());
  const auto again = GradientTrees::read(trees->write(), 4);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->write(), trees->write());
}

struct Broken {
  const char* name;
  EncodedTrees trees;
  const char* problem;
};

class BrokenTrees : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenTrees, AreRefused) {
  const auto trees = GradientTrees::decode(GetParam().trees, 4);
  ASSERT_FALSE(trees.ok());
  EXPECT_THAT(trees.error().message(), HasSubstr(GetParam().problem));
}

Broken broken(const char* name, void (*change)(EncodedTrees&), const char* problem) {
  Broken out{name, two_trees(), problem};
  change(out.trees);
  return out;
}

EncodedTrees endless() {
  EncodedTrees trees = two_trees();
  trees.splits.assign(40, 0);  // every node splits
  return trees;
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenTrees,
    ::testing::Values(broken(
                          "ends_early",
                          [](EncodedTrees& e) {
                            e.splits = {1, -1, 0, -1};
                          },
                          "ends early"),
                      broken(
                          "leaf_missing", [](EncodedTrees& e) { e.leaves.pop_back(); }, "fewer leaves"),
                      broken(
                          "leaf_left_over", [](EncodedTrees& e) { e.leaves.push_back(1); }, "left over"),
                      broken(
                          "unknown_cut", [](EncodedTrees& e) { e.splits[0] = 2; }, "not in the list"),
                      broken(
                          "negative_cut", [](EncodedTrees& e) { e.splits[0] = -2; }, "not in the list"),
                      broken(
                          "unknown_feature", [](EncodedTrees& e) { e.cut_feature[1] = 4; }, "feature 4 of 4"),
                      broken(
                          "cuts_of_two_lengths", [](EncodedTrees& e) { e.cut_value.pop_back(); },
                          "different lengths"),
                      Broken{"too_deep", endless(), "deeper than"}),
    [](const auto& test) { return std::string{test.param.name}; });

}  // namespace
}  // namespace stepcast::test::gradient_trees_test
