#include "stepcast/predict/replay.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/sources/trace_set.h"

#include "tests/analyze/hand_made.h"
#include "tests/support/data.h"
#include "tests/support/trace_generator.h"

namespace stepcast::replay_test {
namespace {

TEST(ErrorSpread, TakesTheNearestRank) {
  std::vector<double> errors;
  for (int i = 20; i >= 1; --i) errors.push_back(i);
  const ErrorSpread spread = error_spread(errors);
  EXPECT_EQ(spread.n, 20U);
  EXPECT_EQ(spread.median_us, 10);
  EXPECT_EQ(spread.p95_us, 19);
  EXPECT_EQ(spread.max_us, 20);
  EXPECT_EQ(error_spread({}).n, 0U);
}

TEST(CollectiveWait, AgreesWithinFivePercentAndTwentyMicroseconds) {
  CollectiveWait wait;
  wait.recorded_us = 1000;
  wait.simulated_us = 1070;  // 5 % of 1000 + 20
  EXPECT_TRUE(wait.agrees());
  wait.simulated_us = 1070.1;
  EXPECT_FALSE(wait.agrees());
}

// The two ranks of TwoRanks as if they had been recorded: rank 0 began at 100, rank 1 at 103. Their simulated
// collective ends at max(100 + 3, 103 + 10) + 8 = 121 for both; the steps end with L, at 102 and 112.
TEST(ScoreReplay, ByHand) {
  fixtures::TwoRanks hand;
  RecordedProgram recorded;
  recorded.program = hand.program;
  recorded.start_offset_us = {100, 103};
  // [launch, gemm, collective] and [launch, collective]; the numbers of tasks in their blocks.
  recorded.measured = {{{100, 102}, {101.5, 111}, {104, 120}}, {{103, 113}, {114, 122}}};
  recorded.facts.resize(2);
  for (int r = 0; r < 2; ++r) {
    RecordedStepFacts& facts = recorded.facts[static_cast<std::size_t>(r)];
    facts.rank = r;
    facts.step_number = 1;
    facts.step_us = r == 0 ? Interval{100, 102} : Interval{103, 113};
    facts.gpu_window_end_us = r == 0 ? 120 : 122;
    facts.step_end_task = TaskId{0};
  }
  const Result<ReplayScores> scores = score_replay(recorded, Costs{recorded.program});
  ASSERT_TRUE(scores.ok()) << scores.error().message();
  EXPECT_DOUBLE_EQ(scores->ranks[0].step.simulated_us, 2);
  EXPECT_DOUBLE_EQ(scores->ranks[0].step.measured_us, 2);
  EXPECT_DOUBLE_EQ(scores->ranks[1].step.simulated_us, 9);
  EXPECT_DOUBLE_EQ(scores->ranks[1].step.error(), -0.1);
  EXPECT_DOUBLE_EQ(scores->ranks[0].gpu_window.simulated_us, 21);
  EXPECT_DOUBLE_EQ(scores->ranks[0].gpu_window.measured_us, 20);
  EXPECT_DOUBLE_EQ(scores->global_window.measured_us, 22);
  EXPECT_DOUBLE_EQ(scores->global_window.simulated_us, 21);
  // Starts of rank 0: gemm 101 (measured 101.5), collective 103 (104); of rank 1: 113 (114).
  EXPECT_EQ(scores->ranks[0].kernel_start.n, 2U);
  EXPECT_DOUBLE_EQ(scores->ranks[0].kernel_start.max_us, 1);
  EXPECT_EQ(scores->kernel_start.n, 3U);
  // Stays of 16 and 8 recorded, of 18 and 8 simulated.
  ASSERT_EQ(scores->collective_waits.size(), 2U);
  EXPECT_DOUBLE_EQ(scores->collective_waits[0].recorded_us, 8);
  EXPECT_DOUBLE_EQ(scores->collective_waits[0].simulated_us, 10);
  EXPECT_DOUBLE_EQ(scores->collective_waits[1].recorded_us, 0);
}

TEST(Replay, OfAGeneratedJobComesCloseAndTheNaiveReplayDoesNot) {
  test::GeneratorOptions options;
  options.ranks = 4;
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<RecordedInput> inputs;
  for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
  const Result<Replay> result = replay(inputs);
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->ranks.size(), 4U);
  for (const ReplayedRank& rank : result->ranks)
    EXPECT_LT(std::abs(rank.step.error()), 0.01) << "rank " << rank.rank;
  EXPECT_EQ(std::count_if(result->collective_waits.begin(), result->collective_waits.end(),
                          [](const CollectiveWait& w) { return w.agrees(); }),
            static_cast<std::ptrdiff_t>(result->collective_waits.size()));
  ASSERT_FALSE(result->variants.empty());
  EXPECT_EQ(result->variants[0].name, "naive");
  double worst_naive = 0;
  for (const TimePair& step : result->variants[0].step)
    worst_naive = std::max(worst_naive, std::abs(step.error()));
  EXPECT_GT(worst_naive, 0.05);
  EXPECT_FALSE(replay(inputs, {.rebuild = {.step = 999}, .compare_variants = false}).ok());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
}

// What has to come out on the recorded step of eight V100s.
TEST(Replay, OfTheEightRankRecommendationModel) {
  SKIP_WITHOUT_DATA();
  const std::vector<std::filesystem::path> place{*test::measured_data() / "traces" / "dlrm8"};
  const Result<TraceListing> listing = list_traces(place);
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  const Result<TraceSet> set = read_trace_set(*listing);
  ASSERT_TRUE(set.ok()) << set.error().message();
  const Result<Replay> result = replay(set->inputs());
  ASSERT_TRUE(result.ok()) << result.error().message();

  std::vector<double> step_errors, window_errors;
  for (std::size_t c = 0; c < result->ranks.size(); ++c) {
    const ReplayedRank& rank = result->ranks[c];
    const RecordedStepFacts& facts = result->recorded.facts[c];
    step_errors.push_back(100 * std::abs(rank.step.error()));
    window_errors.push_back(100 * std::abs(rank.gpu_window.error()));
    EXPECT_LE(100 * facts.unexplained_wait_us / rank.step.measured_us, 0.3) << "rank " << rank.rank;
    EXPECT_LE(rank.kernel_start.median_us, 10) << "rank " << rank.rank;
    EXPECT_LE(rank.kernel_start.p95_us, 20) << "rank " << rank.rank;
    const double handoff = facts.kept_delay_us[static_cast<std::size_t>(EdgeOrigin::thread_handoff)];
    EXPECT_LE(100 * handoff / rank.step.measured_us, 2.5) << "rank " << rank.rank;
  }
  EXPECT_LE(median(step_errors), 0.1);
  EXPECT_LE(*std::max_element(step_errors.begin(), step_errors.end()), 0.3);
  EXPECT_LE(median(window_errors), 0.1);
  EXPECT_LE(*std::max_element(window_errors.begin(), window_errors.end()), 0.3);
  EXPECT_LE(100 * std::abs(result->global_window.error()), 0.2);
  EXPECT_EQ(result->collective_waits.size(), 64U);
  for (const CollectiveWait& wait : result->collective_waits) EXPECT_TRUE(wait.agrees());
  for (const ReplayVariant& variant : result->variants) {
    if (variant.name != "smallest_handoff") continue;
    for (const TimePair& step : variant.step) EXPECT_LE(100 * std::abs(step.error()), 1.0);
  }
}

}  // namespace
}  // namespace stepcast::replay_test
