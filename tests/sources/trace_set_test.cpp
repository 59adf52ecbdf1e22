#include "stepcast/sources/trace_set.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/support/trace_files.h"

namespace stepcast::trace_set_test {
namespace {

using fixtures::TraceFolder;
using ::testing::HasSubstr;
using Paths = std::vector<std::filesystem::path>;

test::GeneratedJob small_job(int ranks = 2) {
  test::GeneratorOptions options;
  options.ranks = ranks;
  return test::generate_job(options);
}

RecordedRank rank_unsaid(RecordedRank recorded) {
  recorded.rank.reset();
  return recorded;
}

Result<TraceSet> read(const Paths& places, const TraceSetOptions& options = {}) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(places));
  return read_trace_set(listing, options);
}

TEST(TraceSet, PairsProfilerAndExecutionTracesByName) {
  const TraceFolder folder;
  const auto job = small_job();
  for (std::size_t r = 0; r < 2; ++r) {
    const std::string number = std::to_string(r);
    folder.write("kineto_rank" + number + ".json", job.ranks[r].recorded);
    folder.write("et_rank" + number + ".json", job.ranks[r].execution_trace);
  }
  folder.write("README.md", "not a trace");
  folder.write("sub/kineto_rank9.json", job.ranks[0].recorded);  // sub-folders are not searched
  const Result<TraceSet> set = read({folder.path()});
  ASSERT_TRUE(set.ok()) << set.error().message();
  ASSERT_EQ(set->ranks.size(), 2U);
  EXPECT_EQ(set->ranks[1].rank, 1);
  const std::vector<RecordedInput> inputs = set->inputs();
  for (std::size_t r = 0; r < 2; ++r) {
    ASSERT_NE(inputs[r].execution_trace, nullptr);
    EXPECT_THAT(inputs[r].execution_trace->file, HasSubstr("et_rank" + std::to_string(r)));
  }
}

TEST(TraceSet, PairsByRankWhereNamesDiffer) {
  const TraceFolder folder;
  const auto job = small_job();
  folder.write("profile_0.json", job.ranks[0].recorded);
  folder.write("profile_1.json", job.ranks[1].recorded);
  folder.write("graph-of-rank-1.json", job.ranks[1].execution_trace);
  const Result<TraceSet> set = read({folder.path()});
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_FALSE(set->execution_traces[0]);
  EXPECT_TRUE(set->execution_traces[1]);
}

TEST(TraceSet, TakesOnlyTheRanksAskedFor) {
  const TraceFolder folder;
  const auto job = small_job();
  for (std::size_t r = 0; r < 2; ++r)
    folder.write("rank" + std::to_string(r) + ".json", job.ranks[r].recorded);
  const Result<TraceSet> one = read({folder.path()}, {.ranks = {1}, .threads = 1});
  ASSERT_TRUE(one.ok()) << one.error().message();
  ASSERT_EQ(one->ranks.size(), 1U);
  EXPECT_EQ(one->ranks[0].rank, 1);
  const Result<TraceSet> missing = read({folder.path()}, {.ranks = {0, 5}, .threads = 1});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message(), HasSubstr("rank 5 does not exist"));
}

// A file that cannot be read does no harm while its rank is not asked for.
TEST(TraceSet, ReadsOnlyTheFilesOfTheRanksAskedFor) {
  const TraceFolder folder;
  folder.write("kineto_rank0.json", small_job().ranks[0].recorded);
  folder.write("kineto_rank1.json", R"({"traceEvents": [{"ph": "X", "ts": broken)");
  const auto set = read({folder.path()}, {.ranks = {0}, .threads = 1});
  ASSERT_TRUE(set.ok()) << set.error().message();
  ASSERT_EQ(set->ranks.size(), 1U);
  EXPECT_EQ(set->ranks[0].rank, 0);
  const auto broken = read({folder.path()}, {.ranks = {1}, .threads = 1});
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().message(), HasSubstr("kineto_rank1.json"));
}

// The name says rank 0, the file behind its events rank 7: the file is right.
TEST(TraceSet, BelievesWhatFilesSayBehindTheirEvents) {
  const TraceFolder folder;
  folder.write("kineto_rank0.json",
               R"({"traceEvents": [], "distributedInfo": {"rank": 7, "world_size": 8}})");
  folder.write("kineto_rank1.json",
               R"({"distributedInfo": {"rank": 1, "world_size": 8}, "traceEvents": []})");
  const auto set = read({folder.path()}, {.ranks = {7}, .threads = 1});
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->ranks[0].rank, 7);
  const auto none = read({folder.path()}, {.ranks = {0}, .threads = 1});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message(), HasSubstr("rank 0 does not exist"));
}

// A thousand files of which one is read: the others are no files at all once they were listed.
TEST(TraceSet, DoesNotOpenTheFilesOfOtherRanks) {
  const TraceFolder folder;
  const auto job = small_job();
  folder.write("kineto_rank3.json", job.ranks[0].execution_trace);  // what opens it sees no profiler trace
  folder.write("kineto_rank0.json", rank_unsaid(job.ranks[0].recorded));
  folder.write("et_rank0.json", job.ranks[0].execution_trace);
  for (int rank = 4; rank < 1000; ++rank)
    folder.write("kineto_rank" + std::to_string(rank) + ".json", "not a trace");
  const auto listing = list_traces(Paths{folder.path()}, {.ranks = {0}});
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  EXPECT_EQ(listing->unopened.size(), 997U);
  EXPECT_TRUE(listing->others.empty());
  EXPECT_EQ(listing->of(SourceKindId::profiler).size(), 1U);
  const auto set = read_trace_set(*listing, {.ranks = {0}});
  ASSERT_TRUE(set.ok()) << set.error().message();
  ASSERT_EQ(set->ranks.size(), 1U);
  EXPECT_EQ(set->ranks[0].rank, 0);
  EXPECT_TRUE(set->execution_traces[0].has_value());
}

// Where names mislead, files are opened until the rank is found: here both say the other one.
TEST(TraceSet, OpensTheOthersWhereNamesMislead) {
  const TraceFolder folder;
  const auto job = small_job();
  folder.write("rank0.json", job.ranks[1].recorded);
  folder.write("rank1.json", job.ranks[0].recorded);
  const auto listing = list_traces(Paths{folder.path()}, {.ranks = {1}});
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->unopened.size(), 1U);
  const auto set = read_trace_set(*listing, {.ranks = {1}});
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_THAT(set->ranks[0].file, HasSubstr("rank0.json"));
}

// dynolog on demand: the name of the host counts the ranks, the process id does not.
TEST(TraceSet, TakesRanksFromNamesByAPattern) {
  const TraceFolder folder;
  const auto job = small_job();
  for (std::size_t r = 0; r < 2; ++r) {
    folder.write("host" + std::to_string(r) + "_7700.json", rank_unsaid(job.ranks[r].recorded));
    folder.write("et_host" + std::to_string(r) + "_7700.json", job.ranks[r].execution_trace);
  }
  EXPECT_THAT(read({folder.path()}), test::FailsWith("two files with the same rank 7700"));
  const auto read_by = [&](const std::string& pattern,
                           std::vector<std::int32_t> ranks = {}) -> Result<TraceSet> {
    STEPCAST_ASSIGN(const TraceListing listing,
                    list_traces(Paths{folder.path()}, {.ranks = ranks, .ranks_from = pattern}));
    return read_trace_set(listing, {.ranks = ranks});
  };
  const auto set = read_by("host{}_");
  ASSERT_TRUE(set.ok()) << set.error().message();
  ASSERT_EQ(set->ranks.size(), 2U);
  EXPECT_EQ(set->ranks[0].rank, 0);
  EXPECT_EQ(set->ranks[1].rank, 1);
  EXPECT_TRUE(set->execution_traces[1].has_value());
  const auto one = read_by("host{}_", {1});
  ASSERT_TRUE(one.ok()) << one.error().message();
  EXPECT_THAT(one->ranks[0].file, HasSubstr("host1_"));

  EXPECT_THAT(read_by("host_"), test::FailsWith("no place for the rank in the pattern 'host_'"));
  EXPECT_THAT(read_by("{}{}"), test::FailsWith("two places for the rank in the pattern '{}{}'"));
  EXPECT_THAT(read_by("node{}"), test::FailsWith("no number at {} of 'node{}' in its name"));
  EXPECT_THAT(read_by("_{}"), test::FailsWith("two files with the same rank 7700"));
  EXPECT_THAT(read_by("host{}_", {5}), test::FailsWith("rank 5 does not exist: found ranks 0-1"));
}

// The pattern was said by somebody who looks at the names: what the file says counts less.
TEST(TraceSet, APatternHoldsAgainstTheFile) {
  const TraceFolder folder;
  const auto job = small_job();
  folder.write("node8.json", job.ranks[0].recorded);
  folder.write("node9.json", job.ranks[0].recorded);
  const auto listing = list_traces(Paths{folder.path()}, {.ranks = {9}, .ranks_from = "node{}"});
  ASSERT_TRUE(listing.ok());
  const auto set = read_trace_set(*listing, {.ranks = {9}});
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->ranks[0].rank, 9);
}

TEST(TraceSet, TwoFilesOfOneRankAreAnErrorThatNamesBoth) {
  const TraceFolder folder;
  const auto job = small_job();
  folder.write("a.json", job.ranks[0].recorded);
  folder.write("b.json", job.ranks[0].recorded);
  const Result<TraceSet> set = read({folder.path()});
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.error().message(), HasSubstr("two files with the same rank 0"));
  EXPECT_THAT(set.error().message(), HasSubstr("a.json"));
  EXPECT_THAT(set.error().message(), HasSubstr("b.json"));
}

TEST(TraceSet, AnExecutionTraceWithoutProfilerTraceIsAnError) {
  const TraceFolder folder;
  const auto job = small_job();
  folder.write("kineto_rank0.json", job.ranks[0].recorded);
  folder.write("et_rank1.json", job.ranks[1].execution_trace);
  const Result<TraceSet> set = read({folder.path()});
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.error().message(), HasSubstr("et_rank1.json"));
  EXPECT_THAT(set.error().message(), HasSubstr("belongs to no profiler trace"));
}

TEST(TraceSet, TakesTheTwoFoldersThatMegatronWritesSideBySide) {
  const TraceFolder folder;
  const auto job = small_job();
  for (std::size_t r = 0; r < 2; ++r) {
    const std::string name = "rank-" + std::to_string(r) + ".json";
    folder.write("torch_profile/" + name, rank_unsaid(job.ranks[r].recorded));
    folder.write("chakra/" + name, job.ranks[r].execution_trace);
  }
  const Result<TraceSet> set = read({folder.path()});
  ASSERT_TRUE(set.ok()) << set.error().message();
  ASSERT_EQ(set->ranks.size(), 2U);
  EXPECT_THAT(set->inputs()[1].execution_trace->file, HasSubstr("chakra/rank-1"));
}

TEST(TraceSet, TakesTheOneMomentThatWasRecorded) {
  const TraceFolder folder;
  const auto job = small_job();
  for (std::size_t r = 0; r < 2; ++r) {
    const std::string rank = std::to_string(r);
    folder.write("traces/iteration_10/rank" + rank + "_trace.json", job.ranks[r].recorded);
    folder.write("captured/step-000020/kineto_rank-0000" + rank + "-of-00002.json",
                 rank_unsaid(job.ranks[r].recorded));
  }
  for (const char* name : {"traces", "captured"}) {
    const Result<TraceSet> set = read({folder.path() / name});
    ASSERT_TRUE(set.ok()) << set.error().message();
    EXPECT_EQ(set->ranks.size(), 2U) << name;
    EXPECT_EQ(set->ranks[1].rank, 1) << name;
  }
  folder.write("traces/iteration_20/rank0_trace.json", job.ranks[0].recorded);
  EXPECT_THAT(read({folder.path() / "traces"}),
              test::FailsWith("2 recordings of the training: found iteration_10 to iteration_20"));
}

TEST(TraceSet, FoldersWithoutProfilerTraceSayWhatIsThere) {
  const TraceFolder folder;
  EXPECT_THAT(read({folder.path()}).error().message(), HasSubstr("no profiler trace here"));
  folder.write("et_rank0.json", small_job().ranks[0].execution_trace);
  EXPECT_THAT(read({folder.path()}).error().message(), HasSubstr("execution traces, which have no times"));
  EXPECT_THAT(read({folder.path() / "none"}).error().message(), HasSubstr("there is no such file or folder"));
  const auto text = folder.write("notes.json", "{\"a\": 1}");
  EXPECT_THAT(read({text}).error().message(), HasSubstr("expected a PyTorch profiler trace"));
}

TEST(TraceSets, FilesWithoutDistinctRanksAreSetsOfTheirOwn) {
  const TraceFolder folder;
  const auto job = small_job(1);
  folder.write("worker0.111111.json", job.ranks[0].recorded);
  folder.write("worker0.222222.json", job.ranks[0].recorded);
  folder.write("et_other.json", job.ranks[0].execution_trace);
  folder.write("broken.json", "{\"traceEvents\": [{");
  const Result<TraceListing> listing = list_traces(Paths{folder.path()});
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  std::vector<TraceListing::Other> skipped;
  const std::vector<TraceSet> sets = read_trace_sets(*listing, {.ranks = {}, .threads = 1}, skipped);
  EXPECT_EQ(sets.size(), 2U);
  EXPECT_EQ(skipped.size(), 2U);
}

}  // namespace
}  // namespace stepcast::trace_set_test
