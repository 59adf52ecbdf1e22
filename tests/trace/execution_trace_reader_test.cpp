// Hand-written execution traces, one schema or layout each.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "stepcast/trace/readers.h"

namespace stepcast::execution_trace_reader_test {
namespace {

ExecutionTrace read(std::string_view json) {
  auto trace = parse_execution_trace(json, "et.json");
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  return trace.ok() ? *std::move(trace) : ExecutionTrace{};
}

std::string message_of(std::string_view json) {
  const auto trace = parse_execution_trace(json, "et.json");
  return trace.ok() ? "no error" : trace.error().message();
}

TEST(ExecutionTraceReader, ReadsTheFlatSchema) {
  const ExecutionTrace trace =
      read(R"J({"schema": "1.0.1", "pid": 59811, "time": "2023-09-07", "start_ts": 6672645, "nodes": [
    {"name": "[pytorch|profiler|execution_graph|thread]", "id": 2, "rf_id": 0, "parent": 1, "fw_parent": 0, "seq_id": -1, "scope": 7,
     "tid": 1, "fw_tid": 0, "op_schema": "", "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "aten::slice", "id": 7, "rf_id": 3, "parent": 2, "fw_parent": 11, "seq_id": 440, "scope": 0, "tid": 2, "fw_tid": 1, "op_schema": "x",
     "inputs": [[5, 6, 0, 112, 4, "cuda:0"], 0, [[8, 9, 16, 3, 8, "cpu"], [10, 9, 0, 1, 8, "cpu"]], "<None>", 1.5, true, [256, 256]],
     "input_shapes": [[112], [], [[3], [1]], [], [], [], [[], []]],
     "input_types": ["Tensor(float)", "Int", "GenericList[Tensor(long),Tensor(long)]", "None", "Double", "Bool", "GenericList[Int,Int]"],
     "outputs": [[9, 6, 0, 48, 4, "cuda:0"]], "output_shapes": [[48]], "output_types": ["Tensor(float)"]},
    {"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "rf_id": 0, "parent": 1, "tid": 0}], "finish_ts": 6674697})J");
  EXPECT_EQ(trace.schema, "1.0.1");
  ASSERT_EQ(trace.nodes.size(), 3U);
  EXPECT_EQ(trace.nodes[2].id, 1) << "the root is the last node";
  EXPECT_EQ(trace.nodes[2].parent, 1);
  const EtNode& node = trace.nodes[1];
  EXPECT_EQ(trace.names.text(node.name), "aten::slice");
  EXPECT_EQ(node.id, 7);
  EXPECT_EQ(node.parent, 2);
  EXPECT_EQ(node.order, 3);
  EXPECT_EQ(node.sequence_number, 440);
  EXPECT_EQ(node.forward_parent, 11);
  EXPECT_EQ(node.thread, 2);
  EXPECT_EQ(node.forward_thread, 1);
  EXPECT_EQ(trace.names.text(node.input_shapes), "[[112],[],[[3],[1]],[],[],[],[[],[]]]");
  ASSERT_EQ(trace.inputs(node).size(), 3U);
  const TensorUse& tensor = trace.inputs(node)[1];
  EXPECT_EQ(tensor.tensor, 8);
  EXPECT_EQ(tensor.storage, 9);
  EXPECT_EQ(tensor.offset, 16);
  EXPECT_EQ(tensor.elements, 3);
  EXPECT_EQ(tensor.element_bytes, 8);
  EXPECT_FALSE(tensor.on_gpu);
  EXPECT_TRUE(trace.inputs(node)[0].on_gpu);
  ASSERT_EQ(trace.outputs(node).size(), 1U);
  EXPECT_EQ(trace.outputs(node)[0].tensor, 9);
  EXPECT_EQ(node.collective, -1);
}

TEST(ExecutionTraceReader, ReadsTheSchemaWithAttributes) {
  const ExecutionTrace trace = read(R"J({"schema": "1.1.1-chakra.0.0.4", "nodes": [
    {"id": 16, "name": "triton_poi_fused_0", "ctrl_deps": 9,
     "inputs": {"values": [[15, 4, 0, 16, 4, "cuda:0"], 16], "shapes": [[4, 4], []], "types": ["Tensor(float)", "Int"], "strides": [[4, 1], []]},
     "outputs": {"values": [[[[18, 6, 0, 16, 4, "cuda:0"]]]], "shapes": [[[[4, 4]]]], "types": ["x"], "strides": []},
     "attrs": [{"name": "rf_id", "type": "uint64", "value": 9}, {"name": "fw_parent", "type": "uint64", "value": 3},
               {"value": 21, "type": "int64", "name": "seq_id"}, {"name": "scope", "type": "uint64", "value": 0},
               {"name": "tid", "type": "uint64", "value": 2}, {"name": "fw_tid", "type": "uint64", "value": 1},
               {"name": "kernel_backend", "type": "string", "value": "triton"}, {"name": "tensor_range", "type": "string", "value": "{\"0\":[1,2]}"}]},
    {"id": 17, "name": "no attributes", "ctrl_deps": 16}]})J");
  EXPECT_EQ(trace.schema, "1.1.1-chakra.0.0.4");
  ASSERT_EQ(trace.nodes.size(), 2U);
  const EtNode& node = trace.nodes[0];
  EXPECT_EQ(node.parent, 9);
  EXPECT_EQ(node.order, 9);
  EXPECT_EQ(node.forward_parent, 3);
  EXPECT_EQ(node.sequence_number, 21) << "the value stood before the name";
  EXPECT_EQ(node.thread, 2);
  EXPECT_EQ(trace.names.text(node.input_types), "[\"Tensor(float)\",\"Int\"]");
  EXPECT_EQ(trace.inputs(node).size(), 1U);
  ASSERT_EQ(trace.outputs(node).size(), 1U) << "tensors in nested lists";
  EXPECT_EQ(trace.outputs(node)[0].tensor, 18);
  EXPECT_EQ(trace.nodes[1].order, 17) << "the id where there is no rf_id";
}

std::string flat_comms(std::string_view inputs, std::string_view types, std::string_view outputs = "[]") {
  return R"J({"name": "record_param_comms", "id": 9, "rf_id": 4, "parent": 1, "tid": 1, "inputs": )J" +
         std::string(inputs) + R"J(, "input_types": )J" + std::string(types) + R"J(, "outputs": )J" +
         std::string(outputs) + "}";
}

TEST(ExecutionTraceReader, ReadsCollectivesOfEveryLayout) {
  const ExecutionTrace trace = read(
      R"J({"schema": "1.0.1", "nodes": [)J" +
      // 1.0.1: a bare tensor, the group as a pointer, splits.
      flat_comms(
          R"J([[718, 715, 0, 6144, 4, "cuda:0"], 147, 94594108284448, 3, "all_to_allv", [768, 5376], [3072, 3072]])J",
          R"J(["Tensor(float)", "Int"])J", R"J([[723, 724, 0, 6000, 4, "cuda:0"]])J") +
      "," +
      // 1.0.1: its wait.
      flat_comms(R"J([147, 0, 3, "wait", [], []])J", R"J(["Int"])J") + "," +
      // 1.0.2: tensors in lists, the group's size at the end.
      flat_comms(
          R"J([[[14, 15, 0, 1, 8, "cuda:0"], [16, 15, 0, 2, 8, "cuda:0"]], 12, 82149104, 3, "all_gather", [], [], 2])J",
          R"J(["GenericList[Tensor(long),Tensor(long)]", "Int"])J",
          R"J([[[[19, 20, 0, 3, 8, "cuda:0"], [5, 23, 0, 3, 8, "cuda:0"]]]])J") +
      "," +
      // 1.0.3: the group's name and description, start, stride and size at the end.
      flat_comms(
          R"J([[[1, 2, 0, 53120, 2, "cuda:1"]], 33, ["7", "tp_group"], 1, "allreduce", [], [], 1, 2, 4])J",
          R"J(["GenericList[Tensor(c10::BFloat16)]", "Int"])J") +
      "," +
      // Later: the sequence number as a tuple.
      flat_comms(
          R"J([[[1, 2, 0, 8, 2, "cuda:1"]], [34, false], ["7", ""], 0, "broadcast", [], [], 1, 2, 4])J",
          "[]") +
      "]}");
  ASSERT_EQ(trace.collectives.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(trace.nodes[i].collective, static_cast<std::int32_t>(i));

  const EtCollective& a2a = trace.collectives[0];
  EXPECT_EQ(a2a.op, CollectiveOp::all_to_all);
  EXPECT_FALSE(a2a.is_wait);
  EXPECT_EQ(a2a.sequence, 147);
  EXPECT_EQ(a2a.elements_in, 6144);
  EXPECT_EQ(a2a.elements_out, 6000);
  EXPECT_EQ(a2a.dtype, DType::fp32);
  EXPECT_EQ(a2a.group_size, -1);
  EXPECT_EQ(trace.names.text(a2a.process_group), "94594108284448");
  EXPECT_EQ(a2a.in_split, (std::vector<std::int64_t>{768, 5376}));
  EXPECT_EQ(a2a.out_split, (std::vector<std::int64_t>{3072, 3072}));

  const EtCollective& wait = trace.collectives[1];
  EXPECT_TRUE(wait.is_wait);
  EXPECT_EQ(wait.sequence, 147);
  EXPECT_EQ(wait.elements_in, -1);
  EXPECT_FALSE(wait.process_group.valid());

  const EtCollective& gather = trace.collectives[2];
  EXPECT_EQ(gather.op, CollectiveOp::all_gather);
  EXPECT_EQ(gather.group_size, 2);
  EXPECT_EQ(gather.elements_in, 3);
  EXPECT_EQ(gather.elements_out, 6);
  EXPECT_EQ(gather.dtype, DType::int64);

  const EtCollective& reduce = trace.collectives[3];
  EXPECT_EQ(reduce.sequence, 33);
  EXPECT_EQ(reduce.group_size, 4);
  EXPECT_EQ(reduce.dtype, DType::bf16);
  EXPECT_EQ(trace.names.text(reduce.process_group), "7");

  EXPECT_EQ(trace.collectives[4].sequence, 34);
  EXPECT_EQ(trace.rank, 3)
      << "also as the second of the ranks 1, 3, 5, 7; the root of a broadcast does not count";
}

TEST(ExecutionTraceReader, LeavesOutARankThatCollectivesDoNotAgreeOn) {
  const ExecutionTrace trace =
      read(R"J({"nodes": [)J" + flat_comms(R"J([1, 5, 0, "allreduce", [], []])J", "[]") + "," +
           flat_comms(R"J([2, 5, 1, "allreduce", [], []])J", "[]") + "]}");
  EXPECT_FALSE(trace.rank.has_value());
}

TEST(ExecutionTraceReader, PrefersTheAttributesOfACollective) {
  const ExecutionTrace trace = read(R"J({"schema": "1.1.0", "nodes": [
    {"id": 437, "name": "record_param_comms", "ctrl_deps": 436,
     "inputs": {"values": [[[434, 435, 0, 53120, 4, "cuda:1"]], 33, ["0", "default_pg"], 1, "allreduce", [], [], 0, 1, 2], "shapes": [], "types": ["GenericList[Tensor(float)]"]},
     "outputs": {"values": [], "shapes": [], "types": []},
     "attrs": [{"name": "rf_id", "type": "uint64", "value": 115}, {"name": "collective_name", "type": "string", "value": "reduce_scatter"},
               {"name": "dtype", "type": "string", "value": "Half"}, {"name": "in_msg_nelems", "type": "uint64", "value": 100},
               {"name": "out_msg_nelems", "type": "uint64", "value": 50}, {"name": "in_split_size", "type": "string", "value": "[60, 40]"},
               {"name": "out_split_size", "type": "string", "value": "[]"}, {"name": "pg_name", "type": "string", "value": "g"},
               {"name": "pg_size", "type": "uint64", "value": 16}]}]})J");
  ASSERT_EQ(trace.collectives.size(), 1U);
  const EtCollective& info = trace.collectives[0];
  EXPECT_EQ(info.op, CollectiveOp::reduce_scatter);
  EXPECT_EQ(info.dtype, DType::fp16);
  EXPECT_EQ(info.elements_in, 100);
  EXPECT_EQ(info.elements_out, 50);
  EXPECT_EQ(info.in_split, (std::vector<std::int64_t>{60, 40}));
  EXPECT_EQ(info.group_size, 16);
  EXPECT_EQ(trace.names.text(info.process_group), "g");
  EXPECT_EQ(info.sequence, 33);
}

TEST(ExecutionTraceReader, LeavesOutMergedProfilerEvents) {
  const ExecutionTrace trace = read(R"J({"nodes": [
    {"name": "aten::mm", "id": 4, "rf_id": 2, "parent": 1, "ts": 5, "dur": 6},
    {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 1, "dur": 1, "args": {"stream": 7}, "parent": 4, "id": 5, "inputs": [[1,2,0,4,4,"cuda:0"]]},
    {"ph": "X", "cat": "kernel", "name": "sgemm"},
    {"ph": "X", "name": "?"}]})J");
  EXPECT_EQ(trace.nodes.size(), 1U);
  EXPECT_TRUE(trace.tensors.empty());
  EXPECT_EQ(trace.skipped, (std::map<std::string, std::uint64_t>{{"kernel", 2}, {"no category", 1}}));
}

TEST(ExecutionTraceReader, TellsTensorsFromOtherLists) {
  const auto tensors = [](std::string_view inputs) {
    return read(R"J({"nodes": [{"id": 1, "inputs": )J" + std::string(inputs) + "}]}").tensors.size();
  };
  EXPECT_EQ(tensors(R"J([[1, 2, 3, 4, 5, "cuda:0"]])J"), 1U);
  EXPECT_EQ(tensors(R"J([[1, 2, 3, 4, 5, 6]])J"), 0U);
  EXPECT_EQ(tensors(R"J([[1, 2, 3, 4, 5]])J"), 0U);
  EXPECT_EQ(tensors(R"J([[1, 2, 3, 4, 5, "cuda:0", 7]])J"), 0U);
  EXPECT_EQ(tensors(R"J([[1, 2, 3, 4.5, 5, "cuda:0"]])J"), 0U);
  EXPECT_EQ(tensors(R"J([["1", "2", "3", "4", "5", "cuda:0"]])J"), 0U);
  EXPECT_EQ(tensors(R"J("none")J"), 0U);
  EXPECT_EQ(tensors(std::string(100, '[') + R"J(1, 2, 3, 4, 5, "cuda:0")J" + std::string(100, ']')), 0U)
      << "deeper than any list";
}

TEST(ExecutionTraceReader, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(message_of(R"J({"nodes": [{"id": 1}, {"name": "x"}]})J"),
            "et.json: nodes[1] at byte 22: found a node without a whole number as \"id\", expected one; the "
            "node is damaged");
  EXPECT_EQ(message_of(R"J({"nodes": [{"id": 1, "inputs": [1 2]}, {"id": 5, "attrs": [{"name" "x"}]}]})J"),
            "et.json: nodes[1] at byte 67: found \"\"x\"}]}\", expected ':'; the node is damaged");
  EXPECT_EQ(message_of(R"J({"nodes": [7]})J"),
            "et.json: nodes[0] at byte 11: found \"7\", expected a node (a JSON object)");
  EXPECT_EQ(message_of(R"J({"traceEvents": []})J"),
            "et.json: found a profiler trace (a list of \"traceEvents\"), expected a PyTorch execution trace "
            "(an object with a "
            "list of \"nodes\")");
  EXPECT_EQ(
      message_of("[]"),
      "et.json: found a JSON list, expected a PyTorch execution trace (an object with a list of \"nodes\")");
  EXPECT_EQ(message_of("{}"),
            "et.json: found a JSON object without \"nodes\", expected a PyTorch execution trace");
}

}  // namespace
}  // namespace stepcast::execution_trace_reader_test
