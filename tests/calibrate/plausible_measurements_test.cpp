// What `calibrate` refuses: times in another unit, of another machine, noise; and what passes.
#include "calibrate/plausible_measurements.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

#include "tests/support/fails_with.h"
#include "tests/support/made_kernels.h"

namespace stepcast::plausible_measurements_test {
namespace {

using test::FailsWith;

Platform made() { return *parse_platform(test::kMadePlatform, "made-1.json", {}); }

// The made rows, each `factor` times as long, with so much noise.
std::vector<KernelMeasurement> rows(double factor, double noise = 0) {
  std::vector<KernelMeasurement> all = parse_kernel_measurements(test::made_kernels_csv(), "made.csv")->rows;
  std::mt19937_64 random{3};
  std::normal_distribution<double> normal;
  for (KernelMeasurement& m : all) m.time = m.time * factor * std::exp(noise * normal(random));
  return all;
}

TEST(PlausibleKernels, AreThoseOfTheDevice) {
  const Device device = made().device;
  EXPECT_TRUE(check_plausible(rows(1), device).ok());
  EXPECT_TRUE(check_plausible(rows(2), device).ok());
  EXPECT_THAT(check_plausible(rows(8), device), FailsWith("gemm/fp16/forward cannot be of Made-1, found"));
  EXPECT_THAT(check_plausible(rows(1000), device), FailsWith("expected 0.25 to 6 times; check the unit"));
  EXPECT_THAT(check_plausible(rows(0.1), device), FailsWith("cannot be of Made-1"));
}

TEST(PlausibleKernels, OfACpuComeFromItsCaches) {
  Device cpu = made().device;
  EXPECT_FALSE(check_plausible(rows(0.1), cpu).ok());
  EXPECT_FALSE(check_plausible(*fit_kernel_models(rows(1, 0.6), cpu), cpu).ok());
  cpu.architecture = "cpu";
  EXPECT_TRUE(check_plausible(rows(0.1), cpu).ok());
  EXPECT_TRUE(check_plausible(*fit_kernel_models(rows(1, 0.6), cpu), cpu).ok());
}

TEST(PlausibleKernels, FollowALaw) {
  const Device device = made().device;
  EXPECT_TRUE(check_plausible(*fit_kernel_models(rows(1), device), device).ok());
  EXPECT_TRUE(check_plausible(*fit_kernel_models(rows(1, 0.2), device), device).ok());
  EXPECT_THAT(check_plausible(*fit_kernel_models(rows(1, 0.6), device), device), FailsWith("follow no law"));
}

CollectiveMeasurements curve(double bytes_in_unit, double us_in_unit) {
  CollectiveMeasurements m;
  m.collective = CollectiveOp::all_reduce;
  m.n_ranks = m.gpus_per_node = 8;
  for (double bytes = 1024; bytes <= 0x1p30; bytes *= 2)
    m.samples.push_back({bytes / bytes_in_unit, (20 + bytes / 250e3) / us_in_unit, DType::fp16, 0});
  return m;
}

TEST(PlausibleCollectives, AreInBytesAndMicroseconds) {
  Platform node = made();
  node.node.gpus_per_node = 8;
  node.node.intra.bandwidth_per_gpu = BytesPerSecond{450e9};
  EXPECT_TRUE(check_plausible(curve(1, 1), node).ok());
  EXPECT_THAT(check_plausible(curve(1024, 1), node), FailsWith("far slower than the links of the platform"));
  EXPECT_THAT(check_plausible(curve(1, 1000), node), FailsWith("faster than the links of the platform"));
}

TEST(PlausibleMeasurements, AreOfTheGpuOfThePlatform) {
  const auto mi300x = load_platform("mi300x"), h100 = load_platform("h100-sxm5-80gb");
  ASSERT_TRUE(mi300x.ok() && h100.ok());
  EXPECT_TRUE(check_measured_on("", mi300x->device).ok());
  EXPECT_TRUE(check_measured_on("a GPU of mine", mi300x->device).ok());
  EXPECT_TRUE(check_measured_on("NVIDIA H100 80GB HBM3", h100->device).ok());
  EXPECT_THAT(
      check_measured_on("NVIDIA H100 80GB HBM3", mi300x->device),
      FailsWith("found `NVIDIA H100 80GB HBM3`, expected the GPU of the platform, AMD Instinct MI300X"));
}

}  // namespace
}  // namespace stepcast::plausible_measurements_test
