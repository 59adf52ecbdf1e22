#include "stepcast/cost/families/perceptron.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::test::perceptron_test {
namespace {

using ::testing::HasSubstr;

// Two inputs, two hidden units, one output.
Perceptron::Parameters small() {
  return {.widths = {2, 2, 1},
          .input_mean = {1, 0},
          .input_scale = {2, 1},
          .weights = {1, 1, 0, -1, /*biases*/ 0, 0.5F, /*output*/ 3, 2, /*bias*/ 0.25F}};
}

TEST(Perceptron, IsTheSumOfSoftsignUnits) {
  const auto network = Perceptron::make(small(), 2);
  ASSERT_TRUE(network.ok()) << network.error().message();
  // Inputs (2, 1) become (2, 1): units (2 + 1) and (-1 + 0.5), softsign 3/4 and -1/3;
  // 3 * 3/4 + 2 * -1/3 + 0.25 = 1.8333
  std::vector<double> sums{10};
  network->add(std::vector<float>{2, 1}, 2, 1, sums);
  EXPECT_NEAR(sums[0], 10 + 1.833333, 1e-5);
}

TEST(Perceptron, ComesBackFromJsonAsItWas) {
  const auto network = Perceptron::make(small(), 2);
  ASSERT_TRUE(network.ok());
  const auto again = Perceptron::read(network->write(), 2);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->write(), network->write());
}

TEST(Perceptron, RefusesNumbersThatDoNotFit) {
  Perceptron::Parameters p = small();
  p.weights.pop_back();
  EXPECT_THAT(Perceptron::make(p, 2).error().message(), HasSubstr("`weights` has 8 numbers (must be 9)"));
  p = small();
  p.widths = {3, 2, 1};
  EXPECT_THAT(Perceptron::make(p, 2).error().message(), HasSubstr("must be from 2 to 1"));
  p = small();
  p.widths = {2, 100000, 1};
  EXPECT_THAT(Perceptron::make(p, 2).error().message(), HasSubstr("a layer of 100000 units"));
}

}  // namespace
}  // namespace stepcast::test::perceptron_test
