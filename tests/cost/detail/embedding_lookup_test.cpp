// Numbers worked by hand from the published heuristic for A100: 108 SMs, 40 MiB of L2, 2270.9 GB/s of L2.
#include "stepcast/cost/detail/embedding_lookup.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stepcast::detail::embedding_lookup_test {
namespace {

LookupDevice a100() {
  DeviceFigures figures;
  figures.sm_count = 108;
  figures.l2_bytes = 40 * 1048576.0;
  figures.l2.per_us = 2.2709e6;
  figures.vector.per_us = 15.0266e6;
  figures.memory.per_us = 1.555e6;
  return lookup_device(figures);
}

TEST(EmbeddingLookup, MemoryCurveIsThePublishedOne) {
  const LookupDevice device = a100();
  EXPECT_NEAR(device.memory.max_bandwidth_GBps, 1391.1, 1e-9);
  EXPECT_NEAR(device.memory.time(Bytes{16384}).value(), 6.450, 1e-9);
  EXPECT_NEAR(device.memory.time(Bytes{16385}).value(), 1.74, 0.01);                 // steps down at m1
  EXPECT_NEAR(device.memory.time(Bytes{536870912.0}).value(), 396, 1);               // before m2
  EXPECT_NEAR(device.memory.time(Bytes{536870913.0}).value(), 6.45 + 385.93, 0.01);  // after it
}

TEST(EmbeddingLookup, EverythingDistinctFitsIntoTheCache) {
  // Warps: 108 * floor(256 / 128) = 216, tables in flight ceil(216 / 2048) = 1.
  // X = min(floor(0.9 * 41943040 / (1 * 512)) = 73728, 100000, 20480) = 20480
  // U = 1e5 * (1 - (1 - 1e-5)^20480) = 1e5 * (1 - exp(-0.204801)) = 18519 <= X: h = 1 - 18519 / 20480
  const LookupShape shape{.tables = 8, .rows = 100'000, .dim = 128, .bags = 2048, .pooling = 10};
  const LookupTraffic t = lookup_forward(shape, 4, a100());
  EXPECT_EQ(t.concurrent_warps, 216);
  EXPECT_EQ(t.tables_in_flight, 1);
  EXPECT_EQ(t.cached_rows, 20480);
  EXPECT_NEAR(t.distinct_rows, 18519, 1);
  EXPECT_NEAR(t.hit_rate, 0.09575, 1e-4);
  // Rows of a bag: 10 * 512 = 5120 bytes; indices 64, offsets 32 + 64, output 512.
  EXPECT_NEAR(t.l2_bytes, 8 * 2048 * t.hit_rate * 5120, 1);
  EXPECT_NEAR(t.memory_bytes, 8 * 2048 * (64 + 32 + 64 + 512 + (1 - t.hit_rate) * 5120), 1);
}

TEST(EmbeddingLookup, MoreDistinctRowsThanFit) {
  // BL = 200000, X = 73728, U = 1e6 * (1 - exp(-0.2)) = 181269 > X:
  // h = 1 - (73728 + 126272 * (1e6 - 73728) / 1e6) / 200000 = 0.046549
  const LookupShape shape{.tables = 1, .rows = 1'000'000, .dim = 128, .bags = 20'000, .pooling = 10};
  const LookupTraffic t = lookup_forward(shape, 4, a100());
  EXPECT_NEAR(t.distinct_rows, 181269, 2);
  EXPECT_NEAR(t.hit_rate, 0.046549, 1e-5);
}

TEST(EmbeddingLookup, NarrowRowsCostMore) {
  LookupShape shape{.tables = 32, .rows = 10'000'000, .dim = 128, .bags = 4096, .pooling = 32};
  const double wide = lookup_us(shape, 4, Direction::forward, a100());
  // Bytes are proportional to the width except for 160 of indices and offsets; x 1.55 at 32 columns.
  shape.dim = 32;
  const double narrow = lookup_us(shape, 4, Direction::forward, a100());
  EXPECT_GT(narrow, wide / 4 * 1.55 * 0.98);
  EXPECT_LT(narrow, wide / 4 * 1.55 * 1.15);
}

TEST(EmbeddingLookup, BackwardNeedsTheWholeBagInTheCache) {
  // E = 1000, BL = 200, X = min(fits, 1000, 200) = 200; all of two: 200 / 1000 * 199 / 999 = 0.039840
  const LookupShape shape{.tables = 2, .rows = 1000, .dim = 64, .bags = 100, .pooling = 2};
  const LookupTraffic t = lookup_backward(shape, 4, a100());
  EXPECT_NEAR(t.hit_rate, 0.2 * 199 / 999, 1e-9);
  // Per bag: 32 + 64 + r32(8) + r32(256) = 384, and 2 * 2 * 256 bytes of rows read and written.
  EXPECT_NEAR(t.l2_bytes, 200 * t.hit_rate * 1024, 1e-6);
  EXPECT_NEAR(t.memory_bytes, 200 * (384 + (1 - t.hit_rate) * 1024), 1e-6);
  EXPECT_EQ(t.multiply_adds, 2 * 100 * 2 * 64);
  EXPECT_GE(lookup_us(shape, 4, Direction::backward, a100()), 6.45);
}

TEST(EmbeddingLookup, KnownReuseCounts) {
  LookupShape shape{.tables = 1, .rows = 1'000'000, .dim = 128, .bags = 4096, .pooling = 10};
  const double uniform = lookup_us(shape, 4, Direction::forward, a100());
  shape.distinct_fraction = 0.1;  // U = 4096 <= X: h = 0.9
  EXPECT_NEAR(lookup_forward(shape, 4, a100()).hit_rate, 0.9, 1e-9);
  EXPECT_LT(lookup_us(shape, 4, Direction::forward, a100()), 0.8 * uniform);
}

}  // namespace
}  // namespace stepcast::detail::embedding_lookup_test
