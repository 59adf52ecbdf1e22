// Timelines of pipelines: two ranks by hand, and the published job.
#include "stepcast/rebuild/pipeline_program.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/simulate/engine.h"
#include "stepcast/trace/readers.h"

#include "tests/support/fails_with.h"
#include "tests/support/paths.h"

namespace stepcast::pipeline_program_test {
namespace {

using test::FailsWith;
using ::testing::DoubleNear;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::filesystem::path two_ranks() {
  return test::source_dir() / "fuzz" / "corpus" / "pipeline_timeline" / "two_ranks.json";
}

// Rank 0 computes and sends, rank 1 receives and computes:
//   step 1: 100 us from 10, send at 115 (5 late) for 10; the receive leaves at 126, computation at 130 (4 late) for 50
//   step 2: 200 us from 1000, send at 1203 (3 late) for 10; the receive leaves at 1214, computation at 1216 (2 late)
PipelineTimeline timeline() {
  auto read = read_pipeline_timeline(two_ranks());
  EXPECT_TRUE(read.ok()) << read.error().message();
  return *std::move(read);
}

double end_of(const PipelineTimeline& timeline, std::int64_t step, const LaunchDelays& delays) {
  const auto recorded = pipeline_program(timeline, step, delays);
  EXPECT_TRUE(recorded.ok()) << recorded.error().message();
  const auto plan = Plan::compile(recorded->program);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  return plan->simulate(Costs{recorded->program})->end_us();
}

TEST(PipelineProgram, IsToldFromItsContent) {
  const auto format = detect_trace_format(two_ranks());
  ASSERT_TRUE(format.ok());
  EXPECT_EQ(*format, TraceFormat::pipeline_timeline);
  const PipelineTimeline t = timeline();
  EXPECT_THAT(t.steps, ::testing::ElementsAre(1, 2));
  EXPECT_THAT(t.ranks, ::testing::ElementsAre(0, 1));
}

TEST(PipelineProgram, WaitsForTheOtherRankAndAddsDelaysOfOtherSteps) {
  const PipelineTimeline t = timeline();
  // Without delays: 100 + max(10, 10.5) + 50; the receive starts when rank 0 has come.
  EXPECT_DOUBLE_EQ(end_of(t, 1, {}), 160.5);
  EXPECT_DOUBLE_EQ(end_of(t, 2, {}), 261);
  const std::vector<std::int64_t> second{2};
  const LaunchDelays delays = learn_launch_delays(t, second);
  EXPECT_THAT(delays, UnorderedElementsAre(Pair(Pair("forward-compute", ""), 0),
                                           Pair(Pair("forward-send", "forward-compute"), 3),
                                           Pair(Pair("forward-compute", "forward-recv"), 2)))
      << "the receive came first: how late it was nobody knows";
  EXPECT_DOUBLE_EQ(end_of(t, 1, delays), 165.5);  // + 3 before the send, + 2 before the second computation
}

TEST(PipelineProgram, KeepsTheRecordedTimes) {
  const auto recorded = pipeline_program(timeline(), 1, {});
  ASSERT_TRUE(recorded.ok());
  ASSERT_EQ(recorded->facts.size(), 2U);
  EXPECT_DOUBLE_EQ(recorded->facts[0].step_us.end_us, 115);  // 125 - 10
  EXPECT_DOUBLE_EQ(recorded->facts[1].step_us.end_us, 170);  // 180 - 10
  EXPECT_EQ(recorded->program.collectives().size(), 1U);
  EXPECT_EQ(recorded->program.collectives().front().members.size(), 2U);
}

TEST(PipelineProgram, SaysWhatIsWrong) {
  EXPECT_THAT(pipeline_program(timeline(), 7, {}), FailsWith("step 7 does not exist: found steps 1, 2"));
  const std::string begin = R"J([{"name": "f", "ph": "X", "pid": 0, "tid": 0, "ts": 1, )J";
  EXPECT_THAT(parse_pipeline_timeline(begin + R"J("dur": 1, "args": {"mb_id": 0}}])J", "t.json"),
              FailsWith("t.json: [0]: found an operator without step"));
  EXPECT_THAT(parse_pipeline_timeline("[]", "t.json"), FailsWith("t.json: the events: found no operator"));
  EXPECT_THAT(parse_pipeline_timeline(begin, "t.json"), FailsWith("ends early"));
}

TEST(PipelineProgram, CountsOperatorsWhoseTimesAreNone) {
  const std::string op =
      R"J({"name": "f", "ph": "X", "pid": 0, "tid": 0, "args": {"step": 1, "mb_id": 0}, )J";
  const auto read = parse_pipeline_timeline(
      "[" + op + R"J("ts": 1, "dur": -1}, )J" + op + R"J("dur": 1}, )J" + op + R"J("ts": 1, "dur": 2}])J",
      "t.json");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->bad_times, 2U);
  EXPECT_EQ(read->ops.size(), 1U);
}

}  // namespace
}  // namespace stepcast::pipeline_program_test
