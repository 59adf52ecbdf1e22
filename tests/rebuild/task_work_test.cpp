// What the tasks of a recorded Program are: operations, collectives, host time.
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/rebuild/traced_operations.h"
#include "stepcast/trace/readers.h"

#include "tests/support/data.h"
#include "tests/support/paths.h"
#include "tests/support/trace_generator.h"

namespace stepcast::task_work_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RecordedProgram rebuild(const std::vector<RecordedRank>& ranks,
                        const std::vector<std::optional<ExecutionTrace>>& traces = {}) {
  std::vector<RecordedInput> inputs;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    inputs.push_back({&ranks[r], r < traces.size() && traces[r] ? &*traces[r] : nullptr});
  auto recorded = rebuild_program(inputs);
  EXPECT_TRUE(recorded.ok()) << recorded.error().message();
  return *std::move(recorded);
}

RecordedRank parsed(const std::string& events, const std::string& header = {}) {
  auto recorded =
      parse_kineto(R"({"schemaVersion": 1, )" + header + R"("traceEvents": [)" + events + "]}", "trace.json");
  EXPECT_TRUE(recorded.ok()) << recorded.error().message();
  return *std::move(recorded);
}

std::string event(std::string_view category, std::string_view name, double start, double duration,
                  const std::string& args, int thread = 1) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})",
      category, name, thread, start, duration, args);
}
std::string launch(int correlation, double start, std::string_view call = "cudaLaunchKernel") {
  return event("cuda_runtime", call, start, 5, fmt::format(R"("correlation": {})", correlation));
}
std::string gpu(std::string_view category, std::string_view name, int correlation, double start,
                double duration, const std::string& more = {}) {
  return event(category, name, start, duration,
               fmt::format(R"("stream": 7, "correlation": {}{})", correlation, more), 7);
}

// "name: work x times" of every task of a lane kind, in the order of the lane.
std::vector<std::string> works_of(const RecordedProgram& recorded, LaneKind kind, std::size_t rank = 0) {
  const Program& program = recorded.program;
  const Block& block = program.block_of(RankClassId{rank}, InstanceId{0});
  std::map<double, std::string> by_start;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (block.lanes()[block.lane_codes()[t]].kind != kind) continue;
    const TaskInfo& info = block.tasks()[t];
    std::string text = "unknown";
    if (const Operation* operation = program.works.operation(info.work)) {
      text = fmt::format("{} x {:.4g}", describe(*operation), info.work_times);
    } else if (const CollectiveWork* collective = program.works.collective(info.work)) {
      text = fmt::format("{} {} of {} B in {}", to_string(collective->op), to_string(collective->dtype),
                         collective->message.value(), program.groups()[collective->group.index()].label);
    } else if (const HostWork* host = program.works.host(info.work)) {
      text = fmt::format("{} {}", to_string(host->type), program.names.text(host->op));
    } else if (std::holds_alternative<Waiting>(program.works.of(info.work))) {
      text = "waiting";
    }
    by_start[recorded.measured[rank][t].start_us] = std::string(program.names.text(info.name)) + ": " + text;
  }
  std::vector<std::string> out;
  for (const auto& [start, text] : by_start) out.push_back(text);
  return out;
}

// A linear layer whose product runs as two kernels of 20 and 5 us and clears its workspace before; a copy from
// the host; a kernel that no operator of the table launched; an all-reduce.
const std::string kStep =
    event(
        "cpu_op", "aten::linear", 100, 60,
        R"("Input Dims": [[8, 16], [4, 16], []], "Input type": ["c10::BFloat16", "c10::BFloat16", ""], "Concrete Inputs": ["", "", ""])") +
    "," +
    event(
        "cpu_op", "aten::addmm", 110, 40,
        R"("Input Dims": [[8, 4], [8, 16], [16, 4], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"], "Concrete Inputs": ["", "", "", "0", "1"])") +
    "," + launch(9, 115, "cudaMemsetAsync") + "," + launch(10, 125) + "," + launch(11, 135) + "," +
    gpu("gpu_memset", "Memset (Device)", 9, 121, 2, R"(, "bytes": 4096)") + "," +
    gpu("kernel", "ampere_bf16_s1688gemm", 10, 132, 20) + "," +
    gpu("kernel", "splitKreduce_kernel", 11, 153, 5) + "," +
    event(
        "cpu_op", "aten::copy_", 170, 20,
        R"("Input Dims": [[8], [8], []], "Input type": ["float", "float", "Scalar"], "Concrete Inputs": ["", "", "True"])") +
    "," + launch(12, 175, "cudaMemcpyAsync") + "," +
    gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 12, 182, 4, R"(, "bytes": 32)") + "," +
    event("cpu_op", "my::operator", 200, 20,
          R"("Input Dims": [[8]], "Input type": ["float"], "Concrete Inputs": [""])") +
    "," + launch(13, 205) + "," + gpu("kernel", "mine", 13, 212, 10) + "," +
    event("cpu_op", "c10d::allreduce_", 225, 15, R"("External id": 9)") + "," + launch(14, 230) + "," +
    gpu("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 14, 237, 50,
        R"(, "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float", "Group size": 4, "Process Group Name": "tensor", "Process Group Ranks": "[0, 1, 4, 5]")");
const std::string kHeader = R"("distributedInfo": {"rank": 0, "world_size": 8}, )";

TEST(TaskWork, OfGpuWorkIsThatOfTheOperatorThatLaunchedIt) {
  const RecordedProgram recorded = rebuild({parsed(kStep, kHeader)});
  // The two kernels of 20 + 5 us share the product 20/25 to 5/25; fills and copies are their recorded bytes.
  EXPECT_THAT(
      works_of(recorded, LaneKind::gpu_stream),
      ElementsAre("Memset (Device): memset int8 forward bytes=4096 x 1",
                  "ampere_bf16_s1688gemm: gemm bf16 forward m=8 n=4 k=16 x 0.8",
                  "splitKreduce_kernel: gemm bf16 forward m=8 n=4 k=16 x 0.2",
                  "Memcpy HtoD (Pinned -> Device): memcpy_h2d int8 forward bytes=32 x 1", "mine: unknown",
                  "ncclDevKernel_AllReduce_Sum_f32_RING_LL: all_reduce fp32 of 4000 B in tensor"));
  EXPECT_THAT(recorded.program.groups().front().ranks, ElementsAre(0, 1, 4, 5));
}

// ROCm and newer CUDA traces name the operator at the work: also where its launch is not in the file, or was called
// on a thread of the runtime.
TEST(TaskWork, FollowsExternalIdsWhereTimesDoNotTell) {
  const auto add = [](int id, double start) {
    return event(
        "cpu_op", "aten::add", start, 20,
        fmt::format(R"("External id": {}, "Input Dims": [[8], [8], []], "Input type": ["float", "float",
                     "Scalar"], "Concrete Inputs": ["", "", "1"])",
                    id));
  };
  const RecordedProgram recorded = rebuild(
      {parsed(add(5, 100) + "," + add(6, 150) + "," +
              event("cuda_runtime", "hipLaunchKernel", 155, 5, R"("correlation": 20, "External id": 6)", 77) +
              "," + gpu("kernel", "launched_elsewhere", 20, 165, 10, R"(, "External id": 6)") + "," +
              gpu("kernel", "not_launched", 19, 112, 10, R"(, "External id": 5)"))});
  EXPECT_THAT(works_of(recorded, LaneKind::gpu_stream),
              ElementsAre(HasSubstr("not_launched: elementwise fp32"),
                          HasSubstr("launched_elsewhere: elementwise fp32")));
}

TEST(TaskWork, SaysWhyAnOperatorHasNoWork) {
  const RecordedProgram recorded =
      rebuild({parsed(event("cpu_op", "aten::mm", 100, 20, R"("Input Dims": [[8, 8], [8, 8]])") + "," +
                      launch(1, 105) + "," + gpu("kernel", "sgemm", 1, 112, 10) + "," +
                      event("cpu_op", "aten::add", 200, 20,
                            R"("Input Dims": [[8], [8], []], "Input type": ["float", "float", "Scalar"])"))});
  const KernelTimeCoverage coverage = work_coverage(recorded);
  EXPECT_EQ(coverage.unmodelled.at("aten::mm").why, "the trace has no types of the operator's inputs");
}

TEST(TaskWork, NamesWhatIsNotKnown) {
  const RecordedProgram recorded = rebuild({parsed(kStep, kHeader)});
  const KernelTimeCoverage coverage = work_coverage(recorded);
  // 2 + 20 + 5 + 4 us are known, 10 us are not; 50 us of communication stand beside.
  EXPECT_EQ(coverage.modelled.value(), 31);
  EXPECT_EQ(coverage.computation.value(), 41);
  EXPECT_EQ(coverage.communication.value(), 50);
  EXPECT_EQ(coverage.communication_modelled.value(), 50);
  ASSERT_EQ(coverage.unmodelled.size(), 1U);
  const auto& [name, work] = *coverage.unmodelled.begin();
  EXPECT_EQ(name, "my::operator");
  EXPECT_EQ(work.count, 1U);
  EXPECT_EQ(work.time.value(), 10);
  EXPECT_THAT(work.why, HasSubstr("not known"));
}

TEST(TaskWork, OfHostTimeIsOneOfTheFiveKinds) {
  const RecordedProgram recorded = rebuild({parsed(kStep, kHeader)});
  // aten::linear 100..160 with launches at 115, 125, 135: T2 before the first, T5 between, T3 after the last.
  // T1 belongs to the operator behind the gap.
  EXPECT_THAT(
      works_of(recorded, LaneKind::cpu_thread),
      ElementsAre("aten::linear: T2 aten::linear", "aten::addmm: T2 aten::linear",
                  "cudaMemsetAsync: T4 cudaMemsetAsync", "aten::addmm: T5 aten::linear",
                  "cudaLaunchKernel: T4 cudaLaunchKernel", "aten::addmm: T5 aten::linear",
                  "cudaLaunchKernel: T4 cudaLaunchKernel", "aten::addmm: T3 aten::linear",
                  "aten::linear: T3 aten::linear", "(no framework op): T1 aten::copy_ after aten::linear",
                  "aten::copy_: T2 aten::copy_", "cudaMemcpyAsync: T4 cudaMemcpyAsync",
                  "aten::copy_: T3 aten::copy_", "(no framework op): T1 my::operator after aten::copy_",
                  "my::operator: T2 my::operator", "cudaLaunchKernel: T4 cudaLaunchKernel",
                  "my::operator: T3 my::operator",
                  "(no framework op): T1 c10d::allreduce_ after my::operator",
                  "c10d::allreduce_: T2 c10d::allreduce_", "cudaLaunchKernel: T4 cudaLaunchKernel",
                  "c10d::allreduce_: T3 c10d::allreduce_"));
}

TEST(TaskWork, WithoutShapesOnlyRecordedSizesAreKnown) {
  const RecordedRank rank =
      parsed(event("cpu_op", "aten::mm", 100, 20, R"("External id": 1)") + "," + launch(9, 105) + "," +
             gpu("kernel", "gemm", 9, 112, 20) + "," +
             event("cpu_op", "aten::copy_", 130, 20, R"("External id": 2)") + "," +
             launch(10, 135, "cudaMemcpyAsync") + "," +
             gpu("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 10, 142, 5, R"(, "bytes": 64)"));
  const RecordedProgram recorded = rebuild({rank});
  EXPECT_THAT(
      works_of(recorded, LaneKind::gpu_stream),
      ElementsAre("gemm: unknown", "Memcpy DtoD (Device -> Device): memcpy_d2d int8 forward bytes=64 x 1"));
  const KernelTimeCoverage coverage = work_coverage(recorded);
  EXPECT_EQ(coverage.unmodelled.at("aten::mm").time.value(), 20);
  EXPECT_NE(coverage.unmodelled.at("aten::mm").why, "");
}

// The made trace has no kernels for the additions of the optimizer's epsilon: additions of scalars are left out.
double flops_to_compare(const Operation& operation) {
  const auto* shape = std::get_if<ElementwiseShape>(&operation.shape);
  if (shape != nullptr && shape->function == ElementwiseFunction::add_scalar) return 0;
  return work_of(operation).flops.value();
}

// FLOPs of all tasks and of the operators that the execution trace lists: nothing is lost or counted twice.
void expect_the_flops_of(const RecordedProgram& recorded, std::size_t rank, const ExecutionTrace& trace) {
  const Program& program = recorded.program;
  const Block& block = program.block_of(RankClassId{rank}, InstanceId{0});
  double of_tasks = 0, of_operators = 0, known_us = 0;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const TaskInfo& info = block.tasks()[t];
    const Operation* operation = program.works.operation(info.work);
    if (operation == nullptr) continue;
    of_tasks += info.work_times * flops_to_compare(*operation);
    known_us += recorded.measured[rank][t].length_us();
  }
  for (const TracedOperation& traced : traced_operations(trace).operations) {
    of_operators += flops_to_compare(traced.operation);
  }
  EXPECT_GT(of_operators, 0);
  EXPECT_NEAR(of_tasks, of_operators, 1e-9 * of_operators) << rank;
  EXPECT_NEAR(known_us, recorded.coverage[rank].modelled.value(), 1e-6 * known_us);
}

struct Folder {
  std::vector<RecordedRank> ranks;
  std::vector<std::optional<ExecutionTrace>> traces;
};
Folder read_folder(const std::filesystem::path& folder, int ranks) {
  Folder out;
  for (int r = 0; r < ranks; ++r) {
    auto rank = read_kineto(folder / fmt::format("kineto_rank{}.json.gz", r));
    auto trace = read_execution_trace(folder / fmt::format("et_rank{}.json.gz", r));
    EXPECT_TRUE(rank.ok() && trace.ok());
    rank->rank = r;
    out.ranks.push_back(*std::move(rank));
    out.traces.emplace_back(*std::move(trace));
  }
  return out;
}

TEST(TaskWork, OfTheExampleJobIsKnown) {
  const Folder folder = read_folder(test::source_dir() / "examples/dlrm_4gpu", 4);
  const RecordedProgram recorded = rebuild(folder.ranks, folder.traces);
  const KernelTimeCoverage coverage = work_coverage(recorded);
  EXPECT_EQ(coverage.modelled, coverage.computation);
  for (const RankGroup& group : recorded.program.groups()) EXPECT_THAT(group.ranks, ElementsAre(0, 1, 2, 3));
  for (std::size_t r = 0; r < 4; ++r) expect_the_flops_of(recorded, r, *folder.traces[r]);
}

TEST(TaskWork, OfARecordedDlrmIsKnown) {
  SKIP_WITHOUT_DATA();
  const Folder folder = read_folder(*test::measured_data() / "traces/dlrm8", 8);
  const RecordedProgram recorded = rebuild(folder.ranks, folder.traces);
  const KernelTimeCoverage coverage = work_coverage(recorded);
  EXPECT_EQ(coverage.modelled, coverage.computation);
  EXPECT_EQ(coverage.communication_modelled, coverage.communication);
  ASSERT_EQ(recorded.program.groups().size(), 1U);
  EXPECT_EQ(recorded.program.groups().front().label, "all ranks");
  EXPECT_THAT(recorded.program.groups().front().ranks, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

// Messages of collectives as the machine that made the trace knows them.
TEST(TaskWork, OfCollectivesHoldsTheirMessage) {
  test::GeneratorOptions options;
  options.collective_metadata = true;
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<RecordedRank> ranks;
  for (const test::GeneratedRank& rank : job.ranks) ranks.push_back(rank.recorded);
  const RecordedProgram recorded = rebuild(ranks);
  std::size_t checked = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Block& block = recorded.program.block_of(RankClassId{r}, InstanceId{0});
    for (const TaskInfo& info : block.tasks()) {
      if (info.kind != TaskKind::collective) continue;
      const CollectiveWork* work = recorded.program.works.collective(info.work);
      ASSERT_NE(work, nullptr);
      for (const test::TrueCollective& truth : job.collectives) {
        if (truth.gpu_ops[r] != info.recorded_event) continue;
        EXPECT_EQ(work->op, truth.op);
        // `bytes` is the message of the rank that sends most.
        EXPECT_LE(work->message.value(), truth.bytes);
        if (truth.op == CollectiveOp::all_reduce) {
          EXPECT_EQ(work->message.value(), truth.bytes);
        }
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, job.collectives.size() * ranks.size());
}

}  // namespace
}  // namespace stepcast::task_work_test
