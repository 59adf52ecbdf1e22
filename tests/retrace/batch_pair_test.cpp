#include "stepcast/retrace/batch_pair.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/predict/replay.h"
#include "stepcast/retrace/trace_memory.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/trace/readers.h"

#include "tests/support/fails_with.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_generator.h"

namespace stepcast::batch_pair_test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

RecordedRank two_kernels(double first_us, double second_us, int more = 0) {
  test::TraceBuilder t;
  const int main = t.thread(1);
  t.step(main, 1, 0, 1000);
  t.op(main, "aten::mm", 100, 20).launch(main, 105, 5, 7, "gemm", 112, first_us);
  t.op(main, "aten::relu", 300, 20).launch(main, 305, 5, 7, "relu", 312, second_us);
  for (int i = 0; i < more; ++i) t.launch(main, 500 + 40 * i, 5, 7, "more", 507 + 40 * i, 5);
  return t.build();
}

RecordedProgram rebuilt(const RecordedRank& rank) {
  const std::vector<RecordedInput> inputs{{&rank, nullptr}};
  return value_of(rebuild_program(inputs));
}

// 40 and 60 us at 1024 and 2048: 100 at 4096. 30 and 30 stay. 10 and 50 at 512 would be -10: a quarter of 10.
TEST(BatchPair, GoesThroughTheTwoRecordedTimes) {
  const RecordedRank small = two_kernels(40, 30), large = two_kernels(60, 30);
  const RecordedProgram a = rebuilt(small), b = rebuilt(large);
  const BatchPair pair{&a, 1024, &b, 2048};
  EXPECT_EQ(&pair.nearer(1100), &a);
  EXPECT_EQ(&pair.nearer(4096), &b);
  const Costs costs = value_of(between_batches(pair, 4096));
  std::vector<double> kernels;
  const BlockId id{std::size_t{0}};
  for (std::uint32_t t = 0; t < b.program.block(id).task_count(); ++t) {
    if (b.program.block(id).tasks()[t].kind == TaskKind::kernel) kernels.push_back(costs.duration_us(id)[t]);
  }
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_NEAR(kernels[0], 100, 1e-9);
  EXPECT_NEAR(kernels[1], 30, 1e-9);
  const RecordedRank tiny = two_kernels(10, 30), huge = two_kernels(50, 30);
  const RecordedProgram c = rebuilt(tiny), d = rebuilt(huge);
  const Costs below = value_of(between_batches({&c, 1024, &d, 2048}, 512));
  for (std::uint32_t t = 0; t < c.program.block(id).task_count(); ++t) {
    if (c.program.names.text(c.program.block(id).tasks()[t].name) == "gemm") {
      EXPECT_NEAR(below.duration_us(id)[t], 2.5, 1e-9);
    }
  }
}

TEST(BatchPair, NamesTheFirstDifference) {
  const RecordedRank two = two_kernels(40, 30), three = two_kernels(40, 30, 1);
  const RecordedProgram a = rebuilt(two), b = rebuilt(three);
  EXPECT_THAT(between_batches({&a, 32, &b, 64}, 128),
              test::FailsWith("the recordings of batch 32 and 64 differ: rank 0 runs 2 and 3 GPU tasks"));
  EXPECT_THAT(between_batches({&a, 32, &a, 32}, 128), test::FailsWith("both recordings have the same batch"));
}

// What the generator makes of a third batch is the truth: other jitter, and shapes that the predictor never sees. With
// and without a backward pass that runs the forward of the top layers again.
class GeneratedBatches : public ::testing::TestWithParam<bool> {
 protected:
  static test::GeneratedJob recorded_at(int batch, std::uint64_t seed) {
    test::GeneratorOptions options;
    options.seed = seed;
    options.local_batch = batch;
    options.recompute_top = GetParam();
    options.kernel_scale = 4;  // the GPU decides
    options.start_skew_us = 0;
    options.late_gpu_ranks = {};
    return test::generate_job(options);
  }
  static std::vector<RecordedInput> inputs_of(const test::GeneratedJob& job) {
    std::vector<RecordedInput> inputs;
    for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
    return inputs;
  }
};

TEST_P(GeneratedBatches, OfTwoGiveTheThird) {
  const test::GeneratedJob first = recorded_at(1024, 1), second = recorded_at(2048, 2);
  double mean = 0;
  for (const auto& [batch, seed] : {std::pair{4096, 3}, std::pair{1536, 4}}) {
    const test::GeneratedJob third = recorded_at(batch, static_cast<std::uint64_t>(seed));
    TracePredictionOptions how;
    how.change.batch = BatchChange{1024, batch};
    how.second_batch = 2048;
    const TracePrediction p = value_of(predict_between(value_of(rebuild_program(inputs_of(first))),
                                                       value_of(rebuild_program(inputs_of(second))), how));
    const RecordedProgram truth = value_of(rebuild_program(inputs_of(third)));
    for (std::size_t r = 0; r < truth.facts.size(); ++r) {
      const double measured = truth.facts[r].step_us.length_us();
      const double error = p.ranks[r].step.simulated_us / measured - 1;
      EXPECT_LT(std::abs(error), 0.02) << "batch " << batch << " rank " << r;
      mean += std::abs(error) / 8;
    }
  }
  RecordProperty("mean_error", std::to_string(mean));
  EXPECT_LT(mean, 0.01) << "of two batches on four ranks";
}

INSTANTIATE_TEST_SUITE_P(BatchPair, GeneratedBatches, ::testing::Bool());

// A weight of 4 MiB that is there before; its gradient of the same size; an activation of 2 MiB and, once that is not
// used any more, one of 1 MiB.
TEST(TraceMemory, CountsStoragesFromFirstToLastUse) {
  const ExecutionTrace trace = value_of(parse_execution_trace(R"J({"schema": "1.0.1", "pid": 1, "nodes": [
    {"name": "aten::mm", "id": 1, "rf_id": 1, "parent": 1, "inputs": [[1, 11, 0, 1048576, 4, "cuda:0"]], "input_shapes": [[1024, 1024]], "input_types": ["Tensor(float)"], "outputs": [[2, 12, 0, 524288, 4, "cuda:0"]], "output_shapes": [[512, 1024]], "output_types": ["Tensor(float)"]},
    {"name": "aten::mm", "id": 2, "rf_id": 2, "parent": 1, "inputs": [[2, 12, 0, 524288, 4, "cuda:0"]], "input_shapes": [[512, 1024]], "input_types": ["Tensor(float)"], "outputs": [[3, 13, 0, 1048576, 4, "cuda:0"]], "output_shapes": [[1024, 1024]], "output_types": ["Tensor(float)"]},
    {"name": "aten::relu", "id": 3, "rf_id": 3, "parent": 1, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [[4, 14, 0, 262144, 4, "cuda:0"]], "output_shapes": [[262144]], "output_types": ["Tensor(float)"]}
  ]})J",
                                                              "et.json"));
  const TraceMemory memory = trace_memory(trace);
  EXPECT_DOUBLE_EQ(memory.persistent.value(), 4.0 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(memory.gradients.value(), 4.0 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(memory.activations.value(), 2.0 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(memory.at(3).value(), (4.0 + 4 + 6) * 1024 * 1024);
}

}  // namespace
}  // namespace stepcast::batch_pair_test
