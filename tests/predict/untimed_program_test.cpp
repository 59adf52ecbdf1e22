#include "stepcast/predict/untimed_program.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/replay.h"
#include "stepcast/retrace/host_prices.h"
#include "stepcast/retrace/recorded_prices.h"
#include "stepcast/trace/readers.h"

#include "calibrate/overhead_fit.h"
#include "tests/support/trace_generator.h"

namespace stepcast::untimed_program_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

// A label around a product (2 launches were seen), an all-reduce of its result (storage 7), a view, and a sum that
// reads the reduced storage.
ExecutionTrace small_trace() {
  return value_of(parse_execution_trace(R"J({"schema": "1.0.1", "pid": 1, "nodes": [
    {"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "rf_id": 0, "parent": 1, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "## forward ##", "id": 2, "rf_id": 1, "parent": 1, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "aten::mm", "id": 3, "rf_id": 2, "parent": 2, "inputs": [[1, 5, 0, 128, 4, "cuda:0"], [2, 6, 0, 64, 4, "cuda:0"]], "input_shapes": [[8, 16], [16, 4]], "input_types": ["Tensor(float)", "Tensor(float)"],
     "outputs": [[3, 7, 0, 32, 4, "cuda:0"]], "output_shapes": [[8, 4]], "output_types": ["Tensor(float)"]},
    {"name": "nccl:all_reduce", "id": 4, "rf_id": 3, "parent": 2, "inputs": [[3, 7, 0, 32, 4, "cuda:0"]], "input_shapes": [[8, 4]], "input_types": ["Tensor(float)"], "outputs": [[3, 7, 0, 32, 4, "cuda:0"]], "output_shapes": [[8, 4]], "output_types": ["Tensor(float)"]},
    {"name": "aten::view", "id": 6, "rf_id": 5, "parent": 2, "inputs": [[3, 7, 0, 32, 4, "cuda:0"]], "input_shapes": [[8, 4]], "input_types": ["Tensor(float)"], "outputs": [[4, 7, 0, 32, 4, "cuda:0"]], "output_shapes": [[32]], "output_types": ["Tensor(float)"]},
    {"name": "aten::relu", "id": 7, "rf_id": 6, "parent": 2, "inputs": [[4, 7, 0, 32, 4, "cuda:0"]], "input_shapes": [[32]], "input_types": ["Tensor(float)"], "outputs": [[5, 8, 0, 32, 4, "cuda:0"]], "output_shapes": [[32]], "output_types": ["Tensor(float)"]}
  ]})J",
                                        "et_rank0.json"));
}

TEST(UntimedProgram, TakesTheOverheadsOfEveryOperatorInOrder) {
  const ExecutionTrace trace = small_trace();
  const std::vector<UntimedRank> ranks{{&trace, 0, 0}};
  const RecordedProgram untimed =
      value_of(untimed_program(ranks, {{"aten::mm", {{"cudaLaunchKernel", "cudaLaunchKernel"}, 2, 5}}}));
  std::string host, gpu;
  for (const TaskInfo& task : untimed.program.blocks()[0].tasks()) {
    if (const HostWork* work = untimed.program.works.host(task.work)) {
      host += std::string{to_string(work->type)} + " ";
    } else {
      gpu += std::string{untimed.program.names.text(task.name)} + " ";
    }
  }
  // mm: T1 T2, launch, T5, launch, T3. What was never seen makes as many launches as its work has kernels: the
  // all-reduce and the view none that is known, relu one.
  EXPECT_THAT(host, HasSubstr("T1 T2 T4 T5 T4 T3 T1"));
  EXPECT_THAT(gpu, HasSubstr("aten::mm aten::mm "));
  EXPECT_THAT(gpu, HasSubstr("aten::relu"));
  EXPECT_TRUE(untimed.program.check().ok()) << untimed.program.check().error().message();
  // Both kernels share one product.
  double products = 0;
  for (const TaskInfo& task : untimed.program.blocks()[0].tasks()) {
    if (task.kind == TaskKind::kernel && untimed.program.names.text(task.name) == "aten::mm")
      products += task.work_times;
  }
  EXPECT_DOUBLE_EQ(products, 1);
}

TEST(UntimedProgram, SaysWhatIsWrong) {
  const ExecutionTrace trace = small_trace();
  const Result<RecordedProgram> none = untimed_program({}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message(), HasSubstr("no execution trace was given"));
  const std::vector<UntimedRank> twice{{&trace, 3, 0}, {&trace, 3, 0}};
  const Result<RecordedProgram> same = untimed_program(twice, {});
  ASSERT_FALSE(same.ok());
  EXPECT_THAT(same.error().message(), HasSubstr("3 a second time"));
  ExecutionTrace empty;
  empty.file = "empty.json";
  const std::vector<UntimedRank> nothing{{&empty, 0, 0}};
  const Result<RecordedProgram> no_operators = untimed_program(nothing, {});
  ASSERT_FALSE(no_operators.ok());
  EXPECT_THAT(no_operators.error().message(), HasSubstr("empty.json"));
  EXPECT_THAT(no_operators.error().message(), HasSubstr("found no operators"));
}

// A generated job whose CPU decides: its execution traces, with the host times and launches of its profiler traces,
// come close to its steps. Rank 1 is not learned from.
TEST(UntimedProgram, OfAGeneratedJobComesCloseToItsSteps) {
  test::GeneratorOptions options;
  options.ranks = 3;
  options.start_skew_us = 0;
  options.late_gpu_ranks = {};
  options.pipeline = test::BatchPipeline::same_step;
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<ExecutionTrace> traces;
  std::vector<RecordedInput> inputs;
  for (const test::GeneratedRank& rank : job.ranks) {
    traces.push_back(value_of(parse_execution_trace(rank.execution_trace, "et.json")));
    inputs.push_back({&rank.recorded, nullptr});
  }
  const RecordedProgram recorded = value_of(rebuild_program(inputs));
  std::vector<UntimedRank> ranks;
  for (std::size_t r = 0; r < 3; ++r) {
    ranks.push_back({&traces[r], static_cast<std::int32_t>(r), recorded.facts[r].step_us.start_us});
  }
  const std::vector<RankClassId> others{RankClassId{std::size_t{0}}, RankClassId{std::size_t{2}}};
  const OverheadFit fit = fit_overheads(recorded_overheads(recorded, others));
  const RecordedProgram untimed = value_of(untimed_program(ranks, fit.launches));
  ASSERT_TRUE(untimed.program.check().ok()) << untimed.program.check().error().message();
  const Platform a100 = value_of(load_platform("dgx-a100"));
  StepPricer prices{a100, {}};
  RecordedPrices priced = value_of(
      price_recorded(untimed, {.kernels = KernelTimeSource::models, .target = &prices, .origin = &prices}));
  const HostOverheads host = fit.host();
  for (std::size_t r = 0; r < 3; ++r) (void)apply_host_overheads(host, untimed, RankClassId{r}, priced.costs);
  const ReplayScores scores = value_of(score_replay(untimed, priced.costs));
  for (std::size_t r = 0; r < 3; ++r) {
    const double measured = recorded.facts[r].step_us.length_us();
    EXPECT_NEAR(scores.ranks[r].step.simulated_us, measured, 0.3 * measured) << "rank " << r;
  }
}

TEST(OverheadFit, HasTheMostFrequentSequencesOfLaunches) {
  test::GeneratorOptions options;
  options.ranks = 2;
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<RecordedInput> inputs;
  for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
  const RecordedProgram recorded = value_of(rebuild_program(inputs));
  const LaunchTable table = fit_overheads(recorded_overheads(recorded)).launches;
  ASSERT_FALSE(table.empty());
  ASSERT_TRUE(table.contains("aten::linear") && table.contains("aten::index"));
  EXPECT_THAT(table.find("aten::linear")->second.calls, ElementsAre("cudaLaunchKernel"));
  EXPECT_THAT(table.find("aten::index")->second.calls,
              ElementsAre("cudaMemcpyAsync", "cudaStreamSynchronize", "cudaLaunchKernel"));
}

}  // namespace
}  // namespace stepcast::untimed_program_test
