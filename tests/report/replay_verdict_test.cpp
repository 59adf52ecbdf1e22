#include "stepcast/report/replay_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::replay_verdict_test {
namespace {

// Two ranks of 10 ms: they compute 3, idle 4 for the CPU, wait 2 for each other and communicate 1.
ReplayAnalysis two_ranks() {
  ReplayAnalysis a;
  for (const int rank : {0, 1}) {
    ForecastClass c;
    c.window_ms = 10;
    c.computation_ms = 3;
    c.exposed_comm_ms = 1;
    c.idle_ms = {{"cpu", 4}, {"other_rank", 2}};
    a.simulated.classes.push_back(c);
    RecordedStepFacts facts;
    facts.rank = rank;
    a.facts.push_back(facts);
  }
  // Of 3 collectives and 450 us of waiting rank 1 came last in one by 300 us, rank 0 in one by 100 us.
  a.binding = {
      .step_us = 10000,
      .gains = {{{StepResource::host, 3500}, {StepResource::gpu, 200}, {StepResource::communication, 1}}}};
  a.culprits.collectives = 3;
  a.culprits.ties = 1;
  a.culprits.ranks.resize(2);
  for (RankCulprits& rank : a.culprits.ranks) {
    rank.step_us = 10000;
    rank.own_us[static_cast<std::size_t>(Culprit::host)] = 4000;
    rank.own_us[static_cast<std::size_t>(Culprit::gpu)] = 5000;
  }
  RankCulprits &zero = a.culprits.ranks[0], &one = a.culprits.ranks[1];
  zero.rank_class = RankClassId{std::size_t{0}};
  one.rank_class = RankClassId{std::size_t{1}};
  zero.came_last = one.came_last = 1;
  zero.caused_wait_us = 100;
  one.caused_wait_us = 300;
  zero.waited_us = 350;
  one.waited_us = 100;
  // 1,000 us of rank 0 are waiting for what held rank 1: half of the mean step's 1,000.
  zero.through_others_us[static_cast<std::size_t>(Culprit::data_skew)] = 1000;
  return a;
}

// 300 of 450 us of waiting are rank 1's.
TEST(ReplayVerdict, NamesWhatHoldsTheStepBackAndWhoComesLast) {
  EXPECT_EQ(
      replay_verdict(two_ranks()),
      "host-bound: a 2x speed-up of the host would save 35.0 % of the step (3.50 ms), of the GPUs 2.0 %; "
      "GPUs compute 30.0 % of the step, idle 40.0 % (4.00 ms) for the CPU; rank 1 comes last in 1 of 3 "
      "collectives and causes 66.7 % of the waiting for other ranks (300 us), rank 0 causes 22.2 %");
}

// Not the share of time, but what a faster one would save: GPUs that compute 30 % of the step may bind it.
TEST(ReplayVerdict, NamesWhatWouldSaveMost) {
  ReplayAnalysis a = two_ranks();
  a.culprits = {};
  a.binding.gains = {{{StepResource::gpu, 2000}, {StepResource::host, 0}, {StepResource::communication, 0}}};
  EXPECT_EQ(replay_verdict(a),
            "GPU-bound: a 2x speed-up of the GPUs would save 20.0 % of the step (2.00 ms); GPUs compute "
            "30.0 % of the step, idle 40.0 % (4.00 ms) for the CPU");
  a.binding.copies_saved_us = 1500;
  EXPECT_TRUE(replay_verdict(a).starts_with("bound by copies: a 2x speed-up of the GPUs"));
  a.binding.gains = {{{StepResource::communication, 1000}, {StepResource::host, 0}, {StepResource::gpu, 0}}};
  EXPECT_TRUE(replay_verdict(a).starts_with(
      "bound by communication: a 2x speed-up of the transfers would save 10.0 %"));
}

// Work that no call in the files launched moves with nothing: the verdict begins with that.
TEST(ReplayVerdict, IsReservedWhereLaunchesAreMissing) {
  ReplayAnalysis a = two_ranks();
  a.culprits = {};
  for (RecordedStepFacts& facts : a.facts) facts.gpu_work_us = 1000;
  a.facts[1].unlaunched_us = 199;
  EXPECT_TRUE(replay_verdict(a).starts_with("host-bound: "));
  a.facts[1].unlaunched_us = 500;
  EXPECT_TRUE(
      replay_verdict(a).starts_with("The bottleneck is uncertain: 25 % of the GPU time has no launch in the "
                                    "traces. The traces show a step that is host-bound: "))
      << replay_verdict(a);
}

// Files without launches do not say what their GPUs wait for.
TEST(ReplayVerdict, NamesWhatHasNoCause) {
  ReplayAnalysis a = two_ranks();
  a.culprits = {};
  a.binding.gains = {};
  for (ForecastClass& c : a.simulated.classes) c.idle_ms = {{"cpu", 0.5}, {"rest", 8}};
  EXPECT_EQ(replay_verdict(a),
            "bound by what the traces do not show: no faster host, GPU or link would shorten it; GPUs "
            "compute 30.0 % of "
            "the step, idle 80.0 % (8.00 ms) without a cause");
}

TEST(ReplayVerdict, TheMeanStepIsSharedOutAmongCulprits) {
  EXPECT_EQ(culprit_sentence(two_ranks()),
            "of the mean step of 10.0 ms: GPU 5.00 ms, host 4.00 ms, data skew 500 us; waiting is "
            "charged to the cause of the other rank's delay");
  EXPECT_EQ(culprit_sentence(ReplayAnalysis{}), "");
  ReplayAnalysis thinned = two_ranks();
  thinned.culprits.ranks[0].own_us[static_cast<std::size_t>(Culprit::rest)] += 1200;
  EXPECT_THAT(culprit_sentence(thinned), ::testing::HasSubstr("the traces do not show why it was late"));
}

}  // namespace
}  // namespace stepcast::replay_verdict_test
