#include "stepcast/trace/trace_summary.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/trace/readers.h"

#include "tests/support/data.h"
#include "tests/support/trace_files.h"

namespace stepcast::trace_summary_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RankSummary summary_of(const std::string& events, const std::string& more = "") {
  const auto rank = parse_kineto("{\"traceEvents\": [" + events + "]" + more + "}", "t");
  EXPECT_TRUE(rank.ok()) << rank.error().message();
  return rank.ok() ? summarize(*rank, can_be_replayed) : RankSummary{};
}

TEST(TraceSummary, CountsAndMeasures) {
  const RankSummary s = summary_of(R"J(
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 1, "ts": 100, "dur": 50},
    {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 101, "dur": 9, "args": {"External id": 5}},
    {"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": 1, "tid": 2, "ts": 102, "dur": 2, "args": {"correlation": 9}},
    {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 110, "dur": 20, "args": {"stream": 7, "correlation": 9, "External id": 5}},
    {"ph": "X", "cat": "kernel", "name": "softmax", "pid": 0, "tid": 7, "ts": 120, "dur": 20, "args": {"stream": 7, "correlation": 8, "External id": 5}},
    {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce", "pid": 0, "tid": 9, "ts": 140, "dur": 30, "args": {"stream": 9, "correlation": 9, "External id": 5}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy", "pid": 0, "tid": 3, "ts": 130, "dur": 1, "args": {"stream": 3, "correlation": 7}},
    {"ph": "X", "cat": "gpu_memset", "name": "Memset", "pid": 0, "tid": 3, "ts": 135, "dur": 1, "args": {"stream": 3, "correlation": 6}})J");
  EXPECT_DOUBLE_EQ(s.span.value(), 70);
  ASSERT_EQ(s.steps.size(), 1U);
  EXPECT_EQ(s.steps[0].number, 4);
  EXPECT_DOUBLE_EQ(s.steps[0].duration.value(), 50);
  ASSERT_EQ(s.threads.size(), 2U);
  EXPECT_EQ(s.threads[0].ops, 1U);
  EXPECT_EQ(s.threads[0].annotations, 1U);
  EXPECT_EQ(s.threads[1].calls, 1U);
  EXPECT_EQ(s.kernels, 3U);
  EXPECT_EQ(s.copies, 1U);
  EXPECT_EQ(s.fills, 1U);
  ASSERT_EQ(s.streams.size(), 3U);
  EXPECT_EQ(s.streams[0].stream, 3);
  EXPECT_EQ(s.streams[0].copies, 2U);
  EXPECT_EQ(s.streams[1].stream, 7);
  EXPECT_DOUBLE_EQ(s.streams[1].busy.value(), 30) << "overlap counts once";
  EXPECT_EQ(s.streams[2].communication_kernels, 1U);
  EXPECT_DOUBLE_EQ(s.kernel_time[static_cast<std::size_t>(KernelClass::normalization)].value(), 20);
  EXPECT_EQ(s.gpu_events_with_launch, 2U);
  EXPECT_EQ(s.external_id, ExternalIdMeaning::op);
  EXPECT_TRUE(s.usable_for_replay);
  EXPECT_THAT(
      s.notes,
      ElementsAre("3 GPU events of 5 without a launch in the file",
                  "1 communication kernel without sizes: the execution trace (ET) of the rank has them",
                  "the rank is unknown: alone it is replayed as rank 0"));
}

// Usable is what a replay of the file alone takes, and why not is what it says.
TEST(TraceSummary, AgreesWithTheReplayOnUsability) {
  const std::string op =
      R"J({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 9})J";
  const auto step = [](int number, int start) {
    return R"J({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)J" + std::to_string(number) +
           R"J(", "pid": 1, "tid": 1, "dur": 50, "ts": )J" + std::to_string(start) + "}";
  };
  const std::string launched =
      R"J({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 2, "dur": 3, "args": {"correlation": 7}},
          {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 6, "dur": 2, "args": {"stream": 7, "correlation": 7}})J";
  EXPECT_TRUE(summary_of(op + "," + launched).usable_for_replay);
  EXPECT_TRUE(summary_of(op + "," + launched + "," + step(1, 0) + "," + step(2, 50)).usable_for_replay)
      << "an empty last step does not matter";
  const RankSummary without = summary_of(op);
  EXPECT_FALSE(without.usable_for_replay);
  EXPECT_THAT(without.notes,
              Contains("the step: found no GPU work, expected kernels, copies or fills inside the "
                       "step; record with CUDA activities on"));
}

TEST(TraceSummary, TakesTheRankFromTheNameWhereTheFileDoesNotSay) {
  RecordedRank rank;
  rank.file = "folder/kineto_rank3.json.gz";
  EXPECT_EQ(summarize(rank, can_be_replayed).rank, 3);
  rank.rank = 5;
  EXPECT_EQ(summarize(rank, can_be_replayed).rank, 5);
}

TEST(TraceSummary, SaysWhatIsMissing) {
  const RankSummary nothing = summary_of("");
  EXPECT_FALSE(nothing.usable_for_replay);
  EXPECT_EQ(nothing.external_id, ExternalIdMeaning::absent);
  EXPECT_THAT(nothing.notes, Contains("no GPU work was recorded"));
  EXPECT_THAT(nothing.notes, Contains("no CPU operators were recorded"));
  EXPECT_THAT(nothing.notes, Contains(HasSubstr("no runtime calls were recorded")));

  const RankSummary old = summary_of(
      R"J({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"stream": 7, "correlation": 5, "External id": 5}})J");
  EXPECT_EQ(old.external_id, ExternalIdMeaning::correlation);
  EXPECT_THAT(old.notes, Contains(HasSubstr("no ProfilerStep")));
}

// Read without keeping its events, a file says the same as with all of them.
void expect_same_summary(const std::filesystem::path& file) {
  const auto whole = read_kineto(file);
  const auto folded = summarize_kineto(file, can_be_replayed);
  ASSERT_TRUE(whole.ok() && folded.ok()) << file;
  const InspectAnswer one{{inspected(*whole, summarize(*whole, can_be_replayed))}};
  const InspectAnswer other{
      {inspected(folded->rank, judged(folded->summary, folded->rank, folded->replayable))}};
  EXPECT_EQ(inspect_json(other), inspect_json(one)) << file;
  EXPECT_TRUE(folded->rank.cpu_ops.empty() && folded->rank.gpu_ops.empty());
}

TEST(TraceSummary, IsTheSameWithoutKeepingEvents) {
  const fixtures::TraceFolder folder;
  const auto check = [&](const std::string& name, const std::string& events, const std::string& more = "") {
    expect_same_summary(folder.write(name, "{\"traceEvents\": [" + events + "]" + more + "}"));
  };
  const std::string step =
      R"J({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 1, "ts": 100, "dur": 50})J";
  const std::string op =
      R"J({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 101, "dur": 9, "args": {"External id": 5}})J";
  const auto call = [](int ts) {
    return fmt::format(
        R"J({{"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": 1, "tid": 2, "ts": {}, "dur": 2, "args": {{"correlation": 9}}}})J",
        ts);
  };
  const auto kernel = [](int ts, int id) {
    return fmt::format(
        R"J({{"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": {}, "dur": 20, "args": {{"stream": 7, "correlation": {}, "External id": 5}}}})J",
        ts, id);
  };
  // The same mark on the row of the GPU, in a file that gives it no category of its own.
  const std::string on_gpu =
      R"J({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 0, "tid": 7, "ts": 90, "dur": 900})J";
  check("no_events", "");
  check("no_gpu", step + "," + op, R"J(, "baseTimeNanoseconds": 1700000000000000000)J");
  check("calls_alone", call(7));
  check("in_the_step", fmt::format("{},{},{},{}", step, op, call(110), kernel(115, 9)));
  check("work_before_its_call", fmt::format("{},{},{},{}", kernel(115, 9), call(110), op, step));
  check("outside_the_step", fmt::format("{},{},{},{}", step, op, call(300), kernel(310, 9)));
  check("lost_launch", fmt::format("{},{},{}", step, op, kernel(120, 8)));
  check("only_work", kernel(120, 8));
  check("marks_on_the_gpu", fmt::format("{},{},{},{},{}", on_gpu, step, op, call(110), kernel(115, 9)));
  check("only_marks_on_the_gpu", fmt::format("{},{},{}", on_gpu, call(110), kernel(115, 9)));
  std::string many;
  for (int i = 40'000; i > 0; --i) many += kernel(1000 + 30 * ((i * 7919) % 40'000), i) + ",\n";
  check("in_any_order", many + kernel(5, 9));
}

TEST(TraceSummary, IsTheSameWithoutKeepingEventsOfMeasuredTraces) {
  SKIP_WITHOUT_DATA();
  for (const char* file : {"dlrm8/kineto_rank3.json.gz", "nccl_data/nccl_data.json.gz",
                           "hta_small/mixed_files__rank_non_gpu.json.gz",
                           "h100_inference/gaunernst_bert-small-uncased__1016001.json.gz"})
    expect_same_summary(*test::measured_data() / "traces" / file);
}

// Which files link kernels to operators is a fact of the data set.
TEST(TraceSummary, TellsTheMeaningOfExternalIdsInMeasuredTraces) {
  SKIP_WITHOUT_DATA();
  struct Case {
    const char* file;
    ExternalIdMeaning meaning;
  };
  for (const Case& c :
       {Case{"dlrm8/kineto_rank0.json.gz", ExternalIdMeaning::correlation},
        Case{"trace_diff_control/control.json.gz", ExternalIdMeaning::correlation},
        Case{"vgg13/kineto_vgg13.json.gz", ExternalIdMeaning::correlation},
        Case{"nccl_data/nccl_data.json.gz", ExternalIdMeaning::op},
        Case{"h100_inference/gaunernst_bert-small-uncased__1016001.json.gz", ExternalIdMeaning::op},
        Case{"kineto_w0/worker0.1623143089861.pt.trace.json.gz", ExternalIdMeaning::op}}) {
    const auto rank = read_kineto(*test::measured_data() / "traces" / c.file);
    ASSERT_TRUE(rank.ok());
    EXPECT_EQ(to_string(summarize(*rank, can_be_replayed).external_id), to_string(c.meaning)) << c.file;
  }
}

TEST(TraceSummary, CountsCollectivesOfExecutionTraces) {
  const auto trace = parse_execution_trace(R"J({"nodes": [
    {"id": 2, "name": "record_param_comms", "tid": 1, "inputs": [[[1, 2, 0, 8, 4, "cuda:0"]], 5, 77, 0, "allreduce", [], []]},
    {"id": 3, "name": "record_param_comms", "tid": 2, "inputs": [5, 0, 0, "wait", [], []]},
    {"id": 1, "name": "process", "tid": 0}]})J",
                                           "et");
  ASSERT_TRUE(trace.ok());
  const ExecutionTraceSummary s = summarize(*trace);
  EXPECT_EQ(s.threads, 2U);
  EXPECT_EQ(s.nodes_with_tensors, 1U);
  EXPECT_EQ(s.collectives.at(CollectiveOp::all_reduce), 1U);
  EXPECT_EQ(s.collectives_with_size, 1U);
  EXPECT_EQ(s.waits, 1U);
}

}  // namespace
}  // namespace stepcast::trace_summary_test
