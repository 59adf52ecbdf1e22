// Programs as Chakra traces and back: the same end on every rank.
#include "stepcast/report/chakra_export.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/rebuild/graph_program.h"
#include "stepcast/simulate/engine.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/chakra_writer.h"
#include "stepcast/trace/readers.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::chakra_export_test {
namespace {

// A CPU thread that launches kernels `a` and `b`, b 4 us after its call began, and a stream that runs both.
Program launches() {
  Program program;
  BlockBuilder block{"rank 0"};
  const LaneId cpu = block.add_lane({LaneKind::cpu_thread, "main"});
  const LaneId gpu = block.add_lane({LaneKind::gpu_stream, "stream 7"});
  const auto name = [&](const char* text) { return program.names.intern(text); };
  const TaskId first =
      block.add_task(cpu, {.kind = TaskKind::cpu_call, .name = name("launch")}, Microseconds{6.4});
  const TaskId second =
      block.add_task(cpu, {.kind = TaskKind::cpu_call, .name = name("launch")}, Microseconds{6.4});
  const TaskId a = block.add_task(gpu, {.kind = TaskKind::kernel, .name = name("a")}, Microseconds{3.3});
  const TaskId b = block.add_task(gpu, {.kind = TaskKind::kernel, .name = name("b")}, Microseconds{3.3});
  block.add_edge(BlockBuilder::end_of(first), a, Microseconds{2.5}, {.origin = EdgeOrigin::launch});
  block.add_edge(BlockBuilder::start_of(second), b, Microseconds{4}, {.origin = EdgeOrigin::launch});
  RankClass rank;
  rank.name = "rank 0";
  rank.lanes.assign(block.lanes().begin(), block.lanes().end());
  const RankClassId c = program.add_rank_class(std::move(rank));
  program.add_instance(c, {.block = program.add_block(*std::move(block).finish())});
  return program;
}

std::vector<double> ends_of(const Program& program, const std::vector<double>& starts = {}) {
  const auto plan = Plan::compile(program);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  const auto timeline = plan->simulate(Costs{program}, {.unfold = false, .start_offset_us = starts});
  EXPECT_TRUE(timeline.ok()) << timeline.error().message();
  std::vector<double> ends;
  for (std::size_t c = 0; c < program.rank_classes().size(); ++c)
    ends.push_back(timeline->rank_end_us(RankClassId{c}));
  return ends;
}

std::vector<double> ends_after_round_trip(const std::vector<OperationGraph>& graphs) {
  std::vector<OperationGraph> read;
  for (const OperationGraph& graph : graphs) {
    auto again = parse_chakra(chakra_text(graph), "step.et");
    EXPECT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(again->rank, graph.rank);
    EXPECT_EQ(again->nodes.size(), graph.nodes.size());
    read.push_back(*std::move(again));
  }
  const auto recorded = graph_program(read);
  EXPECT_TRUE(recorded.ok()) << recorded.error().message();
  return ends_of(recorded->program);
}

TEST(ChakraExport, KeepsDurationsAndDelaysExactly) {
  const Program program = launches();
  // a: 6.4 + 2.5 = 8.9 to 12.2; b: from max(12.2, 6.4 + 4) to 15.5.
  EXPECT_NEAR(ends_of(program).front(), 15.5, 1e-9);
  const FlatProgram flat{program};
  const std::vector<OperationGraph> graphs = operation_graphs(flat, Costs{program});
  EXPECT_NEAR(ends_after_round_trip(graphs).front(), 15.5, 1e-3);
  const std::vector<RankStep> late{{.begin_us = 100}};
  EXPECT_NEAR(ends_after_round_trip(operation_graphs(flat, Costs{program}, late)).front(), 115.5, 1e-3);
}

TEST(ChakraExport, WholeMicrosecondsOfALaneKeepTheirSum) {
  // 3.3 + 3.3 = 6.6: 3 and 4 whole microseconds; 6.4 twice: 6 and 7.
  const Program program = launches();
  const FlatProgram flat{program};
  std::string text = chakra_text(operation_graphs(flat, Costs{program}).front());
  for (std::size_t at; (at = text.find("duration_nanos")) != std::string::npos;) text[at] = 'x';
  for (std::size_t at; (at = text.find("delay_nanos")) != std::string::npos;) text[at] = 'x';
  const auto read = parse_chakra(text, "x");
  ASSERT_TRUE(read.ok()) << read.error().message();
  double cpu = 0, gpu = 0;
  for (const GraphNode& node : read->nodes) (node.on_cpu ? cpu : gpu) += std::max(0.0, node.duration_us);
  EXPECT_EQ(cpu, 13);
  EXPECT_EQ(gpu, 7);
}

TEST(ChakraExport, RecordedAndDescribedStepsComeBackAsTheyWere) {
  const test::TemporaryFolder folder;
  const Session session;
  // What is predicted, exported, read back, replayed and predicted again is one step, rank by rank.
  PredictTraceRequest traces;
  traces.places = {test::source_dir() / "examples" / "dlrm_4gpu"};
  traces.chakra = folder.path() / "recorded";
  const auto recorded = session.predict(traces);
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  const auto again = session.replay({.places = {traces.chakra}});
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->simulated.classes.size(), 4U);
  const auto predicted = session.predict(PredictTraceRequest{.places = {traces.chakra}});
  ASSERT_TRUE(predicted.ok()) << predicted.error().message();
  for (const Forecast* same : {&again->simulated, &*predicted}) {
    EXPECT_EQ(same->step, recorded->step);
    EXPECT_NEAR(same->step_time_ms / recorded->step_time_ms, 1, 1e-4);
    ASSERT_EQ(same->classes.size(), recorded->classes.size());
    for (std::size_t c = 0; c < same->classes.size(); ++c) {
      EXPECT_NEAR(same->classes[c].window_ms / recorded->classes[c].window_ms, 1, 1e-4) << c;
      EXPECT_NEAR(same->classes[c].start_offset_ms, recorded->classes[c].start_offset_ms, 1e-3) << c;
    }
  }

  PredictRequest described;
  described.job.model = "llama-3-8b";
  described.job.n_gpus = 16;
  described.job.settings.pipeline = 4;
  described.job.settings.global_batch_sequences = 32;
  described.chakra = folder.path() / "described";
  const auto forecast = session.predict(described);
  ASSERT_TRUE(forecast.ok()) << forecast.error().message();
  const auto stages = session.replay({.places = {described.chakra}});
  ASSERT_TRUE(stages.ok()) << stages.error().message();
  EXPECT_EQ(stages->simulated.classes.size(), 4U);
  EXPECT_NEAR(stages->simulated.step_time_ms / forecast->step_time_ms, 1, 1e-4);
}

// One file per rank: groups are numbers whose ranks stand beside the files, activations are sends and receives, and what
// is read again takes what the step takes.
TEST(ChakraExport, RanksOneByOneComeBackAsTheyWere) {
  const test::TemporaryFolder folder;
  const Session session;
  PredictRequest described;
  described.job.model = "llama-3-8b";
  described.job.n_gpus = 16;
  described.job.settings.tensor = 2;
  described.job.settings.pipeline = 4;
  described.job.settings.global_batch_sequences = 16;
  described.open_layout = OpenLayout::as_said;
  described.chakra = folder.path() / "ranks";
  described.chakra_per_rank = true;
  const auto forecast = session.predict(described);
  ASSERT_TRUE(forecast.ok()) << forecast.error().message();
  const auto ranks = session.replay({.places = {described.chakra}});
  ASSERT_TRUE(ranks.ok()) << ranks.error().message();
  EXPECT_EQ(ranks->simulated.classes.size(), 16U);
  EXPECT_NEAR(ranks->simulated.step_time_ms / forecast->step_time_ms, 1, 1e-4);

  std::ifstream file{described.chakra / "comm_groups.json"};
  const std::string groups{std::istreambuf_iterator<char>{file}, {}};
  EXPECT_THAT(groups, ::testing::StartsWith("{\n  \"1\": ["));
  for (const char* group : {"[0, 1]", "[0, 2]", "[14, 15]", "[13, 15]"})
    EXPECT_THAT(groups, ::testing::HasSubstr(group));
  std::size_t sends = 0, receives = 0;
  const auto rank = read_chakra(described.chakra / "step.5.et");  // second stage
  ASSERT_TRUE(rank.ok()) << rank.error().message();
  for (const GraphNode& node : rank->nodes) {
    if (node.kind == GraphNode::Kind::send) {
      ++sends;
      EXPECT_THAT(node.peer, ::testing::AnyOf(1, 9));
    }
    if (node.kind == GraphNode::Kind::receive) ++receives;
    if (!node.group.valid()) continue;
    EXPECT_THAT(std::string{rank->names.text(node.group)}, ::testing::MatchesRegex("[1-9][0-9]*"));
  }
  EXPECT_GT(sends, 0U);
  EXPECT_EQ(sends, receives);
}

// Google's own reader of the format, with the messages of mlcommons/chakra's et_def.proto.
TEST(ChakraExport, IsReadByThePythonReaderOfProtobuf) {
  const test::TemporaryFolder folder;
  const Program program = launches();
  const FlatProgram flat{program};
  const auto written = write_chakra(folder.path(), operation_graphs(flat, Costs{program}));
  ASSERT_TRUE(written.ok()) << written.error().message();
  std::string python;
  for (const char* candidate : {"python3", "/usr/bin/python3"}) {
    if (test::run_command({candidate, "-c", "import google.protobuf"}).exit_code == 0) python = candidate;
  }
  if (python.empty()) GTEST_SKIP() << "no python3 has google.protobuf (Debian: python3-protobuf)";
  const auto script = test::source_dir() / "tests" / "report" / "read_chakra.py";
  const auto result = test::run_command({python, script.string(), written->front().string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "version 0.0.4 rank 0\n"
            "1 begin of the step COMP_NODE [] 0 duration_nanos=0 is_cpu_op=True tid=2\n"
            "2 launch COMP_NODE [1] 6 duration_nanos=6400 is_cpu_op=True tid=0\n"
            "3 launch COMP_NODE [2] 7 duration_nanos=6400 is_cpu_op=True tid=0\n"
            "4 a COMP_NODE [1, 2] 3 duration_nanos=3300 is_cpu_op=False stream=1 delay_nanos=[0, 2500]\n"
            "5 b COMP_NODE [3, 4] 4 duration_nanos=3300 is_cpu_op=False stream=1 delay_nanos=[-2400, 0]\n");
}

}  // namespace
}  // namespace stepcast::chakra_export_test
