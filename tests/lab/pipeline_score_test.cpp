// The published timeline of a pipeline: 8 ranks, 32 steps of 2.1 to 2.4 s.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "lab/replay_scores.h"
#include "tests/support/data.h"

namespace stepcast::pipeline_score_test {
namespace {

TEST(PipelineScore, ThePublishedJobIsReplayedWithDelaysOfOtherStepsAndWithout) {
  SKIP_WITHOUT_DATA();
  const auto scores =
      score_pipeline(*test::measured_data() / "traces" / "bytedance_st" / "timeline-ST.json.gz");
  ASSERT_TRUE(scores.ok()) << scores.error().message();
  ASSERT_EQ(scores->size(), 32U);
  double worst = 0, worst_without = 0;
  for (const PipelineStepScore& score : *scores) {
    EXPECT_GT(score.delayed.measured_us, 2.1e6);
    worst = std::max(worst, std::abs(score.delayed.error()));
    ASSERT_TRUE(score.without_delay);
    worst_without = std::max(worst_without, std::abs(score.without_delay->error()));
  }
  EXPECT_LT(worst, 0.015);
  EXPECT_LT(worst_without, 0.005);
}

}  // namespace
}  // namespace stepcast::pipeline_score_test
