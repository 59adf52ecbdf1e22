#include "stepcast/predict/pipeline_walk.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace stepcast::pipeline_walk_test {
namespace {

std::vector<PipelineShape> many_shapes() {
  std::vector<PipelineShape> shapes;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble_h1,
        PipelineSchedule::interleaved, PipelineSchedule::zb_v, PipelineSchedule::v_half,
        PipelineSchedule::v_min}) {
    for (const std::uint32_t stages : {1U, 2U, 4U, 7U}) {
      for (const std::uint32_t chunks : {1U, 2U, 3U}) {
        for (const std::uint32_t micro_batches : {1U, 2U, 7U, 12U, 28U, 40U, 84U}) {
          const PipelineShape shape{schedule, stages, chunks, micro_batches};
          if (check(shape).ok()) shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

// Every pass once, in the order of its stage, behind the pass that sends it its input.
TEST(PipelineWalk, NothingWaitsForWhatComesLater) {
  for (const PipelineShape& shape : many_shapes()) {
    SCOPED_TRACE(fmt::format("{} {} stages {} chunks {} micro-batches", to_string(shape.schedule),
                             shape.stages, shape.virtual_stages, shape.micro_batches));
    const PipelineWalk walk = pipeline_walk(shape);
    std::set<std::pair<PassKind, std::uint32_t>> seen;
    std::vector<std::vector<PipelinePass>> orders(shape.stages);
    for (const WalkStep& step : walk.steps) {
      const std::uint32_t m = step.cell % shape.micro_batches;
      ASSERT_EQ(step.cell / shape.micro_batches, step.chunk);
      ASSERT_EQ(stage_of_chunk(shape.schedule, shape.stages, step.chunk), step.stage);
      ASSERT_EQ(step.first, m == 0);
      ASSERT_EQ(step.last, m + 1 == shape.micro_batches);
      if (step.kind != PassKind::weight_gradient && step.receives) {
        const bool forward = step.kind == PassKind::forward;
        const std::uint32_t from =
            forward ? step.cell - shape.micro_batches : step.cell + shape.micro_batches;
        ASSERT_TRUE(seen.contains({step.kind, from}));
      }
      ASSERT_TRUE(seen.insert({step.kind, step.cell}).second);
      orders[step.stage].push_back({step.kind, static_cast<std::uint16_t>(step.chunk / shape.stages), m});
    }
    for (std::uint32_t s = 0; s < shape.stages; ++s) ASSERT_EQ(orders[s], pipeline_order(shape, s));
  }
}

// What a round holds of every stage is what the steps behind it begin with, some micro-batches later.
TEST(PipelineWalk, ARoundIsRepeatedByWhatFollows) {
  int with_round = 0;
  for (const PipelineShape& shape : many_shapes()) {
    const PipelineWalk walk = pipeline_walk(shape);
    if (!walk.round) continue;
    ++with_round;
    SCOPED_TRACE(fmt::format("{} {} stages {} chunks {} micro-batches", to_string(shape.schedule),
                             shape.stages, shape.virtual_stages, shape.micro_batches));
    const WalkRound& round = *walk.round;
    const std::size_t kinds = splits_backward(shape.schedule) ? 3 : 2;
    EXPECT_EQ(round.end - round.begin, kinds * round.micro_batches * shape.stages * shape.virtual_stages);
    std::set<std::pair<PassKind, std::uint32_t>> done;  // modulo rounds
    for (std::size_t i = round.begin; i < round.end; ++i) {
      const WalkStep& step = walk.steps[i];
      EXPECT_FALSE(step.kind == PassKind::forward && step.first);
      EXPECT_FALSE(step.kind == PassKind::backward && step.last);
      const std::uint32_t m = step.cell % shape.micro_batches % round.micro_batches;
      EXPECT_TRUE(done.insert({step.kind, step.chunk * round.micro_batches + m}).second);
    }
  }
  EXPECT_GT(with_round, 20);
}

TEST(PipelineWalk, ShortWalksHaveARoundAndTheSameRest) {
  for (PipelineShape shape : many_shapes()) {
    shape.micro_batches *= 20;
    if (shape.schedule == PipelineSchedule::gpipe) {
      EXPECT_EQ(short_walk_micro_batches(shape), shape.micro_batches);
      continue;
    }
    if (!check(shape).ok()) continue;
    PipelineShape few = shape;
    few.micro_batches = short_walk_micro_batches(shape);
    EXPECT_LE(few.micro_batches, shape.micro_batches);
    EXPECT_EQ(few.micro_batches % round_micro_batches(shape),
              shape.micro_batches % round_micro_batches(shape));
    if (few.micro_batches < shape.micro_batches) {
      EXPECT_TRUE(pipeline_walk(few).round.has_value())
          << to_string(shape.schedule) << " " << shape.stages << " " << shape.virtual_stages;
    }
  }
}

}  // namespace
}  // namespace stepcast::pipeline_walk_test
