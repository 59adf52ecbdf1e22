#include "stepcast/predict/scenario_sweep.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/predict/replay.h"
#include "stepcast/sources/trace_set.h"

#include "tests/support/paths.h"
#include "tests/support/two_recorded_ranks.h"

namespace stepcast::scenario_sweep_test {
namespace {

SlowdownDraws fixed(Slowdown first, Slowdown second, double network) {
  SlowdownDraws draws;
  draws.of_rank = {{first}, {second}};
  draws.network = {network};
  return draws;
}

// Rank 0: 10 + 30, rank 1: 20 + 30, then 5 together. With a host of rank 0 and a GPU of rank 1 half as fast, and a
// third of the network: rank 0 comes at 50, rank 1 at 80, both leave at 95.
TEST(ScenarioSweep, OfFixedFactorsByHand) {
  const RecordedProgram recorded = test::two_recorded_ranks();
  const Costs costs{recorded.program};
  const Result<SweptScenarios> base =
      sweep_scenarios(recorded, costs, SlowdownDraws{}, {.n = 1, .seed = 1, .threads = 1});
  ASSERT_TRUE(base.ok()) << base.error().message();
  EXPECT_DOUBLE_EQ(base->step_us[0], 55);
  const Result<SweptScenarios> slow = sweep_scenarios(
      recorded, costs, fixed({.host = 2, .gpu = 1}, {.host = 1, .gpu = 2}, 3), {.n = 9, .seed = 1});
  ASSERT_TRUE(slow.ok()) << slow.error().message();
  ASSERT_EQ(slow->step_us.size(), 9U);
  for (const double us : slow->step_us) EXPECT_DOUBLE_EQ(us, 95);
  EXPECT_DOUBLE_EQ(slow->rank_step_us[0][8], 95);
}

// Host 10 and 20, GPU 30 and 30, network 5 and 5.
TEST(ScenarioSweep, DrawsFromRanksAndFromSteps) {
  const RecordedProgram recorded = test::two_recorded_ranks();
  const std::vector<RankTimes> base = rank_times(recorded, Costs{recorded.program});
  EXPECT_DOUBLE_EQ(base[0].host_us, 10);
  EXPECT_DOUBLE_EQ(base[1].gpu_us, 30);
  EXPECT_DOUBLE_EQ(base[1].network_us, 5);
  const SlowdownDraws ranks = draws_of_ranks(base);
  EXPECT_EQ(ranks.of_rank[0], (std::vector<Slowdown>{{1, 1}, {2, 1}}));
  EXPECT_EQ(ranks.of_rank[1], (std::vector<Slowdown>{{0.5, 1}, {1, 1}}));
  EXPECT_DOUBLE_EQ(mean_draw(ranks, 2).ranks[0].host, 1.5);
  std::vector<RankTimes> other = base;
  other[1].gpu_us = 60;
  for (RankTimes& rank : other) rank.network_us = 10;
  const SlowdownDraws steps = draws_of_steps({base, other}, base);
  EXPECT_EQ(steps.of_rank[1], (std::vector<Slowdown>{{1, 1}, {1, 2}}));
  EXPECT_EQ(steps.network, (std::vector<double>{1, 2}));
}

// One step of one rank says nothing of how steps differ: they are spread as measured ones are, with a tail.
TEST(ScenarioSweep, DrawsOfOneRankAreSpreadAsMeasuredSteps) {
  const SlowdownDraws draws = draws_of_ranks({{.host_us = 10, .gpu_us = 30, .network_us = 0}});
  ASSERT_EQ(draws.of_rank.size(), 1U);
  std::vector<double> factors;
  for (const Slowdown& slowdown : draws.of_rank[0]) {
    EXPECT_DOUBLE_EQ(slowdown.host, slowdown.gpu);
    factors.push_back(slowdown.host);
  }
  ASSERT_TRUE(std::ranges::is_sorted(factors));
  EXPECT_NEAR(factors[factors.size() / 2], 1, 1e-3);
  EXPECT_NEAR(factors[factors.size() * 9 / 10], 1.031, 1e-3);
  EXPECT_NEAR(factors[factors.size() * 99 / 100 - 1], 1.158, 2e-3);
  EXPECT_LT(factors.back(), 1.51);
}

TEST(ScenarioSweep, DrawsDependOnSeedAndScenarioAlone) {
  SlowdownDraws draws;
  draws.jitter = {.host = 0.1, .gpu = 0.02};
  double mean = 0;
  for (std::uint64_t s = 0; s < 2000; ++s) mean += draw_scenario(draws, 2, 7, s).ranks[1].host / 2000;
  EXPECT_NEAR(mean, 1.005, 0.01);  // of a log-normal with 0.1: exp(0.005)
  EXPECT_EQ(draw_scenario(draws, 2, 7, 3).ranks, draw_scenario(draws, 2, 7, 3).ranks);
  EXPECT_NE(draw_scenario(draws, 2, 7, 3).ranks, draw_scenario(draws, 2, 8, 3).ranks);
  const RecordedProgram recorded = test::two_recorded_ranks();
  const Costs costs{recorded.program};
  const Result<SweptScenarios> one =
      sweep_scenarios(recorded, costs, draws, {.n = 30, .seed = 5, .threads = 1});
  const Result<SweptScenarios> three =
      sweep_scenarios(recorded, costs, draws, {.n = 30, .seed = 5, .threads = 3});
  ASSERT_TRUE(one.ok() && three.ok());
  EXPECT_EQ(one->step_us, three->step_us);
}

// The scenario looked at alone gives the step that the sweep gave.
TEST(ScenarioSweep, AgreesWithAReplayOfTheScenario) {
  const std::vector<std::filesystem::path> places{test::source_dir() / "examples" / "dlrm_4gpu"};
  const Result<TraceListing> listing = list_traces(places);
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  const Result<TraceSet> traces = read_trace_set(*listing);
  ASSERT_TRUE(traces.ok()) << traces.error().message();
  const Result<RecordedProgram> recorded = rebuild_program(traces->inputs());
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  const Costs costs{recorded->program};
  const SlowdownDraws draws = draws_of_ranks(rank_times(*recorded, costs));
  const Result<SweptScenarios> swept = sweep_scenarios(*recorded, costs, draws, {.n = 10, .seed = 3});
  ASSERT_TRUE(swept.ok()) << swept.error().message();
  for (const std::size_t s : {std::size_t{0}, std::size_t{9}}) {
    const Costs alone = scenario_costs(*recorded, costs, draw_scenario(draws, 4, 3, s));
    const Result<ReplayScores> scores = score_replay(*recorded, alone);
    ASSERT_TRUE(scores.ok()) << scores.error().message();
    for (std::size_t c = 0; c < 4; ++c)
      EXPECT_DOUBLE_EQ(swept->rank_step_us[c][s], scores->ranks[c].step.simulated_us);
  }
}

TEST(Jitter, IsReadByName) {
  const Result<Jitter> both = parse_jitter({"5%"});
  ASSERT_TRUE(both.ok());
  EXPECT_DOUBLE_EQ(both->host, 0.05);
  EXPECT_DOUBLE_EQ(both->gpu, 0.05);
  EXPECT_DOUBLE_EQ(both->network, 0);
  const Result<Jitter> named = parse_jitter({"host=10%", "network=20%"});
  ASSERT_TRUE(named.ok());
  EXPECT_DOUBLE_EQ(named->network, 0.2);
  for (const char* wrong : {"5", "cpu=5%", "host=%", "host=-1%", "host=1000%", "nan%", ""}) {
    const Result<Jitter> refused = parse_jitter({wrong});
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(
        refused.error().message(),
        std::string{"--jitter: found `"} + wrong +
            "`, expected 5% (host and GPU), or host=, gpu= or network= with a percentage from 0 to 100");
  }
}

}  // namespace
}  // namespace stepcast::scenario_sweep_test
