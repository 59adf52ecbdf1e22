#include "stepcast/cost/families/reference_time.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stepcast::test::reference_time_test {
namespace {

// 100 SMs at 100 TFLOP/s, 1 TB/s.
ReferenceParameters device() {
  return {.peak_TFLOPs = 100,
          .bandwidth_GBps = 1000,
          .sm_count = 100,
          .compute_factor = 1,
          .memory_factor = 1,
          .floor_us = 1e-6,
          .sharpness = 8,
          .tile_cost = 1e-6,
          .depth_cost = 1e-6};
}

TEST(ReferenceTime, OfFullWavesIsArithmeticAtPeak) {
  // 100 tiles of 256 x 128 or 200 of 128 x 128: full waves.
  const Operation product = gemm({.m = 2560, .n = 1280, .k = 4096}, DType::fp16);
  const double peak_us = 2.0 * 2560 * 1280 * 4096 / 100e6;
  EXPECT_NEAR(reference_time_us(product, device()), peak_us, 0.01 * peak_us);
}

TEST(ReferenceTime, OneTileMoreCostsAWave) {
  const Operation full = gemm({.m = 2560, .n = 1280, .k = 4096}, DType::fp16);
  const Operation more = gemm({.m = 2560, .n = 1281, .k = 4096}, DType::fp16);
  const double ratio = reference_time_us(more, device()) / reference_time_us(full, device());
  EXPECT_GT(ratio, 1.05);
  EXPECT_LT(ratio, 2.01);
}

TEST(ReferenceTime, OfLittleArithmeticIsMemory) {
  const Operation norm_of_rows = norm({.rows = 4096, .cols = 4096}, DType::fp16);
  EXPECT_NEAR(reference_time_us(norm_of_rows, device()), 2 * 4096.0 * 4096 * 2 / 1e6, 1e-3);
}

TEST(ReferenceTime, OfRowsCountsRowsAndTheirLength) {
  ReferenceParameters p = device();
  p.unit_us = 0.1;    // 4096 rows on 100 SMs
  p.chain_us = 0.01;  // 512 elements
  const NormShape shape{.rows = 4096, .cols = 512};
  const double streamed = reference_time_us(norm(shape, DType::fp16), device());
  EXPECT_NEAR(reference_time_us(norm(shape, DType::fp16), p) - streamed, 4.096 + 5.12, 1e-6);
  NormShape unfused = shape;
  unfused.fused = false;
  EXPECT_EQ(reference_time_us(norm(unfused, DType::fp16), p), streamed);
}

TEST(ReferenceTime, BackwardOfAProductIsBothGradients) {
  const GemmShape shape{.m = 3000, .n = 1700, .k = 900};
  const auto time = [&](Direction direction) {
    return std::exp(std::log(reference_time_us(gemm(shape, DType::fp16, direction), device())));
  };
  EXPECT_NEAR(time(Direction::backward), time(Direction::input_gradient) + time(Direction::weight_gradient),
              0.02 * time(Direction::backward));
}

TEST(ReferenceTime, LongProductsRunAtTheSustainedRate) {
  ReferenceParameters p = device();
  const Operation product = gemm({.m = 65536, .n = 32768, .k = 32768}, DType::fp16);
  const double before = reference_time_us(product, p);
  p.sustained_factor = 1.1;
  EXPECT_NEAR(reference_time_us(product, p) / before, 1.1, 1e-3);
}

TEST(ReferenceTime, CausalAttentionHasHalfThePairs) {
  AttentionShape shape{.batch = 1, .query_length = 1000, .key_length = 1000, .heads = 1, .head_dim = 64};
  EXPECT_DOUBLE_EQ(attended_pairs(shape), 1000.0 * 1001 / 2);
  shape.causal = false;
  EXPECT_DOUBLE_EQ(attended_pairs(shape), 1e6);
  shape.window = 100;
  EXPECT_DOUBLE_EQ(attended_pairs(shape), 1e5);
  shape.causal = true;
  EXPECT_DOUBLE_EQ(attended_pairs(shape), 100.0 * 101 / 2 + 900 * 100);
  // One new token that sees all that came before.
  EXPECT_DOUBLE_EQ(
      attended_pairs({.batch = 1, .query_length = 1, .key_length = 1000, .heads = 1, .head_dim = 64}), 1000);
}

TEST(ReferenceTime, IsFiniteForNothingAndForEverything) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 50;
  for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{1}, kHuge}) {
    const Operation product = gemm({.batch = 1, .m = extent, .n = extent, .k = extent}, DType::fp16);
    EXPECT_TRUE(std::isfinite(reference_time_us(product, device()))) << extent;
    EXPECT_GT(reference_time_us(product, device()), 0) << extent;
  }
}

}  // namespace
}  // namespace stepcast::test::reference_time_test
