// The join of execution traces and profiler traces: which node stands for which recorded operator.
#include "stepcast/rebuild/detail/et_join.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/readers.h"

#include "tests/support/data.h"
#include "tests/support/trace_builder.h"

namespace stepcast::et_join_test {
namespace {

using detail::EtJoin;
using detail::join_execution_trace;
using test::TraceBuilder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Texts = std::vector<std::string>;

// An execution trace of one thread and these nodes.
ExecutionTrace nodes_of(const Texts& names, std::int32_t thread = 1, ExecutionTrace et = {}) {
  et.file = "et.json";
  for (const std::string& name : names) {
    EtNode node;
    node.id = node.order = static_cast<std::int64_t>(et.nodes.size()) + 2;
    node.parent = 1;
    node.thread = thread;
    node.name = et.names.intern(name);
    et.nodes.push_back(node);
  }
  return et;
}

// Ops of 10 us each from `at_us`; a name that begins with "nccl:" or "##" is an annotation.
void add_ops(TraceBuilder& b, int thread, double at_us, const Texts& names) {
  for (const std::string& name : names) {
    if (name.starts_with("nccl:") || name.starts_with("##")) {
      b.annotation(thread, name, at_us, 10);
    } else {
      b.op(thread, name, at_us, 10);
    }
    at_us += 10;
  }
}

EtJoin join(const RecordedRank& recorded, const ExecutionTrace& et) {
  auto joined = join_execution_trace(recorded, et);
  EXPECT_TRUE(joined.ok()) << joined.error().message();
  return joined.ok() ? *std::move(joined) : EtJoin{};
}

TEST(EtJoin, JoinsEveryIdenticalIteration) {
  TraceBuilder b;
  const int main = b.thread(1);
  for (int k = 0; k < 3; ++k) add_ops(b, main, 100 * k, {"aten::mm", "aten::relu"});
  const EtJoin j = join(b.build(), nodes_of({"aten::mm", "aten::relu"}));
  EXPECT_THAT(j.node_of_op, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(j.repetition_of_op, ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_EQ(j.joined, 2U);
  EXPECT_EQ(j.nodes, 2U);
}

TEST(EtJoin, JoinsTheSameIterationOfDifferentOnes) {
  TraceBuilder b;
  const int main = b.thread(1);
  add_ops(b, main, 0, {"aten::mm", "aten::add", "aten::mm"});
  add_ops(b, main, 100, {"aten::mm", "aten::relu", "aten::mm"});
  const EtJoin j = join(b.build(), nodes_of({"aten::mm", "aten::relu", "aten::mm"}));
  EXPECT_THAT(j.node_of_op, ElementsAre(-1, -1, -1, 0, 1, 2));
}

// Every thread in the iteration in which it ran: of the second thread one run each lies between the begins of the
// main thread's.
TEST(EtJoin, KeepsTheIterationsOfThreadsTogether) {
  TraceBuilder b;
  const int main = b.thread(1), autograd = b.thread(2);
  for (int k = 0; k < 2; ++k) {
    add_ops(b, main, 200 * k, {"aten::mm", "aten::sum"});
    add_ops(b, autograd, 200 * k + 50, {"SumBackward0", "MmBackward0"});
  }
  const EtJoin j =
      join(b.build(), nodes_of({"SumBackward0", "MmBackward0"}, 2, nodes_of({"aten::mm", "aten::sum"})));
  EXPECT_THAT(j.node_of_op, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(j.repetition_of_op, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

TEST(EtJoin, IgnoresWhatOnlyOneFileHolds) {
  TraceBuilder b;
  const int main = b.thread(1), gloo = b.thread(2);
  add_ops(b, main, 0, {"aten::mm", "nccl:all_reduce", "aten::relu"});
  add_ops(b, gloo, 5, {"gloo:all_reduce", "gloo:all_reduce"});
  const ExecutionTrace et = nodes_of({"## process_group:init ##"}, 3,
                                     nodes_of({"aten::mm", "## process_group:init ##", "aten::relu"}));
  const EtJoin j = join(b.build(), et);
  EXPECT_EQ(j.joined, 2U);
  EXPECT_EQ(j.nodes, 2U);
  EXPECT_EQ(j.only_in_execution_trace, 2U);
}

TEST(EtJoin, AnnotationsAtOtherPlacesDoNotMatter) {
  TraceBuilder b;
  const int main = b.thread(1);
  add_ops(b, main, 0, {"nccl:all_reduce", "aten::mm", "aten::relu", "nccl:all_reduce"});
  const EtJoin j = join(b.build(), nodes_of({"aten::mm", "nccl:all_reduce", "aten::relu"}));
  EXPECT_THAT(j.node_of_op, ElementsAre(-1, 0, 2, -1));
}

// An operator that the execution trace has on main and the profiler trace on another thread.
TEST(EtJoin, OperatorsOfAnotherThreadDoNotMatter) {
  TraceBuilder b;
  const int main = b.thread(1), runner = b.thread(2);
  add_ops(b, main, 0, {"aten::mm", "aten::relu", "aten::sum"});
  add_ops(b, runner, 5, {"record_param_comms", "record_param_comms"});
  const EtJoin j = join(b.build(), nodes_of({"aten::mm", "record_param_comms", "aten::relu", "aten::sum"}));
  EXPECT_EQ(j.joined, 3U);
  EXPECT_EQ(j.nodes, 4U);
}

TEST(EtJoin, RefusesWhatBelongsToAnotherRun) {
  TraceBuilder b;
  add_ops(b, b.thread(1), 0, {"aten::mm", "aten::relu"});
  for (const Texts& others :
       {Texts{"aten::conv2d", "aten::tanh"}, Texts{"aten::tanh", "aten::relu", "aten::mm"}}) {
    const auto joined = join_execution_trace(b.build(), nodes_of(others));
    ASSERT_FALSE(joined.ok());
    EXPECT_THAT(joined.error().message(), HasSubstr("does not belong to the profiler trace rank0.json"));
  }
}

// A step with one kernel, replayed beside this execution trace.
RecordedProgram rebuilt_with(const ExecutionTrace& et) {
  TraceBuilder b;
  const int main = b.thread(1);
  add_ops(b, main, 0, {"aten::conv2d", "aten::relu"});
  b.step(main, 1, 100, 100);
  add_ops(b, main, 100, {"aten::mm", "aten::relu"});
  b.launch(main, 101, 2, 7, "kernel", 105, 10);
  const RecordedRank recorded = b.build();
  const RecordedInput input{&recorded, &et};
  auto program = rebuild_program(std::span{&input, 1});
  EXPECT_TRUE(program.ok()) << program.error().message();
  return program.ok() ? *std::move(program) : RecordedProgram{};
}

TEST(EtJoin, AFailedJoinIsANote) {
  const RecordedProgram program = rebuilt_with(nodes_of({"aten::tanh"}));
  EXPECT_THAT(
      program.notes,
      Contains(HasSubstr("rank 0: replayed without its execution trace: et.json: the execution trace: does "
                         "not belong to the profiler trace rank0.json")));
  EXPECT_FALSE(program.files[0].execution_trace);
}

TEST(EtJoin, AnExecutionTraceOfAnotherStepIsNoted) {
  const RecordedProgram other = rebuilt_with(nodes_of({"aten::conv2d", "aten::relu"}));
  EXPECT_THAT(other.notes, Contains("rank 0: the execution trace has another step than the replayed one"));
  const RecordedProgram same = rebuilt_with(nodes_of({"aten::mm", "aten::relu"}));
  EXPECT_THAT(same.notes, ::testing::IsEmpty());
}

TEST(EtJoin, MergedEventsAreCounted) {
  ExecutionTrace et = nodes_of({"aten::mm", "aten::relu"});
  et.skipped = {{"kernel", 3}, {"gpu_memcpy", 1}};
  EXPECT_THAT(rebuilt_with(et).notes,
              Contains("rank 0: 4 profiler events that were merged into the execution trace were left out: "
                       "they are in the profiler trace"));
}

// What PyTorch of 2025 writes beside the operators: threads of gloo, set-up of process groups, in either file.
TEST(EtJoin, RecordedOperatorsJoinBesideGlooAndProcessGroups) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "traces" / "vgg13";
  auto recorded = read_kineto(folder / "kineto_vgg13.json.gz");
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  auto et = read_execution_trace(folder / "et_vgg13.json.gz");
  ASSERT_TRUE(et.ok()) << et.error().message();
  const EtJoin plain = join(*recorded, *et);
  ASSERT_EQ(plain.joined, plain.nodes);
  ASSERT_GT(plain.joined, 800U);

  const ThreadId gloo{recorded->threads.size()};
  recorded->threads.push_back({1, 99, "pt_gloo_runner"});
  std::vector<CpuOp> ops;
  for (std::size_t i = 0; i < recorded->cpu_ops.size(); ++i) {
    ops.push_back(recorded->cpu_ops[i]);
    if (i % 50 != 0) continue;
    CpuOp annotation = recorded->cpu_ops[i];
    annotation.kind = CpuOp::Kind::annotation;
    annotation.name = recorded->names.intern("## process_group:init ##");
    ops.push_back(annotation);
    CpuOp side = annotation;
    side.kind = CpuOp::Kind::op;
    side.thread = gloo;
    side.name = recorded->names.intern("record_param_comms");
    ops.push_back(side);
  }
  recorded->cpu_ops = std::move(ops);
  std::vector<EtNode> nodes;
  for (std::size_t i = 0; i < et->nodes.size(); ++i) {
    nodes.push_back(et->nodes[i]);
    if (i % 70 != 0) continue;
    EtNode annotation = et->nodes[i];
    annotation.name = et->names.intern("## process_group:init ##");
    nodes.push_back(annotation);
    EtNode side = annotation;
    side.thread = 9;
    side.name = et->names.intern("record_param_comms");
    nodes.push_back(side);
  }
  et->nodes = std::move(nodes);
  EXPECT_GE(join(*recorded, *et).joined, plain.joined);
}

}  // namespace
}  // namespace stepcast::et_join_test
