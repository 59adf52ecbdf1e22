#include "stepcast/report/perfetto.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"

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
  return to_perfetto(flat, Costs{program}, TaskTimes::simulated(flat, timeline));
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
  const auto document =
      parse_json(to_perfetto(flat, Costs{hand.program}, TaskTimes::simulated(flat, timeline), &*measured));
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

TEST(Perfetto, WritesPlainOrCompressedByName) {
  const fixtures::OneRank hand;
  const Timeline timeline = fixtures::simulated(hand.program);
  const FlatProgram flat{hand.program};
  const TaskTimes times = TaskTimes::simulated(flat, timeline);
  const test::TemporaryFolder folder;
  const auto plain = folder.path() / "trace.json";
  const auto packed = folder.path() / "trace.json.gz";
  const auto to = [](const std::filesystem::path& file) { return OutputFile::at(file).value(); };
  ASSERT_TRUE(write_perfetto(to(plain), flat, Costs{hand.program}, times).ok());
  ASSERT_TRUE(write_perfetto(to(packed), flat, Costs{hand.program}, times).ok());
  EXPECT_LT(std::filesystem::file_size(packed), std::filesystem::file_size(plain));
  EXPECT_EQ(read_file(plain).value(), read_file(packed).value());
  std::filesystem::create_directory(folder.path() / "gone");
  const OutputFile nowhere = to(folder.path() / "gone" / "trace.json");
  std::filesystem::remove(folder.path() / "gone");
  EXPECT_FALSE(write_perfetto(nowhere, flat, Costs{hand.program}, times).ok());
}

}  // namespace
}  // namespace stepcast::perfetto_test
