#include <gtest/gtest.h>

#include "stepcast/cost/device_time.h"

namespace stepcast::convolution_time_test {
namespace {

using K = KernelImplementation;

// 80 SMs, 15.7 TFLOP/s, 900 GB/s; kernels take 2.5 us at least.
DeviceFigures v100() {
  DeviceFigures figures;
  for (Rate& rate : figures.matrix) rate = {15.7e6, false};
  figures.vector = {15.7e6, false};
  figures.memory = {900e3, false};
  figures.sm_count = 80;
  figures.kernel_floor_us = 2.5;
  return figures;
}

constexpr ConvolutionShape kPointwise{
    .batch = 32, .in_channels = 1024, .out_channels = 256, .height = 14, .width = 14};
constexpr ConvolutionShape kThree{.batch = 32,
                                  .in_channels = 256,
                                  .out_channels = 256,
                                  .height = 14,
                                  .width = 14,
                                  .kernel_height = 3,
                                  .kernel_width = 3,
                                  .padding = 1};

SeenKernels seen(std::initializer_list<K> kernels) {
  SeenKernels out;
  for (const K kernel : kernels) out.add(kernel, 100, 1.0 / static_cast<double>(kernels.size()));
  return out;
}

double us(const ConvolutionShape& shape, Direction direction, std::initializer_list<K> kernels) {
  return convolution_us(shape, DType::fp32, direction, v100(), seen(kernels), false);
}

// 2 * 32 * 196 * 1024 * 256 = 3.288 GFLOP at 0.56 and 0.75 of the peak.
TEST(ConvolutionTime, IsAProductAtTheRateOfItsKernel) {
  EXPECT_NEAR(us(kPointwise, Direction::forward, {K::plain_convolution}), 3.288e9 / (0.56 * 15.7e6) + 2.5,
              0.5);
  EXPECT_NEAR(us(kPointwise, Direction::forward, {K::tuned_convolution}), 3.288e9 / (0.75 * 15.7e6) + 2.5,
              0.5);
}

// Tiles of 4x4 cover 14x14 with 16 in place of 12.25: 36 * 2 * 512 * 256 * 256 = 2.416 GFLOP at 0.75 of the peak,
// 205 us. Through memory go 36 * 4 * (2 * 512 * 256 + 256 * 256) = 47.2 MB of transformed and 2 * 6.42 + 2.36 MB of
// plain data at 0.8 of 900 GB/s: 86.7 us. Four kernels.
TEST(ConvolutionTime, OfWinogradIsTransformsAndAFourthOfTheProducts) {
  EXPECT_NEAR(us(kThree, Direction::forward, {K::winograd}), 205.2 + 86.7 + 10, 1);
  EXPECT_LT(us(kThree, Direction::forward, {K::winograd}),
            us(kThree, Direction::forward, {K::tuned_convolution}));
}

TEST(ConvolutionTime, TakesTheFastestWhereNoKernelIsNamed) {
  EXPECT_LE(us(kThree, Direction::forward, {}), us(kThree, Direction::forward, {K::winograd}));
}

// The first layer: no gradient of the image.
TEST(ConvolutionTime, OfABackwardOfWeightKernelsAloneIsThatOfTheWeights) {
  EXPECT_DOUBLE_EQ(us(kPointwise, Direction::backward, {K::plain_weight_gradient}),
                   us(kPointwise, Direction::weight_gradient, {K::plain_weight_gradient}));
  EXPECT_GT(us(kPointwise, Direction::backward, {K::plain_weight_gradient, K::plain_data_gradient}),
            1.5 * us(kPointwise, Direction::backward, {K::plain_weight_gradient}));
}

// 25.7 MB in, 6.4 MB out, each read and written at 0.85 of 900 GB/s; two more kernels.
TEST(ConvolutionTime, CountsCopiesIntoAnotherLayout) {
  const double without = us(kPointwise, Direction::forward, {K::tuned_convolution});
  SeenKernels with;
  for (const K kernel : {K::to_channels_last, K::tuned_convolution, K::to_channels_first})
    with.add(kernel, 100, 1.0 / 3);
  EXPECT_NEAR(convolution_us(kPointwise, DType::fp32, Direction::forward, v100(), with, false) - without,
              2 * (25.69e6 + 6.42e6) / (0.85 * 900e3) + 5, 1);
}

// Three channels fill a fourth on TF32 units that load 16 bytes at once.
TEST(ConvolutionTime, PadsChannelsToWhatMatrixUnitsLoad) {
  DeviceFigures figures = v100();
  figures.matrix_units.fill(true);
  for (Rate& rate : figures.matrix) rate = {156e6, false};
  figures.sustained_matrix_per_us = 1e300;
  ConvolutionShape image{.batch = 64,
                         .in_channels = 3,
                         .out_channels = 64,
                         .height = 224,
                         .width = 224,
                         .kernel_height = 7,
                         .kernel_width = 7,
                         .stride = 2,
                         .padding = 3};
  const double three = convolution_us(image, DType::tf32, Direction::forward, figures, {}, false);
  image.in_channels = 4;
  EXPECT_NEAR(convolution_us(image, DType::tf32, Direction::forward, figures, {}, false), three, 0.1 * three);
}

}  // namespace
}  // namespace stepcast::convolution_time_test
