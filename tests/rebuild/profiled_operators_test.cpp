#include "stepcast/rebuild/profiled_operators.h"

#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/rebuild/traced_operations.h"
#include "stepcast/trace/readers.h"

#include "tests/support/data.h"

namespace stepcast::profiled_operators_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A linear layer that launches a product, an addition on the CPU, a copy from the host.
constexpr const char* kTrace = R"J({"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 1, "tid": 1, "ts": 100, "dur": 50, "args": {"External id": 1,
    "Input Dims": [[8, 16], [4, 16], []], "Input type": ["c10::BFloat16", "c10::BFloat16", ""], "Concrete Inputs": ["", "", ""]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 1, "tid": 1, "ts": 110, "dur": 30, "args": {"External id": 2,
    "Input Dims": [[8, 4], [8, 16], [16, 4], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"],
    "Concrete Inputs": ["", "", "", "0", "1"]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 120, "dur": 5, "args": {"correlation": 9}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 130, "dur": 20, "args": {"stream": 7, "correlation": 9, "External id": 2}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 200, "dur": 5, "args": {"External id": 3,
    "Input Dims": [[8], [8], []], "Input type": ["float", "float", "Scalar"], "Concrete Inputs": ["", "", "1"]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::copy_", "pid": 1, "tid": 1, "ts": 210, "dur": 20, "args": {"External id": 4,
    "Input Dims": [[8], [8], []], "Input type": ["float", "float", "Scalar"], "Concrete Inputs": ["", "", "True"]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 1, "ts": 215, "dur": 5, "args": {"correlation": 10}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 225, "dur": 4,
    "args": {"stream": 7, "correlation": 10, "External id": 4}}]})J";

TEST(ProfiledOperators, AreReadFromAProfilerTraceWithShapes) {
  const auto recorded = parse_kineto(kTrace, "trace.json");
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  const auto operators = profiled_operators(*recorded);
  ASSERT_TRUE(operators.ok()) << operators.error().message();
  EXPECT_THAT(operators->node_of_op, ElementsAre(0, 1, -1, 2)) << "the addition launched nothing";
  const TracedOperations traced = traced_operations(operators->trace);
  std::vector<std::string> listed;
  for (const TracedOperation& operation : traced.operations) listed.push_back(describe(operation.operation));
  EXPECT_THAT(listed, ElementsAre("gemm bf16 forward m=8 n=4 k=16", "memcpy_h2d fp32 forward bytes=32"));
  const KernelTimeCoverage coverage =
      kernel_time_coverage(operators->trace, traced, *recorded, operators->node_of_op);
  EXPECT_EQ(coverage.computation.value(), 24);
  EXPECT_EQ(coverage.modelled.value(), 24);
}

TEST(ProfiledOperators, NeedShapes) {
  const auto recorded = parse_kineto(
      R"J({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]})J",
      "trace.json");
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  const auto operators = profiled_operators(*recorded);
  ASSERT_FALSE(operators.ok());
  EXPECT_THAT(operators.error().message(), HasSubstr("record_shapes=True"));
}

// Without "Concrete Inputs" the batch norm behind it shows that the convolution strides by two. Its kernel says
// that it multiplies on TF32 units.
TEST(ProfiledOperators, FindTheStrideOfAConvolutionBehindIt) {
  const auto recorded = parse_kineto(R"J({"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::cudnn_convolution", "pid": 1, "tid": 1, "ts": 100, "dur": 50, "args": {"External id": 1,
    "Input Dims": [[32, 3, 224, 224], [64, 3, 7, 7], [], []], "Input type": ["float", "float", "GenericList", "GenericList"]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 120, "dur": 5, "args": {"correlation": 9}},
  {"ph": "X", "cat": "kernel", "name": "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32", "pid": 0, "tid": 7, "ts": 130, "dur": 20,
    "args": {"stream": 7, "correlation": 9, "External id": 1}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::batch_norm", "pid": 1, "tid": 1, "ts": 200, "dur": 5, "args": {"External id": 3,
    "Input Dims": [[32, 64, 112, 112], [64]], "Input type": ["float", "float"]}}]})J",
                                     "trace.json");
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  const RecordedInput input{&*recorded, nullptr};
  const Result<RecordedProgram> program = rebuild_program(std::span{&input, 1});
  ASSERT_TRUE(program.ok()) << program.error().message();
  std::vector<std::string> kernels;
  for (const TaskInfo& task : program->program.blocks()[0].tasks()) {
    if (task.kind != TaskKind::kernel) continue;
    const Operation* operation = program->program.works.operation(task.work);
    ASSERT_NE(operation, nullptr);
    kernels.push_back(describe(*operation));
  }
  EXPECT_THAT(kernels,
              ElementsAre("convolution tf32 forward batch=32 channels=3->64 image=224x224 kernel=7x7 "
                          "stride=2 padding=3 dilation=1 groups=1"));
}

// The list of index tensors has no shapes. The view of the source inside shows that two rows of 512 x 1024 are
// taken 256 times each: 512 rows come out.
TEST(ProfiledOperators, FindWhatIndexingGivesBackInTheViewInside) {
  const auto recorded = parse_kineto(R"J({"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::index", "pid": 1, "tid": 1, "ts": 100, "dur": 50, "args": {"External id": 1,
    "Input Dims": [[2, 512, 1024], []], "Input type": ["c10::BFloat16", ""], "Concrete Inputs": ["", ""]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::as_strided", "pid": 1, "tid": 1, "ts": 105, "dur": 1, "args": {"External id": 2,
    "Input Dims": [[2, 512, 1024], [], [], []], "Input type": ["c10::BFloat16", "ScalarList", "ScalarList", ""],
    "Concrete Inputs": ["", "[512, 512, 1024]", "[0, 1024, 1]", ""]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 120, "dur": 5, "args": {"correlation": 9}},
  {"ph": "X", "cat": "kernel", "name": "vectorized_gather_kernel", "pid": 0, "tid": 7, "ts": 130, "dur": 20,
    "args": {"stream": 7, "correlation": 9, "External id": 1}}]})J",
                                     "trace.json");
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  const auto operators = profiled_operators(*recorded);
  ASSERT_TRUE(operators.ok()) << operators.error().message();
  const TracedOperations traced = traced_operations(operators->trace);
  ASSERT_EQ(traced.operations.size(), 1);
  EXPECT_EQ(describe(traced.operations[0].operation), "gather bf16 forward elements=268435456");
}

// Both views of one iteration: the profiler trace lacks the shapes of lists of tensors, all else is the same.
TEST(ProfiledOperators, AgreeWithTheExecutionTraceOfTheSameRun) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "traces/vgg13";
  const auto trace = read_execution_trace(folder / "et_vgg13.json.gz");
  const auto recorded = read_kineto(folder / "kineto_vgg13.json.gz");
  ASSERT_TRUE(trace.ok() && recorded.ok());
  const auto operators = profiled_operators(*recorded);
  ASSERT_TRUE(operators.ok()) << operators.error().message();
  const auto flops_of = [](const TracedOperations& traced) {
    double gemm_and_convolution = 0;
    for (const TracedOperation& operation : traced.operations) {
      const Work work = work_of(operation.operation);
      if (work.matrix) gemm_and_convolution += work.flops.value();
    }
    return gemm_and_convolution;
  };
  const TracedOperations traced = traced_operations(operators->trace);
  EXPECT_GT(flops_of(traced), 1e13);
  EXPECT_EQ(flops_of(traced), flops_of(traced_operations(*trace)));
  const KernelTimeCoverage coverage =
      kernel_time_coverage(operators->trace, traced, *recorded, operators->node_of_op);
  EXPECT_GT(coverage.modelled / coverage.computation, 0.98);
}

}  // namespace
}  // namespace stepcast::profiled_operators_test
