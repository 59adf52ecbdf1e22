#include "stepcast/predict/untimed_program.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/replay.h"
#include "stepcast/retrace/host_prices.h"
#include "stepcast/retrace/recorded_prices.h"
#include "stepcast/trace/readers.h"

#include "calibrate/overhead_fit.h"
#include "tests/support/trace_generator.h"

namespace stepcast::untimed_program_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

// A label around a product (2 launches were seen), an all-reduce of its result (storage 7), a view, and a sum that
// reads the reduced storage.
ExecutionTrace small_trace() {
  return value_of(parse_execution_trace(R"J({"schema": "1.0.1", "pid": 1, "nodes": [
    {"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "rf_id": 0, "parent": 1, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "## forward ##", "id": 2, "rf_id": 1, "parent": 1, "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "aten::mm", "id": 3, "rf_id": 2, "parent": 2, "inputs": [[1, 5, 0, 128, 4, "cuda:0"], [2, 6, 0, 64, 4, "cuda:0"]], "input_shapes": [[8, 16], [16, 4]], "input_types": ["Tensor(float)", "Tensor(float)"],
     "outputs": [[3, 7, 0, 32, 4, "cuda:0"]], "output_shapes": [[8, 4]], "output_types": ["Tensor(float)"]},
    {"name": "nccl:all_reduce", "id": 4, "rf_id": 3, "parent": 2, "inputs": [[3, 7, 0, 32, 4, "cuda:0"]], "input_shapes": [[8, 4]], "input_types": ["Tensor(float)"], "outputs": [[3, 7, 0, 32, 4, "cuda:0"]], "output_shapes": [[8, 4]], "output_types": ["Tensor(float)"]},
    {"name": "aten::view", "id": 6, "rf_id": 5, "parent": 2, "inputs": [[3, 7, 0, 32, 4, "cuda:0"]], "input_shapes": [[8, 4]], "input_types": ["Tensor(float)"], "outputs": [[4, 7, 0, 32, 4, "cuda:0"]], "output_shapes": [[32]], "output_types": ["Tensor(float)"]},
    {"name": "aten::relu", "id": 7, "rf_id": 6, "parent": 2, "inputs": [[4, 7, 0, 32, 4, "cuda:0"]], "input_shapes": [[32]], "input_types": ["Tensor(float)"], "outputs": [[5, 8, 0, 32, 4, "cuda:0"]], "output_shapes": [[32]], "output_types": ["Tensor(float)"]}
  ]})J",
                                        "et_rank0.json"));
}

TEST(UntimedProgram, TakesTheOverheadsOfEveryOperatorInOrder) {
  const ExecutionTrace trace = small_trace();
  const std::vector<UntimedRank> ranks{{&trace, 0, 0}};
  const RecordedProgram untimed =
      value_of(untimed_program(ranks, {{"aten::mm", {{"cudaLaunchKernel", "cudaLaunchKernel"}, 2, 5}}}));
  std::string host, gpu;
  for (const TaskInfo& task : untimed.program.blocks()[0].tasks()) {
    if (const HostWork* work = untimed.program.works.host(task.work)) {
      host += std::string{to_string(work->type)} + " ";
    } else {
      gpu += std::string{untimed.program.names.text(task.name)} + " ";
    }
  }
  // mm: T1 T2, launch, T5, launch, T3. What was never seen makes as many launches as its work has kernels: the
  // all-reduce and the view none that is known, relu one.
  EXPECT_THAT(host, HasSubstr("T1 T2 T4 T5 T4 T3 T1"));
  EXPECT_THAT(gpu, HasSubstr("aten::mm aten::mm "));
  EXPECT_THAT(gpu, HasSubstr("aten::relu"));
  EXPECT_TRUE(untimed.program.check().ok()) << untimed.program.check().error().message();
  // Both kernels share one product.
  double products = 0;
  for (const TaskInfo& task : untimed.program.blocks()[0].tasks()) {
    if (task.kind == TaskKind::kernel && untimed.program.names.text(task.name) == "aten::mm")
      products += task.work_times;
  }
  EXPECT_DOUBLE_EQ(products, 1);
}

// One operator of a record of a dry run, on a stream; `more`: further attributes.
std::string recorded_node(int id, std::string_view name, int stream, std::string_view more = {}) {
  std::string text = R"J({"id": ID, "name": "NAME", "ctrl_deps": 1,
    "inputs": {"values": [[3, 7, 0, 32, 4, "cuda:0"]], "shapes": [[8, 4]], "types": ["Tensor(float)"]},
    "outputs": {"values": [[3, 7, 0, 32, 4, "cuda:0"]], "shapes": [[8, 4]], "types": ["Tensor(float)"]},
    "attrs": [{"name": "rf_id", "type": "uint64", "value": ID}, {"name": "stream", "type": "uint64", "value": STREAM} MORE]},
)J";
  for (const auto& [word, value] : {std::pair{std::string_view{"ID"}, std::to_string(id)},
                                    {"NAME", std::string{name}},
                                    {"STREAM", std::to_string(stream)},
                                    {"MORE", std::string{more}}}) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
      text.replace(at, word.size(), value);
  }
  return text;
}

constexpr std::string_view kAllReduce =
    R"J(, {"name": "collective_name", "type": "string", "value": "allreduce"},
    {"name": "pg_name", "type": "string", "value": "5"}, {"name": "dtype", "type": "string", "value": "Float"},
    {"name": "in_msg_nelems", "type": "uint64", "value": 32}, {"name": "out_msg_nelems", "type": "uint64", "value": 32})J";
constexpr std::string_view kWait = R"J(, {"name": "collective_name", "type": "string", "value": "wait"},
    {"name": "pg_name", "type": "string", "value": "5"})J";
constexpr std::string_view kAnEvent =
    R"J(, {"name": "runtime_before", "type": "string", "value": "record 0 3; wait 7 3"})J";

// A relu on stream 0, an all-reduce that stream 7 waits for, a gelu on stream 7 behind an event of stream 0, a tanh on stream 0
// that waits for nothing of it, and a host that waits for stream 7 in the end.
ExecutionTrace recorded_without_gpu(std::string_view ranks = "[0, 1]", int rank = 0) {
  std::string text =
      R"J({"schema": "1.1.1", "stepcast": {"format": 1, "world_size": 4, "ranks": [0, 9], "notes": ["half of them"],
    "start_allocated_bytes": 400, "peak_allocated_bytes": 1000, "peak_reserved_bytes": 2000,
    "tf32": {"matmul": false, "cudnn": true}, "channels_last": true, "runtime_after": ["sync_stream 7"], "rank": )J";
  text += std::to_string(rank);
  text += R"J(}, "nodes": [{"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1},
    {"id": 2, "name": "## process_group:init ##", "ctrl_deps": 1,
     "inputs": {"values": ["[{\"pg_name\": \"5\", \"ranks\": )J";
  text += ranks;
  text += R"J(}]"], "shapes": [[]], "types": ["String"]}},)J";
  text += recorded_node(11, "aten::relu", 0) + recorded_node(12, "record_param_comms", 0, kAllReduce) +
          recorded_node(13, "record_param_comms", 7, kWait) + recorded_node(14, "aten::gelu", 7, kAnEvent) +
          recorded_node(15, "aten::tanh", 0);
  text.resize(text.rfind(','));
  return value_of(parse_execution_trace(text + "]}", "rank" + std::to_string(rank) + ".json"));
}

TEST(UntimedProgram, FollowsTheStreamsOfADryRun) {
  const ExecutionTrace trace = recorded_without_gpu();
  const std::vector<UntimedRank> ranks{{&trace, 0, 0}};
  const RecordedProgram untimed = value_of(untimed_program(ranks, {}));
  ASSERT_TRUE(untimed.program.check().ok()) << untimed.program.check().error().message();
  const Block& block = untimed.program.blocks()[0];
  std::vector<std::string> lanes;
  for (const Lane& lane : block.lanes()) lanes.push_back(lane.name);
  EXPECT_THAT(lanes, ElementsAre("all threads", "computation", "communication, group 5", "stream 7"));

  const auto waits_of = [&](std::string_view op) {
    std::vector<std::string> waits;
    for (std::size_t i = 0; i < block.task_count(); ++i) {
      const TaskInfo& task = block.tasks()[i];
      if (untimed.program.names.text(task.name) != op ||
          block.lanes()[block.lane_codes()[i]].kind != LaneKind::gpu_stream)
        continue;
      for (std::uint32_t e = block.first_edge()[i]; e < block.first_edge()[i + 1]; ++e) {
        const std::uint32_t from = block.sources()[e] / 2;
        if (block.edge_infos()[e].origin == EdgeOrigin::event)
          waits.emplace_back(untimed.program.names.text(block.tasks()[from].name));
      }
    }
    return waits;
  };
  EXPECT_THAT(waits_of("record_param_comms"), ElementsAre("aten::relu"));
  EXPECT_THAT(waits_of("aten::gelu"), ::testing::UnorderedElementsAre("record_param_comms", "aten::relu"));
  EXPECT_THAT(waits_of("aten::tanh"), ElementsAre());

  // Twice as many ranks as records; the group has two, of which one is recorded.
  EXPECT_EQ(untimed.program.rank_classes()[0].multiplicity, 2U);
  EXPECT_EQ(untimed.program.rank_classes()[0].name, "ranks 0, 9");
  ASSERT_EQ(untimed.program.groups().size(), 2U);
  EXPECT_THAT(untimed.program.groups()[1].ranks, ElementsAre(0U, 1U));
  ASSERT_TRUE(untimed.facts[0].memory);
  EXPECT_EQ(untimed.facts[0].memory->reserved_bytes, 2000);
}

// Others than `aten::relu` always made two calls; `aten::gelu` sometimes one and sometimes five.
TEST(UntimedProgram, ADryRunLaunchesWhatItRecordedUnlessTheOperatorAlwaysMakesMoreCalls) {
  const ExecutionTrace trace = recorded_without_gpu();
  const std::vector<UntimedRank> ranks{{&trace, 0, 0}};
  const std::vector<std::string> twice(2, "cudaLaunchKernel"), often(5, "cudaLaunchKernel");
  const RecordedProgram untimed =
      value_of(untimed_program(ranks, {{"aten::relu", {twice, 2, 5}}, {"aten::gelu", {often, 3, 5}}}));
  const Block& block = untimed.program.blocks()[0];
  const auto kernels_of = [&](std::string_view op) {
    return std::ranges::count_if(block.tasks(), [&](const TaskInfo& task) {
      return task.kind == TaskKind::kernel && untimed.program.names.text(task.name) == op;
    });
  };
  EXPECT_EQ(kernels_of("aten::relu"), 2);
  EXPECT_EQ(kernels_of("aten::gelu"), 1);
  EXPECT_TRUE(untimed.is_dry_run);
  EXPECT_TRUE(untimed.channels_last);
}

// An operator of no stream of its own calls one on stream 7 that the host waits for.
TEST(UntimedProgram, TheHostWaitsForTheStreamThatWasRecorded) {
  constexpr std::string_view kSync = R"J(, {"name": "sync", "type": "string", "value": "stream"})J";
  std::string outer = R"J({"id": 20, "name": "aten::item", "ctrl_deps": 1, "attrs": []},)J";
  std::string inner = recorded_node(21, "aten::gelu", 7, kSync);
  inner.replace(inner.find("\"ctrl_deps\": 1"), 14, "\"ctrl_deps\": 20");
  inner.resize(inner.rfind(','));
  const ExecutionTrace trace = value_of(parse_execution_trace(
      R"J({"schema": "1.1.1", "stepcast": {"format": 1, "rank": 0}, "nodes": [
        {"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1},)J" +
          outer + inner + "]}",
      "rank0.json"));
  const std::vector<UntimedRank> ranks{{&trace, 0, 0}};
  const RecordedProgram untimed = value_of(untimed_program(ranks, {}));
  const Block& block = untimed.program.blocks()[0];
  std::vector<std::string> waits;
  for (std::size_t i = 0; i < block.task_count(); ++i) {
    if (block.tasks()[i].kind != TaskKind::sync_return) continue;
    for (std::uint32_t e = block.first_edge()[i]; e < block.first_edge()[i + 1]; ++e)
      waits.push_back(block.lanes()[block.lane_codes()[block.sources()[e] / 2]].name);
  }
  EXPECT_THAT(waits, ElementsAre("stream 7"));
}

// Ranks 0 and 2 are in different groups: nobody waits for the other.
TEST(UntimedProgram, JoinsTheRanksOfAProcessGroup) {
  const ExecutionTrace first = recorded_without_gpu("[0, 1]", 0), other = recorded_without_gpu("[2, 3]", 2),
                       same = recorded_without_gpu("[0, 1]", 1);
  const std::vector<UntimedRank> apart{{&first, 0, 0}, {&other, 2, 0}},
      together{{&first, 0, 0}, {&same, 1, 0}};
  const RecordedProgram of_two = value_of(untimed_program(apart, {})),
                        of_one = value_of(untimed_program(together, {}));
  EXPECT_EQ(of_two.program.collectives().size(), 2U);
  ASSERT_EQ(of_one.program.collectives().size(), 1U);
  EXPECT_EQ(of_one.program.collectives()[0].members.size(), 2U);
}

TEST(UntimedProgram, SaysWhatIsWrong) {
  const ExecutionTrace trace = small_trace();
  const Result<RecordedProgram> none = untimed_program({}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message(), HasSubstr("no execution trace was given"));
  const std::vector<UntimedRank> twice{{&trace, 3, 0}, {&trace, 3, 0}};
  const Result<RecordedProgram> same = untimed_program(twice, {});
  ASSERT_FALSE(same.ok());
  EXPECT_THAT(same.error().message(), HasSubstr("3 a second time"));
  ExecutionTrace empty;
  empty.file = "empty.json";
  const std::vector<UntimedRank> nothing{{&empty, 0, 0}};
  const Result<RecordedProgram> no_operators = untimed_program(nothing, {});
  ASSERT_FALSE(no_operators.ok());
  EXPECT_THAT(no_operators.error().message(), HasSubstr("empty.json"));
  EXPECT_THAT(no_operators.error().message(), HasSubstr("found no operators"));
}

// A generated job whose CPU decides: its execution traces, with the host times and launches of its profiler traces,
// come close to its steps. Rank 1 is not learned from.
TEST(UntimedProgram, OfAGeneratedJobComesCloseToItsSteps) {
  test::GeneratorOptions options;
  options.ranks = 3;
  options.start_skew_us = 0;
  options.late_gpu_ranks = {};
  options.pipeline = test::BatchPipeline::same_step;
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<ExecutionTrace> traces;
  std::vector<RecordedInput> inputs;
  for (const test::GeneratedRank& rank : job.ranks) {
    traces.push_back(value_of(parse_execution_trace(rank.execution_trace, "et.json")));
    inputs.push_back({&rank.recorded, nullptr});
  }
  const RecordedProgram recorded = value_of(rebuild_program(inputs));
  std::vector<UntimedRank> ranks;
  for (std::size_t r = 0; r < 3; ++r) {
    ranks.push_back({&traces[r], static_cast<std::int32_t>(r), recorded.facts[r].step_us.start_us});
  }
  const std::vector<RankClassId> others{RankClassId{std::size_t{0}}, RankClassId{std::size_t{2}}};
  const OverheadFit fit = fit_overheads(recorded_overheads(recorded, others));
  const RecordedProgram untimed = value_of(untimed_program(ranks, fit.launches));
  ASSERT_TRUE(untimed.program.check().ok()) << untimed.program.check().error().message();
  const Platform a100 = value_of(load_platform("dgx-a100"));
  StepPricer prices{a100, {}};
  RecordedPrices priced = value_of(
      price_recorded(untimed, {.kernels = KernelTimeSource::models, .target = &prices, .origin = &prices}));
  const HostOverheads host = fit.host();
  for (std::size_t r = 0; r < 3; ++r) (void)apply_host_overheads(host, untimed, RankClassId{r}, priced.costs);
  const ReplayScores scores = value_of(score_replay(untimed, priced.costs));
  for (std::size_t r = 0; r < 3; ++r) {
    const double measured = recorded.facts[r].step_us.length_us();
    EXPECT_NEAR(scores.ranks[r].step.simulated_us, measured, 0.3 * measured) << "rank " << r;
  }
}

TEST(OverheadFit, HasTheMostFrequentSequencesOfLaunches) {
  test::GeneratorOptions options;
  options.ranks = 2;
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<RecordedInput> inputs;
  for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
  const RecordedProgram recorded = value_of(rebuild_program(inputs));
  const LaunchTable table = fit_overheads(recorded_overheads(recorded)).launches;
  ASSERT_FALSE(table.empty());
  ASSERT_TRUE(table.contains("aten::linear") && table.contains("aten::index"));
  EXPECT_THAT(table.find("aten::linear")->second.calls, ElementsAre("cudaLaunchKernel"));
  EXPECT_THAT(table.find("aten::index")->second.calls,
              ElementsAre("cudaMemcpyAsync", "cudaStreamSynchronize", "cudaLaunchKernel"));
}

}  // namespace
}  // namespace stepcast::untimed_program_test
