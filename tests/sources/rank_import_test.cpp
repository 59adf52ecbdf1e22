// Rank files stand for the traces that they were made of.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/predict/replay.h"
#include "stepcast/sources/recorded_source.h"
#include "stepcast/sources/trace_listing.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/rank_file.h"

#include "tests/support/data.h"
#include "tests/support/fails_with.h"
#include "tests/support/paths.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_files.h"

namespace stepcast::rank_import_test {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;
using fixtures::TraceFolder;
using test::FailsWith;
using ::testing::AllOf;

Result<std::unique_ptr<RecordedSource>> open(const Paths& places) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(places));
  return source_kind(listing.kind()).open(listing, {});
}

// The traces at `places`, of one rank, as a file of the folder.
Result<fs::path> imported(const Paths& places, const TraceFolder& folder, const std::string& name,
                          const ImportOptions& options = {}) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(places));
  STEPCAST_ASSIGN(const RankFile file, import_rank(listing, options));
  STEPCAST_ASSIGN(const std::string bytes, rank_file_bytes(file));
  return folder.write(name, bytes);
}

Result<Replay> replayed(const RecordedSource& source, std::optional<std::int64_t> step = {}) {
  STEPCAST_ASSIGN(RecordedProgram recorded, source.program({.step = step}));
  return replay_recorded(std::move(recorded), {});
}

// To the last digit: the ends of all tasks and the durations, and what is known of the work.
void expect_same(const RecordedSource& a, const RecordedSource& b, std::optional<std::int64_t> step = {}) {
  const Result<Replay> of_traces = replayed(a, step), of_files = replayed(b, step);
  ASSERT_EQ(of_traces.ok(), of_files.ok());
  if (!of_traces.ok()) return;
  EXPECT_EQ(of_traces->longest_step_us(), of_files->longest_step_us());
  EXPECT_EQ(of_traces->global_window.simulated_us, of_files->global_window.simulated_us);
  EXPECT_EQ(of_traces->recorded.program.expanded_task_count(),
            of_files->recorded.program.expanded_task_count());
  const KernelTimeCoverage known = work_coverage(of_traces->recorded);
  EXPECT_EQ(known.modelled.value(), work_coverage(of_files->recorded).modelled.value());
}

TEST(RankImport, AFolderOfRankFilesReplaysAsTheTraces) {
  const fs::path example = test::source_dir() / "examples" / "dlrm_4gpu";
  const TraceFolder folder, whole;
  for (const std::string rank : {"0", "1", "2", "3"}) {
    const Paths files{example / ("kineto_rank" + rank + ".json.gz"),
                      example / ("et_rank" + rank + ".json.gz")};
    ASSERT_TRUE(imported(files, folder, "rank" + rank + ".step").ok());
    ASSERT_TRUE(imported(files, whole, "rank" + rank + ".step", {.all_steps = true}).ok());
  }
  const auto traces = open({example}), files = open({folder.path()}), all = open({whole.path()});
  ASSERT_TRUE(traces.ok());
  ASSERT_TRUE(files.ok()) << files.error().message();
  ASSERT_TRUE(all.ok()) << all.error().message();
  expect_same(**traces, **files);
  EXPECT_EQ((*traces)->steps(), (*all)->steps());
  for (const std::int64_t step : (*traces)->steps()) expect_same(**traces, **all, step);
  ASSERT_EQ((*files)->steps().size(), 1U);
  EXPECT_THAT((*files)->program({.step = (*files)->steps().front() - 1}), FailsWith("--all-steps"));
}

TEST(RankImport, RankFilesAndTracesOfOneJobReplayTogether) {
  const fs::path example = test::source_dir() / "examples" / "dlrm_4gpu";
  const auto kineto = [&](int rank) { return example / ("kineto_rank" + std::to_string(rank) + ".json.gz"); };
  const auto et = [&](int rank) { return example / ("et_rank" + std::to_string(rank) + ".json.gz"); };
  const TraceFolder folder;
  Paths places;
  for (const int rank : {0, 1, 2, 3}) {
    if (rank == 1 || rank == 2) {
      places.insert(places.end(), {kineto(rank), et(rank)});
      continue;
    }
    const auto file = imported({kineto(rank), et(rank)}, folder, "rank" + std::to_string(rank) + ".step");
    ASSERT_TRUE(file.ok());
    places.push_back(*file);
  }
  const auto traces = open({example}), both = open(places);
  ASSERT_TRUE(traces.ok());
  ASSERT_TRUE(both.ok()) << both.error().message();
  ASSERT_EQ((*both)->traces().ranks.size(), 4U);
  expect_same(**traces, **both);
  const TraceListing listing = *list_traces(places);
  const auto two = source_kind(listing.kind()).open(listing, {.ranks = {0, 2}});
  ASSERT_TRUE(two.ok()) << two.error().message();
  ASSERT_EQ((*two)->traces().ranks.size(), 2U);
  EXPECT_EQ((*two)->traces().ranks[1].rank, 2);
  EXPECT_THAT(source_kind(listing.kind()).open(listing, {.ranks = {0, 9}}),
              FailsWith("rank 9 does not exist"));
  places.push_back(kineto(3));
  EXPECT_THAT(open(places), FailsWith("two files with the same rank 3"));
}

TEST(RankImport, RanksOfDifferentStepsAreRefused) {
  const TraceFolder traces, same, different;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string name = "rank" + std::to_string(rank);
    test::TraceBuilder builder(rank, 2);
    const int thread = builder.thread(1);
    for (int step = 1; step <= 4; ++step) {
      builder.step(thread, step, 100.0 * step, 98);
      builder.op(thread, "aten::mm", 100.0 * step + 5, 40);
      builder.launch(thread, 100.0 * step + 10, 5, 7, "gemm", 100.0 * step + 20, 30);
    }
    const fs::path trace = traces.write(name + ".json", builder.build());
    ASSERT_TRUE(imported({trace}, same, name + ".step", {.step = 2}).ok());
    ASSERT_TRUE(imported({trace}, different, name + ".step", {.step = 2 + rank}).ok());
  }
  EXPECT_THAT(open({different.path()}), FailsWith("the same --step"));
  const auto whole = open({traces.path()}), files = open({same.path()});
  ASSERT_TRUE(whole.ok() && files.ok());
  expect_same(**whole, **files, 2);
  EXPECT_THAT((*files)->program({.step = 3}), FailsWith("--all-steps"));
  const TraceFolder folder;
  EXPECT_THAT(imported({traces.path() / "rank0.json"}, folder, "x.step", {.step = 5}),
              FailsWith("there is no such step"));
  EXPECT_THAT(imported({traces.path()}, folder, "x.step"), FailsWith("those of one rank"));
}

TEST(RankImport, AnExecutionTraceOfAnotherRankIsRefused) {
  const fs::path example = test::source_dir() / "examples" / "dlrm_4gpu";
  const TraceFolder folder;
  EXPECT_THAT(imported({example / "kineto_rank2.json.gz", example / "et_rank3.json.gz"}, folder, "odd.step"),
              AllOf(FailsWith("et_rank3"), FailsWith("belongs to no profiler trace")));
}

TEST(RankImport, AnExecutionTraceBesideRankFilesIsRefused) {
  const fs::path example = test::source_dir() / "examples" / "dlrm_4gpu";
  const TraceFolder folder;
  const auto file = imported({example / "kineto_rank0.json.gz"}, folder, "rank0.step");
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(open({*file, example / "et_rank0.json.gz"}),
              AllOf(FailsWith("et_rank0"), FailsWith("give only the rank files")));
}

TEST(RankImport, TheRankAskedForOfAFolderIsTakenOrMissing) {
  const TraceFolder traces, folder;
  for (int rank = 0; rank < 2; ++rank) {
    test::TraceBuilder builder(rank, 2);
    const int thread = builder.thread(1);
    builder.step(thread, 1, 100, 98);
    builder.launch(thread, 110, 5, 7, "gemm", 120, 30);
    traces.write(rank == 0 ? "a.json" : "b.json", builder.build());  // names do not tell
  }
  const Result<fs::path> one = imported({traces.path()}, folder, "one.step", {.ranks = {1}});
  ASSERT_TRUE(one.ok()) << one.error().message();
  const Result<RankFile> read = read_rank_file(*one);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->rank.rank, 1);
  EXPECT_THAT(imported({traces.path()}, folder, "x.step", {.ranks = {99}}),
              AllOf(FailsWith("rank 99 does not exist"), FailsWith("0-1")));
  EXPECT_THAT(imported({traces.path() / "a.json"}, folder, "x.step", {.ranks = {1}}),
              FailsWith("rank 1 does not exist"));
  const TraceFolder empty;
  EXPECT_THAT(open({empty.path()}), FailsWith("*.step"));
}

TEST(RankImport, ADamagedFileOfAFolderIsNamed) {
  const TraceFolder folder;
  const Paths trace{test::source_dir() / "examples" / "dlrm_4gpu" / "kineto_rank0.json.gz"};
  const Result<fs::path> file = imported(trace, folder, "rank0.step");
  ASSERT_TRUE(file.ok());
  fs::resize_file(*file, fs::file_size(*file) / 2);
  EXPECT_THAT(open({folder.path()}), FailsWith("rank0.step"));
}

TEST(RankImport, AFileOfAnEarlierVersionIsRefusedWithTheCommandThatWritesItAgain) {
  const TraceFolder folder;
  const fs::path file = folder.write("rank0.step", std::string{"stepcast-rank 3\n\x13\x24\xb7\0\0", 21});
  EXPECT_THAT(
      open({folder.path()}),
      AllOf(FailsWith("found \"stepcast-rank 3\", expected \"stepcast-rank 4\""),
            FailsWith("write it again with this version: stepcast import TRACE -o " + file.string())));
}

TEST(RankImport, EveryPublicTraceReplaysToTheSameDigit) {
  SKIP_WITHOUT_DATA();
  std::size_t n = 0;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator{*test::measured_data() / "traces"}) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || !(name.ends_with(".json") || name.ends_with(".json.gz"))) continue;
    const TraceFolder folder;
    const Result<fs::path> file = imported({entry.path()}, folder, "r.step");
    if (!file.ok()) continue;  // no profiler trace
    SCOPED_TRACE(entry.path().string());
    const auto traces = open({entry.path()}), again = open({*file});
    ASSERT_EQ(traces.ok(), again.ok());
    expect_same(**traces, **again);
    ++n;
  }
  EXPECT_GT(n, 30U);
}

}  // namespace
}  // namespace stepcast::rank_import_test
