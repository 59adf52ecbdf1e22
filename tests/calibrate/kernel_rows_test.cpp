#include "stepcast/calibrate/kernel_rows.h"

#include <vector>

#include <gtest/gtest.h>

namespace stepcast {
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

TEST(KernelRows, NamesSetsAndRecords) {
  KernelMeasurement m =
      measured(gemm({.batch = 2, .m = 1, .n = 1, .k = 1}, DType::fp16, Direction::backward), 1);
  m.gpu = "X 1";
  m.label = "bmm";
  EXPECT_EQ(kernel_set_name(m), "X 1/bmm/backward");
  EXPECT_EQ(kernel_record_key(m.operation), "batched_gemm/fp16/backward");
}

}  // namespace
}  // namespace stepcast
