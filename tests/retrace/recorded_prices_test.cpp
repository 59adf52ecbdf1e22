#include "stepcast/retrace/recorded_prices.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

namespace stepcast::recorded_prices_test {
namespace {

using literals::operator""_us;
using ::testing::HasSubstr;

const Platform& platform(const std::string& name) {
  static std::map<std::string, Platform> loaded;
  const auto found = loaded.find(name);
  if (found != loaded.end()) return found->second;
  Result<Platform> read = load_platform(name);
  if (!read.ok()) throw std::runtime_error(read.error().message());
  return loaded.emplace(name, std::move(*read)).first->second;
}

// A stream with a product (100 us), a kernel that nobody knows (50 us) and a sum (1 us).
RecordedProgram recorded() {
  RecordedProgram out;
  BlockBuilder block{"rank"};
  const LaneId gpu = block.add_lane({LaneKind::gpu_stream, "stream 7"});
  block.add_task(gpu,
                 {.kind = TaskKind::kernel,
                  .kernel_class = KernelClass::gemm,
                  .name = out.program.names.intern("sgemm"),
                  .work = out.program.works.intern(gemm({.m = 8192, .n = 8192, .k = 8192}, DType::bf16))},
                 100_us);
  block.add_task(gpu,
                 {.kind = TaskKind::kernel,
                  .kernel_class = KernelClass::elementwise,
                  .name = out.program.names.intern("triton_poi_fused_7")},
                 50_us);
  block.add_task(gpu,
                 {.kind = TaskKind::kernel,
                  .kernel_class = KernelClass::elementwise,
                  .name = out.program.names.intern("add"),
                  .work = out.program.works.intern(elementwise(
                      {.function = ElementwiseFunction::add, .elements = 16, .reads = 2}, DType::fp32))},
                 1_us);
  Result<Block> done = std::move(block).finish();
  if (!done.ok()) throw std::runtime_error(done.error().message());
  const BlockId id = out.program.add_block(std::move(*done));
  RankClass ranks;
  ranks.lanes = {{LaneKind::gpu_stream, "stream 7"}};
  out.program.add_instance(out.program.add_rank_class(std::move(ranks)), {.block = id});
  return out;
}

double duration(const Costs& costs, std::size_t task) {
  return costs.duration_us(BlockId{std::size_t{0}})[task];
}

TEST(PriceRecorded, KeepsRecordedTimesAndAppliesWhatIfs) {
  const RecordedProgram program = recorded();
  RecordedPricing how;
  how.assumptions.gemm_factor = 0.5;
  how.assumptions.memory_bound_factor = 2;
  const Result<RecordedPrices> prices = price_recorded(program, how);
  ASSERT_TRUE(prices.ok()) << prices.error().message();
  EXPECT_EQ(duration(prices->costs, 0), 50);
  EXPECT_EQ(duration(prices->costs, 1), 100);
  EXPECT_EQ(duration(prices->costs, 2), 2);
  EXPECT_EQ(duration(prices->low, 0), 50);
  EXPECT_EQ(prices->coverage.gpu_share(EstimateSource::measured), 1);
}

TEST(PriceRecorded, MovesByTheRatioOfTheModels) {
  const RecordedProgram program = recorded();
  StepPricer a100{platform("dgx-a100"), {}}, h100{platform("dgx-h100"), {}};
  const Result<RecordedPrices> same =
      price_recorded(program, {.kernels = KernelTimeSource::ratio, .target = &a100, .origin = &a100});
  ASSERT_TRUE(same.ok()) << same.error().message();
  EXPECT_EQ(duration(same->costs, 0), 100) << "the GPU that recorded";
  EXPECT_EQ(duration(same->costs, 1), 50);
  EXPECT_EQ(same->coverage.gpu_share(EstimateSource::measured), 1) << "nothing is taken from the models";
  EXPECT_EQ(duration(same->high, 0), 100);

  const Result<RecordedPrices> moved =
      price_recorded(program, {.kernels = KernelTimeSource::ratio, .target = &h100, .origin = &a100});
  ASSERT_TRUE(moved.ok()) << moved.error().message();
  const Operation product = gemm({.m = 8192, .n = 8192, .k = 8192}, DType::bf16);
  const double ratio = h100.price(product).time / a100.price(product).time;
  EXPECT_LT(ratio, 0.6);
  // But for the start of a product, 2 us on either of thousands.
  EXPECT_NEAR(duration(moved->costs, 0), 100 * ratio, 0.1);
  EXPECT_LT(duration(moved->low, 0), duration(moved->costs, 0));
  EXPECT_GT(duration(moved->high, 0), duration(moved->costs, 0));
  // Nobody knows the other kernel: it moves with the memory bandwidth, 2.04 to 3.35 TB/s, and is named.
  const double bandwidth =
      platform("dgx-a100").device.memory_bandwidth / platform("dgx-h100").device.memory_bandwidth;
  EXPECT_NEAR(duration(moved->costs, 1), 50 * bandwidth, 1e-9);
  EXPECT_NEAR(duration(moved->high, 1), 75 * bandwidth, 1e-9);
  ASSERT_EQ(moved->coverage.unmodelled.size(), 1U);
  EXPECT_EQ(moved->coverage.unmodelled[0].name, "triton_poi_fused_7");
  EXPECT_EQ(moved->coverage.unmodelled[0].why, "no operation is known");
  EXPECT_GT(moved->coverage.gpu_share(EstimateSource::assumed), 0);
}

// How far a kernel is from its model stays with it between GPUs of one vendor; to another vendor half of it goes (as a
// logarithm): the library there has algorithms of its own.
TEST(PriceRecorded, MovesHalfOfTheDistanceToAnotherVendor) {
  const RecordedProgram program = recorded();
  StepPricer h100{platform("dgx-h100"), {}}, mi300x{platform("8xmi300x"), {}};
  const auto priced = [&](KernelTimeSource kernels) {
    Result<RecordedPrices> prices =
        price_recorded(program, {.kernels = kernels, .target = &mi300x, .origin = &h100});
    if (!prices.ok()) throw std::runtime_error(prices.error().message());
    return duration(prices->costs, 0);
  };
  Result<RecordedPrices> on_h100 =
      price_recorded(program, {.kernels = KernelTimeSource::models, .target = &h100, .origin = &h100});
  ASSERT_TRUE(on_h100.ok());
  const double distance = 100 / duration(on_h100->costs, 0);
  EXPECT_LT(distance, 0.5) << "a product of 1.1 TFLOP in 100 us is none that was ever seen";
  // But for what the shortest kernel takes.
  EXPECT_NEAR(priced(KernelTimeSource::ratio), priced(KernelTimeSource::models) * std::sqrt(distance), 3);
}

// A capture of one kernel.
RecordedProgram one_kernel(const Operation& operation, KernelClass kernel_class, const char* name,
                           Microseconds took) {
  RecordedProgram out;
  BlockBuilder block{"rank"};
  const LaneId gpu = block.add_lane({LaneKind::gpu_stream, "stream 7"});
  block.add_task(gpu,
                 {.kind = TaskKind::kernel,
                  .kernel_class = kernel_class,
                  .name = out.program.names.intern(name),
                  .work = out.program.works.intern(operation)},
                 took);
  const BlockId id = out.program.add_block(*std::move(block).finish());
  RankClass ranks;
  ranks.lanes = {{LaneKind::gpu_stream, "stream 7"}};
  out.program.add_instance(out.program.add_rank_class(std::move(ranks)), {.block = id});
  return out;
}

// The bytes of rows that are fetched at random move with the bandwidth as far as they bind, which the recorded time says: on an H200,
// whose memory is 1.43 times as fast, what takes ten times as long as its bytes is latency.
TEST(PriceRecorded, RowsFetchedAtRandomGainOfMoreBandwidthWhatTheirBytesTake) {
  StepPricer h100{platform("dgx-h100"), {}}, h200{platform("dgx-h200"), {}};
  const Operation lookup{LookupShape{.rows = 1'000'000, .dim = 128, .bags = 2048, .pooling = 32},
                         DType::fp32};
  // 65,536 rows of 512 bytes, 2,048 written, and 8 bytes of each index: 35.1 MB.
  const double bytes_us = 35.1e6 / h100.platform().device.memory_bandwidth.value() * 1e6;
  const auto ratio_of = [&](double took_us) {
    const RecordedProgram program = one_kernel(
        lookup, KernelClass::embedding, "EmbeddingBag_updateOutputKernel_sum_mean", Microseconds{took_us});
    const Result<RecordedPrices> prices =
        price_recorded(program, {.kernels = KernelTimeSource::ratio, .target = &h200, .origin = &h100});
    EXPECT_TRUE(prices.ok());
    EXPECT_LT(duration(prices->low, 0), duration(prices->costs, 0));
    EXPECT_GT(duration(prices->high, 0), duration(prices->costs, 0));
    return duration(prices->costs, 0) / took_us;
  };
  const double bandwidths = h100.platform().device.memory_bandwidth / h200.platform().device.memory_bandwidth;
  EXPECT_NEAR(ratio_of(10 * bytes_us), 1, 0.03);
  EXPECT_GT(ratio_of(2 * bytes_us), bandwidths + 0.1);
  // But for what every kernel starts with.
  EXPECT_NEAR(ratio_of(bytes_us), bandwidths, 0.08);
}

// Made pairs of captures, one cause each: what an H100 loses by it is no distance from its model, and does not move to a GPU whose
// library does not lose it.
class MadePairs : public ::testing::Test {
 protected:
  double on(StepPricer& target, KernelTimeSource kernels, const RecordedProgram& program) {
    Result<RecordedPrices> prices =
        price_recorded(program, {.kernels = kernels, .target = &target, .origin = &h100});
    if (!prices.ok()) throw std::runtime_error(prices.error().message());
    return duration(prices->costs, 0);
  }
  void expect_that_nothing_moves(const Operation& operation, KernelClass kernel_class, const char* name,
                                 double took, double within = 0.05) {
    const RecordedProgram program = one_kernel(operation, kernel_class, name, Microseconds{took});
    const double there = on(mi300x, KernelTimeSource::models, program);
    EXPECT_NEAR(on(mi300x, KernelTimeSource::ratio, program), there, within * there) << name;
  }
  double modelled(const Operation& operation, KernelClass kernel_class, const char* name) {
    return on(h100, KernelTimeSource::models, one_kernel(operation, kernel_class, name, 1_us));
  }
  StepPricer h100{platform("dgx-h100"), {}}, mi300x{platform("8xmi300x"), {}};
};

TEST_F(MadePairs, OddExtents) {
  const auto head = [](std::int64_t words) { return gemm({.m = 512, .n = words, .k = 1024}, DType::bf16); };
  const double even = modelled(head(50264), KernelClass::gemm, "sm90_xmma_gemm");
  // A fifth as fast, but for its launch: 50,257 words, in pieces of two bytes.
  expect_that_nothing_moves(head(50257), KernelClass::gemm, "x<cutlass_75_tensorop_bf16_align1>", 5.2 * even);
}

TEST_F(MadePairs, OtherLaunches) {
  const Operation sum =
      elementwise({.function = ElementwiseFunction::add, .elements = 1024, .reads = 2}, DType::bf16);
  const auto moved = [&](Microseconds took) {
    return on(mi300x, KernelTimeSource::ratio, one_kernel(sum, KernelClass::elementwise, "add", took));
  };
  // As its model has it, and as short as kernels behind each other are.
  EXPECT_NEAR(moved(1.5_us), moved(2.5_us), 0.05 * moved(2.5_us));
}

// Channels padded to a step, and whole waves of tiles: a convolution of few channels takes one, two or three waves on 132 SMs,
// however full the last is. Times as
// measured on an H100 80GB SXM (PyTorch 2.11).
TEST_F(MadePairs, OtherWaves) {
  const auto patches = [](std::int64_t batch, std::int64_t out) {
    return Operation{ConvolutionShape{.batch = batch,
                                      .in_channels = 3,
                                      .out_channels = out,
                                      .height = 224,
                                      .width = 224,
                                      .kernel_height = 16,
                                      .kernel_width = 16,
                                      .stride = 16},
                     DType::bf16, Direction::forward};
  };
  const char* const name = "cutlass_tensorop_bf16_s16816fprop_optimized_bf16_128x128_32x5_nhwc_align8";
  expect_that_nothing_moves(patches(4, 768), KernelClass::gemm, name, 81.7);    // 42 tiles
  expect_that_nothing_moves(patches(8, 768), KernelClass::gemm, name, 82.9);    // 78
  expect_that_nothing_moves(patches(32, 512), KernelClass::gemm, name, 153.2);  // 196
  expect_that_nothing_moves(patches(32, 768), KernelClass::gemm, name, 231.8);  // 294
}

// Element-wise kernels that eager execution leaves apart: each has its start and its memory on either GPU. The same machine.
TEST_F(MadePairs, OtherFusion) {
  const auto kernel = [](ElementwiseFunction function, std::int64_t elements, float reads) {
    return elementwise({.function = function, .elements = elements, .reads = reads}, DType::bf16);
  };
  const char* const name = "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add>";
  const auto add = ElementwiseFunction::add, gelu = ElementwiseFunction::gelu;
  // The records of the H100 are of caches that were flushed: a few microseconds come out somewhat longer than in this trace.
  expect_that_nothing_moves(kernel(add, 2420736, 2), KernelClass::elementwise, name, 5.28, 0.07);
  expect_that_nothing_moves(kernel(gelu, 2420736, 1), KernelClass::elementwise, name, 4.16, 0.07);
}

// Two classes of the same band err apart: their sum lies within 1 / sqrt(2) of it.
TEST(PriceRecorded, ClassesErrApart) {
  const BandShares one = shares_together(std::vector<ClassBand>{{10, 8, 13}});
  EXPECT_DOUBLE_EQ(one.low, 1);
  EXPECT_DOUBLE_EQ(one.high, 1);
  const BandShares two = shares_together(std::vector<ClassBand>{{10, 8, 13}, {20, 18, 23}});
  EXPECT_DOUBLE_EQ(two.low, std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(two.high, std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(shares_together({}).low, 1);
  // By the ratio of two GPUs they err half together.
  const BandShares ratio =
      shares_together(std::vector<ClassBand>{{10, 8, 13}, {20, 18, 23}}, KernelTimeSource::ratio);
  EXPECT_DOUBLE_EQ(ratio.low, std::sqrt(0.75));
  EXPECT_DOUBLE_EQ(shares_together({}, KernelTimeSource::ratio).high, 1);
}

// NCCL kernels of old profilers say nothing of their message: they move with the links, not with the memory.
TEST(PriceRecorded, TransfersOfUnknownMessagesMoveWithTheLinks) {
  RecordedProgram program;
  BlockBuilder block{"rank"};
  const LaneId gpu = block.add_lane({LaneKind::gpu_stream, "stream 14"});
  block.add_task(gpu,
                 {.kind = TaskKind::kernel,
                  .kernel_class = KernelClass::communication,
                  .name = program.program.names.intern("ncclKernel_AllReduce_RING_LL_Sum_float")},
                 100_us);
  const BlockId id = program.program.add_block(*std::move(block).finish());
  RankClass ranks;
  ranks.lanes = {{LaneKind::gpu_stream, "stream 14"}};
  program.program.add_instance(program.program.add_rank_class(std::move(ranks)), {.block = id});
  StepPricer a100{platform("dgx-a100"), {}}, h100{platform("dgx-h100"), {}};
  const Result<RecordedPrices> moved = price_recorded(program, {.kernels = KernelTimeSource::ratio,
                                                                .target = &h100,
                                                                .origin = &a100,
                                                                .gpus_per_node = 8,
                                                                .origin_gpus_per_node = 8});
  ASSERT_TRUE(moved.ok()) << moved.error().message();
  // A pair of GPUs: the message that takes 100 us on the A100s, found by doubling.
  const std::vector<std::uint32_t> pair{0, 1};
  const std::vector<RankSpan> all{pair};
  const GroupPlacement place = place_ranks(pair, 8, all);
  const auto on = [&](StepPricer& prices, double bytes) {
    return prices.price(CollectiveOp::all_reduce, Bytes{bytes}, place)->time.value();
  };
  double bytes = 1024;
  while (on(a100, bytes) < 100) bytes *= 1.0001;
  const double ratio = on(h100, bytes) / on(a100, bytes);
  EXPECT_LT(ratio, 1);
  EXPECT_NEAR(duration(moved->costs, 0), 100 * ratio, 0.1);
  EXPECT_NEAR(duration(moved->high, 0), 150 * ratio, 0.15);
  ASSERT_EQ(moved->coverage.unmodelled.size(), 1U);
}

TEST(PriceRecorded, TakesModelsAlone) {
  const RecordedProgram program = recorded();
  StepPricer h100{platform("dgx-h100"), {}};
  const Result<RecordedPrices> prices =
      price_recorded(program, {.kernels = KernelTimeSource::models, .target = &h100, .origin = &h100});
  ASSERT_TRUE(prices.ok()) << prices.error().message();
  const Operation product = gemm({.m = 8192, .n = 8192, .k = 8192}, DType::bf16);
  // But for the start of a product, 2 us, and the launch in the record.
  EXPECT_NEAR(duration(prices->costs, 0), h100.price(product).time.value(), 3);
  EXPECT_EQ(duration(prices->costs, 1), 50) << "no model, the same GPU";
  // The host's launch is not in the time of a kernel: 16 elements take microseconds, not tens of them.
  EXPECT_LT(duration(prices->costs, 2), 8);
  EXPECT_GT(duration(prices->costs, 2), 0.5);
}

TEST(PriceRecorded, SaysWhatIsMissing) {
  const RecordedProgram program = recorded();
  StepPricer h100{platform("dgx-h100"), {}};
  const Result<RecordedPrices> no_target = price_recorded(program, {.kernels = KernelTimeSource::models});
  ASSERT_FALSE(no_target.ok());
  EXPECT_THAT(no_target.error().message(), HasSubstr("no platform to price the recorded kernels on"));
  const Result<RecordedPrices> no_origin =
      price_recorded(program, {.kernels = KernelTimeSource::ratio, .target = &h100});
  ASSERT_FALSE(no_origin.ok());
  EXPECT_THAT(no_origin.error().message(), HasSubstr("the GPU that recorded the traces has no platform"));
}

}  // namespace
}  // namespace stepcast::recorded_prices_test
