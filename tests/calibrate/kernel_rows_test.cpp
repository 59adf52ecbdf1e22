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
  EXPECT_EQ(skipped[0].n, 1U);
  EXPECT_EQ(skipped[0].why, "of long runs that reach less than a quarter of the sizes of short ones");
  EXPECT_EQ(skipped[1].n, 2U);
  EXPECT_EQ(skipped[1].why, "of short runs, where the same device has long ones");
}

// Long runs of 100 shapes that take 1.1 times as long, and shapes of the short runs that have no long one.
std::vector<KernelMeasurement> both_regimes(double ratio) {
  std::vector<KernelMeasurement> rows;
  const auto add = [&](std::int64_t k, double us, Regime regime) {
    rows.push_back(measured(
        attention({.batch = 1, .query_length = k, .key_length = k, .heads = 8, .head_dim = 64}, DType::fp8),
        us));
    rows.back().regime = regime;
  };
  for (int i = 1; i <= 100; ++i) {
    add(64 * i, i, Regime::burst);
    add(64 * i, ratio * i, Regime::sustained);
  }
  for (int i = 1; i <= 50; ++i) add(64 * i + 32, i + 0.5, Regime::burst);
  return rows;
}

TEST(KernelRows, EveryRowIsFittedOrListed) {
  std::vector<KernelMeasurement> rows = both_regimes(1.1);
  const std::size_t n_read = rows.size();
  const auto skipped = join_regimes(rows);
  std::size_t n_listed = 0;
  for (const SkippedRows& s : skipped) n_listed += s.n;
  EXPECT_EQ(rows.size() + n_listed, n_read);
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].n, 100U);
  EXPECT_EQ(skipped[0].why, "of a shape that was measured in the other regime, too");
  ASSERT_EQ(rows.size(), 150U);
  for (const KernelMeasurement& m : rows) EXPECT_EQ(m.regime, Regime::sustained);
  EXPECT_TRUE(rows.back().carried);
  EXPECT_NEAR(rows.back().time.value(), 1.1 * 50.5, 1e-9);
}

TEST(KernelRows, ProductsAreNotCarriedOver) {
  std::vector<KernelMeasurement> rows = both_regimes(1.1);
  for (KernelMeasurement& m : rows) {
    const std::int64_t k = std::get<AttentionShape>(m.operation.shape).query_length;
    m.operation = gemm({.m = 1024, .n = 1024, .k = k}, DType::fp8);
  }
  const auto skipped = join_regimes(rows);
  EXPECT_EQ(rows.size(), 100U);
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].n, 150U);
}

TEST(KernelRows, NoClockMakesShortRunsTwiceAsFast) {
  std::vector<KernelMeasurement> rows = both_regimes(2);
  const auto skipped = join_regimes(rows);
  EXPECT_EQ(rows.size(), 150U);
  for (const KernelMeasurement& m : rows) EXPECT_EQ(m.regime, Regime::burst);
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].why, "of long runs of slower software than the short ones");
}

TEST(KernelRows, WhatTimingAddsIsTakenOffAndLeavesATime) {
  const Operation product = gemm({.m = 64, .n = 64, .k = 64}, DType::fp32);
  std::vector<KernelMeasurement> rows{measured(product, 10), measured(product, 2)};
  take_off_timing(rows, Microseconds{1.9});
  EXPECT_DOUBLE_EQ(rows[0].time.value(), 8.1);
  EXPECT_DOUBLE_EQ(rows[1].time.value(), 0.2);
}

TEST(KernelRows, KernelsOfAttentionThatWereMeasuredBesideAnotherHaveRecordsOfTheirOwn) {
  const auto row = [](AttentionKernel kernel, DType dtype, std::int64_t length) {
    return measured(attention({.batch = 1,
                               .query_length = length,
                               .key_length = length,
                               .heads = 8,
                               .head_dim = 64,
                               .kernel = kernel},
                              dtype),
                    10);
  };
  using enum AttentionKernel;
  const std::vector<KernelMeasurement> rows{
      row(flash3, DType::bf16, 64),  row(flash2, DType::bf16, 64),
      row(flash2, DType::bf16, 128), row(flash1, DType::fp16, 64),
      row(flash3, DType::fp8, 64),   row(flash3, DType::fp8, 128),
      row(any, DType::fp8, 64),      measured(gemm({.m = 8, .n = 8, .k = 8}, DType::bf16), 10)};
  EXPECT_EQ(record_families(rows),
            (std::vector<std::string_view>{"attention_flash3", "attention", "attention", "attention",
                                           "attention_flash3", "attention_flash3", "attention", "gemm"}));
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
