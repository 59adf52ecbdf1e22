// The arithmetic stands beside every expectation. The device has round figures: 100 SMs, 1e6 bytes/us of
// memory, 1e8 FLOPs/us on matrix units for fp16, 1e7 for fp32, L2 of 1e7 bytes, floor of 2 us.
#include "stepcast/cost/analytic_model.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/cost/detail/gemm_tiles.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::analytic_model_test {
namespace {

Device round_device() {
  Device d;
  d.name = "round";
  d.vendor = "NVIDIA";
  d.architecture = "ampere";
  d.matrix_peak[static_cast<std::size_t>(DType::fp32)] = FlopsPerSecond{1e13};
  d.matrix_peak[static_cast<std::size_t>(DType::fp16)] = FlopsPerSecond{1e14};
  d.vector_peak[static_cast<std::size_t>(DType::fp32)] = FlopsPerSecond{1e13};
  d.memory_bandwidth = BytesPerSecond{1e12};
  d.memory_size = Bytes{40e9};
  d.sm_count = 100;
  d.l2_size = Bytes{1e7};
  d.kernel_floor = Microseconds{2};
  d.host_link_bandwidth = BytesPerSecond{1e10};
  return d;
}

Operation transfer(TransferShape shape) { return {shape, DType::fp32, Direction::forward}; }

TEST(AnalyticModel, AddsUpFourProductsOfInt8WhereTheGpuHasTheInstruction) {
  Device device = round_device();
  device.architecture = "volta";
  const DeviceFigures volta = figures_of(device);
  EXPECT_DOUBLE_EQ(volta.matrix_of(DType::int8).per_us, 4e7);
  EXPECT_TRUE(volta.matrix_of(DType::int8).assumed);
  EXPECT_FALSE(volta.has_matrix_units(DType::int8));
  device.architecture = "pascal";
  EXPECT_DOUBLE_EQ(figures_of(device).matrix_of(DType::int8).per_us, 1e7);
}

TEST(AnalyticModel, StreamsElementwiseWork) {
  const AnalyticModel model{round_device()};
  const Operation add = elementwise(
      {.function = ElementwiseFunction::residual_add, .elements = 100'000'000, .reads = 2}, DType::fp16);
  // 1e8 elements, 3 tensors, 2 bytes: 6e8 bytes at 0.87 of 1e6 bytes/us, and the floor of 2 us.
  EXPECT_NEAR(model.time(add).value(), 6e8 / 0.87e6 + 2, 1e-6);
  // 2e7 of the bytes may stay in L2.
  EXPECT_NEAR(model.lower_bound(add).value(), (6e8 - 2e7) / 1e6, 1e-6);
  const Estimate estimate = model.estimate(add);
  EXPECT_EQ(estimate.source, EstimateSource::analytic);
  EXPECT_LT(estimate.p10, estimate.time);
  EXPECT_GT(estimate.p90, estimate.time);
}

TEST(AnalyticModel, CountsWavesOfTiles) {
  const AnalyticModel model{round_device()};
  // 10 x 10 tiles of 256 x 128: one for each SM. An SM has 1e6 FLOPs/us; such a tile runs at
  // 2.876 * 32768 / (32768 + 200 * 384) = 0.8601 of it: 2 * 32768 * (4096 + 160) / 0.8601e6 = 324.3 us.
  // Memory: (2560 + 1280) * 4096 * 2 + 2560 * 1280 * 2 bytes = 3.80e7 at 0.76e6 bytes/us = 50.0 us.
  const detail::Product full{1, 2560, 1280, 4096, DType::fp16, 2, 2};
  const detail::Tiling tiling = best_tiling(full, model.figures());
  EXPECT_EQ(tiling.waves, 1);
  EXPECT_EQ(tiling.tiles, 100);
  EXPECT_NEAR(tiling.compute_us, 324.29, 0.01);
  EXPECT_NEAR(tiling.memory_us, 50.01, 0.01);
  EXPECT_NEAR(model.time(gemm({.m = 2560, .n = 1280, .k = 4096}, DType::fp16)).value(), 326.29, 0.01);
  // One more row and everything waits for the eleventh row of tiles.
  EXPECT_GT(model.time(gemm({.m = 2561, .n = 1280, .k = 4096}, DType::fp16)).value(), 1.5 * 326);
  // Few tiles and a long sum: the sum is split.
  EXPECT_GT(detail::best_tiling({1, 128, 128, 65536, DType::fp16, 2, 2}, model.figures()).split_k, 1);
}

TEST(AnalyticModel, BackwardOfAProductIsTwoProducts) {
  const AnalyticModel model{round_device()};
  const GemmShape shape{.m = 2560, .n = 1280, .k = 4096};
  const double dx = model.time(gemm({.m = 2560, .n = 4096, .k = 1280}, DType::fp16)).value();
  const double dw = model.time(gemm({.m = 4096, .n = 1280, .k = 2560}, DType::fp16)).value();
  EXPECT_NEAR(model.time(gemm(shape, DType::fp16, Direction::backward)).value(), dx + dw, 1e-6);
  EXPECT_NEAR(model.time(gemm(shape, DType::fp16, Direction::input_gradient)).value(), dx, 1e-6);
  EXPECT_NEAR(model.time(gemm(shape, DType::fp16, Direction::weight_gradient)).value(), dw, 1e-6);
}

TEST(AnalyticModel, LongProductsFallToThePowerLimit) {
  Device d = round_device();
  const GemmShape shape{.m = 25600, .n = 12800, .k = 40960};
  const double free = AnalyticModel{d}.time(gemm(shape, DType::fp16)).value();
  d.power_limit_W = 50;  // 0.8 TFLOP/s per W: 40 of 100 TFLOP/s
  const double limited = AnalyticModel{d}.time(gemm(shape, DType::fp16)).value();
  // 2.684e13 * ... FLOPs at 40e6 FLOPs/us; products of a second run at the limit.
  const double at_limit = 2.0 * 25600 * 12800 * 40960 / 40e6;
  EXPECT_GT(limited, 1.5 * free);
  EXPECT_NEAR(limited / at_limit, 1, 0.01);
}

TEST(AnalyticModel, CausalAttentionCostsHalf) {
  const AnalyticModel model{round_device()};
  AttentionShape shape{.batch = 4,
                       .query_length = 8192,
                       .key_length = 8192,
                       .heads = 32,
                       .key_value_heads = 32,
                       .head_dim = 128,
                       .kernel = AttentionKernel::flash2};
  const double causal = model.time(attention(shape, DType::fp16)).value();
  shape.causal = false;
  const double full = model.time(attention(shape, DType::fp16)).value();
  EXPECT_NEAR(full / causal, 2, 0.02);
  shape.kernel = AttentionKernel::flash1;
  EXPECT_GT(model.time(attention(shape, DType::fp16)).value(), 1.8 * full);
  // 4 * 4 * 32 * 8192^2 * 128 FLOPs at 0.68 of 1e8 FLOPs/us, 8192 / (8192 + 350) of that reached.
  EXPECT_NEAR(full, 4.0 * 4 * 32 * 8192 * 8192 * 128 / (0.68e8 * 8192 / 8542), 0.01 * full);
}

TEST(AnalyticModel, BoundsConvolutionsByTheirFewestMultiplications) {
  const AnalyticModel model{round_device()};
  const ConvolutionShape shape{.batch = 32,
                               .in_channels = 512,
                               .out_channels = 512,
                               .height = 56,
                               .width = 56,
                               .kernel_height = 3,
                               .kernel_width = 3,
                               .padding = 1};
  const Operation convolution{shape, DType::fp32, Direction::forward};
  const double direct_us = 2.0 * 32 * 512 * 56 * 56 * 512 * 9 / 1e7;
  // F(4, 3) needs 6 multiplications instead of 12 in each of two dimensions.
  EXPECT_NEAR(model.lower_bound(convolution).value(), direct_us / 4, 1e-6 * direct_us);
  EXPECT_LT(model.time(convolution).value(), direct_us);
  ConvolutionShape strided = shape;
  strided.stride = 2;
  EXPECT_NEAR(model.lower_bound({strided, DType::fp32, Direction::forward}).value(), direct_us / 4,
              1e-6 * direct_us);  // a quarter of the outputs, none saved
}

TEST(AnalyticModel, TransfersRunOverTheHostLink) {
  const AnalyticModel model{round_device()};
  const double h2d = model.time(transfer({.kind = MemcpyKind::host_to_device, .bytes = 100'000'000})).value();
  EXPECT_NEAR(h2d, 1e8 / (1e4 * 0.8) + 2, 1e-6);
  const double memset = model.time(transfer({.kind = MemcpyKind::none, .bytes = 100'000'000})).value();
  EXPECT_NEAR(memset, 1e8 / (1e6 * 0.82) + 2, 1e-6);
}

TEST(AnalyticModel, SaysWhereItGuesses) {
  Device d = round_device();
  d.sm_count.reset();
  const AnalyticModel model{d};
  EXPECT_EQ(model.estimate(gemm({.m = 64, .n = 64, .k = 64}, DType::fp16)).source, EstimateSource::assumed);
  // Volta has no bf16 units, and nobody says how fast fp8 is on this device.
  EXPECT_EQ(AnalyticModel{round_device()}.estimate(gemm({.m = 64, .n = 64, .k = 64}, DType::fp8)).source,
            EstimateSource::assumed);
}

// Empty and huge operations of every kind.
TEST(AnalyticModel, AnswersAreNeverZeroNorInfinite) {
  const AnalyticModel models[] = {AnalyticModel{round_device()}, AnalyticModel{Device{}}};
  const std::int64_t huge = std::int64_t{1} << 40;
  const std::vector<OperationShape> shapes{
      GemmShape{},
      GemmShape{.batch = huge, .m = huge, .n = huge, .k = huge},
      AttentionShape{},
      AttentionShape{.batch = 1, .query_length = 1, .key_length = huge, .heads = 1, .head_dim = 100'000},
      ConvolutionShape{},
      LookupShape{},
      LookupShape{.tables = 1, .rows = huge, .dim = 1, .bags = huge, .pooling = 1e9},
      NormShape{},
      SoftmaxShape{},
      CrossEntropyShape{},
      ElementwiseShape{},
      ElementwiseShape{.elements = huge},
      MovementShape{},
      ReductionShape{},
      OptimizerShape{},
      TransferShape{},
      SparseShape{},
      AmountShape{},
      AmountShape{.flops = 1e30, .bytes_read = 1e30, .matrix = true}};
  for (const AnalyticModel& model : models) {
    for (const OperationShape& shape : shapes) {
      for (const Direction direction : {Direction::forward, Direction::backward}) {
        const Operation operation{shape, DType::fp16, direction};
        const Estimate e = model.estimate(operation);
        EXPECT_GT(e.time.value(), 0) << describe(operation);
        EXPECT_TRUE(std::isfinite(e.time.value())) << describe(operation);
        EXPECT_LE(e.p10, e.time) << describe(operation);
        EXPECT_LE(e.time, e.p90) << describe(operation);
        EXPECT_LE(model.lower_bound(operation), e.time) << describe(operation);
      }
    }
  }
}

// More work never takes less time, within what tiles can turn around.
TEST(AnalyticModel, GrowsWithTheWork) {
  std::mt19937_64 random{7};
  std::uniform_real_distribution<double> log_size{3, 13};
  const AnalyticModel model{round_device()};
  const auto size = [&] { return static_cast<std::int64_t>(std::exp2(log_size(random))) * 8; };
  for (int i = 0; i < 2000; ++i) {
    const GemmShape shape{.m = size(), .n = size(), .k = size()};
    GemmShape twice = shape;
    twice.m *= 2;
    EXPECT_GE(model.time(gemm(twice, DType::fp16)) * 1.001, model.time(gemm(shape, DType::fp16)))
        << describe(gemm(shape, DType::fp16));
  }
}

TEST(AnalyticModel, KnowsEveryShippedDevice) {
  for (const char* name : {"p4", "v100-sxm2-16gb", "t4", "a100-sxm4-80gb", "h100-sxm5-80gb", "b200-sxm-180gb",
                           "mi100", "mi300x", "l4", "l40s"}) {
    const auto platform = load_platform(name);
    ASSERT_TRUE(platform) << name;
    const AnalyticModel model{platform->device};
    const Operation up = gemm({.m = 8192, .n = 16384, .k = 4096}, DType::fp16);
    EXPECT_EQ(model.estimate(up).source, EstimateSource::analytic) << name;
    const double reached = model.lower_bound(up) / model.time(up);
    EXPECT_GT(reached, 0.3) << name;
    EXPECT_LT(reached, 0.9) << name;
  }
}

}  // namespace
}  // namespace stepcast::analytic_model_test
