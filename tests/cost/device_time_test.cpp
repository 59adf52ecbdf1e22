#include "stepcast/cost/device_time.h"

#include <cmath>
#include <stdexcept>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

namespace stepcast {
namespace {

Platform load(const char* name) {
  Result<Platform> platform = load_platform(name);
  if (!platform.ok()) throw std::runtime_error(platform.error().message());
  return std::move(*platform);
}

// Records of the V100 were fitted to calls of a framework: next to no work takes tens of microseconds there.
TEST(DeviceTime, LeavesTheLaunchOfTheHostOut) {
  const Platform platform = load("dgx-1-v100-32gb");
  TrainingKernels kernels{platform};
  DeviceTime device{kernels.model()};
  const Operation tiny = gemm({.m = 16, .n = 16, .k = 16}, DType::fp32);
  const PricedOperation priced = kernels.price(tiny);
  ASSERT_FALSE(priced.record.empty());
  ASSERT_GT(priced.time.time.value(), 20);
  const double physics = kernels.model().analytic().estimate(tiny).time.value();
  EXPECT_DOUBLE_EQ(device.of(tiny, priced).time.value(), physics);
  EXPECT_LT(physics, 10);
}

TEST(DeviceTime, TakesLongKernelsAsTheyAre) {
  const Platform platform = load("dgx-1-v100-32gb");
  TrainingKernels kernels{platform};
  DeviceTime device{kernels.model()};
  const Operation large = gemm({.m = 4096, .n = 4096, .k = 4096}, DType::fp32);
  const PricedOperation priced = kernels.price(large);
  EXPECT_EQ(device.of(large, priced).time.value(), priced.time.time.value());
}

// No step where launches stop to count: times grow with the work.
TEST(DeviceTime, GrowsWithTheWork) {
  const Platform platform = load("dgx-1-v100-32gb");
  TrainingKernels kernels{platform};
  DeviceTime device{kernels.model()};
  double before = 0;
  for (int log2 = 8; log2 <= 28; ++log2) {
    const Operation sum = elementwise(
        {.function = ElementwiseFunction::add, .elements = std::int64_t{1} << log2, .reads = 2}, DType::fp32);
    const double us = device.of(sum, kernels.price(sum)).time.value();
    EXPECT_GE(us, 0.9 * before) << "2^" << log2;
    EXPECT_LE(us, kernels.price(sum).time.time.value()) << "2^" << log2;
    before = us;
  }
}

TEST(SmallestLike, KeepsTheFamilyTheTypeAndTheDirection) {
  for (const Operation& operation :
       {gemm({.batch = 8, .m = 512, .n = 512, .k = 64}, DType::bf16, Direction::weight_gradient),
        Operation{ConvolutionShape{.batch = 32,
        .in_channels = 64,
        .out_channels = 64,
        .height = 56,
        .width = 56,
        .kernel_height = 3,
        .kernel_width = 3,
        .padding = 1},
                  DType::fp32, Direction::backward},
        Operation{NormShape{.kind = NormKind::batch_norm, .rows = 64, .cols = 4096}, DType::fp32,
                  Direction::forward},
        Operation{ReductionShape{.rows = 512, .cols = 512}, DType::fp32, Direction::forward},
        Operation{MovementShape{.kind = MovementKind::gather, .elements = 1 << 20}, DType::fp32,
                  Direction::forward}}) {
    const Operation smallest = smallest_like(operation);
    EXPECT_EQ(family_of(smallest), family_of(operation)) << describe(operation);
    EXPECT_EQ(smallest.dtype, operation.dtype);
    EXPECT_EQ(smallest.direction, operation.direction);
    EXPECT_EQ(shape_problem(smallest), "") << describe(smallest);
    EXPECT_LT(work_of(smallest).bytes(), work_of(operation).bytes()) << describe(operation);
  }
}

}  // namespace
}  // namespace stepcast
