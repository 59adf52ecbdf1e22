#include "calibrate/detail/gaussian_process_training.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::test::gaussian_process_training_test {
namespace {

const std::size_t kWidth = kernel_features_of(KernelFeatureSet::rows).size();

// Rows and columns of norms, and what closed forms leave over: smooth in both.
struct Norms {
  std::vector<float> rows, targets;
  Norms(std::size_t n, unsigned seed) {
    std::mt19937 random{seed};
    std::uniform_real_distribution<float> size{4, 12};
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<float> row(kWidth, 0.F);
      row[0] = size(random), row[1] = size(random), row[3] = row[0] + row[1];
      rows.insert(rows.end(), row.begin(), row.end());
      targets.push_back(0.4F * std::sin(row[0] / 2) + 0.2F * std::cos(row[1] / 3));
    }
  }
};

// Mean |error| of the targets over their mean size.
double share_left(const Norms& learned, const Norms& asked,
                  detail::ProcessOver over = detail::ProcessOver::shapes) {
  const std::vector<float> once(learned.targets.size(), 1.F);
  const auto process = GaussianProcess::make(
      detail::train_gaussian_process(KernelFeatureSet::rows, over, learned.rows, learned.targets, once),
      kWidth);
  EXPECT_TRUE(process.ok());
  std::vector<double> predicted(asked.targets.size(), 0.0);
  process->add(asked.rows, kWidth, 1, predicted);
  double error = 0, size = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    error += std::abs(predicted[i] - static_cast<double>(asked.targets[i]));
    size += std::abs(static_cast<double>(asked.targets[i]));
  }
  return error / size;
}

TEST(GaussianProcessTraining, KnowsItsPointsAndWhatLiesBetween) {
  const Norms points{40, 1}, others{40, 2};
  EXPECT_LT(share_left(points, points), 0.05);
  EXPECT_LT(share_left(points, others), 0.25);
}

TEST(GaussianProcessTraining, LearnsFromSizesAlone) {
  const Norms many{150, 1}, few{30, 1}, others{40, 2};
  EXPECT_LT(share_left(many, others, detail::ProcessOver::sizes), 0.1);
  EXPECT_LT(share_left(few, others, detail::ProcessOver::sizes), 0.6);
}

TEST(GaussianProcessTraining, CarriesNoiseToNoNeighbour) {
  Norms points{40, 3};
  std::mt19937 random{4};
  std::normal_distribution<float> noise{0, 0.3F};
  for (float& target : points.targets) target = noise(random);
  Norms others{40, 5};
  for (float& target : others.targets) target = 0.3F;
  // Where no neighbour helps, forecasts stay where the closed form is.
  EXPECT_NEAR(share_left(points, others), 1, 0.35);
}

TEST(GaussianProcessTraining, LooksAtNothingThatAllPointsHaveAlike) {
  const Norms points{20, 6};
  const std::vector<float> once(20, 1.F);
  const auto parameters = detail::train_gaussian_process(KernelFeatureSet::rows, detail::ProcessOver::shapes,
                                                         points.rows, points.targets, once);
  EXPECT_GT(parameters.scale[0], 0);
  EXPECT_EQ(parameters.scale[6], 0);  // kind
  EXPECT_EQ(parameters.points.size(), 2U * 20U);
}

}  // namespace
}  // namespace stepcast::test::gaussian_process_training_test
