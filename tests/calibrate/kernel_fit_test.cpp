#include "calibrate/kernel_fit.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/cost/kernel_model.h"

#include "calibrate/detail/minimization.h"
#include "calibrate/detail/tree_training.h"

namespace stepcast::test::kernel_fit_test {
namespace {

using ::testing::IsEmpty;

double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11U) * 0x1p-53; }

// Rows of three features with a smooth and a stepped part.
struct Toy {
  std::vector<float> rows, targets;
};
Toy toy(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  Toy out;
  for (std::size_t i = 0; i < n; ++i) {
    const double a = 4 * uniform(random), b = 4 * uniform(random), c = uniform(random);
    out.rows.insert(out.rows.end(), {static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)});
    out.targets.push_back(static_cast<float>(0.2 * std::sin(a) + (b > 2 ? 0.3 : 0)));
  }
  return out;
}

TEST(TreeTraining, OurEvaluatorGivesWhatXGBoostGives) {
  if (!detail::why_no_trees().empty()) GTEST_SKIP() << detail::why_no_trees();
  const Toy data = toy(700, 3);
  for (const bool forest : {false, true}) {
    const detail::BoosterOptions options{.rounds = 30, .depth = 6, .forest = forest};
    const detail::BoosterDump dump = detail::train_booster(data.rows, 3, data.targets, {}, options);
    ASSERT_EQ(dump.problem, "");
    auto encoded = detail::train_trees(data.rows, 3, data.targets, {}, options);
    ASSERT_TRUE(encoded.ok()) << encoded.error().message();
    const auto exact = GradientTrees::decode(*encoded, 3);
    ASSERT_TRUE(exact.ok()) << exact.error().message();
    EXPECT_EQ(exact->size(), 30U);
    std::vector<double> sums(data.targets.size(), 0.0);
    exact->add(data.rows, 3, 1, sums);
    for (std::size_t i = 0; i < sums.size(); ++i)
      ASSERT_NEAR(sums[i], static_cast<double>(dump.predictions[i]), 1e-5) << i << " forest " << forest;

    // Fewer digits: no row changes sides, so only leaves are rounded.
    const auto brief = GradientTrees::decode(detail::shortened(*encoded, data.rows, 3, 1e-4), 3);
    ASSERT_TRUE(brief.ok());
    std::vector<double> brief_sums(data.targets.size(), 0.0);
    brief->add(data.rows, 3, 1, brief_sums);
    for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(brief_sums[i], sums[i], 30 * 0.5e-4 + 1e-6);
  }
}

TEST(SimplexSearch, FindsTheMinimumOfABanana) {
  detail::SimplexSearch search;
  search.low = {-5, -5};
  search.high = {5, 5};
  search.step = {0.5, 0.5};
  search.max_evaluations = 2000;
  search.tolerance = 1e-12;
  search.value = [](std::span<const double> x) {
    return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
  };
  std::vector<double> at{-1.2, 1};
  EXPECT_LT(search.minimise(at), 1e-6);
  EXPECT_NEAR(at[0], 1, 1e-2);
  EXPECT_NEAR(at[1], 1, 1e-2);
}

// ------------------------------------------------------------------------------------------- fitting

Device device() {
  Device d;
  d.name = "Test GPU";
  d.matrix_peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{312e12};
  d.vector_peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{39e12};
  d.memory_bandwidth = BytesPerSecond{2.0e12};
  d.memory_size = Bytes{80e9};
  d.sm_count = 108;
  d.l2_size = Bytes{40e6};
  d.kernel_floor = Microseconds{2};
  return d;
}

// A device that is 1.3 times slower than the analytic model for products, and slower still where n is odd;
// norms at 60 % of the bandwidth. 1 % of noise.
std::vector<KernelMeasurement> measurements(std::size_t n, std::uint64_t seed) {
  const AnalyticModel analytic{device()};
  std::mt19937_64 random{seed};
  const auto extent = [&random](double low, double high) {
    return static_cast<std::int64_t>(std::exp2(low + (high - low) * uniform(random)));
  };
  std::vector<KernelMeasurement> rows;
  for (std::size_t i = 0; i < n; ++i) {
    KernelMeasurement row;
    const double noise = 1 + 0.02 * (uniform(random) - 0.5);
    if (i % 2 == 0) {
      const GemmShape shape{.m = 16 * extent(2, 9), .n = 16 * extent(2, 9), .k = 16 * extent(2, 9)};
      row.operation = gemm(shape, DType::bf16);
      row.time = analytic.time(row.operation) * 1.3 * noise;
    } else {
      row.operation = norm({.rows = extent(8, 15), .cols = 8 * extent(5, 10)}, DType::bf16);
      row.time = Microseconds{3 + work_of(row.operation).bytes().value() / (0.6 * 2.0e6)} * noise;
    }
    row.gpu = "Test GPU";
    rows.push_back(row);
  }
  return rows;
}

TEST(KernelFit, LearnsADeviceWellEnoughToPredictRowsItDidNotSee) {
  const std::vector<KernelMeasurement> seen = measurements(1600, 1), fresh = measurements(400, 2);
  const auto fit = fit_kernel_models(seen, device());
  ASSERT_TRUE(fit.ok()) << fit.error().message();
  ASSERT_EQ(fit->records.size(), 2U);
  EXPECT_EQ(fit->records[0].name, "gemm/bf16/forward");
  EXPECT_EQ(fit->records[1].name, "layer_norm/bf16/forward");
  const KernelModel model{device(), fit->records};
  EXPECT_THAT(model.skipped(), IsEmpty());
  double error[2] = {0, 0}, covered = 0;
  for (const KernelMeasurement& row : fresh) {
    const Estimate e = model.estimate(row.operation);
    const bool is_norm = std::holds_alternative<NormShape>(row.operation.shape);
    error[is_norm ? 1 : 0] += std::abs(e.time / row.time - 1) / (static_cast<double>(fresh.size()) / 2);
    covered += row.time >= e.p10 && row.time <= e.p90 ? 1 : 0;
  }
  EXPECT_LT(error[0], 0.05);
  EXPECT_LT(error[1], 0.02);
  EXPECT_GT(covered / static_cast<double>(fresh.size()), 0.7);
  EXPECT_LT(covered / static_cast<double>(fresh.size()), 0.95);
}

TEST(KernelFit, DoesNotDependOnTheNumberOfThreads) {
  const std::vector<KernelMeasurement> rows = measurements(300, 3);
  const auto one = fit_kernel_models(rows, device(), {.threads = 1});
  const auto four = fit_kernel_models(rows, device(), {.threads = 4});
  ASSERT_TRUE(one.ok() && four.ok());
  EXPECT_EQ(one->records, four->records);
}

TEST(KernelFit, OfAFewRowsStaysNearTheFiguresOfTheDevice) {
  const std::vector<KernelMeasurement> rows = measurements(6, 4);
  const auto fit = fit_kernel_models(rows, device());
  ASSERT_TRUE(fit.ok()) << fit.error().message();
  const KernelModel model{device(), fit->records};
  for (const KernelMeasurement& row : measurements(100, 5)) {
    const double ratio = model.estimate(row.operation).time / row.time;
    EXPECT_GT(ratio, 0.4) << describe(row.operation);
    EXPECT_LT(ratio, 2.5) << describe(row.operation);
  }
}

TEST(KernelFit, LeavesOutRowsThatNoDeviceCouldReach) {
  std::vector<KernelMeasurement> rows = measurements(200, 6);
  const auto clean = fit_kernel_models(rows, device());
  KernelMeasurement broken = rows.front();
  broken.time = AnalyticModel{device()}.lower_bound(broken.operation) * 0.5;
  rows.push_back(broken);
  const auto fit = fit_kernel_models(rows, device());
  ASSERT_TRUE(clean.ok() && fit.ok());
  EXPECT_EQ(fit->records, clean->records);
}

TEST(KernelFit, OfNothingIsNothing) {
  const auto fit = fit_kernel_models({}, device());
  ASSERT_TRUE(fit.ok());
  EXPECT_THAT(fit->records, IsEmpty());
}

}  // namespace
}  // namespace stepcast::test::kernel_fit_test
