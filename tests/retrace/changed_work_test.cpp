#include "stepcast/retrace/changed_work.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/cost/device_time.h"
#include "stepcast/platform/platform_file.h"

#include "tests/support/fails_with.h"

namespace stepcast::changed_work_test {
namespace {

using ::testing::HasSubstr;

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

// One stream of a rank of four, task by task.
class GpuStream {
 public:
  GpuStream() : block_("rank 0") {
    lane_ = block_.add_lane({LaneKind::gpu_stream, "stream 7", 7});
    all_ = recorded_.program.add_group({"all", {0, 1, 2, 3}});
    RecordedFileFacts file;
    file.world_size = 4;
    recorded_.files.push_back(file);
  }
  // Launched inside this operator; returns the number of the task.
  std::uint32_t add(const char* op, const TaskWork& work, double us) {
    TaskInfo info{.kind = TaskKind::kernel,
                  .name = recorded_.program.names.intern(op),
                  .stack = recorded_.program.stacks.push(StackId{}, recorded_.program.names.intern(op)),
                  .work = recorded_.program.works.intern(work)};
    if (const auto* operation = std::get_if<Operation>(&work))
      info.kernel_class = kernel_class_of(*operation);
    if (std::holds_alternative<CollectiveWork>(work)) info.kernel_class = KernelClass::communication;
    return block_.add_task(lane_, info, Microseconds{us}).index();
  }
  [[nodiscard]] GroupId all() const { return all_; }
  const RecordedProgram& finish() {
    const BlockId id = recorded_.program.add_block(value_of(std::move(block_).finish()));
    RankClass ranks;
    ranks.lanes = {{LaneKind::gpu_stream, "stream 7", 7}};
    recorded_.program.add_instance(recorded_.program.add_rank_class(std::move(ranks)), {.block = id});
    return recorded_;
  }

 private:
  RecordedProgram recorded_;
  BlockBuilder block_;
  LaneId lane_;
  GroupId all_;
};

RecordedPrices as_recorded(const RecordedProgram& recorded) {
  return {Costs{recorded.program}, Costs{recorded.program}, Costs{recorded.program}, {}};
}

class ChangedWorkTest : public ::testing::Test {
 protected:
  Platform platform = value_of(load_platform("dgx-a100"));
  StepPricer prices{platform, {}};
  double time_of(const Operation& operation) {
    DeviceTime device{prices.kernels().model(), prices.platform().device};
    return device.of(operation, prices.kernels().price(operation)).time.value();
  }
  double over(const Operation& now, const Operation& before) { return time_of(now) / time_of(before); }
  std::vector<double> applied(const RecordedProgram& recorded, const WorkChange& change) {
    const ChangedWork changed = value_of(changed_work(recorded, change));
    RecordedPrices priced = as_recorded(recorded);
    const Status done = changed.apply(recorded, prices, 8, 8, priced);
    EXPECT_TRUE(done.ok()) << done.error().message();
    const auto us = priced.costs.duration_us(BlockId{std::size_t{0}});
    return {us.begin(), us.end()};
  }
};

// A layer of 4096 x 1024 weights at 512 tokens (32 samples of 16), 32 -> 64 samples. Its forward product and the
// gradient of its input have the tokens as rows, the gradient of its weight sums over them: the three grow alike to
// 1024 tokens. What is as large as the weight, what the optimizer does and the all-reduce of gradients stay.
TEST_F(ChangedWorkTest, BatchGrowsWhereTheShapesHoldIt) {
  GpuStream stream;
  const auto product = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return gemm({.m = m, .n = n, .k = k}, DType::fp32);
  };
  const auto relu = [](std::int64_t elements) {
    return elementwise({.function = ElementwiseFunction::relu, .elements = elements}, DType::fp32);
  };
  const std::uint32_t forward = stream.add("aten::linear", product(512, 4096, 1024), 100);
  const std::uint32_t activation = stream.add("aten::relu", relu(512 * 4096), 10);
  const char* engine = "autograd::engine::evaluate_function: AddmmBackward0";
  const std::uint32_t of_input = stream.add(engine, product(512, 1024, 4096), 110);
  const std::uint32_t of_weight = stream.add(engine, product(4096, 1024, 512), 120);
  const std::uint32_t sized_as_weight = stream.add(engine, relu(4096 * 1024), 30);
  const std::uint32_t step = stream.add("Optimizer.step#SGD.step", relu(512 * 1024), 40);
  const std::uint32_t gradients = stream.add(
      engine, CollectiveWork{CollectiveOp::all_reduce, DType::fp32, Bytes{4.0 * 4096 * 1024}, stream.all()},
      200);
  const std::uint32_t unknown = stream.add("triton_kernel", std::monostate{}, 7);
  const RecordedProgram& recorded = stream.finish();
  const std::vector<double> us = applied(recorded, {.batch = {{32, 64}}});
  const auto grown = [&](double was, const Operation& now, const Operation& before) {
    return was * std::clamp(over(now, before), 1.0, 2.0);  // no faster than the work
  };
  EXPECT_NEAR(us[forward], grown(100, product(1024, 4096, 1024), product(512, 4096, 1024)), 1e-9);
  EXPECT_NEAR(us[activation], grown(10, relu(1024 * 4096), relu(512 * 4096)), 1e-9);
  EXPECT_NEAR(us[of_input], grown(110, product(1024, 1024, 4096), product(512, 1024, 4096)), 1e-9);
  EXPECT_NEAR(us[of_weight], grown(120, product(4096, 1024, 1024), product(4096, 1024, 512)), 1e-9);
  EXPECT_GT(us[forward], 130) << "twice the work";
  EXPECT_DOUBLE_EQ(us[sized_as_weight], 30);
  EXPECT_DOUBLE_EQ(us[step], 40);
  EXPECT_DOUBLE_EQ(us[gradients], 200);
  EXPECT_DOUBLE_EQ(us[unknown], 14) << "in proportion";
}

TEST_F(ChangedWorkTest, FindsTheRecordedBatchOrSaysThatItCannot) {
  GpuStream stream;
  ConvolutionShape convolution{.batch = 48,
                               .in_channels = 3,
                               .out_channels = 64,
                               .height = 32,
                               .width = 32,
                               .kernel_height = 3,
                               .kernel_width = 3};
  stream.add("aten::conv2d", Operation{convolution, DType::fp32}, 50);
  stream.add("aten::linear", gemm({.m = 96, .n = 10, .k = 64}, DType::fp32), 5);
  const RecordedProgram& recorded = stream.finish();
  EXPECT_EQ(batch_of(recorded), 48) << "convolutions before products";
  EXPECT_THAT(value_of(changed_work(recorded, {.batch = {{0, 96}}})).notes().front(),
              HasSubstr("the recorded batch counts as 48 per rank"));
  EXPECT_THAT(changed_work(recorded, {.batch = {{37, 64}}}),
              test::FailsWith("the batch cannot scale: hardly any extent"));
  GpuStream without;
  without.add("triton_kernel", std::monostate{}, 50);
  EXPECT_THAT(changed_work(without.finish(), {.batch = {{0, 64}}}),
              test::FailsWith("the batch cannot scale: no operation of the traces shows"));
}

// Products take the new type, and with bf16 what is elementwise; the optimizer and the norm keep theirs.
TEST_F(ChangedWorkTest, TypesChangeAsUnderMixedPrecision) {
  GpuStream stream;
  const Operation product = gemm({.m = 4096, .n = 4096, .k = 4096}, DType::fp32);
  const Operation gelu =
      elementwise({.function = ElementwiseFunction::gelu, .elements = 1 << 24}, DType::fp32);
  const std::uint32_t p = stream.add("aten::linear", product, 1000);
  const std::uint32_t g = stream.add("aten::gelu", gelu, 100);
  const std::uint32_t o = stream.add("Optimizer.step#AdamW.step", gelu, 100);
  const std::uint32_t n =
      stream.add("aten::layer_norm", norm({NormKind::layer_norm, 4096, 4096}, DType::fp32), 100);
  const RecordedProgram& recorded = stream.finish();
  const std::vector<double> bf16 = applied(recorded, {.dtype = DType::bf16});
  Operation fast = product, half = gelu;
  fast.dtype = half.dtype = DType::bf16;
  EXPECT_NEAR(bf16[p], time_of(fast), 1e-9)
      << "another kernel: how far the model was off the recorded one says nothing";
  EXPECT_NEAR(bf16[g], 100 * over(half, gelu), 1e-9);
  EXPECT_DOUBLE_EQ(bf16[o], 100);
  EXPECT_DOUBLE_EQ(bf16[n], 100);
  fast.dtype = DType::tf32;
  const std::vector<double> tf32 = applied(recorded, {.dtype = DType::tf32});
  EXPECT_NEAR(tf32[p], time_of(fast), 1e-9);
  EXPECT_DOUBLE_EQ(tf32[g], 100) << "no units of that type";
  EXPECT_THAT(changed_work(recorded, {.dtype = DType::fp32}),
              test::FailsWith("no product of the traces would run in fp32"));
  const Platform v100 = value_of(load_platform("dgx-1-v100-32gb"));
  StepPricer old{v100, {}};
  RecordedPrices priced = as_recorded(recorded);
  EXPECT_THAT(value_of(changed_work(recorded, {.dtype = DType::bf16})).apply(recorded, old, 8, 8, priced),
              test::FailsWith("states no rate for GEMMs in bf16"));
}

// Recorded in bf16: what autocast cast, and what it kept in 16 bits, is fp32 then. fp32 is no TF32.
TEST_F(ChangedWorkTest, ToFp32NothingKeeps16Bits) {
  GpuStream stream;
  const Operation product = gemm({.m = 4096, .n = 4096, .k = 4096}, DType::bf16);
  const Operation rms = norm({NormKind::rms_norm, 4096, 4096}, DType::bf16);
  const Operation wide = norm({NormKind::layer_norm, 4096, 4096}, DType::fp32);
  const Operation cast =
      elementwise({.function = ElementwiseFunction::cast, .elements = 1 << 24, .reads = 2}, DType::bf16);
  const Operation convolution{ConvolutionShape{.batch = 64,
                                               .in_channels = 256,
                                               .out_channels = 256,
                                               .height = 28,
                                               .width = 28,
                                               .kernel_height = 3,
                                               .kernel_width = 3,
                                               .padding = 1},
                              DType::bf16};
  const std::uint32_t p = stream.add("aten::linear", product, 1000);
  const std::uint32_t n = stream.add("aten::rms_norm", rms, 100);
  const std::uint32_t l = stream.add("aten::layer_norm", wide, 100);
  const std::uint32_t c = stream.add("aten::to", cast, 100);
  const std::uint32_t v = stream.add("aten::conv2d", convolution, 100);
  const RecordedProgram& recorded = stream.finish();
  const std::vector<double> fp32 = applied(recorded, {.dtype = DType::fp32});
  const std::vector<double> tf32 = applied(recorded, {.dtype = DType::tf32});
  EXPECT_GT(fp32[p], 2 * 4096.0 * 4096 * 4096 / 19.5e6) << "the peak without matrix units";
  EXPECT_GT(fp32[p], 3 * tf32[p]);
  EXPECT_GT(fp32[v], 1.5 * tf32[v]) << "Winograd takes fewer FLOPs";
  for (const std::vector<double>* us : {&fp32, &tf32}) {
    EXPECT_NEAR((*us)[n], 200, 20) << "twice the bytes";
    EXPECT_DOUBLE_EQ((*us)[l], 100);
    EXPECT_DOUBLE_EQ((*us)[c], 0) << "nothing to cast";
  }
}

// Rows of products are tokens where a norm says that there are any: no batch.
TEST_F(ChangedWorkTest, TokensAreNoBatch) {
  GpuStream stream;
  stream.add("aten::linear", gemm({.m = 8192, .n = 4096, .k = 1024}, DType::bf16), 100);
  stream.add("aten::layer_norm", norm({NormKind::layer_norm, 8192, 1024}, DType::bf16), 10);
  const RecordedProgram& recorded = stream.finish();
  EXPECT_EQ(batch_of(recorded), std::nullopt);
  EXPECT_THAT(changed_work(recorded, {.batch = {{0, 16}}}), test::FailsWith("--recorded-batch"));
  EXPECT_TRUE(changed_work(recorded, {.batch = {{8, 16}}}).ok());
  GpuStream recommendation;
  recommendation.add("aten::linear", gemm({.m = 8192, .n = 4096, .k = 1024}, DType::bf16), 100);
  recommendation.add("aten::layer_norm", norm({NormKind::layer_norm, 8192, 1024}, DType::bf16), 10);
  recommendation.add("aten::embedding_bag", std::monostate{}, 10);
  EXPECT_EQ(batch_of(recommendation.finish()), 8192) << "bags are of samples";
}

// All four ranks reduce their gradients: 8 of a node, 16 of two; a group of two ranks keeps its time.
TEST_F(ChangedWorkTest, MoreDataParallelRanksJoinWhatAllShare) {
  GpuStream stream;
  const Bytes message{64.0 * 1024 * 1024};
  const std::uint32_t all = stream.add(
      "nccl:all_reduce", CollectiveWork{CollectiveOp::all_reduce, DType::fp32, message, stream.all()}, 1000);
  const RecordedProgram& recorded = stream.finish();
  const auto time_on = [&](std::int64_t n) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t r = 0; r < n; ++r) ranks.push_back(r);
    const RankSpan group{ranks};
    return value_of(prices.price(CollectiveOp::all_reduce, message, place_ranks(group, 8, {&group, 1})))
        .time.value();
  };
  EXPECT_NEAR(applied(recorded, {.data_parallel_ranks = 8})[all], 1000 * time_on(8) / time_on(4), 1e-9);
  const double over_nodes = applied(recorded, {.data_parallel_ranks = 16})[all];
  EXPECT_NEAR(over_nodes, 1000 * time_on(16) / time_on(4), 1e-9);
  EXPECT_GT(over_nodes, 1000 * time_on(8) / time_on(4)) << "the network is slower";
  EXPECT_DOUBLE_EQ(applied(recorded, {.data_parallel_ranks = 1})[all], 0) << "nobody to talk to";
  GpuStream alone;
  alone.add("aten::linear", gemm({.m = 8, .n = 8, .k = 8}, DType::fp32), 5);
  EXPECT_THAT(changed_work(alone.finish(), {.data_parallel_ranks = 8}),
              test::FailsWith("hold no transfer among all of their ranks"));
}

}  // namespace
}  // namespace stepcast::changed_work_test
