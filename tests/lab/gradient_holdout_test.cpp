#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lab/kernel_folds.h"
#include "tests/support/data.h"

namespace stepcast::gradient_holdout_test {
namespace {

TEST(GradientHoldout, NothingWithoutBatchesInTheLayoutOfGradients) {
  const auto score = score_held_out_gradients({}, {}, {}, 1);
  ASSERT_TRUE(score.ok()) << score.error().message();
  EXPECT_FALSE(score->has_value());
}

// fp32 products in the layout of input gradients, on five GPUs that measured large single products in that of
// forward alone.
TEST(GradientHoldout, ProductsInAnotherLayoutAreNotBiasedAndStayBelowThePeak) {
  SKIP_WITHOUT_DATA();
  const std::filesystem::path file = *test::measured_data() / "kernels" / "neusight_train_matmul_fp32.csv";
  auto measured = read_kernel_measurements(file);
  ASSERT_TRUE(measured.ok()) << measured.error().message();
  const std::vector<std::filesystem::path> files = measured->files;
  std::vector<Skipped> skipped;
  const auto devices = rows_by_device(std::move(measured).value(), {}, skipped);
  ASSERT_TRUE(devices.ok()) << devices.error().message();
  const auto score = score_held_out_gradients(*devices, files, {}, 0);
  ASSERT_TRUE(score.ok()) << score.error().message();
  ASSERT_TRUE(score->has_value());
  EXPECT_EQ((*score)->sets.size(), 5U);
  EXPECT_GT((*score)->overall.n, 200U);
  EXPECT_LT(std::abs((*score)->overall.bias), 5);
  for (const ExtraMetric& extra : (*score)->extras) {
    if (extra.name == kMostOfPeak) {
      EXPECT_LE(extra.value, 95);
    }
  }
}

}  // namespace
}  // namespace stepcast::gradient_holdout_test
