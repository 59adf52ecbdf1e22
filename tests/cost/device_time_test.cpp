#include "stepcast/cost/device_time.h"

#include <cmath>
#include <stdexcept>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "stepcast/operation/shape_changes.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::device_time_test {
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
  DeviceTime device{kernels.model(), platform.device};
  const Operation tiny = gemm({.m = 16, .n = 16, .k = 16}, DType::fp32);
  const PricedOperation priced = kernels.price(tiny);
  ASSERT_FALSE(priced.record.empty());
  ASSERT_GT(priced.time.time.value(), 20);
  // The closed form, and 2 us for operands that come from memory, 1 kB of them.
  const double physics = kernels.model().analytic().estimate(tiny).time.value();
  EXPECT_NEAR(device.of(tiny, priced).time.value(), physics + 2, 0.01);
  EXPECT_LT(physics, 10);
}

// t = launch + kernel in such tables: the launch is taken off, the shortest kernel stays.
TEST(DeviceTime, TakesTheLaunchOffLongKernels) {
  const Platform platform = load("dgx-1-v100-32gb");
  TrainingKernels kernels{platform};
  DeviceTime device{kernels.model(), platform.device};
  const auto sum = [](std::int64_t elements) {
    return elementwise({.function = ElementwiseFunction::add, .elements = elements, .reads = 2}, DType::fp32);
  };
  const double launch = kernels.price(sum(16)).time.time.value() - 2.5;
  ASSERT_GT(launch, 10);
  // 2^28 elements: 3.2 GB at 900 GB/s, 3.6 ms; half of the 6 MiB that the L2 holds are found there: 2.4 us.
  const Operation large = sum(std::int64_t{1} << 28);
  const double record = kernels.price(large).time.time.value();
  EXPECT_NEAR(device.of(large, kernels.price(large)).time.value(), record - launch, 5);
}

// The kernels of a trace decide. Max pooling's backward on a V100: 205.5 MB at 0.29 of 900 GB/s, 788 us, where
// a reduction of as many bytes streams.
TEST(DeviceTime, KnowsPoolingByItsKernels) {
  const Platform platform = load("dgx-1-v100-32gb");
  TrainingKernels kernels{platform};
  DeviceTime device{kernels.model(), platform.device};
  const Operation pooling{AmountShape{.flops = 2.57e7, .bytes_read = 1.798e8, .bytes_written = 2.57e7},
                          DType::fp32, Direction::forward};
  SeenKernels seen;
  seen.add(implementation_of("void at::native::(anonymous namespace)::max_pool_backward_nchw<float>"), 637,
           1);
  const double us = device.of(pooling, kernels.price(pooling), seen).time.value();
  EXPECT_NEAR(us, 205.5e6 / (0.29 * 900e3) + 2.5, 1);
  EXPECT_LT(device.of(pooling, kernels.price(pooling)).time.value(), 400);
}

double us_of(const char* platform_name, const Operation& operation, const SeenKernels& seen = {}) {
  const Platform platform = load(platform_name);
  TrainingKernels kernels{platform};
  return DeviceTime{kernels.model(), platform.device}
      .of(operation, kernels.price(operation), seen)
      .time.value();
}

// The head of a model with 30,522 words: loads in smaller pieces on an A100; on an H100 no asynchronous products, either. AMD's
// library shows nothing of it that is not in its model.
TEST(DeviceTime, ProductsOfOddExtentsFallBackToOlderKernels) {
  const auto head = [](std::int64_t words) { return gemm({.m = 141, .n = words, .k = 512}, DType::bf16); };
  const auto slower = [&](const char* platform) {
    return us_of(platform, head(30522)) / us_of(platform, head(30528));
  };
  // But for the launch and operands that come from memory, 1.16 and 1.16 / 0.42.
  EXPECT_GT(slower("a100-sxm4-80gb"), 1.1);
  EXPECT_LT(slower("a100-sxm4-80gb"), 1.16);
  EXPECT_GT(slower("h100-sxm5-80gb"), 1.3);
  EXPECT_LT(slower("h100-sxm5-80gb"), 1.16 / 0.42);
  // Rows of A may be as many as they like.
  EXPECT_NEAR(us_of("h100-sxm5-80gb", gemm({.m = 141, .n = 4096, .k = 512}, DType::bf16)) /
                  us_of("h100-sxm5-80gb", gemm({.m = 144, .n = 4096, .k = 512}, DType::bf16)),
              1, 0.05);
}

// Heads of BERT and GPT-2 on an H200 as its traces have them, where an H100's gave the figures: words in pieces of four bytes, and of
// two. Of the gradient of the weights, whose rows of words lie across, the kernel's name tells.
TEST(DeviceTime, ProductsInSmallPiecesAreNamed) {
  const Platform h200 = load("h200-sxm-141gb");
  TrainingKernels kernels{h200};
  DeviceTime device{kernels.model(), h200.device};
  const auto us = [&](const GemmShape& shape, std::string_view kernel) {
    const Operation product = gemm(shape, DType::bf16);
    SeenKernels seen;
    seen.add(implementation_of(kernel), 1000, 1);
    return device.of(product, kernels.price(product), seen).time.value();
  };
  EXPECT_NEAR(us({.m = 8192, .n = 30522, .k = 768}, "x<cutlass_80_tn_align2>"), 1619, 0.2 * 1619);
  EXPECT_NEAR(us({.m = 30522, .n = 768, .k = 8192}, "x<cutlass_80_nt_align2>"), 1596, 0.2 * 1596);
  EXPECT_NEAR(us({.m = 50257, .n = 768, .k = 8192}, "x<cutlass_75_nt_align1>"), 4298, 0.2 * 4298);
  EXPECT_NEAR(us({.m = 8192, .n = 768, .k = 50257}, "x<cutlass_75_nn_align1>"), 4529, 0.2 * 4529);
  // 95 TFLOP/s, where both others reach 140 and more.
  EXPECT_NEAR(us({.m = 8192, .n = 50257, .k = 768}, "x<cutlass_75_tn_align1>"), 6683, 0.3 * 6683);
  EXPECT_NEAR(us({.m = 8192, .n = 50257, .k = 768}, "unnamed"),
              us({.m = 8192, .n = 50257, .k = 768}, "x<cutlass_75_tn_align1>"), 1e-9);
}

// Weights were used a step ago: 8 MiB from memory, where a table of repeated products finds them in the cache of 50 MB. What does
// not fit there came from memory in the table as well.
TEST(DeviceTime, WeightsOfProductsComeFromMemory) {
  const Platform platform = load("h100-sxm5-80gb");
  TrainingKernels kernels{platform};
  DeviceTime device{kernels.model(), platform.device};
  const auto added = [&](std::int64_t m) {
    const Operation product = gemm({.m = m, .n = 2048, .k = 2048}, DType::bf16);
    return device.of(product, kernels.price(product)).time.value() - kernels.price(product).time.time.value();
  };
  EXPECT_NEAR(added(1024), added(65536) + 8 * 1048576 / 3.35e6, 0.3);
}

// Records of attention hold calls of a framework, too: 14 us and more for next to no work.
TEST(DeviceTime, ShortAttentionTakesLessThanTheCallsThatWereMeasured) {
  const Platform platform = load("h100-sxm5-80gb");
  TrainingKernels kernels{platform};
  DeviceTime device{kernels.model(), platform.device};
  const Operation of_few = attention({.batch = 1,
                                      .query_length = 64,
                                      .key_length = 64,
                                      .heads = 8,
                                      .head_dim = 64,
                                      .causal = false,
                                      .kernel = AttentionKernel::flash2},
                                     DType::bf16);
  const double record = kernels.price(of_few).time.time.value();
  ASSERT_GT(record, 12);
  EXPECT_LT(device.of(of_few, kernels.price(of_few)).time.value(), 0.7 * record);
}

// Patches of three channels: CUTLASS takes the 32 channels of a step for each of the 256 taps, four times the eight that a
// piece has.
TEST(DeviceTime, FewChannelsArePaddedToAStep) {
  const auto patches = [](std::int64_t channels, std::int64_t taps) {
    return Operation{ConvolutionShape{.batch = 64,
                                      .in_channels = channels,
                                      .out_channels = 768,
                                      .height = 224,
                                      .width = 224,
                                      .kernel_height = taps,
                                      .kernel_width = taps,
                                      .stride = taps},
                     DType::bf16, Direction::forward};
  };
  for (const char* platform : {"a100-sxm4-80gb", "h100-sxm5-80gb"}) {
    const double without = std::string_view{platform} == "h100-sxm5-80gb" ? 0.63 : 1;
    // Large tiles alone lose up to a fourth to the best ones.
    EXPECT_NEAR(us_of(platform, patches(3, 16)) * without / us_of(platform, patches(32, 16)), 1, 0.25)
        << platform;
  }
  EXPECT_LT(us_of("mi300x", patches(3, 16)), 0.6 * us_of("mi300x", patches(32, 16)));
}

// PyTorch 2.11 on an H100 80GB SXM, bf16, the medians of three: patches of images of 224 x 224, whose products have 42, 196 and 294
// tiles of 128 x 128 for 132 SMs: one, two and three waves, however full.
TEST(DeviceTime, ConvolvesFewChannelsInWholeWavesOfLargeTiles) {
  const auto us = [](std::int64_t batch, std::int64_t out, std::int64_t size) {
    SeenKernels kernel;
    kernel.add(implementation_of("cutlass_tensorop_bf16_s16816fprop_optimized_bf16_128x128_32x5_nhwc_align8"),
               100, 1);
    return us_of("h100-sxm5-80gb",
                 {ConvolutionShape{.batch = batch,
                                   .in_channels = 3,
                                   .out_channels = out,
                                   .height = 224,
                                   .width = 224,
                                   .kernel_height = size,
                                   .kernel_width = size,
                                   .stride = size},
                  DType::bf16, Direction::forward},
                 kernel);
  };
  EXPECT_NEAR(us(4, 768, 16), 81.7, 0.12 * 81.7);
  EXPECT_NEAR(us(32, 512, 16), 153.2, 0.12 * 153.2);
  EXPECT_NEAR(us(32, 768, 16), 231.8, 0.12 * 231.8);
  EXPECT_NEAR(us(1, 1024, 14), 61.5, 0.12 * 61.5);
  EXPECT_NEAR(us(8, 768, 32), 314.2, 0.12 * 314.2);
}

// The same machine: cuDNN's nchwToNhwc of an image and of weights, whole pieces of 32 channels and 32 pixels or taps.
TEST(DeviceTime, CopiesWholePiecesBetweenLayouts) {
  const auto copies = [](std::int64_t batch, std::int64_t channels, std::int64_t out, std::int64_t image,
                         std::int64_t size) {
    const Operation convolution{ConvolutionShape{.batch = batch,
                                                 .in_channels = channels,
                                                 .out_channels = out,
                                                 .height = image,
                                                 .width = image,
                                                 .kernel_height = size,
                                                 .kernel_width = size,
                                                 .stride = 2},
                                DType::bf16, Direction::forward};
    SeenKernels kernels;
    kernels.add(KernelImplementation::tuned_convolution, 100, 1);
    const double without = us_of("h100-sxm5-80gb", convolution, kernels);
    kernels.add(KernelImplementation::to_channels_last, 10, 0);
    kernels.add(KernelImplementation::to_channels_last, 10, 0);
    return us_of("h100-sxm5-80gb", convolution, kernels) - without;
  };
  EXPECT_NEAR(copies(32, 3, 768, 224, 16), 69.6 + 10.3, 0.1 * 79.9);
  EXPECT_NEAR(copies(8, 3, 768, 224, 32), 17.9 + 33.5, 0.15 * 51.4);
  EXPECT_NEAR(copies(32, 320, 320, 64, 3), 75.3 + 6.9, 0.2 * 82.2);
}

// The same machine, sums of tensors of which one was written by the kernel before: start and memory.
// Copies to the layout of matrix units, and back, of the convolutions that a ResNet-50 has: three by three, of one tap with a stride, and
// of one tap on 56 x 56, 14 x 14 and 7 x 7 pixels, whose rows of bf16 are whole pieces, come in pieces of 4 bytes, and in odd elements.
TEST(UsualKernels, CopiesBetweenLayoutsWhereAConvolutionIsNoProductOfItsTensors) {
  using Seen = KernelImplementation;
  const auto copies = [](std::int64_t size, std::int64_t taps, std::int64_t stride, Direction direction) {
    const ConvolutionShape shape{.batch = 8,
                                 .in_channels = 64,
                                 .out_channels = 64,
                                 .height = size,
                                 .width = size,
                                 .kernel_height = taps,
                                 .kernel_width = taps,
                                 .stride = stride,
                                 .padding = taps / 2};
    const SeenKernels usual = usual_kernels({shape, DType::bf16, direction}, false, true);
    return std::pair{usual.per_operation(Seen::to_channels_last),
                     usual.per_operation(Seen::to_channels_first)};
  };
  using Copies = std::pair<double, double>;
  EXPECT_EQ(copies(56, 3, 1, Direction::forward), Copies(2, 1));
  EXPECT_EQ(copies(56, 3, 1, Direction::backward), Copies(4, 2));
  EXPECT_EQ(copies(56, 3, 1, Direction::weight_gradient), Copies(2, 1));
  EXPECT_EQ(copies(56, 1, 2, Direction::forward), Copies(1, 1));
  EXPECT_EQ(copies(56, 1, 2, Direction::backward), Copies(3, 1));
  EXPECT_EQ(copies(56, 1, 1, Direction::backward), Copies(0, 0));
  EXPECT_EQ(copies(14, 1, 1, Direction::forward), Copies(0, 0));
  EXPECT_EQ(copies(14, 1, 1, Direction::backward), Copies(2, 0));
  EXPECT_EQ(copies(7, 1, 1, Direction::forward), Copies(1, 1));
  EXPECT_EQ(copies(7, 1, 1, Direction::backward), Copies(3, 1));
}

TEST(DeviceTime, StartsElementwiseKernelsAsTheGenerationDoes) {
  const auto us = [](std::int64_t elements) {
    return us_of(
        "h100-sxm5-80gb",
        elementwise({.function = ElementwiseFunction::add, .elements = elements, .reads = 2}, DType::bf16));
  };
  EXPECT_NEAR(us(16384), 1.54, 0.2 * 1.54);  // between two events it is as long as in a trace within 0.3 us
  EXPECT_NEAR(us(605184), 2.81, 0.15 * 2.81);
  EXPECT_NEAR(us(2420736), 5.28, 0.15 * 5.28);
}

// One row for each index is a copy, not a lookup of bags: the shortest kernel and its bytes.
TEST(DeviceTime, GathersOfRowsAreCopies) {
  const Operation words{LookupShape{.dim = 512, .bags = 141}, DType::bf16, Direction::forward};
  SeenKernels seen;
  seen.add(implementation_of("void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16>"),
           3.4, 1);
  EXPECT_NEAR(us_of("h100-sxm5-80gb", words, seen), 2.5, 0.3);
  // As the lookup that it also is: data/measured has 3.5 us of 189 rows of 256, between events.
  EXPECT_NEAR(us_of("h100-sxm5-80gb", words), 2.3, 1.2);
}

// PyTorch's default from Ampere on. Kernels that were seen decide otherwise; a V100 has no such units.
TEST(DeviceTime, ConvolvesOnTf32UnitsByDefault) {
  const ConvolutionShape shape{.batch = 128,
                               .in_channels = 256,
                               .out_channels = 256,
                               .height = 56,
                               .width = 56,
                               .kernel_height = 3,
                               .kernel_width = 3,
                               .padding = 1};
  SeenKernels fp32;
  fp32.add(implementation_of("ampere_scudnn_128x64_relu_xregs_large_nn_v1"), 1000, 1);
  const auto us = [&](const char* name, DType dtype, const SeenKernels& seen) {
    const Platform platform = load(name);
    TrainingKernels kernels{platform};
    const Operation operation{shape, dtype, Direction::forward};
    return DeviceTime{kernels.model(), platform.device}
        .of(operation, kernels.price(operation), seen)
        .time.value();
  };
  EXPECT_EQ(us("dgx-a100", DType::fp32, {}), us("dgx-a100", DType::tf32, {}));
  EXPECT_GT(us("dgx-a100", DType::fp32, fp32), 2 * us("dgx-a100", DType::fp32, {}));
  EXPECT_EQ(us("dgx-a100", DType::fp32, fp32.without_convolutions()), us("dgx-a100", DType::fp32, {}));
  EXPECT_GT(us("dgx-1-v100-32gb", DType::fp32, {}), 2 * us("dgx-a100", DType::fp32, {}));
}

// No step where launches stop to count: times grow with the work.
// ResNet-50 in fp32 without TF32 reaches 28 TFLOP/s in its convolutions on an H100 (data/measured), of 67.
TEST(DeviceTime, ConvolvesWithoutTf32AtHalfTheLanes) {
  const ConvolutionShape shape{.batch = 128,
                               .in_channels = 128,
                               .out_channels = 128,
                               .height = 28,
                               .width = 28,
                               .kernel_height = 3,
                               .kernel_width = 3,
                               .padding = 1};
  SeenKernels as_asked;
  as_asked.add(KernelImplementation::other, 0, 1);
  const double us = us_of("h100-sxm5-80gb", {shape, DType::fp32, Direction::forward}, as_asked);
  const double flops = 2.0 * 128 * 28 * 28 * 128 * 128 * 9;
  EXPECT_NEAR(flops / us * 1e-6, 0.44 * 66.9, 2);
  EXPECT_LT(us_of("h100-sxm5-80gb", {shape, DType::tf32, Direction::forward}, as_asked), us / 2);
}

TEST(DeviceTime, GrowsWithTheWork) {
  const Platform platform = load("dgx-1-v100-32gb");
  TrainingKernels kernels{platform};
  DeviceTime device{kernels.model(), platform.device};
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
}  // namespace stepcast::device_time_test
