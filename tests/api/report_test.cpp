// Pictures of a step: how many bars, where they stand, and what is said to be left out.

#include <cstddef>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/analyze/make_step_picture.h"
#include "stepcast/api/stepcast.h"

namespace stepcast::test::report_test {
namespace {

StepPicture passes_of(std::int64_t gpus, std::int64_t pipeline, std::int64_t sequences,
                      bool zero_bubble = false) {
  PredictRequest request{.job = {.model = "llama-3-8b", .n_gpus = gpus}, .platform = "dgx-h100"};
  request.job.settings.pipeline = pipeline;
  request.job.settings.global_batch_sequences = sequences;
  request.job.settings.micro_batch_sequences = 1;
  request.open_layout = OpenLayout::as_said;
  if (zero_bubble) request.job.settings.pipeline_schedule = PipelineSchedule::zero_bubble_h1;
  const Session session;
  auto answer = session.report(request);
  EXPECT_TRUE(answer.ok()) << answer.error().message();
  return answer.ok() ? answer->pictures.passes : StepPicture{};
}

std::size_t count(const PictureRow& row, PicturePart part) {
  std::size_t n = 0;
  for (const PictureBar& bar : row.bars) n += bar.part == part ? 1 : 0;
  return n;
}

// 1F1B of 4 stages and 8 micro-batches: stage s runs 4 - s forward passes before its first backward pass, at least one.
TEST(PictureOfPasses, ShowsOneForwardOneBackward) {
  const StepPicture picture = passes_of(4, 4, 8);
  ASSERT_EQ(picture.rows.size(), 4U);
  for (std::size_t s = 0; s < 4; ++s) {
    const PictureRow& row = picture.rows[s];
    EXPECT_EQ(count(row, PicturePart::forward), 8U);
    EXPECT_EQ(count(row, PicturePart::backward), 8U);
    EXPECT_EQ(count(row, PicturePart::update), 1U);
    std::size_t ahead = 0;
    while (row.bars[ahead].part == PicturePart::forward) ++ahead;
    EXPECT_EQ(ahead, 4 - s) << s;
    for (std::size_t i = 1; i < row.bars.size(); ++i) {
      const PictureBar& before = row.bars[i - 1];
      EXPECT_GE(row.bars[i].start_ms, before.start_ms + before.time_ms - 1e-9) << s << " " << i;
    }
  }
  // A stage begins when the one before it has sent: later than that one.
  EXPECT_GT(picture.rows[1].bars[0].start_ms, picture.rows[0].bars[0].start_ms);
  EXPECT_TRUE(picture.gaps.empty());
}

// 8 stages with 1,024 micro-batches: 8 x (2 x 1,024 + 1) = 16,392 bars, of which 6,000 are kept.
TEST(PictureOfPasses, LeavesTheMiddleOutAndSaysSo) {
  const StepPicture picture = passes_of(8, 8, 1024);
  ASSERT_EQ(picture.rows.size(), 8U);
  ASSERT_EQ(picture.gaps.size(), 1U);
  std::size_t shown = 0;
  for (const PictureRow& row : picture.rows) shown += row.bars.size();
  EXPECT_LE(shown, kMostPictureBars + 1);
  EXPECT_EQ(shown + picture.gaps.front().passes, 16392U);
  for (const PictureRow& row : picture.rows) {
    for (const PictureBar& bar : row.bars) {
      const bool inside =
          bar.start_ms >= picture.gaps.front().from_ms && bar.start_ms < picture.gaps.front().to_ms;
      EXPECT_FALSE(inside);
      EXPECT_GE(bar.time_ms, 0);
    }
  }
}

// ZB-H1: every backward pass leaves its weight gradients for later.
TEST(PictureOfPasses, ShowsWeightGradientsThatAreHeldBack) {
  const StepPicture picture = passes_of(4, 4, 8, true);
  ASSERT_EQ(picture.rows.size(), 4U);
  for (const PictureRow& row : picture.rows) {
    EXPECT_EQ(count(row, PicturePart::backward), 8U);
    EXPECT_EQ(count(row, PicturePart::weight_gradient), 8U);
  }
}

TEST(PicturePart, HasAWordForEach) {
  for (std::size_t part = 0; part < kPicturePartCount; ++part) {
    EXPECT_FALSE(to_string(static_cast<PicturePart>(part)).empty());
  }
}

}  // namespace
}  // namespace stepcast::test::report_test
