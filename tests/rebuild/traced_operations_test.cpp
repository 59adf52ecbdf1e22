#include "stepcast/rebuild/traced_operations.h"

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/detail/call_parser.h"
#include "stepcast/trace/readers.h"

#include "tests/support/data.h"

namespace stepcast::traced_operations_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ExecutionTrace trace_of(std::string_view nodes) {
  auto trace =
      parse_execution_trace(fmt::format(R"({{"schema": "1.0.1", "nodes": [{}]}})", nodes), "et.json");
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  return trace.ok() ? *std::move(trace) : ExecutionTrace{};
}

// "operator: operation" in the order of the file.
std::vector<std::string> listed(const ExecutionTrace& trace, const TracedOperations& traced) {
  std::vector<std::string> out;
  for (const TracedOperation& operation : traced.operations) {
    out.push_back(fmt::format("{}: {}", trace.names.text(trace.nodes[operation.node].name),
                              describe(operation.operation)));
  }
  return out;
}

// A node of the flat schema with tensors [id, id, 0, elements, 4, device] of fp32.
struct Operand {
  std::string shape;
  const char* device = "cuda:0";
};
std::string node(int id, int parent, const char* name, const std::vector<Operand>& operands = {}) {
  std::string inputs, shapes, types;
  for (const Operand& operand : operands) {
    const char* comma = inputs.empty() ? "" : ",";
    inputs += fmt::format(R"({}[1,1,0,1,4,"{}"])", comma, operand.device);
    shapes += comma + operand.shape;
    types += fmt::format(R"J({}"Tensor(float)")J", comma);
  }
  return fmt::format(
      R"({{"name": "{}", "id": {}, "rf_id": {}, "parent": {}, "tid": 1, "inputs": [{}], "input_shapes": [{}],
          "input_types": [{}], "outputs": [], "output_shapes": [], "output_types": []}})",
      name, id, id, parent, inputs, shapes, types);
}

TEST(TracedOperations, CountsNestedOperatorsOnce) {
  const std::vector<Operand> layer{{"[8,16]"}, {"[4,16]"}, {"[4]"}};
  const ExecutionTrace trace = trace_of(
      node(2, 1, "aten::linear", layer) + "," + node(3, 2, "aten::t", {{"[4,16]"}}) + "," +
      node(4, 2, "aten::addmm", {{"[4]"}, {"[8,16]"}, {"[16,4]"}}) + "," + node(1, 1, "## forward ##"));
  const TracedOperations traced = traced_operations(trace);
  EXPECT_THAT(listed(trace, traced), ElementsAre("aten::addmm: gemm fp32 forward m=8 n=4 k=16 bias"));
  EXPECT_EQ(traced.launching_operators, 1U);
  EXPECT_EQ(traced.modelled_operators, 1U);
  EXPECT_THAT(traced.unmodelled, IsEmpty());
  EXPECT_THAT(traced.stands_for, ElementsAre(-1, -1, 2, -1));
}

TEST(TracedOperations, ACompositeStandsInWhereNothingIsRecordedBelowIt) {
  const ExecutionTrace trace = trace_of(
      node(2, 1, "aten::linear", {{"[8,16]"}, {"[4,16]"}}) + "," + node(3, 2, "aten::t", {{"[4,16]"}}) + "," +
      // Passes its input on: the tensor was contiguous.
      node(4, 1, "aten::contiguous", {{"[8,4]"}}) + "," + node(5, 1, "AddmmBackward0", {{"[8,4]"}}));
  const TracedOperations traced = traced_operations(trace);
  EXPECT_THAT(listed(trace, traced), ElementsAre("aten::linear: gemm fp32 forward m=8 n=4 k=16"));
  EXPECT_THAT(traced.unmodelled, IsEmpty());
  EXPECT_THAT(traced.stands_for, ElementsAre(0, 0, -1, -1));
}

TEST(TracedOperations, AKernelStandsForWhatItCalls) {
  const ExecutionTrace trace =
      trace_of(node(2, 1, "aten::embedding_dense_backward", {{"[8,16]"}, {"[8]"}}) + "," +
               node(3, 2, "aten::zero_", {{"[100,16]"}}) + "," + node(4, 1, "aten::zero_", {{"[2]"}}));
  const TracedOperations traced = traced_operations(trace);
  EXPECT_EQ(listed(trace, traced).size(), 2U);
  EXPECT_THAT(traced.stands_for, ElementsAre(0, 0, 2));
}

// Autocast: the operator casts what it was called with, and calls itself. What ran is the product in bf16, and the cast.
TEST(TracedOperations, UnderAutocastTheInnerCallCounts) {
  std::string inner = node(5, 2, "aten::mm", {{"[8,16]"}, {"[16,4]"}});
  for (std::size_t at = inner.find("(float)"); at != std::string::npos; at = inner.find("(float)"))
    inner.replace(at, 7, "(c10::BFloat16)");
  const ExecutionTrace trace =
      trace_of(node(2, 1, "aten::mm", {{"[8,16]"}, {"[16,4]"}}) + "," + node(3, 2, "aten::to", {{"[8,16]"}}) +
               "," + node(4, 3, "aten::copy_", {{"[8,16]"}, {"[8,16]"}}) + "," + inner);
  const TracedOperations traced = traced_operations(trace);
  EXPECT_THAT(listed(trace, traced),
              ElementsAre(HasSubstr("aten::copy_: "), "aten::mm: gemm bf16 forward m=8 n=4 k=16"));
  EXPECT_THAT(traced.stands_for, ElementsAre(-1, -1, 2, 3));
}

TEST(TracedOperations, WorkOfTheCpuIsNone) {
  const ExecutionTrace trace = trace_of(node(2, 1, "aten::add", {{"[8]", "cpu"}, {"[8]", "cpu"}}) + "," +
                                        node(3, 1, "mylib::op", {{"[8]", "cpu"}}));
  const TracedOperations traced = traced_operations(trace);
  EXPECT_THAT(traced.operations, IsEmpty());
  EXPECT_THAT(traced.unmodelled, IsEmpty());
  EXPECT_EQ(traced.launching_operators, 0U);
}

TEST(TracedOperations, WhatIsNotKnownIsCountedByName) {
  const ExecutionTrace trace = trace_of(
      // A wrapper around known operators is no gap, nor is one around a collective.
      node(2, 1, "MyFunction", {{"[8]"}}) + "," + node(3, 2, "aten::relu", {{"[8]"}}) + "," +
      node(4, 3, "aten::clamp_min", {{"[8]"}}) + "," + node(5, 1, "Req", {{"[8]"}}) + "," +
      node(6, 5, "c10d::alltoall_base_", {{"[8]"}}) + "," +
      // A kernel of its own, with nothing below but an allocation; and shapes that do not fit.
      node(7, 1, "mylib::op", {{"[8]"}}) + "," + node(8, 7, "aten::empty") + "," +
      node(9, 1, "mylib::op", {{"[8]"}}) + "," + node(10, 1, "aten::mm", {{"[8,3]"}, {"[4,5]"}}));
  const TracedOperations traced = traced_operations(trace);
  EXPECT_EQ(traced.operations.size(), 1U);
  ASSERT_EQ(traced.unmodelled.size(), 2U);
  EXPECT_EQ(traced.unmodelled.at("mylib::op").count, 2U);
  EXPECT_EQ(traced.unmodelled.at("mylib::op").why, "not known");
  EXPECT_EQ(traced.unmodelled.at("aten::mm").count, 1U);
  EXPECT_THAT(traced.unmodelled.at("aten::mm").why, HasSubstr("3 and 4"));
  EXPECT_EQ(traced.launching_operators, 4U);
  EXPECT_EQ(traced.modelled_operators, 1U);
}

TEST(TracedOperations, BearsCirclesOfParents) {
  const ExecutionTrace trace =
      trace_of(node(2, 3, "aten::neg", {{"[8]"}}) + "," + node(3, 2, "aten::neg", {{"[8]"}}) + "," +
               node(4, 99, "aten::neg", {{"[8]"}}));
  EXPECT_EQ(traced_operations(trace).operations.size(), 1U);
}

TEST(CallParser, ReadsNestedLists) {
  const TensorUse uses[] = {{.on_gpu = true}, {.on_gpu = false}, {.on_gpu = true}, {.on_gpu = true}};
  const detail::ParsedArguments parsed = detail::parse_arguments(
      R"([null,null,7,true,0.5,[3,-1],"ij,jk->ik",null,[true,false],"<None>"])",
      R"([[2,3],[[4],[]],[],[],[],[[],[]],[],[],[[],[]],[]])",
      R"J(["Tensor(c10::BFloat16)","GenericList[Tensor(long int),Tensor(float)]","Int","Bool","Double","GenericList[Int,Int]","String","Tensor(nullptr (uninitialized))","GenericList[Bool,Bool]","None"])J",
      uses);
  ASSERT_EQ(parsed.tensors.size(), 3U);
  EXPECT_EQ(parsed.tensors[0].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(parsed.tensors[0].dtype, DType::bf16);
  EXPECT_EQ(parsed.tensors[1].dtype, DType::int64);
  EXPECT_FALSE(parsed.tensors[1].on_gpu);
  EXPECT_EQ(parsed.tensors[2].shape, std::vector<std::int64_t>{});
  using Kind = CallArgument::Kind;
  ASSERT_EQ(parsed.arguments.size(), 10U);
  EXPECT_EQ(parsed.arguments[0].kind, Kind::tensor);
  EXPECT_EQ(parsed.arguments[1].kind, Kind::tensors);
  EXPECT_EQ(parsed.arguments[1].first_tensor, 1U);
  EXPECT_EQ(parsed.arguments[1].tensors, 2U);
  EXPECT_EQ(parsed.arguments[2].integer, 7);
  EXPECT_EQ(parsed.arguments[3].integer, 1);
  EXPECT_EQ(parsed.arguments[4].real, 0.5);
  EXPECT_EQ(parsed.arguments[5].integers, (std::vector<std::int64_t>{3, -1}));
  EXPECT_EQ(parsed.arguments[6].text, "ij,jk->ik");
  EXPECT_EQ(parsed.arguments[7].kind, Kind::none) << "a tensor that is not defined";
  EXPECT_EQ(parsed.arguments[8].integers, (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(parsed.arguments[9].kind, Kind::none);
}

// The targets of coverage, on every recorded execution trace that has GPU work.
TEST(TracedOperations, CoversTheKernelTimeOfRecordedTraces) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "traces";
  std::vector<std::pair<std::string, std::string>> pairs{
      {"vgg13/et_vgg13.json.gz", "vgg13/kineto_vgg13.json.gz"},
      {"resnet_linear/resnet_et.json.gz", "resnet_linear/resnet_kineto.json.gz"},
      {"resnet_linear/linear_et.json.gz", "resnet_linear/linear_kineto.json.gz"}};
  for (int rank = 0; rank < 8; ++rank) {
    pairs.emplace_back(fmt::format("dlrm8/et_rank{}.json.gz", rank),
                       fmt::format("dlrm8/kineto_rank{}.json.gz", rank));
  }
  for (const auto& [et_file, kineto_file] : pairs) {
    const auto trace = read_execution_trace(folder / et_file);
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    const auto recorded = read_kineto(folder / kineto_file);
    ASSERT_TRUE(recorded.ok()) << recorded.error().message();
    const TracedOperations traced = traced_operations(*trace);
    EXPECT_EQ(traced.modelled_operators, traced.launching_operators) << et_file;
    const auto coverage = kernel_time_coverage(*trace, traced, *recorded);
    ASSERT_TRUE(coverage.ok()) << coverage.error().message();
    EXPECT_GT(coverage->computation.value(), 900) << et_file;
    EXPECT_GE(coverage->modelled / coverage->computation, 0.99) << et_file;
  }
}

// The bytes that are counted as compulsory cannot have been moved faster than memory can. A count that is too
// high, or a call whose work is counted twice, breaks this; one that is far too low breaks the other bound.
TEST(TracedOperations, CountsBytesThatTheMemoryOfTheGpuCanMove) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "traces/vgg13";
  const auto trace = read_execution_trace(folder / "et_vgg13.json.gz");
  const auto recorded = read_kineto(folder / "kineto_vgg13.json.gz");
  ASSERT_TRUE(trace.ok() && recorded.ok());
  const TracedOperations traced = traced_operations(*trace);
  const auto coverage = kernel_time_coverage(*trace, traced, *recorded);
  ASSERT_TRUE(coverage.ok()) << coverage.error().message();
  constexpr double kPeakBytesPerUs = 3.35e6;  // H100 SXM data sheet, 3.35 TB/s
  constexpr double kBeyondCache = 1e9;        // its last-level cache holds 5e7 bytes
  std::map<std::string, double> bytes;
  std::map<std::string, std::string> family;
  for (const TracedOperation& operation : traced.operations) {
    const std::string name(trace->names.text(trace->nodes[operation.node].name));
    bytes[name] += work_of(operation.operation).bytes().value();
    family[name] = family_of(operation.operation);
  }
  int checked = 0;
  for (const auto& [name, moved] : bytes) {
    if (moved < kBeyondCache || (family[name] != "elementwise" && family[name] != "relu")) continue;
    const double share = moved / coverage->time_of_operator.at(name).value() / kPeakBytesPerUs;
    EXPECT_LT(share, 1.0) << name;
    EXPECT_GT(share, 0.5) << name;
    ++checked;
  }
  EXPECT_GE(checked, 8);
}

TEST(TracedOperations, CountsTheFlopsOfResNet50) {
  SKIP_WITHOUT_DATA();
  // One forward of ResNet-50 on 224 x 224 takes 4.09e9 multiply-adds in convolutions and its classifier (the
  // sum over its layers of output pixels x kernel x channels); three steps of 32 images are recorded. The
  // backward does each twice, except for the first layer, which has no gradient of its input.
  const auto trace =
      read_execution_trace(*test::measured_data() / "traces/et_schemas/schema_1.0.3_resnet_1gpu.json.gz");
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  std::map<std::string, double> flops;
  for (const TracedOperation& operation : traced_operations(*trace).operations) {
    flops[std::string(trace->names.text(trace->nodes[operation.node].name))] +=
        work_of(operation.operation).flops.value();
  }
  const double forward = flops["aten::cudnn_convolution"] + flops["aten::addmm"];
  EXPECT_NEAR(forward, 2 * 4.089e9 * 32 * 3, 0.001 * forward);
  const double first_layer = 2.0 * 32 * 3 * 64 * 112 * 112 * 7 * 7 * 3;
  EXPECT_NEAR(flops["aten::convolution_backward"], 2 * flops["aten::cudnn_convolution"] - first_layer,
              1e-6 * forward);
  EXPECT_EQ(flops["aten::mm"], 2 * flops["aten::addmm"]);
}

}  // namespace
}  // namespace stepcast::traced_operations_test
