// Chakra traces: messages by hand, damaged ones, and the public files.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/trace/readers.h"

#include "tests/support/chakra_text.h"
#include "tests/support/data.h"
#include "tests/support/fails_with.h"

namespace stepcast::chakra_reader_test {
namespace {

using test::chakra_file;
using test::FailsWith;
using test::metadata;
using test::node;
using test::ProtobufMessage;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint64_t> ids_before(const OperationGraph& graph, std::size_t node) {
  std::vector<std::uint64_t> ids;
  for (const std::uint32_t d : graph.dependencies_of(graph.nodes[node])) ids.push_back(graph.nodes[d].id);
  return ids;
}

TEST(ChakraReader, TakesNodesWithTheirTimesSizesAndDependencies) {
  const auto graph =
      parse_chakra(chakra_file({metadata("0.0.4"), node(7, "gemm", 4, 120).attribute("stream", 3),
                                node(8, "grads", 7, 0)
                                    .packed(5, {7})
                                    .attribute("comm_type", 0)
                                    .attribute("comm_size", 4096)
                                    .attribute("pg_name", "dp")
                                    .attribute("is_cpu_op", 0),
                                node(9, "to next stage", 5, 0)
                                    .number(5, 7)
                                    .number(4, 8)
                                    .attribute("comm_dst", 2)
                                    .attribute("comm_size", 64)}),
                   "x.et");
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->schema, "0.0.4");
  ASSERT_EQ(graph->nodes.size(), 3U);
  const GraphNode& gemm = graph->nodes[0];
  EXPECT_EQ(gemm.id, 7U);
  EXPECT_EQ(graph->names.text(gemm.name), "gemm");
  EXPECT_EQ(gemm.kind, GraphNode::Kind::computation);
  EXPECT_EQ(gemm.lane, 3);
  EXPECT_EQ(gemm.duration_us, 120);
  EXPECT_FALSE(gemm.on_cpu);
  const GraphNode& grads = graph->nodes[1];
  EXPECT_EQ(grads.kind, GraphNode::Kind::collective);
  EXPECT_EQ(grads.op, CollectiveOp::all_reduce);
  EXPECT_EQ(grads.bytes, 4096);
  EXPECT_EQ(graph->names.text(grads.group), "dp");
  EXPECT_EQ(grads.duration_us, -1);
  EXPECT_THAT(ids_before(*graph, 1), ElementsAre(7));
  EXPECT_EQ(graph->nodes[2].peer, 2);
  EXPECT_THAT(ids_before(*graph, 2), ElementsAre(7, 8)) << "control dependencies bind, packed or not";
}

TEST(ChakraReader, TakesOldFilesWithoutMetadataAndZeroesThatProtobufLeavesOut) {
  // The first message is node 0: no id on the wire.
  const auto graph =
      parse_chakra(chakra_file({node(0, "first", 4, 5), node(1, "second", 0, 6).number(5, 0)}), "x");
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  ASSERT_EQ(graph->nodes.size(), 2U);
  EXPECT_EQ(graph->schema, "");
  EXPECT_EQ(graph->nodes[0].id, 0U);
  EXPECT_EQ(graph->nodes[1].kind, GraphNode::Kind::computation) << "no type";
  EXPECT_THAT(ids_before(*graph, 1), ElementsAre(0));
}

TEST(ChakraReader, LeavesOutCallersAndWhatIsNotThere) {
  // Converters from PyTorch (nodes with rf_id) put the caller into the control dependencies.
  const auto graph = parse_chakra(
      chakra_file({metadata("0.0.4"),
                   node(10, "aten::mm", 4, 0).attribute("is_cpu_op", 1).attribute("rf_id", 4),
                   node(11, "kernel", 4, 9).number(4, 10).packed(5, {10, 99}).attribute("tid", 7)}),
      "x");
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_THAT(ids_before(*graph, 1), ElementsAre(10));
  EXPECT_EQ(graph->callers, 1U);
  EXPECT_EQ(graph->dangling, 1U);
  EXPECT_EQ(graph->nodes[1].lane, 7);
  EXPECT_TRUE(graph->nodes[0].on_cpu);
  EXPECT_EQ(graph->nodes[0].duration_us, 0) << "rounded to nothing, not unknown";
}

TEST(ChakraReader, AttributesOfEveryType) {
  ProtobufMessage sint;  // sint64 -3 is 5 on the wire; a negative tag is allowed
  sint.text(1, "comm_tag").number(17, 5);
  ProtobufMessage unsigned_size;
  unsigned_size.text(1, "comm_size").number(13, 65536);
  const auto graph = parse_chakra(
      chakra_file({metadata("1"), node(1, "s", 5, 0).text(10, sint.text()).text(10, unsigned_size.text())}),
      "x");
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->nodes[0].tag, -3);
  EXPECT_EQ(graph->nodes[0].bytes, 65536);
}

TEST(ChakraReader, SaysWhatIsWrong) {
  const std::string whole = chakra_file({metadata("0.0.4"), node(7, "gemm", 4, 120)});
  EXPECT_THAT(
      parse_chakra(std::string_view{whole}.substr(0, whole.size() - 3), "x.et"),
      FailsWith("x.et: byte 8: found 9 of 12 bytes of a message, expected the whole message; the file is "
                "incomplete: copy it again"));
  EXPECT_THAT(parse_chakra(chakra_file({metadata("0.0.4"), node(7, "a", 4, 1), node(7, "b", 4, 1)}), "x.et"),
              FailsWith("x.et: message 3: found a second node with id 7, expected ids that differ"));
  EXPECT_THAT(parse_chakra(chakra_file({metadata("0.0.4")}), "x.et"),
              FailsWith("x.et: the nodes: found none, expected operations of a rank"));
  EXPECT_THAT(parse_chakra(chakra_file({metadata("0.0.4"), node(7, "a", 12, 1)}), "x.et"),
              FailsWith("x.et: node 7, type: found 12, expected a node type from 0 to 7"));
  EXPECT_THAT(
      parse_chakra(chakra_file({metadata("0.0.4"), node(7, "a", 7, 1).attribute("comm_size", -1)}), "x.et"),
      FailsWith("x.et: node 7, comm_size: found -1, expected a number from 0 on"));
  // One duration that is none costs its node's time, which is counted, and not the file.
  const auto bad_time =
      parse_chakra(chakra_file({metadata("0.0.4"), node(7, "a", 4, 1ULL << 63), node(8, "b", 4, 1)}), "x.et");
  ASSERT_TRUE(bad_time.ok()) << bad_time.error().message();
  EXPECT_EQ(bad_time->bad_times, 1U);
  EXPECT_EQ(bad_time->nodes.size(), 2U);
  EXPECT_DOUBLE_EQ(bad_time->nodes[0].duration_us, -1);
  ProtobufMessage group;  // wire type 3 is gone from the format
  group.number(1, 3).text(2, "a");
  std::string damaged = whole;
  damaged += test::varint(group.text().size() + 1) + group.text() + "\x0b";
  EXPECT_THAT(parse_chakra(damaged, "x.et"),
              FailsWith("x.et: message 3: found a field that does not follow the protobuf format"));
  EXPECT_THAT(parse_chakra("{\"nodes\": []}", "x.et"), FailsWith("expected a Chakra execution trace"));
  // Cut anywhere: an error, never a shorter graph with half a node.
  for (std::size_t size = 0; size < whole.size(); ++size) {
    if (size == 7) continue;  // the metadata alone, which is an error of its own
    ASSERT_FALSE(parse_chakra(std::string_view{whole}.substr(0, size), "x").ok()) << size;
  }
}

TEST(ChakraReader, ReadsThePublicFiles) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "traces" / "chakra_et";
  struct Expected {
    std::size_t nodes, dependencies_lost, collectives;
  };
  const std::map<std::string, Expected> files{
      {"chakra.0.et.gz", {3664, 0, 7}},
      {"custom_allreduce_8npus/custom_allreduce.0.et.gz", {35, 0, 0}},
      {"custom_allreduce_8npus/custom_allreduce.1.et.gz", {35, 0, 0}},
      {"resnet50_dp/resnet50_DataParallel.0.et.gz", {215, 0, 54}},
      {"resnet50_dp/resnet50_DataParallel.9.et.gz", {215, 0, 54}},
      {"all_reduce_many/ALL_REDUCE_MANY_30.1.et.gz", {100, 0, 100}},
  };
  for (const auto& [name, expected] : files) {
    SCOPED_TRACE(name);
    const auto graph = read_chakra(folder / name);
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    EXPECT_EQ(graph->nodes.size(), expected.nodes);
    EXPECT_EQ(graph->dangling, expected.dependencies_lost);
    std::size_t collectives = 0;
    for (const auto& [op, n] : summarize(*graph).collectives) collectives += n;
    EXPECT_EQ(collectives, expected.collectives);
  }
}

}  // namespace
}  // namespace stepcast::chakra_reader_test
