#include "stepcast/cost/expert_kernels.h"

#include <cmath>

#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

namespace stepcast::expert_kernels_test {
namespace {

// 100 SMs, 1e8 FLOPs and 1e6 bytes per microsecond.
DeviceFigures figures() {
  DeviceFigures f;
  f.matrix[static_cast<std::size_t>(DType::bf16)] = {1e8, false};
  f.memory = {1e6, false};
  f.sm_count = 100;
  return f;
}

ExpertRates plain() {
  ExpertRates r;
  r.startup_us = 30;
  r.arithmetic_share = 1;
  r.memory_share = 1;
  r.fill_depth = 1e-6;
  r.tile_rows = 1e-9;
  r.movement_factor = 1;
  r.per_expert_us = 0.5;
  return r;
}

TEST(GroupedProduct, LargeOnesRunAtThePeak) {
  // 8 experts of 2048 x 2048 x 8192: 8 x 2 x 3.44e10 = 5.5e11 FLOPs, 6,468 us at 0.85 of 1e8 per us; memory takes 0.7 us.
  const double us = grouped_product_us(plain(), figures(), {8, 2048, 2048, 8192, false, 2, 2});
  EXPECT_NEAR(us, 8 * 2.0 * 2048 * 2048 * 8192 / 0.85e8, 80);
}

TEST(GroupedProduct, FewTokensReadWeights) {
  // 64 experts of one token: 64 x 2048 x 2048 x 2 bytes = 537 us; 64 rows of a tile take 2 x 64 x 64 x 2048^2 FLOPs
  // at 0.85 of the peak = 404 us. Their 4-norm: (537^4 + 404^4)^(1/4) = 576 us.
  const double us = grouped_product_us(plain(), figures(), {64, 1, 2048, 2048, false, 2, 2});
  EXPECT_NEAR(us, 576, 8);
}

TEST(GroupedProduct, UnevenRowsLeaveHalfATileEmpty) {
  const GroupedProduct even{16, 640, 4096, 4096, false, 2, 2};
  GroupedProduct uneven = even;
  uneven.uneven = true;
  // 640 rows are 10 tiles of 64 or, uneven, 10.5.
  EXPECT_NEAR(grouped_product_us(plain(), figures(), uneven) / grouped_product_us(plain(), figures(), even),
              1.05, 0.002);
}

TEST(ExpertLayer, GrowsWithVisitsAndExperts) {
  ExpertLayer layer{.tokens = 4096,
                    .hidden_size = 2048,
                    .expert_ffn_size = 768,
                    .experts_per_token = 8,
                    .local_experts = 16,
                    .visits = 32768};
  const double once = expert_layer_us(plain(), figures(), layer);
  layer.visits *= 2;
  EXPECT_GT(expert_layer_us(plain(), figures(), layer), 1.6 * once);
}

TEST(ExpertKernels, KeepTheirRecord) {
  ExpertKernels kernels;
  ExpertRates r = plain();
  r.device = "X";
  r.architecture = "hopper";
  r.dtype = DType::fp8;
  r.tile_rows = 12;
  kernels.measured = {r};
  const Result<ExpertKernels> read = ExpertKernels::read(kernels.write());
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->measured, kernels.measured);
}

// A tree that doubles the time of layers with fewer than e^3 rows for each expert.
TEST(ExpertKernels, AddWhatWasLearnedOfTheDevice) {
  EncodedTrees encoded{.cut_feature = {0}, .cut_value = {3}, .splits = {0, -1, -1}, .leaves = {6931, 0}};
  ExpertRates r = plain();
  r.device = "X";
  auto trees = GradientTrees::decode(encoded, ExpertFeatures{}.size());
  ASSERT_TRUE(trees.ok()) << trees.error().message();
  r.learned = std::make_shared<const GradientTrees>(*std::move(trees));
  const GroupedProduct few{8, 4, 2048, 8192, false, 2, 2}, many{8, 2048, 2048, 8192, false, 2, 2};
  EXPECT_NEAR(grouped_product_us(r, figures(), few) / grouped_product_us(plain(), figures(), few), 2, 1e-3);
  EXPECT_DOUBLE_EQ(grouped_product_us(r, figures(), many), grouped_product_us(plain(), figures(), many));
  ExpertKernels kernels;
  kernels.measured = {r};
  const auto read = ExpertKernels::read(kernels.write());
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_TRUE(read->measured[0].learned);
  // Its own device takes it, others do not.
  Device own, other;
  own.name = "X";
  other.name = "Y";
  EXPECT_TRUE(read->rates(own, DType::bf16)->learned);
  EXPECT_FALSE(read->rates(other, DType::bf16)->learned);
}

// Layers were measured with weights of e^10 in a product; up and gate are one product of twice as many.
TEST(ExpertKernels, AreSurerOfWeightsThatWereMeasured) {
  ExpertRates r = plain();
  r.device = "X";
  r.known_weights = {10, 14};
  r.known_log_p10 = -0.1;
  r.known_log_p90 = 0.12;
  for (const double weights : {std::exp(10.0), 2 * std::exp(10.0), std::exp(14.01)}) {
    EXPECT_DOUBLE_EQ(expert_band(r, weights).log_p10, -0.1) << weights;
    EXPECT_DOUBLE_EQ(expert_band(r, weights).log_p90, 0.12) << weights;
  }
  EXPECT_DOUBLE_EQ(expert_band(r, std::exp(12.0)).log_p90, r.log_p90);
  EXPECT_DOUBLE_EQ(expert_band(plain(), std::exp(10.0)).log_p10, plain().log_p10);
  ExpertKernels kernels;
  kernels.measured = {r};
  const auto read = ExpertKernels::read(kernels.write());
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->measured, kernels.measured);
}

// Rates of X on Y with the same units and twice the memory: what its bytes bind takes half as long, the rest as long.
TEST(ExpertKernels, OfASiblingMoveByWhatBinds) {
  ExpertKernels kernels;
  ExpertRates r = plain();
  r.device = "X";
  r.architecture = "hopper";
  kernels.measured = {r};
  Device x, y;
  x.name = "X";
  y.name = "Y";
  x.architecture = y.architecture = "hopper";
  x.sm_count = y.sm_count = 100;
  for (Device* d : {&x, &y}) d->matrix_peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{1e14};
  x.memory_bandwidth = BytesPerSecond{1e12};
  y.memory_bandwidth = BytesPerSecond{2e12};
  const auto there = kernels.rates(x, DType::bf16);
  const auto here = kernels.rates(y, DType::bf16, sibling_of(x, y));
  ASSERT_TRUE(there && here);
  EXPECT_LT(here->log_p10, there->log_p10);
  const auto ratio = [&](const GroupedProduct& product) {
    return grouped_product_us(*here, figures_of(y), product) /
           grouped_product_us(*there, figures_of(x), product);
  };
  EXPECT_NEAR(ratio({64, 1, 8192, 8192, false, 2, 2}), 0.5, 0.02);
  EXPECT_NEAR(ratio({8, 8192, 8192, 8192, false, 2, 2}), 1, 0.01);
  EXPECT_GT(ratio({64, 64, 4096, 4096, false, 2, 2}), 0.5);
}

TEST(ExpertKernels, TakeRelativesWithAWiderBand) {
  ExpertKernels kernels;
  ExpertRates r = plain();
  r.device = "X";
  r.architecture = "hopper";
  kernels.measured = {r};
  Device own, sibling, stranger;
  own.name = "X";
  sibling.name = "Y";
  sibling.architecture = "Hopper";
  stranger.name = "Z";
  stranger.architecture = "cdna3";
  EXPECT_DOUBLE_EQ(kernels.rates(own, DType::bf16)->log_p90, r.log_p90);
  EXPECT_GT(kernels.rates(sibling, DType::bf16)->log_p90, r.log_p90);
  EXPECT_GT(kernels.rates(stranger, DType::bf16)->log_p90, kernels.rates(sibling, DType::bf16)->log_p90);
  // Of another type, at the peak of the one that is asked for.
  EXPECT_EQ(kernels.rates(own, DType::fp8)->dtype, DType::fp8);
  EXPECT_FALSE(ExpertKernels{}.rates(own, DType::bf16));
}

TEST(ExpertKernels, RefuseBrokenRecords) {
  JsonValue empty = JsonValue::object();
  EXPECT_FALSE(ExpertKernels::read(empty).ok());
  JsonValue record = JsonValue::object(), list = JsonValue::array(), item = JsonValue::object();
  item.add("device", JsonValue{"X"});
  item.add("dtype", JsonValue{"bf16"});
  item.add("startup_us", JsonValue{-1.0});
  list.add(std::move(item));
  record.add("rates", std::move(list));
  EXPECT_FALSE(ExpertKernels::read(record).ok());
}

TEST(ExpertKernels, OfShippedPlatformsKnowHopperAndBlackwell) {
  for (const char* name : {"dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72"}) {
    const Result<Platform> platform = load_platform(name);
    ASSERT_TRUE(platform.ok()) << platform.error().message();
    const ModelRecord* record = platform->find_model(ExpertKernels::kRecordKind);
    ASSERT_NE(record, nullptr) << name;
    const auto kernels = ExpertKernels::read(record->parameters);
    ASSERT_TRUE(kernels.ok()) << kernels.error().message();
    for (const DType dtype : {DType::bf16, DType::fp8, DType::fp8_block}) {
      const auto rates = kernels->rates(platform->device, dtype);
      ASSERT_TRUE(rates) << name;
      // Of its own: experts of a training step reach 30 to 85 % of the peak.
      const DeviceFigures f = figures_of(platform->device);
      const double us =
          grouped_product_us(*rates, f, {16, 4096, 4096, 4096, false, element_size(dtype).value(), 2});
      const double share = 16 * 2.0 * 4096 * 4096 * 4096 / us / f.matrix_of(dtype).per_us;
      EXPECT_GT(share, 0.3) << name << to_string(dtype);
      EXPECT_LT(share, 0.86) << name << to_string(dtype);
    }
  }
}

TEST(ExpertProducts, AreThoseOfWeights) {
  EXPECT_TRUE(is_expert_product(
      gemm({.batch = 8, .m = 64, .n = 64, .k = 64, .layout = GemmLayout::tn, .output = DType::bf16},
           DType::bf16)));
  EXPECT_FALSE(is_expert_product(gemm({.batch = 8, .m = 64, .n = 64, .k = 64}, DType::bf16)));
  EXPECT_FALSE(is_expert_product(gemm({.m = 64, .n = 64, .k = 64, .output = DType::bf16}, DType::bf16)));
}

}  // namespace
}  // namespace stepcast::expert_kernels_test
