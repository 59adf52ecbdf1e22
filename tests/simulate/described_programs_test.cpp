// A pipeline and a stack of sharded layers, worked by hand; expanded and composed.
#include "tests/support/described_programs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/simulate/engine.h"

#include "tests/support/composition.h"
#include "tests/support/sketch.h"

namespace stepcast::described_programs_test {
namespace {

using fixtures::pipeline_1f1b;
using fixtures::PipelineShape;
using fixtures::sharded_stack;
using fixtures::ShardedStackShape;
using fixtures::simulated;
using fixtures::Transfer;

// The step time, the same from the folded sweep, the unfolded one and the composition.
double step_us(const Program& program) {
  const double folded = simulated(program).end_us();
  EXPECT_EQ(simulated(program, {.unfold = true}).end_us(), folded);
  const Result<ComposedProgram> composed = ComposedProgram::compose(program, Costs{program});
  EXPECT_TRUE(composed.ok()) << composed.error().message();
  EXPECT_NEAR(composed->evaluate()->end_us(), folded, 1e-9 * folded);
  return folded;
}

// ---------------------------------------------------------------------------------------------------------
// 1F1B

// Without transfers. The last stage gets its first micro-batch after p - 1 forwards, then forward and
// backward follow each other m times without a gap, then the last gradient goes back through p - 1 backwards:
//
//   step = (p - 1) f + m (f + b) + (p - 1) b = (m + p - 1) (f + b);   bubble = (p - 1) (f + b), its share (p
//   - 1) / (m + p - 1)
TEST(Pipeline, BubbleWithoutTransfers) {
  EXPECT_DOUBLE_EQ(
      step_us(pipeline_1f1b({.stages = 4, .micro_batches = 8, .forward_us = 10, .backward_us = 20})),
      (8 + 4 - 1) * (10.0 + 20.0));
  for (const std::uint32_t p : {1u, 2u, 3u, 5u, 8u}) {
    for (const std::uint32_t m : {1u, 2u, 4u, 8u, 17u}) {
      EXPECT_DOUBLE_EQ(
          step_us(pipeline_1f1b({.stages = p, .micro_batches = m, .forward_us = 3, .backward_us = 7})),
          (m + p - 1) * 10.0)
          << p << " stages, " << m << " micro-batches";
    }
  }
}

// With a transfer time x between neighbours, beside the work. Look at the last stage. Its first backward ends
// at
//
//   p f + (p - 1) x + b.
//
// After the backward of micro-batch i there, the gradient reaches the stage k places before after k (x + b);
// that stage then does its next forward in turn, which is micro-batch i + k + 1; it takes f, comes back to
// the last stage after k (x + f), and its backward there ends b later. So backward i + k + 1 ends at least
//
//   (k + 1) (f + b) + 2 k x        after backward i, for every k = 0 .. p - 1:
//
// each chain of k + 1 micro-batches loses 2 k x. The m - 1 micro-batches after the first lose most in the
// fewest chains: each chain spares one 2 x, so ceil((m - 1) / p) chains lose 2 x (m - 1 - ceil((m - 1) / p)).
// In the end the last gradient goes back in (p - 1) (x + b):
//
//   step = (m + p - 1) (f + b) + 2 (p - 1) x + 2 (m - 1 - ceil((m - 1) / p)) x
//
// 4 stages, 8 micro-batches: 11 (f + b) + 6 x + 2 (7 - 2) x = 11 (f + b) + 16 x.
double pipeline_step_us(double p, double m, double f, double b, double x) {
  return (m + p - 1) * (f + b) + 2 * (p - 1) * x + 2 * (m - 1 - std::ceil((m - 1) / p)) * x;
}

TEST(Pipeline, EagerTransfers) {
  const PipelineShape shape{
      .forward_us = 10, .backward_us = 20, .transfer = Transfer::eager, .transfer_us = 3};
  EXPECT_DOUBLE_EQ(step_us(pipeline_1f1b(shape)), 11 * 30.0 + 16 * 3.0);
  for (const std::uint32_t p : {2u, 3u, 4u, 6u}) {
    for (const std::uint32_t m : {1u, 2u, 5u, 8u, 13u}) {
      for (const double x : {0.0, 0.5, 2.0}) {
        const PipelineShape other{.stages = p,
                                  .micro_batches = m,
                                  .forward_us = 4,
                                  .backward_us = 8,
                                  .transfer = Transfer::eager,
                                  .transfer_us = x};
        EXPECT_DOUBLE_EQ(step_us(pipeline_1f1b(other)), pipeline_step_us(p, m, 4, 8, x))
            << p << " stages, " << m << " micro-batches, transfer " << x;
      }
    }
  }
}

// Receivers stand ready when a message is sent, each on a stream of its own: then meeting costs no more than
// sending early. Every send stays open while its stage goes on with other instances.
TEST(Pipeline, MeetingTransfers) {
  const PipelineShape shape{
      .forward_us = 10, .backward_us = 20, .transfer = Transfer::meeting, .transfer_us = 3};
  EXPECT_DOUBLE_EQ(step_us(pipeline_1f1b(shape)), 11 * 30.0 + 16 * 3.0);
}

// Stage by stage, 2 stages x 3 micro-batches, f = 10, b = 20, x = 3:
//   stage 0: F0 0-10, F1 10-20, B0 46-66 (gradient at 43 + 3), F2 66-76, B1 76-96 (gradient at 73 + 3), B2
//   112-132 stage 1: F0 13-23, B0 23-43, F1 43-53, B1 53-73, F2 79-89 (activation at 76 + 3), B2 89-109
TEST(Pipeline, TimesOfEveryTask) {
  const Timeline t = simulated(pipeline_1f1b({.stages = 2,
                                              .micro_batches = 3,
                                              .forward_us = 10,
                                              .backward_us = 20,
                                              .transfer = Transfer::eager,
                                              .transfer_us = 3}));
  const double begin0[] = {0, 10, 46, 66, 76, 112};
  const double begin1[] = {13, 23, 43, 53, 79, 89};
  const bool forward0[] = {true, true, false, true, false, false};
  for (int i = 0; i < 6; ++i) {
    // Stage 0: forward computes first, backward behind its receive. Stage 1: the other way round.
    EXPECT_EQ(t.instance(RankClassId{0}, 0, InstanceId{i})[forward0[i] ? 0 : 1].start_us, begin0[i]) << i;
    EXPECT_EQ(t.instance(RankClassId{1}, 0, InstanceId{i})[i % 2 == 0 ? 1 : 0].start_us, begin1[i]) << i;
  }
  EXPECT_EQ(t.end_us(), 132);
  EXPECT_DOUBLE_EQ(t.end_us(), pipeline_step_us(2, 3, 10, 20, 3));
}

// 16 replicas of each stage, aligned: replica k meets replica k. One that starts late delays its own pipeline
// only.
TEST(Pipeline, ReplicasDoNotDisturbEachOther) {
  const PipelineShape shape{
      .replicas = 16, .forward_us = 10, .backward_us = 20, .transfer = Transfer::meeting, .transfer_us = 3};
  const Program program = pipeline_1f1b(shape);
  SimulateOptions options{.unfold = true};
  options.start_offset_us.assign(4 * 16, 0.0);
  for (std::uint32_t stage = 0; stage < 4; ++stage) options.start_offset_us[stage * 16 + 5] = 1000;
  const Timeline t = simulated(program, options);
  for (std::uint32_t k = 0; k < 16; ++k) {
    EXPECT_DOUBLE_EQ(t.rank_end_us(RankClassId{0}, k), 11 * 30.0 + 16 * 3.0 + (k == 5 ? 1000 : 0));
  }
}

// ---------------------------------------------------------------------------------------------------------
// Sharded layers. L layers, all-gather g, computation c. The first all-gather is exposed. Layer i + 1 starts
// when layer i and the all-gather that started with layer i are both over, max(c, g) later:
//
//   step = g + (L - 1) max(c, g) + c;   exposed communication = step - L c = g + (L - 1) max(0, g - c)

TEST(ShardedStack, GatherShorterThanComputation) {
  const ShardedStackShape shape{.layers = 8, .gather_us = 3, .compute_us = 10};
  EXPECT_DOUBLE_EQ(step_us(sharded_stack(shape)), 3 + 8 * 10.0);  // exposed: 3
}

TEST(ShardedStack, GatherLongerThanComputation) {
  const ShardedStackShape shape{.layers = 8, .gather_us = 14, .compute_us = 10};
  EXPECT_DOUBLE_EQ(step_us(sharded_stack(shape)), 8 * 14 + 10.0);  // exposed: 14 + 7 * 4 = 42
}

TEST(ShardedStack, OneLayer) {
  EXPECT_DOUBLE_EQ(step_us(sharded_stack({.layers = 1, .gather_us = 4, .compute_us = 10})), 14);
}

TEST(ShardedStack, JoinedAndAloneAreTheSame) {
  for (const double gather : {0.5, 2.0, 5.0}) {
    ShardedStackShape shape{.layers = 12, .gather_us = gather, .compute_us = 2};
    const double alone = step_us(sharded_stack(shape));
    shape.joined_ranks = 8;
    EXPECT_EQ(step_us(sharded_stack(shape)), alone);
  }
}

// Every layer: computation of layer i at 14 (i + 1), all-gather of layer i + 1 beside it.
TEST(ShardedStack, TimesOfEveryLayer) {
  const Program program = sharded_stack({.layers = 5, .gather_us = 14, .compute_us = 10});
  const Timeline t = simulated(program);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto layer = t.instance(RankClassId{0}, 0, InstanceId{i + 1});
    EXPECT_EQ(layer[0].start_us, 14.0 * (i + 1));
    EXPECT_EQ(layer[0].end_us, 14.0 * (i + 1) + 10);
    EXPECT_EQ(layer[1].start_us, 14.0 * (i + 1));
    EXPECT_EQ(layer[1].end_us, 14.0 * (i + 2));
  }
  EXPECT_EQ(t.instance(RankClassId{0}, 0, InstanceId{5})[0].start_us, 70);
}

// Ranks that start apart: all all-gathers wait for the last of them, at 0, 0, 9, 0.
TEST(ShardedStack, TheLastRankSetsThePace) {
  const Program program = sharded_stack({.layers = 8, .gather_us = 14, .compute_us = 10, .joined_ranks = 4});
  const Timeline t = simulated(program, {.unfold = true, .start_offset_us = {0, 0, 9, 0}});
  for (std::uint32_t r = 0; r < 4; ++r) EXPECT_EQ(t.rank_end_us(RankClassId{0}, r), 9 + 8 * 14 + 10);
}

}  // namespace
}  // namespace stepcast::described_programs_test
