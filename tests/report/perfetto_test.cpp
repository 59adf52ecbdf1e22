#include "stepcast/report/perfetto.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/report/detail/trace_events.h"

#include "tests/analyze/hand_made.h"
#include "tests/report/json_check.h"
#include "tests/support/random_program.h"
#include "tests/support/sketch.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::perfetto_test {
namespace {

using fixtures::Json;
using fixtures::parse_json;

std::string timeline_of(const Program& program) {
  const Timeline timeline = fixtures::simulated(program);
  const FlatProgram flat{program};
  const Costs costs{program};
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  return to_perfetto({.flat = flat, .costs = costs, .times = times});
}

std::vector<Json> events(const Json& document, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : document["traceEvents"].items) {
    if (event["ph"].text == phase) found.push_back(event);
  }
  return found;
}

const Json* slice(const std::vector<Json>& slices, const std::string& name) {
  for (const Json& s : slices) {
    if (s["name"].text == name) return &s;
  }
  return nullptr;
}

TEST(Perfetto, ShowsLanesOpsAndOneSliceForASynchronisation) {
  const fixtures::OneRank hand;
  const auto document = parse_json(timeline_of(hand.program));
  ASSERT_TRUE(document);
  const std::vector<Json> slices = events(*document, "X");
  ASSERT_NE(slice(slices, "sgemm"), nullptr);
  EXPECT_EQ((*slice(slices, "sgemm"))["ts"].number, 6);
  EXPECT_EQ((*slice(slices, "sgemm"))["dur"].number, 10);
  EXPECT_EQ((*slice(slices, "sgemm"))["cat"].text, "gemm");
  EXPECT_EQ((*slice(slices, "sgemm"))["args"]["op_stack"].text, "ProfilerStep#1 > aten::linear > aten::mm");
  // Ops are slices around the calls: aten::linear holds L1 and L2.
  ASSERT_NE(slice(slices, "aten::linear"), nullptr);
  EXPECT_EQ((*slice(slices, "aten::linear"))["ts"].number, 0);
  EXPECT_EQ((*slice(slices, "aten::linear"))["dur"].number, 8);
  // E 10-11 and R 30-33 are one call that waited 19.
  ASSERT_NE(slice(slices, "cudaStreamSynchronize"), nullptr);
  EXPECT_EQ((*slice(slices, "cudaStreamSynchronize"))["ts"].number, 10);
  EXPECT_EQ((*slice(slices, "cudaStreamSynchronize"))["dur"].number, 23);
  EXPECT_EQ((*slice(slices, "cudaStreamSynchronize"))["args"]["waited_us"].number, 19);

  // Arrows: three launches, one event (inferred), one synchronisation; every one has a beginning and an end.
  const std::vector<Json> starts = events(*document, "s");
  const std::vector<Json> ends = events(*document, "f");
  ASSERT_EQ(starts.size(), 5U);
  ASSERT_EQ(ends.size(), 5U);
  std::map<std::string, int> names;
  for (const Json& s : starts) ++names[s["name"].text];
  EXPECT_EQ(names["launch"], 3);
  EXPECT_EQ(names["event (inferred)"], 1);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    EXPECT_EQ(starts[i]["id"].number, ends[i]["id"].number);
    EXPECT_LE(starts[i]["ts"].number, ends[i]["ts"].number);
  }
}

TEST(Perfetto, ShowsWaitingAndTransferOfACollectiveApart) {
  const fixtures::TwoRanks hand;
  const auto document = parse_json(timeline_of(hand.program));
  ASSERT_TRUE(document);
  const std::vector<Json> slices = events(*document, "X");
  const Json* waiting = slice(slices, "waiting for rank 1");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ((*waiting)["pid"].number, 1);  // rank 0
  EXPECT_EQ((*waiting)["ts"].number, 3);
  EXPECT_EQ((*waiting)["dur"].number, 7);
  const Json* meeting = slice(slices, "all_reduce");
  ASSERT_NE(meeting, nullptr);
  EXPECT_EQ((*meeting)["args"]["wait_us"].number, 7);
  EXPECT_EQ((*meeting)["args"]["transfer_us"].number, 8);
  EXPECT_EQ((*meeting)["args"]["message_bytes"].number, 4096);
  EXPECT_EQ((*meeting)["args"]["came_last"].text, "rank 1");
}

TEST(Perfetto, PutsTheMeasuredTimelineBesideTheSimulatedOne) {
  const fixtures::TwoRanks hand;
  const Timeline timeline = fixtures::simulated(hand.program);
  const FlatProgram flat{hand.program};
  const std::vector<std::vector<Interval>> recorded{{{0, 2}, {1, 11}, {3, 18.5}}, {{0, 9}, {10.2, 18}}};
  const Result<TaskTimes> measured = TaskTimes::measured(flat, recorded);
  ASSERT_TRUE(measured.ok());
  const Costs costs{hand.program};
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  const auto document =
      parse_json(to_perfetto({.flat = flat, .costs = costs, .times = times, .measured = &*measured}));
  ASSERT_TRUE(document);
  std::map<double, std::string> processes;
  for (const Json& m : events(*document, "M")) {
    if (m["name"].text == "process_name") processes[m["pid"].number] = m["args"]["name"].text;
  }
  EXPECT_EQ(
      processes,
      (std::map<double, std::string>{
          {1, "rank 0 measured"}, {2, "rank 0 simulated"}, {3, "rank 1 measured"}, {4, "rank 1 simulated"}}));
}

// Slices of one thread nest: a later one lies inside the one around it or behind it.
TEST(Perfetto, NestsSlicesOfRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto document = parse_json(timeline_of(fixtures::random_program(seed)));
    ASSERT_TRUE(document) << "seed " << seed;
    std::map<std::pair<double, double>, std::vector<long long>> open;  // [process, thread] -> ends
    for (const Json& s : events(*document, "X")) {
      const long long start = std::llround(s["ts"].number * 1e3);
      const long long end = start + std::llround(s["dur"].number * 1e3);
      auto& around = open[{s["pid"].number, s["tid"].number}];
      while (!around.empty() && around.back() <= start) around.pop_back();
      if (!around.empty()) {
        ASSERT_LE(end, around.back()) << "seed " << seed;
      }
      around.push_back(end);
    }
  }
}

// A pass of a pipeline with two layers, a wait between them, and a transfer next to the second one.
Program described_pass() {
  Program program;
  const std::vector<Lane> lanes{{LaneKind::gpu_stream, "computation"}, {LaneKind::gpu_stream, "transfers"}};
  BlockBuilder block{"forward of chunk 0", BlockRole::forward};
  const LaneId compute = block.add_lane(lanes[0]);
  const LaneId transfers = block.add_lane(lanes[1]);
  const auto name = [&](const char* text) { return program.names.intern(text); };
  block.begin_part(name("layer 7"));
  const TaskId up =
      block.add_task(compute,
                     {.kind = TaskKind::kernel,
                      .kernel_class = KernelClass::gemm,
                      .name = name("up"),
                      .work = program.works.intern(gemm({.m = 2, .n = 3, .k = 4}, DType::bf16))},
                     Microseconds{10});
  const GroupId group = program.add_group({.label = "tensor"});
  const CollectiveWork sum{.op = CollectiveOp::all_reduce, .message = Bytes{5000}, .group = group};
  const TaskId reduce = block.add_task(
      transfers,
      {.kind = TaskKind::kernel, .name = name("reduce"), .work = program.works.intern(sum), .work_times = 2},
      Microseconds{5});
  block.add_edge(BlockBuilder::end_of(up), reduce, Microseconds{}, {});
  block.begin_part(name("layer 8"));
  const TaskId wait = block.add_task(compute, {.kind = TaskKind::wait, .name = name("wait")}, Microseconds{});
  block.add_edge(BlockBuilder::end_of(reduce), wait, Microseconds{}, {});
  block.add_task(compute, {.kind = TaskKind::kernel, .name = name("norm")}, Microseconds{4});
  const BlockId id = program.add_block(std::move(block).finish().value());
  const RankClassId rank = program.add_rank_class({.name = "pipeline stage 0", .lanes = lanes});
  program.add_instance(rank, {.block = id, .micro_batch = 3});
  return program;
}

TEST(Perfetto, PutsPassesAndLayersAroundOperations) {
  const auto document = parse_json(timeline_of(described_pass()));
  ASSERT_TRUE(document);
  const std::vector<Json> slices = events(*document, "X");
  const auto expect = [&](const std::string& name, double start, double length) {
    const Json* found = slice(slices, name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ((*found)["ts"].number, start) << name;
    EXPECT_EQ((*found)["dur"].number, length) << name;
    EXPECT_FALSE((*found)["args"].fields.empty()) << name;
  };
  expect("forward, micro-batch 3", 0, 19);
  expect("layer 7", 0, 10);
  expect("up", 0, 10);
  expect("layer 8", 10, 9);
  expect("wait", 10, 5);  // the wait takes no time of its own: it lasts until the transfer is there
  expect("norm", 15, 4);
  expect("reduce", 10, 5);
  EXPECT_EQ((*slice(slices, "up"))["args"]["flops"].number, 48);
  EXPECT_EQ((*slice(slices, "up"))["args"]["part"].text, "layer 7");
  EXPECT_EQ((*slice(slices, "wait"))["args"]["waits_for"].text, "reduce");
  EXPECT_EQ((*slice(slices, "reduce"))["args"]["group"].text, "tensor");
  EXPECT_EQ((*slice(slices, "reduce"))["args"]["message_bytes"].number, 5000);
  EXPECT_EQ((*slice(slices, "reduce"))["args"]["times"].number, 2);
  // 10 kB in 5 us are 2 GB/s.
  const std::vector<Json> rates = events(*document, "C");
  ASSERT_EQ(rates.size(), 2U);
  EXPECT_EQ(rates[0]["ts"].number, 10);
  EXPECT_EQ(rates[0]["args"]["value"].number, 2);
  EXPECT_EQ(rates[1]["args"]["value"].number, 0);
}

TEST(Perfetto, CountsActivationsFromForwardToBackward) {
  const Program program = described_pass();
  const Timeline timeline = fixtures::simulated(program);
  const FlatProgram flat{program};
  const Costs costs{program};
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  const double gib = 1024.0 * 1024 * 1024;
  const auto document = parse_json(
      to_perfetto({.flat = flat, .costs = costs, .times = times, .memory = {{20 * gib, 4 * gib}}}));
  ASSERT_TRUE(document);
  double last = 0;
  for (const Json& event : events(*document, "C"))
    if (event["name"].text == "memory GiB") last = event["args"]["value"].number;
  EXPECT_EQ(last, 24);
}

// The packets of Perfetto's schema, by hand: a begin and an end for each slice, in order.
TEST(Perfetto, WritesPackets) {
  const std::unique_ptr<detail::TraceEvents> packets = detail::perfetto_trace_events();
  packets->process(1, "r");
  packets->slice(1, 1,
                 {.start = 5, .end = 300, .name = "a", .category = "c", .args = {{"k", std::int64_t{7}}}});
  const std::string expected{
      "\x0a\x10\xe2\x03\x0b\x08\x81\x80\x40\x1a\x05\x08\x01\x32\x01\x72\x50\x01"
      "\x0a\x1b\x40\x05\x5a\x15\x48\x01\x58\x82\x80\x40\xb2\x01\x01\x63\xba\x01\x01\x61\x22\x05\x52\x01\x6b"
      "\x20\x07\x50\x01"
      "\x0a\x0d\x40\xac\x02\x5a\x06\x48\x02\x58\x82\x80\x40\x50\x01",
      18 + 29 + 15};
  EXPECT_EQ(packets->finish(), expected);
}

TEST(Perfetto, WritesPlainOrCompressedByName) {
  const fixtures::OneRank hand;
  const Timeline timeline = fixtures::simulated(hand.program);
  const FlatProgram flat{hand.program};
  const Costs costs{hand.program};
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  const TimelineInput input{.flat = flat, .costs = costs, .times = times};
  const test::TemporaryFolder folder;
  const auto plain = folder.path() / "trace.json";
  const auto packed = folder.path() / "trace.json.gz";
  const auto to = [](const std::filesystem::path& file) { return OutputFile::at(file).value(); };
  ASSERT_TRUE(write_perfetto(to(plain), input).ok());
  ASSERT_TRUE(write_perfetto(to(packed), input).ok());
  EXPECT_LT(std::filesystem::file_size(packed), std::filesystem::file_size(plain));
  EXPECT_EQ(read_file(plain).value(), read_file(packed).value());
  std::filesystem::create_directory(folder.path() / "gone");
  const OutputFile nowhere = to(folder.path() / "gone" / "trace.json");
  std::filesystem::remove(folder.path() / "gone");
  EXPECT_FALSE(write_perfetto(nowhere, input).ok());
}

}  // namespace
}  // namespace stepcast::perfetto_test
