// Steps of one capture whose sequences differ in length: each predicts the other by its shapes.
#include "stepcast/retrace/other_shapes.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/readers.h"

#include "lab/kineto_writer.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_files.h"

namespace stepcast::other_shapes_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Times of a V100 by the simplest law: half precision products at 95 TFLOP/s behind 4 us, elementwise work at 780 GB/s
// behind 3 us. Not those of the models that scale them.
double product_us(double rows, double n, double k) { return 4 + 2 * rows * n * k / 95e6; }
double elementwise_us(double elements) { return 3 + 2 * 2 * elements / 780e3; }

// A step of four layers on so many tokens, launched ahead of the GPU, that ends with a synchronisation; its length.
class Capture {
 public:
  Capture() { rank_.devices = {{0, "Tesla V100-SXM2-32GB", 34'000'000'000, 80, 2048}}; }

  double step(int number, int tokens, bool split = false) {
    test::TraceBuilder t;
    const int main = t.thread(1);
    double host = 1e5 * number, gpu = host + 40;
    const double begin = host;
    std::vector<std::string> shapes{""};  // of the operators, in their order behind the step
    const auto launch = [&](const char* op, std::string dims, const char* kernel, double us) {
      t.op(main, op, host + 10, 12).launch(main, host + 12, 5, 7, kernel, gpu, us);
      shapes.push_back(std::move(dims));
      host += 25;
      gpu += us + 1;
    };
    const double rows = tokens;
    for (int layer = 0; layer < 4; ++layer) {
      launch("aten::mm", fmt::format("[[{}, 2048], [2048, 8192]]", tokens),
             "volta_fp16_s884gemm_fp16_128x128", product_us(rows, 8192, 2048));
      launch("aten::gelu", fmt::format("[[{}, 8192], []]", tokens), "vectorized_elementwise_kernel",
             elementwise_us(rows * 8192));
      if (split) launch("aten::clone", "[]", "copy_kernel", 20);
      launch("aten::mm", fmt::format("[[{}, 8192], [8192, 2048]]", tokens),
             "volta_fp16_s884gemm_fp16_128x128", product_us(rows, 2048, 8192));
    }
    t.call(main, "cudaDeviceSynchronize", host + 10, gpu + 3 - host - 10);
    const double length = gpu + 10 - begin;
    t.step(main, number, begin, length);
    add(t.build(), shapes);
    return length;
  }

  // All tensors are of half precision; the writer leaves types out.
  [[nodiscard]] std::string text() const {
    constexpr std::string_view kDims = "\"Input Dims\": ";
    std::string text = to_kineto_json(rank_);
    for (std::size_t at = text.find(kDims); at != std::string::npos; at = text.find(kDims, at)) {
      const bool one = text.substr(at, text.find('}', at) - at).find(", []]") != std::string::npos;
      const std::string types = fmt::format(R"("Input type": ["c10::Half", "{}"], )", one ? "" : "c10::Half");
      text.insert(at, types);
      at += types.size() + kDims.size();
    }
    return text;
  }

 private:
  void add(const RecordedRank& step, const std::vector<std::string>& shapes) {
    const std::int64_t calls = static_cast<std::int64_t>(rank_.runtime_calls.size());
    if (rank_.threads.empty()) rank_.threads = step.threads;
    const auto moved = [&](auto event) {
      event.name = rank_.names.intern(step.names.text(event.name));
      if constexpr (requires { event.correlation; }) event.correlation += calls;
      return event;
    };
    std::size_t i = 0;
    for (const CpuOp& op : step.cpu_ops) {
      CpuOp& added = rank_.cpu_ops.emplace_back(moved(op));
      const std::string& dims = shapes[i++];
      if (!dims.empty()) added.input_shapes = rank_.names.intern(dims);
    }
    for (const RuntimeCall& call : step.runtime_calls) rank_.runtime_calls.push_back(moved(call));
    for (const GpuOp& op : step.gpu_ops) rank_.gpu_ops.push_back(moved(op));
  }

  RecordedRank rank_;
};

Forecast predicted(const fixtures::TraceFolder& folder, int step, int shapes_of) {
  PredictTraceRequest request{.places = {folder.path()}};
  request.step = step;
  request.shapes_of_step = shapes_of;
  const Result<Forecast> forecast = Session{}.predict(request);
  EXPECT_TRUE(forecast.ok()) << forecast.error().message();
  return forecast.ok() ? *forecast : Forecast{};
}

TEST(OtherShapes, PredictStepsOfOtherLengths) {
  Capture capture;
  const double shorter = capture.step(1, 2048), longer = capture.step(2, 5120);
  ASSERT_GT(longer, 2 * shorter);
  const fixtures::TraceFolder folder;
  folder.write("rank0.json", capture.text());
  const Forecast up = predicted(folder, 1, 2), down = predicted(folder, 2, 1);
  EXPECT_NEAR(1e3 * up.step_time_ms, longer, 0.03 * longer);
  EXPECT_NEAR(1e3 * down.step_time_ms, shorter, 0.03 * shorter);
  EXPECT_THAT(up.notes,
              Contains(HasSubstr("step 1 with the shapes of step 2: 100 % of its GPU time is work of")));
}

TEST(OtherShapes, OfEqualStepsChangeNothing) {
  Capture capture;
  const double length = capture.step(1, 2048);
  capture.step(2, 2048);
  const fixtures::TraceFolder folder;
  folder.write("rank0.json", capture.text());
  const Forecast same = predicted(folder, 1, 2);
  EXPECT_NEAR(1e3 * same.step_time_ms, length, 1e-3 * length);
  EXPECT_THAT(same.notes, Contains("steps 1 and 2 have the same shapes"));
}

TEST(OtherShapes, OfTheStepItselfLeaveItMeasured) {
  Capture capture;
  const double length = capture.step(1, 2048);
  capture.step(2, 5120);
  const fixtures::TraceFolder folder;
  folder.write("rank0.json", capture.text());
  const Forecast same = predicted(folder, 1, 1);
  EXPECT_NEAR(1e3 * same.step_time_ms, length, 1e-3 * length);
  EXPECT_THAT(same.notes, Contains("--shapes-of-step 1: the step has these shapes already"));
  EXPECT_EQ(same.source, EstimateSource::measured);
}

TEST(OtherShapes, CountByHowMuchMoreWorkThereIs) {
  const auto shapes_of = [](int tokens) {
    Capture capture;
    capture.step(1, 2048);
    capture.step(2, tokens);
    const auto rank = parse_kineto(capture.text(), "rank0.json");
    EXPECT_TRUE(rank.ok());
    const RecordedInput input{&*rank, nullptr};
    const auto first = rebuild_program({&input, 1}, {.step = 1}),
               second = rebuild_program({&input, 1}, {.step = 2});
    EXPECT_TRUE(first.ok() && second.ok());
    return *other_shapes(*first, *second);
  };
  const OtherShapes little = shapes_of(2056), twice = shapes_of(4096);
  EXPECT_TRUE(has_same_shapes(little));
  EXPECT_GT(little.changed_us, 0.99 * little.gpu_us);
  EXPECT_FALSE(has_same_shapes(twice));
  EXPECT_NEAR(twice.moved_us, twice.gpu_us, 0.01 * twice.gpu_us);
}

// What only one of the two does is left out and counted; what stands around it is found all the same.
TEST(OtherShapes, LeaveOutWhatOneStepDoesAlone) {
  Capture capture;
  capture.step(1, 2048);
  const double longer = capture.step(2, 5120, true);
  const fixtures::TraceFolder folder;
  folder.write("rank0.json", capture.text());
  const Forecast up = predicted(folder, 1, 2), down = predicted(folder, 2, 1);
  EXPECT_NEAR(1e3 * up.step_time_ms, longer - 4 * 21, 0.03 * longer);
  EXPECT_THAT(up.notes, Contains(HasSubstr("0.0 % has no counterpart there and is kept, 4 GPU tasks there")));
  EXPECT_THAT(down.notes, Contains(HasSubstr("% has no counterpart there and is kept, 0 GPU tasks there")));
}

// Two branches of a graph that begin in another order in each step: numbers of nodes tell which is which.
TEST(OtherShapes, PairNodesOfGraphsByTheirNumbers) {
  std::string events;
  int correlation = 0;
  for (int step = 1; step <= 2; ++step) {
    const int at = 1000 * step;
    ++correlation;
    events += fmt::format(
        R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": 1, "tid": 1, "ts": {}, "dur": 900}},
           {{"ph": "X", "cat": "cpu_op", "name": "replay", "pid": 1, "tid": 1, "ts": {}, "dur": 50}},
           {{"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": {}, "dur": 20,
             "args": {{"correlation": {}}}}},)",
        step, at, at + 5, at + 10, correlation);
    for (int place = 0; place < 2; ++place) {
      const int node = step == 1 ? place : 1 - place;
      events += fmt::format(
          R"({{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {}, "dur": {}, "args":
             {{"device": 0, "stream": 7, "correlation": {}, "graph id": 3, "graph node id": {}}}}},)",
          at + 40 + 100 * place, 10 + 50 * node, correlation, 17 + node);
    }
  }
  events.back() = ' ';
  const auto rank = parse_kineto(fmt::format(R"({{"traceEvents": [{}]}})", events), "rank0.json");
  ASSERT_TRUE(rank.ok()) << rank.error().message();
  const RecordedInput input{&*rank, nullptr};
  const auto first = rebuild_program({&input, 1}, {.step = 1}),
             second = rebuild_program({&input, 1}, {.step = 2});
  ASSERT_TRUE(first.ok() && second.ok());
  const Result<OtherShapes> shapes = other_shapes(*first, *second);
  ASSERT_TRUE(shapes.ok()) << shapes.error().message();
  EXPECT_EQ(shapes->extra, 0U);
  EXPECT_DOUBLE_EQ(shapes->unpaired_us, 0);
  EXPECT_DOUBLE_EQ(shapes->gpu_us, 70);
  const Block& block = first->program.block_of(RankClassId{0}, InstanceId{0});
  std::vector<std::string> names;
  for (const TaskInfo& task : block.tasks())
    if (task.kind == TaskKind::kernel)
      names.emplace_back(first->program.names.text(first->program.stacks.name(task.stack)));
  EXPECT_THAT(names, ::testing::ElementsAre("graph 3, node 17", "graph 3, node 18"));
}

}  // namespace
}  // namespace stepcast::other_shapes_test
