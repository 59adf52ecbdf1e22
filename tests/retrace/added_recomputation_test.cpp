#include "stepcast/retrace/added_recomputation.h"

#include <cmath>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/retrace/trace_memory.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/trace/readers.h"

#include "tests/support/fails_with.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_generator.h"

namespace stepcast::added_recomputation_test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

// Three equal layers of a product (100 us) and a ReLU (20 us); their backward takes 150 us each. The GPU holds the step
// up: it begins at 12 and ends at 12 + 3 * 120 + 3 * 150 = 822, for which the CPU waits.
RecordedRank three_layers(bool sequences = true, bool equal = true) {
  test::TraceBuilder t;
  const int main = t.thread(1), autograd = t.thread(2);
  t.step(main, 1, 0, 840);
  double gpu = 12;
  const char* const unlike[] = {"aten::linear", "aten::conv2d", "aten::bmm"};
  for (int layer = 0; layer < 3; ++layer) {
    const double cpu = 40.0 * layer;
    t.op(main, equal ? "aten::linear" : unlike[layer], cpu, 20);
    if (sequences) t.sequence(2 * layer);
    t.launch(main, cpu + 5, 5, 7, "gemm", gpu, 100);
    t.op(main, equal ? "aten::relu" : unlike[2 - layer], cpu + 20, 15);
    if (sequences) t.sequence(2 * layer + 1);
    t.launch(main, cpu + 25, 5, 7, equal ? "relu" : fmt::format("relu{}", layer), gpu + 100, 20);
    gpu += 120;
  }
  for (int layer = 2; layer >= 0; --layer) {
    const double cpu = 140 + 40.0 * (2 - layer);
    t.op(autograd, "autograd::engine::evaluate_function: ReluBackward0", cpu, 4);
    if (sequences) t.sequence(2 * layer + 1);
    t.op(autograd, "autograd::engine::evaluate_function: AddmmBackward0", cpu + 5, 25);
    if (sequences) t.sequence(2 * layer);
    t.launch(autograd, cpu + 10, 5, 7, "backward", gpu, 150);
    gpu += 150;
  }
  t.call(main, "cudaDeviceSynchronize", 300, gpu + 6 - 300);
  return t.build();
}

// Of each layer 120 us run twice: 360 more, but for the 6 us in which the waiting call returns.
TEST(AddedRecomputation, RunsTheForwardOfEveryBlockTwice) {
  const RecordedRank rank = three_layers();
  const std::vector<RecordedInput> inputs{{&rank, nullptr}};
  const TracePrediction before = value_of(predict_trace(inputs, {}));
  TracePredictionOptions how;
  how.recompute = RecomputedPart::full;
  const TracePrediction p = value_of(predict_trace(inputs, how));
  EXPECT_NEAR(p.ranks[0].step.simulated_us, before.ranks[0].step.simulated_us + 360, 10);
  ASSERT_EQ(p.recomputed.size(), 1U);
  ASSERT_EQ(p.recomputed[0].size(), 3U);
  EXPECT_EQ(p.recomputed[0][1].first, 2);
  EXPECT_EQ(p.recomputed[0][1].end, 4);
}

// Two layers: a projection (100 us), scores (30), their softmax (20), values (30) and an output (100); or, fused, one
// kernel of 80 us for the three in the middle. Backward: 150 us for each of the five, or three. The step begins with the
// GPU's work at 12 and ends with it.
RecordedRank two_attention_layers(bool fused, std::string_view softmax = "aten::softmax") {
  struct Forward {
    std::string_view op, kernel;
    double us;
  };
  const std::vector<Forward> layer =
      fused ? std::vector<Forward>{{"aten::linear", "gemm", 100},
                                   {"aten::scaled_dot_product_attention", "flash_fwd_kernel", 80},
                                   {"aten::linear", "gemm", 100}}
            : std::vector<Forward>{{"aten::linear", "gemm", 100},
                                   {"aten::bmm", "gemm_batched", 30},
                                   {softmax, "softmax_warp_forward", 20},
                                   {"aten::bmm", "gemm_batched", 30},
                                   {"aten::linear", "gemm", 100}};
  test::TraceBuilder t;
  const int main = t.thread(1), autograd = t.thread(2);
  t.step(main, 1, 0, 5000);
  double gpu = 12, cpu = 0;
  int sequence = 0;
  for (int i = 0; i < 2; ++i) {
    for (const Forward& op : layer) {
      t.op(main, op.op, cpu, 20).sequence(sequence++);
      t.launch(main, cpu + 5, 5, 7, op.kernel, gpu, op.us);
      cpu += 20;
      gpu += op.us;
    }
  }
  while (--sequence >= 0) {
    t.op(autograd, "autograd::engine::evaluate_function: Backward0", cpu, 20).sequence(sequence);
    t.launch(autograd, cpu + 5, 5, 7, "backward", gpu, 150);
    cpu += 20;
    gpu += 150;
  }
  t.call(main, "cudaDeviceSynchronize", cpu + 100, gpu + 6 - cpu - 100);
  return t.build();
}

// 80 us of either layer run twice: 160 more.
TEST(AddedRecomputation, OfTheCoreOfAttentionAlone) {
  TracePredictionOptions how;
  how.recompute = RecomputedPart::selective;
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(fused);
    const RecordedRank rank = two_attention_layers(fused);
    const std::vector<RecordedInput> inputs{{&rank, nullptr}};
    const double before = value_of(predict_trace(inputs, {})).ranks[0].gpu_window.simulated_us;
    const TracePrediction p = value_of(predict_trace(inputs, how));
    EXPECT_NEAR(p.ranks[0].gpu_window.simulated_us, before + 160, 10);
    ASSERT_EQ(p.recomputed[0].size(), 2U);
    EXPECT_EQ(p.recomputed[0][0].first, 1);
    EXPECT_EQ(p.recomputed[0][0].end, fused ? 2 : 4);
    EXPECT_EQ(p.recomputed[0][1].first, fused ? 4 : 6);
    EXPECT_NE(p.notes.front().find("2 cores of attention of"), std::string::npos) << p.notes.front();
  }
  // The loss is no attention.
  const RecordedRank loss = two_attention_layers(false, "aten::log_softmax");
  EXPECT_THAT(predict_trace(std::vector<RecordedInput>{{&loss, nullptr}}, how),
              test::FailsWith("no attention in the forward pass that could be recomputed"));
}

TEST(AddedRecomputation, NeedsBlocksThatRepeatAndTheirBackward) {
  const RecordedRank unlike = three_layers(true, false), without = three_layers(false);
  TracePredictionOptions how;
  how.recompute = RecomputedPart::full;
  EXPECT_THAT(predict_trace(std::vector<RecordedInput>{{&unlike, nullptr}}, how),
              test::FailsWith("no block of layers repeats in the forward pass"));
  EXPECT_THAT(predict_trace(std::vector<RecordedInput>{{&without, nullptr}}, how),
              test::FailsWith("the traces do not join forward and backward"));
}

// What the generator makes of the same job with checkpointed blocks is the truth.
TEST(AddedRecomputation, OfAGeneratedJobIsWhatCheckpointingTakes) {
  const auto recorded_with = [](bool recompute, std::uint64_t seed) {
    test::GeneratorOptions options;
    options.seed = seed;
    options.top_blocks = 6;
    options.recompute_blocks = recompute;
    options.kernel_scale = 4;
    options.start_skew_us = 0;
    options.late_gpu_ranks = {};
    return test::generate_job(options);
  };
  std::deque<ExecutionTrace> shapes;
  const auto inputs_of = [&](const test::GeneratedJob& job) {
    std::vector<RecordedInput> inputs;
    for (const test::GeneratedRank& rank : job.ranks) {
      shapes.push_back(value_of(parse_execution_trace(rank.execution_trace, "et.json")));
      inputs.push_back({&rank.recorded, &shapes.back()});
    }
    return inputs;
  };
  const test::GeneratedJob plain = recorded_with(false, 1), checkpointed = recorded_with(true, 2);
  TracePredictionOptions how;
  const TracePrediction as_recorded = value_of(predict_trace(inputs_of(plain), how));
  how.recompute = RecomputedPart::full;
  const TracePrediction p = value_of(predict_trace(inputs_of(plain), how));
  const RecordedProgram truth = value_of(rebuild_program(inputs_of(checkpointed)));
  double mean = 0;
  for (std::size_t r = 0; r < truth.facts.size(); ++r) {
    EXPECT_EQ(p.recomputed[r].size(), 6U);
    const double measured = truth.facts[r].step_us.length_us();
    EXPECT_GT(measured, 1.05 * as_recorded.ranks[r].step.simulated_us) << "there is something to predict";
    const double error = p.ranks[r].step.simulated_us / measured - 1;
    EXPECT_LT(std::abs(error), 0.02) << "rank " << r;
    mean += std::abs(error) / 4;
  }
  RecordProperty("mean_error", std::to_string(mean));
  EXPECT_LT(mean, 0.01);
}

// The same with the batch between two others, from recordings of those without checkpoints.
TEST(AddedRecomputation, OfAnotherBatchIsWhatCheckpointingTakesThere) {
  const auto recorded_with = [](int batch, bool recompute, std::uint64_t seed) {
    test::GeneratorOptions options;
    options.seed = seed;
    options.local_batch = batch;
    options.top_blocks = 6;
    options.recompute_blocks = recompute;
    options.kernel_scale = 4;
    options.start_skew_us = 0;
    options.late_gpu_ranks = {};
    return test::generate_job(options);
  };
  const auto inputs_of = [](const test::GeneratedJob& job) {
    std::vector<RecordedInput> inputs;
    for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
    return inputs;
  };
  const test::GeneratedJob first = recorded_with(1024, false, 1), second = recorded_with(2048, false, 2),
                           truth_job = recorded_with(1536, true, 3);
  TracePredictionOptions how;
  how.recompute = RecomputedPart::full;
  how.change.batch = BatchChange{1024, 1536};
  how.second_batch = 2048;
  const TracePrediction p = value_of(predict_between(value_of(rebuild_program(inputs_of(first))),
                                                     value_of(rebuild_program(inputs_of(second))), how));
  const RecordedProgram truth = value_of(rebuild_program(inputs_of(truth_job)));
  double mean = 0;
  for (std::size_t r = 0; r < truth.facts.size(); ++r) {
    EXPECT_EQ(p.recomputed[r].size(), 12U) << "without shapes the two layers of a block look alike";
    const double error = p.ranks[r].step.simulated_us / truth.facts[r].step_us.length_us() - 1;
    EXPECT_LT(std::abs(error), 0.02) << "rank " << r;
    mean += std::abs(error) / 4;
  }
  EXPECT_LT(mean, 0.01);
}

// Two blocks that make 3 MiB for their backward alone and hand on 1 MiB: 8 MiB live at the end of the forward. With
// recomputation the 3 of each go with its forward and come again with its backward, when what block 0 handed on still
// lives: 1 + 3, and the 1 of block 1 that is made again with it.
TEST(TraceMemory, OfRecomputedBlocksLivesTwice) {
  const auto tensor = [](int id, int mib) {
    return fmt::format(R"([{},{},0,{},4,"cuda:0"])", id, 100 + id, mib * 262144);
  };
  const auto node = [](int id, int sequence, int forward_thread, const std::string& in,
                       const std::string& out) {
    const auto list = [](const std::string& value, const char* of_one) {
      return value.empty() ? "[]" : fmt::format("[{}]", of_one);
    };
    const char* type = R"x("Tensor(float)")x";
    return fmt::format(R"({{"name":"aten::x","id":{0},"rf_id":{0},"parent":1,"seq_id":{1},"fw_tid":{2},)"
                       R"("inputs":[{3}],"input_shapes":{4},"input_types":{5},)"
                       R"("outputs":[{6}],"output_shapes":{7},"output_types":{8}}})",
                       id, sequence, forward_thread, in, list(in, "[1]"), list(in, type), out,
                       list(out, "[1]"), list(out, type));
  };
  const std::string text = R"({"schema":"1.0.1","pid":1,"nodes":[)" + node(2, 10, 0, "", tensor(1, 3)) + "," +
                           node(3, 11, 0, tensor(1, 3), tensor(2, 1)) + "," +
                           node(4, 12, 0, tensor(2, 1), tensor(3, 3)) + "," +
                           node(5, 13, 0, tensor(3, 3), tensor(4, 1)) + "," +
                           node(6, 13, 1, tensor(4, 1), "") + "," + node(7, 12, 1, tensor(3, 3), "") + "," +
                           node(8, 11, 1, tensor(2, 1), "") + "," + node(9, 10, 1, tensor(1, 3), "") + "]}";
  const ExecutionTrace trace = value_of(parse_execution_trace(text, "et.json"));
  constexpr double kMiB = 1024.0 * 1024.0;
  EXPECT_DOUBLE_EQ(trace_memory(trace).activations.value() / kMiB, 8);
  const std::vector<SequenceRange> blocks{{10, 12}, {12, 14}};
  EXPECT_DOUBLE_EQ(trace_memory(trace, blocks).activations.value() / kMiB, 5);
}

}  // namespace
}  // namespace stepcast::added_recomputation_test
