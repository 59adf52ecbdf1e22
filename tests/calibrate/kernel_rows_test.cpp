#include <vector>

#include <gtest/gtest.h>

#include "calibrate/kernel_measurements.h"

namespace stepcast::kernel_rows_test {
namespace {

Device small_device() {
  Device device;
  device.name = "Made-1";
  device.memory_bandwidth = BytesPerSecond{1e12};
  device.memory_size = Bytes{16e9};
  device.matrix_peak[static_cast<std::size_t>(DType::fp32)] = FlopsPerSecond{1e13};
  device.vector_peak[static_cast<std::size_t>(DType::fp32)] = FlopsPerSecond{1e13};
  return device;
}

KernelMeasurement measured(Operation operation, double us) {
  KernelMeasurement m;
  m.operation = operation;
  m.gpu = "Made-1";
  m.label = "op";
  m.time = Microseconds{us};
  return m;
}

TEST(KernelRows, RowsFasterThanTheDeviceAreTakenOutAndCounted) {
  const AnalyticModel device{small_device()};
  const Operation product = gemm({.m = 4096, .n = 4096, .k = 4096}, DType::fp32);
  const double bound = device.lower_bound(product).value();
  ASSERT_GT(bound, 0);
  std::vector<KernelMeasurement> rows{measured(product, 2 * bound), measured(product, 0.96 * bound),
                                      measured(product, 0.94 * bound), measured(product, 0.1 * bound)};
  const auto skipped = remove_impossible_rows(rows, device);
  EXPECT_EQ(rows.size(), 2U);
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].what, "Made-1/op/forward");
  EXPECT_EQ(skipped[0].n, 2U);
}

TEST(KernelRows, LongRunsStandForShortOnesOfTheSameSizes) {
  const auto row = [](std::int64_t n, DType dtype, Regime regime) {
    KernelMeasurement m = measured(gemm({.m = 1024, .n = n, .k = 1024}, dtype), 100);
    m.regime = regime;
    return m;
  };
  // fp8: long runs reach a quarter of the columns of the short ones and replace them; bf16: they reach less.
  std::vector<KernelMeasurement> rows{
      row(4096, DType::fp8, Regime::burst),     row(8192, DType::fp8, Regime::burst),
      row(2048, DType::fp8, Regime::sustained), row(4096, DType::bf16, Regime::burst),
      row(512, DType::bf16, Regime::sustained), row(64, DType::fp16, Regime::unstated)};
  const auto skipped = keep_one_regime(rows);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].regime, Regime::sustained);
  EXPECT_EQ(rows[1].operation.dtype, DType::bf16);
  EXPECT_EQ(rows[1].regime, Regime::burst);
  EXPECT_EQ(rows[2].regime, Regime::unstated);
  ASSERT_EQ(skipped.size(), 2U);
  EXPECT_EQ(skipped[0].n, 2U);
  EXPECT_EQ(skipped[0].why, "of short runs, where the same device has long ones");
  EXPECT_EQ(skipped[1].n, 1U);
  EXPECT_EQ(skipped[1].why, "of long runs that reach less than a quarter of the sizes of short ones");
}

TEST(KernelRows, NamesSetsAndRecords) {
  KernelMeasurement m =
      measured(gemm({.batch = 2, .m = 1, .n = 1, .k = 1}, DType::fp16, Direction::backward), 1);
  m.gpu = "X 1";
  m.label = "bmm";
  EXPECT_EQ(kernel_set_name(m), "X 1/bmm/backward");
  EXPECT_EQ(kernel_record_key(m.operation), "batched_gemm/fp16/backward");
}

}  // namespace
}  // namespace stepcast::kernel_rows_test
