#include "lab/published_algorithm.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/cost/device_time.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/replay.h"
#include "stepcast/trace/readers.h"

#include "tests/support/fails_with.h"

namespace stepcast::published_algorithm_test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

// What runs before the first "## " label and what a data loader calls does not count.
ExecutionTrace small_trace() {
  return value_of(parse_execution_trace(R"J({"schema": "1.0.1", "pid": 1, "nodes": [
    {"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "rf_id": 0, "parent": 1, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "aten::zeros", "id": 2, "rf_id": 1, "parent": 1, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "## forward ##", "id": 3, "rf_id": 2, "parent": 1, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "enumerate(DataLoader)#Iter.__next__", "id": 4, "rf_id": 3, "parent": 3, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "aten::view", "id": 5, "rf_id": 4, "parent": 4, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "aten::mm", "id": 6, "rf_id": 5, "parent": 3, "inputs": [[1, 5, 0, 1048576, 4, "cuda:0"], [2, 6, 0, 1048576, 4, "cuda:0"]], "input_shapes": [[1024, 1024], [1024, 1024]], "input_types": ["Tensor(float)", "Tensor(float)"],
     "outputs": [[3, 7, 0, 1048576, 4, "cuda:0"]], "output_shapes": [[1024, 1024]], "output_types": ["Tensor(float)"]},
    {"name": "record_param_comms", "id": 7, "rf_id": 6, "parent": 3, "inputs": [[[3, 7, 0, 1048576, 4, "cuda:0"]], 151, 94594108284448, 0, "allreduce", [], []], "input_shapes": [[[1024, 1024]], [], [], [], [], [], []], "input_types": ["GenericList[Tensor(float)]", "Int", "Int", "Int", "String", "GenericList[]", "GenericList[]"],
     "outputs": [[[3, 7, 0, 1048576, 4, "cuda:0"]]], "output_shapes": [[[1024, 1024]]], "output_types": ["GenericList[Tensor(float)]"]},
    {"name": "nccl:all_reduce", "id": 11, "rf_id": 10, "parent": 7, "inputs": [[3, 7, 0, 1048576, 4, "cuda:0"]], "input_shapes": [[1024, 1024]], "input_types": ["Tensor(float)"], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "aten::view", "id": 8, "rf_id": 7, "parent": 3, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "aten::relu", "id": 9, "rf_id": 8, "parent": 3, "inputs": [[3, 7, 0, 1048576, 4, "cuda:0"]], "input_shapes": [[1048576]], "input_types": ["Tensor(float)"], "outputs": [[5, 8, 0, 1048576, 4, "cuda:0"]], "output_shapes": [[1048576]], "output_types": ["Tensor(float)"]},
    {"name": "aten::to", "id": 10, "rf_id": 9, "parent": 3, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []}
  ]})J",
                                        "et_rank0.json"));
}

Platform platform_with_overheads() {
  Platform platform = value_of(load_platform("dgx-1-v100-32gb"));
  platform.overheads = {};
  const auto set = [&](OverheadType type, const std::string& op, double us) {
    OverheadRecord record;
    record.type = type;
    record.op = op;
    record.mean_us = us;
    record.n = 1;
    platform.set(std::move(record));
  };
  set(OverheadType::t1, "", 10);
  set(OverheadType::t4, "cudaLaunchKernel", 4);
  set(OverheadType::t2, "aten::mm", 3);
  set(OverheadType::t3, "aten::mm", 5);
  set(OverheadType::t2, "record_param_comms", 1);
  set(OverheadType::t3, "record_param_comms", 1);
  set(OverheadType::t2, "aten::relu", 2);
  set(OverheadType::t3, "aten::relu", 7);
  set(OverheadType::t5, "aten::to", 6);
  LaunchTable launches;
  for (const char* op : {"aten::mm", "record_param_comms", "aten::relu"})
    launches[op] = {.calls = {"cudaLaunchKernel"}, .mean_calls = 1, .n = 1};
  ModelRecord record;
  record.name = record.kind = kHostLaunchesKind;
  record.parameters = write_launches(launches);
  platform.set(std::move(record));
  return platform;
}

// Rank 1 begins 200 us behind rank 0. On each clock c of its own:
//   mm          T1 10, T2 3: 13; starts at 13 + T4 = 17; T3: c = 22; ends at 17 + (mm + 5)
//   all-reduce  T1, T2: c = 33; starts behind both streams, max(end of mm + 1, 37); T4, T3: c = 38; ends when it
//               has on rank 1
//   view        T1, nothing else is known of it: c = 48
//   relu        T1, T2: c = 60; reads what the all-reduce wrote: max(its end + 1, 64); T4, T3: c = 71
//   aten::to    T1, T5: c = 87, then waits for the first stream
TEST(PublishedAlgorithm, FollowsThePublishedRules) {
  const ExecutionTrace trace = small_trace();
  const std::vector<UntimedRank> ranks{{&trace, 0, 0, 0}, {&trace, 1, 200, 0}};
  const Platform platform = platform_with_overheads();
  StepPricer prices{platform, {}};
  const PublishedTraceStep step =
      value_of(published_step(ranks, value_of(HostOverheads::of(platform)), prices));
  ASSERT_TRUE(step.recorded.program.check().ok()) << step.recorded.program.check().error().message();
  const ReplayScores scores = value_of(score_replay(step.recorded, Costs{step.recorded.program}));

  DeviceTime device{prices.kernels().model(), prices.platform().device};
  const auto kernel_us = [&](const Operation& operation) {
    return device.of(operation, prices.kernels().price(operation)).time.value() + 5;
  };
  double mm = 0, relu = 0;
  for (const TaskInfo& task : step.recorded.program.blocks()[0].tasks()) {
    const Operation* operation = step.recorded.program.works.operation(task.work);
    if (operation == nullptr) continue;
    (std::holds_alternative<GemmShape>(operation->shape) ? mm : relu) = kernel_us(*operation);
  }
  ASSERT_GT(mm, 30) << "so that the all-reduce has to wait for it";
  ASSERT_GT(relu, 5);
  const std::vector<std::uint32_t> members{0, 1};
  const RankSpan group{members};
  const double all_reduce = 5 + value_of(prices.price(CollectiveOp::all_reduce, Bytes{4.0 * 1024 * 1024},
                                                      place_ranks(group, 8, {&group, 1})))
                                    .time.value();
  const double all_reduce_end_1 = 200 + std::max(17 + mm + 1, 37.0) + all_reduce;
  const double relu_end_0 = std::max(all_reduce_end_1 + 1, 64.0) + relu;
  const double relu_end_1 = std::max(all_reduce_end_1 + 1, 200 + 64.0) + relu;
  EXPECT_NEAR(scores.ranks[0].step.simulated_us, std::max(relu_end_0, 87.0), 1e-9);
  EXPECT_NEAR(scores.ranks[1].step.simulated_us, std::max(relu_end_1 - 200, 87.0), 1e-9);
}

TEST(PublishedAlgorithm, LosesKernelsOfOperatorsWithoutLaunches) {
  const ExecutionTrace trace = small_trace();
  const std::vector<UntimedRank> ranks{{&trace, 0, 0, 0}};
  Platform platform = platform_with_overheads();
  ModelRecord none;
  none.name = none.kind = kHostLaunchesKind;
  none.parameters = write_launches({});
  platform.set(std::move(none));
  StepPricer prices{platform, {}};
  const PublishedTraceStep step =
      value_of(published_step(ranks, value_of(HostOverheads::of(platform)), prices));
  const ReplayScores scores = value_of(score_replay(step.recorded, Costs{step.recorded.program}));
  EXPECT_DOUBLE_EQ(scores.ranks[0].step.simulated_us, 5 * 10 + 6) << "five gaps and the T5 of aten::to";
  ASSERT_FALSE(step.coverage.unmodelled.empty());
  EXPECT_EQ(step.coverage.unmodelled[0].name, "aten::mm");
}

TEST(PublishedAlgorithm, NeedsOverheads) {
  const ExecutionTrace trace = small_trace();
  const std::vector<UntimedRank> ranks{{&trace, 0, 0, 0}};
  const Platform platform = value_of(load_platform("dgx-h100"));
  StepPricer prices{platform, {}};
  EXPECT_THAT(published_step(ranks, HostOverheads{}, prices),
              test::FailsWith("no gap between two operators"));
}

}  // namespace
}  // namespace stepcast::published_algorithm_test
