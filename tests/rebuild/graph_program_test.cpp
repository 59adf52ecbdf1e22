// Graphs of operations as Programs, with their times worked out by hand.
#include "stepcast/rebuild/graph_program.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/simulate/engine.h"
#include "stepcast/trace/readers.h"

#include "tests/support/chakra_text.h"
#include "tests/support/data.h"
#include "tests/support/fails_with.h"

namespace stepcast::graph_program_test {
namespace {

using test::chakra_file;
using test::FailsWith;
using test::metadata;
using test::node;
using ::testing::HasSubstr;

OperationGraph graph_of(std::int32_t rank, const std::string& content) {
  auto graph = parse_chakra(content, "rank" + std::to_string(rank) + ".et");
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  graph->rank = rank;
  return *std::move(graph);
}

// Ends of all ranks.
std::vector<double> ends_of(const std::vector<OperationGraph>& graphs) {
  const auto recorded = graph_program(graphs);
  EXPECT_TRUE(recorded.ok()) << recorded.error().message();
  const auto plan = Plan::compile(recorded->program);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  const auto timeline = plan->simulate(Costs{recorded->program}, {});
  EXPECT_TRUE(timeline.ok());
  std::vector<double> ends;
  for (std::size_t c = 0; c < graphs.size(); ++c) ends.push_back(timeline->rank_end_us(RankClassId{c}));
  return ends;
}

// a (100) -> b (50) on the computation lane, collective c (30) beside b, d (20) behind both.
std::string four_nodes(std::uint64_t first_us, std::uint64_t collective_us) {
  return chakra_file(
      {metadata("0.0.4"), node(1, "a", 4, first_us),
       node(2, "c", 7, collective_us).number(5, 1).attribute("comm_type", 0).attribute("comm_size", 8),
       node(3, "b", 4, 50).number(5, 1), node(4, "d", 4, 20).packed(5, {2, 3})});
}

TEST(GraphProgram, RunsNodesBesideEachOtherOnTheirLanes) {
  EXPECT_THAT(ends_of({graph_of(0, four_nodes(100, 30))}),
              ::testing::ElementsAre(170));  // 100 + max(50, 30) + 20
  EXPECT_THAT(ends_of({graph_of(0, four_nodes(100, 80))}), ::testing::ElementsAre(200));  // 100 + 80 + 20
}

TEST(GraphProgram, CollectivesWaitForAllRanksAndTakeTheShortestStay) {
  // Rank 1 comes 40 us later. Rank 0 recorded 70 = 40 waiting + 30; the transfer is the shorter 30.
  // Both leave at 140 + 30 and do d: 190.
  const std::vector<OperationGraph> graphs{graph_of(0, four_nodes(100, 70)),
                                           graph_of(1, four_nodes(140, 30))};
  EXPECT_THAT(ends_of(graphs), ::testing::ElementsAre(190, 210));  // rank 1: 140 + 50 + 20, its b is longer
}

TEST(GraphProgram, AReceiveWaitsForItsSend) {
  // Rank 0 computes 100 and sends for 10: 110. Rank 1 posted its receive at 0, leaves it at 100 + 10 and computes 5.
  const auto sender =
      chakra_file({metadata("1"), node(1, "f", 4, 100),
                   node(2, "send", 5, 10).number(5, 1).attribute("comm_dst", 1).attribute("comm_tag", 3)});
  const auto receiver =
      chakra_file({metadata("1"), node(1, "receive", 6, 10).attribute("comm_src", 0).attribute("comm_tag", 3),
                   node(2, "f", 4, 5).number(5, 1)});
  EXPECT_THAT(ends_of({graph_of(0, sender), graph_of(1, receiver)}), ::testing::ElementsAre(110, 115));
  // With another tag nobody waits: 10 + 5.
  const auto other =
      chakra_file({metadata("1"), node(1, "receive", 6, 10).attribute("comm_src", 0).attribute("comm_tag", 4),
                   node(2, "f", 4, 5).number(5, 1)});
  EXPECT_THAT(ends_of({graph_of(0, sender), graph_of(1, other)}), ::testing::ElementsAre(110, 15));
}

TEST(GraphProgram, NodesOfOneLaneRunInTheOrderOfTheirIds) {
  // The file has them backwards; 5 waits for nothing and still runs behind 3, as both are computation.
  const auto backwards = chakra_file({metadata("1"), node(5, "later", 4, 7), node(3, "first", 4, 100)});
  const auto recorded = graph_program(std::vector<OperationGraph>{graph_of(0, backwards)});
  ASSERT_TRUE(recorded.ok());
  const auto timeline = Plan::compile(recorded->program)->simulate(Costs{recorded->program}, {});
  const Block& block = recorded->program.blocks().front();
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const Interval at = timeline->at(
        {.rank_class = RankClassId{0u}, .rank = 0, .instance = InstanceId{0u}, .task = TaskId{t}});
    const bool later = recorded->program.names.text(block.tasks()[t].name) == "later";
    EXPECT_EQ(at.start_us, later ? 100 : 0);
  }
}

TEST(GraphProgram, SaysWhatIsMissing) {
  const auto recorded = graph_program(std::vector<OperationGraph>{
      graph_of(0, chakra_file({metadata("1"), node(1, "a", 4, 0),
                               node(2, "b", 4, 0).attribute("num_ops", 1000).number(5, 77)}))});
  ASSERT_TRUE(recorded.ok());
  EXPECT_THAT(recorded->notes,
              ::testing::ElementsAre("2 of 2 nodes have no recorded duration; 1 of them have no size either",
                                     "1 dependencies on missing nodes were left out"));
  EXPECT_THAT(graph_program({}), FailsWith("no graph of operations was given"));
  const std::string content = chakra_file({metadata("1"), node(1, "a", 4, 1)});
  EXPECT_THAT(graph_program(std::vector<OperationGraph>{graph_of(2, content), graph_of(2, content)}),
              FailsWith("rank: found 2 as in rank2.et, expected one file per rank"));
  const auto circle = chakra_file({metadata("1"), node(1, "a", 4, 1), node(2, "b", 4, 1).packed(5, {1, 4}),
                                   node(3, "c", 4, 1).number(5, 2), node(4, "d", 4, 1).number(5, 3)});
  EXPECT_THAT(
      graph_program(std::vector<OperationGraph>{graph_of(0, circle)}),
      FailsWith("dependencies: found nodes in a circular dependency: 2 waits for 4 waits for 3 waits for 2"));
}

// The one public file with real durations. Its GPU work lies on one stream that is hardly ever idle: 292,828 us of
// kernels there, 36,715 us of collectives on another. So the step lies between the first and 1 % more.
TEST(GraphProgram, TheRecordedPublicTrainingStepIsBoundByItsKernels) {
  SKIP_WITHOUT_DATA();
  auto graph = read_chakra(*test::measured_data() / "traces" / "chakra_et" / "chakra.0.et.gz");
  ASSERT_TRUE(graph.ok());
  graph->rank = 0;
  std::vector<OperationGraph> graphs;
  graphs.push_back(*std::move(graph));
  const double end = ends_of(graphs).front();
  EXPECT_GT(end, 292828);
  EXPECT_LT(end, 1.02 * 292828);
}

// Synthetic files of many ranks: every rank as in the file, all-reduces beside the backward. Without durations of
// the all-reduces, computation alone remains: 1,082,450 us on every rank.
TEST(GraphProgram, TheDataParallelPublicFilesTakeTheirComputation) {
  SKIP_WITHOUT_DATA();
  std::vector<OperationGraph> graphs;
  for (int rank = 0; rank < 10; ++rank) {
    auto graph = read_chakra(*test::measured_data() / "traces" / "chakra_et" / "resnet50_dp" /
                             ("resnet50_DataParallel." + std::to_string(rank) + ".et.gz"));
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    graph->rank = rank;
    graphs.push_back(*std::move(graph));
  }
  EXPECT_THAT(ends_of(graphs), ::testing::Each(::testing::DoubleNear(1082450, 0.5)));
}

}  // namespace
}  // namespace stepcast::graph_program_test
