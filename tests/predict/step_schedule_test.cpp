// Time lines of a step worked by hand. Times in microseconds; "F0 0-10" is the forward of micro-batch 0.
#include "stepcast/predict/step_schedule.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::step_schedule_test {
namespace {

StepSchedule schedule_of(PipelineSchedule kind, std::uint32_t stages, std::uint32_t micro_batches,
                         std::uint32_t virtual_stages = 1) {
  StepSchedule schedule;
  schedule.shape = {kind, stages, virtual_stages, micro_batches};
  schedule.chunks.resize(std::size_t{stages} * virtual_stages);
  schedule.reduce_at_end_us.assign(stages, 0);
  schedule.optimizer_us.assign(stages, 0);
  schedule.gather_after_step_us.assign(stages, 0);
  return schedule;
}

StepSchedule uniform(PipelineSchedule kind, std::uint32_t stages, std::uint32_t micro_batches,
                     ScheduleUnit unit, std::uint32_t virtual_stages = 1) {
  StepSchedule schedule = schedule_of(kind, stages, micro_batches, virtual_stages);
  for (ScheduleChunk& chunk : schedule.chunks) chunk.units = {unit};
  return schedule;
}

double step_us(const StepSchedule& schedule) { return ScheduleEvaluator{}.evaluate(schedule).step_us; }

// What a stage spends adds up to when it ends.
void expect_parts_add_up(const StepTimes& times) {
  for (const StageTimes& s : times.stages) {
    EXPECT_NEAR(
        s.end_us,
        s.compute_us + s.weights_us + s.boundary_us + s.idle_us + s.reduce_us + s.optimizer_us + s.gather_us,
        1e-9 * (1 + s.end_us));
  }
}

TEST(StepSchedule, OneStageRunsItsPassesBackToBack) {
  EXPECT_DOUBLE_EQ(step_us(uniform(PipelineSchedule::one_f_one_b, 1, 5, {10, 20})), 5 * 30);
}

// (M - 1 + P) (f + b)
TEST(StepSchedule, UniformStagesOfOneForwardOneBackward) {
  for (const std::uint32_t stages : {1U, 2U, 4U, 7U}) {
    for (const std::uint32_t micro_batches : {1U, 3U, 4U, 16U}) {
      EXPECT_DOUBLE_EQ(step_us(uniform(PipelineSchedule::one_f_one_b, stages, micro_batches, {10, 20})),
                       (micro_batches - 1 + stages) * 30.0);
    }
  }
}

// All forwards have passed the last stage after (M - 1 + P) f, all backwards likewise: the same time as 1F1B
// with more memory.
TEST(StepSchedule, UniformStagesOfGPipe) {
  EXPECT_DOUBLE_EQ(step_us(uniform(PipelineSchedule::gpipe, 4, 8, {10, 20})), (8 - 1 + 4) * 30.0);
}

// Stage 0: f 1, b 2; stage 1: f 2, b 4.
//   stage 0: F0 0-1, F1 1-2,              B0 7-9, F2 9-10,       B1 13-15,              B2 19-21
//   stage 1:         F0 1-3, B0 3-7, F1 7-9, B1 9-13, F2 13-15, B2 15-19
TEST(StepSchedule, UnevenStages) {
  StepSchedule schedule = schedule_of(PipelineSchedule::one_f_one_b, 2, 3);
  schedule.chunks[0].units = {{1, 2}};
  schedule.chunks[1].units = {{2, 4}};
  ScheduleEvaluator evaluator;
  const StepTimes& times = evaluator.evaluate(schedule);
  EXPECT_DOUBLE_EQ(times.step_us, 21);
  EXPECT_DOUBLE_EQ(times.stages[0].compute_us, 9);
  EXPECT_DOUBLE_EQ(times.stages[0].idle_us, 5 + 3 + 4);
  EXPECT_DOUBLE_EQ(times.stages[1].compute_us, 18);
  EXPECT_DOUBLE_EQ(times.stages[1].passes_end_us, 19);
  EXPECT_EQ(times.critical_stage, 1U);
}

// Interleaving v chunks shortens the bubble (P - 1)(f + b) to (P - 1)(f + b) / v.
TEST(StepSchedule, InterleavingDividesTheBubble) {
  for (const std::uint32_t stages : {2U, 4U}) {
    const std::uint32_t micro_batches = 4 * stages;
    const double busy = micro_batches * 24.0;  // f 8, b 16
    EXPECT_DOUBLE_EQ(step_us(uniform(PipelineSchedule::one_f_one_b, stages, micro_batches, {8, 16})),
                     busy + (stages - 1) * 24.0);
    for (const std::uint32_t v : {2U, 4U}) {
      EXPECT_DOUBLE_EQ(
          step_us(uniform(PipelineSchedule::interleaved, stages, micro_batches, {8.0 / v, 16.0 / v}, v)),
          busy + (stages - 1) * 24.0 / v)
          << stages << " stages, " << v << " chunks";
    }
  }
}

// With f = b = w the bubble of 1F1B, (P - 1)(f + b + w), becomes (P - 1)(f + b - w) (Qi et al. 2023).
TEST(StepSchedule, ZeroBubbleFillsTheDrainWithWeightGradients) {
  for (const std::uint32_t stages : {2U, 4U, 8U}) {
    const std::uint32_t micro_batches = 2 * stages;
    EXPECT_DOUBLE_EQ(step_us(uniform(PipelineSchedule::one_f_one_b, stages, micro_batches, {10, 20})),
                     micro_batches * 30.0 + (stages - 1) * 30);
    EXPECT_DOUBLE_EQ(step_us(uniform(PipelineSchedule::zero_bubble_h1, stages, micro_batches, {10, 10, 10})),
                     micro_batches * 30.0 + (stages - 1) * 10)
        << stages << " stages";
  }
}

// With f = b = w = 1 for half a stage, 6 m and: the blocks of V-Half and V-Min are the shortest of those that hold as little.
TEST(StepSchedule, VShapesEndAsEarlyAsTheirMemoryAllows) {
  struct Case {
    PipelineSchedule schedule;
    std::uint32_t stages;
    double bubble_us;
  };
  using enum PipelineSchedule;
  for (const auto& [schedule, stages, bubble_us] :
       {Case{zb_v, 4, 5}, Case{zb_v, 8, 13}, Case{v_half, 3, 6}, Case{v_half, 4, 10}, Case{v_half, 8, 24},
        Case{v_min, 3, 8}, Case{v_min, 4, 11}, Case{v_min, 6, 20}, Case{v_min, 8, 27}}) {
    const std::uint32_t micro_batches = 2 * stages + 4;
    EXPECT_DOUBLE_EQ(step_us(uniform(schedule, stages, micro_batches, {1, 1, 1}, 2)),
                     6.0 * micro_batches + bubble_us)
        << to_string(schedule) << " " << stages;
  }
}

// Each hop takes 3 and the sender waits.
//   stage 0: F0 0-10 (sends -13), F1 13-23 (-26),                        B0 46-66,              B1 79-99
//   stage 1:                F0 13-23, B0 23-43 (sends -46), F1 46-56, B1 56-76 (sends -79)
TEST(StepSchedule, BlockingTransfersHoldTheSenderUp) {
  StepSchedule schedule = uniform(PipelineSchedule::one_f_one_b, 2, 2, {10, 20});
  schedule.boundary_us = 3;
  ScheduleEvaluator evaluator;
  const StepTimes& times = evaluator.evaluate(schedule);
  EXPECT_DOUBLE_EQ(times.step_us, 99);
  EXPECT_DOUBLE_EQ(times.stages[0].boundary_us, 6);
  EXPECT_DOUBLE_EQ(times.stages[1].boundary_us, 6);
  expect_parts_add_up(times);
}

// The same with 100 more until a message is there, which hold nobody's link up.
//   stage 0: F0 0-10 (arrives 113), F1 13-23 (126),                               B0 246-266, B1 279-299
//   stage 1:         F0 113-123, B0 123-143 (sends -146, arrives 246), F1 146-156, B1 156-176 (-179, 279)
TEST(StepSchedule, MessagesArriveLateBehindADelay) {
  StepSchedule schedule = uniform(PipelineSchedule::one_f_one_b, 2, 2, {10, 20});
  schedule.boundary_us = 3;
  schedule.delay_us = {100};
  EXPECT_DOUBLE_EQ(step_us(schedule), 299);
}

//   stage 0: F0 0-10, F1 10-20,                  B0 46-66,       B1 76-96
//   stage 1:          F0 13-23, B0 23-43, F1 43-53, B1 53-73 (arrives 76)
TEST(StepSchedule, TransfersBesideComputationCostLess) {
  StepSchedule schedule = uniform(PipelineSchedule::one_f_one_b, 2, 2, {10, 20});
  schedule.boundary_us = 3;
  schedule.boundary_blocks = false;
  EXPECT_DOUBLE_EQ(step_us(schedule), 96);
}

// A slow link carries one message after the other: F0 0-1, F1 1-2, F2 2-3 of stage 0 arrive at 11, 21, 31;
// stage 1: F0 11-12 B0 12-13, F1 21-22 B1 22-23, F2 31-32 B2 32-33; gradients arrive at 23, 33, 43.
TEST(StepSchedule, MessagesOfOneLinkQueue) {
  StepSchedule schedule = uniform(PipelineSchedule::gpipe, 2, 3, {1, 1});
  schedule.boundary_us = 10;
  schedule.boundary_blocks = false;
  // All forwards first: stage 1 F2 31-32, B0 32-33, B1 33-34, B2 34-35; gradients arrive at 43, 53, 63.
  EXPECT_DOUBLE_EQ(step_us(schedule), 64);
  schedule.shape.schedule = PipelineSchedule::one_f_one_b;
  // 1F1B: stage 0 runs F0 F1, B0 at 23, F2 24-25 (arrives 35), B1 at 33; stage 1 F2 35-36 B2 36-37,
  // arrives 47.
  EXPECT_DOUBLE_EQ(step_us(schedule), 48);
}

// Two chunks a stage; a hop takes 2, the one from the last stage back to the first 7, and senders wait.
// "F0.1" is the forward of micro-batch 0 on the second chunk, ">" the end of the transfer behind it.
//   stage 0: F0.0 0-10 >12, F1.0 12-22 >24,                              F0.1 29-39 >41, F1.1 46-56 >58
//   stage 1:            F0.0 12-22 >29, F1.0 29-39 >46, F0.1 46-56, B0.1 56-76 >78, F1.1 78-88, B1.1 88-108 >110
//   stage 0: B0.1 78-98 >105, B1.1 110-130 >137, B0.0 137-157, B1.0 159-179
//   stage 1: B0.0 110-130 >132, B1.0 137-157 >159
TEST(StepSchedule, InterleavedStagesWrapAround) {
  StepSchedule schedule = uniform(PipelineSchedule::interleaved, 2, 2, {10, 20}, 2);
  schedule.boundary_us = 2;
  schedule.boundary_wrap_us = 7;
  EXPECT_DOUBLE_EQ(step_us(schedule), 179);
}

// ------------------------------------------------------------------------------- weights and gradients

// Two layers: gather 4, forward 10, backward 20, reduce 6. One micro-batch.
StepSchedule fsdp(Prefetch prefetch) {
  StepSchedule schedule = schedule_of(PipelineSchedule::one_f_one_b, 1, 1);
  schedule.chunks[0].units.assign(2, {10, 20, 0, /*gather_us=*/4, /*reduce_us=*/6});
  schedule.gather = WeightGather::every_forward;
  schedule.gather_backward = true;
  schedule.backward_prefetch = prefetch;
  schedule.reduce = GradientReduce::every_backward;
  return schedule;
}

//   compute: F.0 4-14, F.1 14-24,             B.1 28-48,              B.0 48-68
//   data:    g0 0-4, g1 4-8,       g1 24-28, g0 28-32,  r1 48-54,               r0 68-74
TEST(StepSchedule, ShardedWeightsGatheredBeforeTheUnitInFront) {
  ScheduleEvaluator evaluator;
  const StepTimes& times = evaluator.evaluate(fsdp(Prefetch::pre));
  EXPECT_DOUBLE_EQ(times.step_us, 74);
  EXPECT_DOUBLE_EQ(times.stages[0].weights_us, 4 + 4);
  EXPECT_DOUBLE_EQ(times.stages[0].reduce_us, 6);
  expect_parts_add_up(times);
}

//   compute: F.0 4-14, F.1 14-24,             B.1 28-48,              B.0 52-72
//   data:    g0 0-4, g1 4-8,       g1 24-28,            g0 48-52, r1 52-58,     r0 72-78
TEST(StepSchedule, ShardedWeightsGatheredBehindTheUnitInFront) {
  ScheduleEvaluator evaluator;
  const StepTimes& times = evaluator.evaluate(fsdp(Prefetch::post));
  EXPECT_DOUBLE_EQ(times.step_us, 78);
  EXPECT_DOUBLE_EQ(times.stages[0].weights_us, 4 + 4 + 4);
}

// Gathers of 30 instead of 4: the third unit's waits until the first has run, so that no more than two units
// are there at once.
//   compute: F.0 30-40, F.1 60-70,  F.2 90-100
//   data:    g0 0-30, g1 30-60, g2 60-90 (not before F.0 has ended at 40)
// Gathers of 4: g0 0-4, g1 4-8, g2 14-18 instead of 8-12, which nothing waits for.
TEST(StepSchedule, AtMostTwoUnitsAreGatheredAhead) {
  StepSchedule schedule = schedule_of(PipelineSchedule::one_f_one_b, 1, 1);
  schedule.chunks[0].units.assign(3, {10, 0, 0, 30, 0});
  schedule.gather = WeightGather::every_forward;
  EXPECT_DOUBLE_EQ(step_us(schedule), 100);
  // F.0 takes 100: F.0 4-104, F.1 104-114, g2 starts at 104 and F.2 at 114.
  schedule.chunks[0].units = {{100, 0, 0, 4, 0}, {10, 0, 0, 4, 0}, {10, 0, 0, 20, 0}};
  EXPECT_DOUBLE_EQ(step_us(schedule), 104 + 20 + 10);
}

// The optimizer's shards come back beside the first forward, gradients leave beside the last backward.
// Two micro-batches of two layers, gather 15, forward 10, backward 20, reduce 25:
//   compute: F0.0 15-25, F0.1 30-40, B0 40-80, F1 80-100, B1.1 100-120, B1.0 120-140
//   data:    g0 0-15, g1 15-30,                                   r1 120-145, r0 145-170
TEST(StepSchedule, OptimizerShardsOverlapWithTheFirstForwardAndTheLastBackward) {
  StepSchedule schedule = schedule_of(PipelineSchedule::one_f_one_b, 1, 2);
  schedule.chunks[0].units.assign(2, {10, 20, 0, 15, 25});
  schedule.gather = WeightGather::first_forward;
  schedule.reduce = GradientReduce::last_backward;
  schedule.optimizer_us = {5};
  ScheduleEvaluator evaluator;
  const StepTimes& times = evaluator.evaluate(schedule);
  EXPECT_DOUBLE_EQ(times.step_us, 175);
  EXPECT_DOUBLE_EQ(times.stages[0].weights_us, 15 + 5);
  EXPECT_DOUBLE_EQ(times.stages[0].reduce_us, 30);
  expect_parts_add_up(times);
}

// Passes 2 x 30, then reduce 40, update 5, gather 15, 7 between steps.
TEST(StepSchedule, NothingOverlapsAtTheEnd) {
  StepSchedule schedule = uniform(PipelineSchedule::one_f_one_b, 1, 2, {10, 20, 0, 15, 25});
  schedule.gather = WeightGather::after_step;
  schedule.reduce = GradientReduce::at_end;
  schedule.reduce_at_end_us = {40};
  schedule.optimizer_us = {5};
  schedule.gather_after_step_us = {15};
  schedule.fixed_us = 7;
  ScheduleEvaluator evaluator;
  const StepTimes& times = evaluator.evaluate(schedule);
  EXPECT_DOUBLE_EQ(times.step_us, 60 + 40 + 5 + 15 + 7);
  EXPECT_DOUBLE_EQ(times.stages[0].end_us, 120);
}

// Stage 1 is done at 40, stage 0 at 60. With a common gradient norm both updates start at 60.
TEST(StepSchedule, TheGradientNormIsABarrier) {
  StepSchedule schedule = uniform(PipelineSchedule::one_f_one_b, 2, 1, {10, 20});
  schedule.optimizer_us = {5, 50};
  ScheduleEvaluator evaluator;
  const StepTimes& times = evaluator.evaluate(schedule);
  EXPECT_DOUBLE_EQ(times.step_us, 60 + 50);
  EXPECT_DOUBLE_EQ(times.stages[1].idle_us, 10 + 20);
  schedule.optimizer_waits_for_all = false;
  EXPECT_DOUBLE_EQ(step_us(schedule), 40 + 50);
}

// First and last stage reduce their common embedding when both are done: 60 + 8.
TEST(StepSchedule, TiedEmbeddingsJoinTheEnds) {
  StepSchedule schedule = uniform(PipelineSchedule::one_f_one_b, 2, 1, {10, 20});
  schedule.embedding_reduce_us = 8;
  schedule.optimizer_waits_for_all = false;
  schedule.optimizer_us = {1, 2};
  EXPECT_DOUBLE_EQ(step_us(schedule), 60 + 8 + 2);
}

// ------------------------------------------------------------------------------------------ properties

StepSchedule random_schedule(std::mt19937_64& random) {
  const auto pick = [&](std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>{low, high}(random);
  };
  const auto time = [&] { return std::uniform_real_distribution<double>{0, 100}(random); };
  const auto kind =
      static_cast<PipelineSchedule>(pick(0, static_cast<std::uint32_t>(PipelineSchedule::v_min)));
  const std::uint32_t stages = pick(1, 5);
  const std::uint32_t chunks = is_v_shaped(kind)                                     ? 2
                               : kind == PipelineSchedule::interleaved && stages > 1 ? pick(1, 3)
                                                                                     : 1;
  const std::uint32_t micro_batches = chunks > 1 ? stages * pick(1, 3) : pick(1, 9);
  StepSchedule schedule = schedule_of(kind, stages, micro_batches, chunks);
  for (ScheduleChunk& chunk : schedule.chunks) {
    const std::uint32_t units = pick(1, 4);
    for (std::uint32_t u = 0; u < units; ++u) {
      chunk.units.push_back({time(), time(), splits_backward(kind) ? time() : 0, time(), time()});
    }
  }
  schedule.boundary_us = 0.1 * time();
  schedule.boundary_wrap_us = 0.1 * time();
  schedule.boundary_blocks = pick(0, 1) == 1;
  schedule.gather = static_cast<WeightGather>(pick(0, 3));
  schedule.gather_backward = pick(0, 1) == 1;
  schedule.backward_prefetch = static_cast<Prefetch>(pick(0, 2));
  schedule.reduce = static_cast<GradientReduce>(pick(0, 3));
  for (std::uint32_t s = 0; s < stages; ++s) {
    schedule.reduce_at_end_us[s] = time();
    schedule.optimizer_us[s] = time();
    schedule.gather_after_step_us[s] = time();
  }
  schedule.embedding_reduce_us = time();
  schedule.optimizer_waits_for_all = pick(0, 1) == 1;
  schedule.fixed_us = time();
  return schedule;
}

TEST(StepScheduleProperties, PartsOfEveryStageAddUpAndNothingBeatsItsWork) {
  std::mt19937_64 random{20};
  ScheduleEvaluator evaluator;
  for (int i = 0; i < 2000; ++i) {
    const StepSchedule schedule = random_schedule(random);
    const StepTimes& times = evaluator.evaluate(schedule);
    expect_parts_add_up(times);
    for (const StageTimes& stage : times.stages) {
      EXPECT_GE(stage.idle_us, -1e-9);
      EXPECT_GE(stage.reduce_us, -1e-9);
      EXPECT_GE(times.step_us, stage.end_us + schedule.fixed_us - 1e-9);
      EXPECT_GE(stage.passes_end_us, stage.compute_us - 1e-6);
    }
  }
}

TEST(StepScheduleProperties, SlowerPartsNeverShortenTheStep) {
  std::mt19937_64 random{21};
  for (int i = 0; i < 1000; ++i) {
    StepSchedule schedule = random_schedule(random);
    const double before = step_us(schedule);
    std::uniform_int_distribution<std::size_t> chunk{0, schedule.chunks.size() - 1};
    for (ScheduleUnit& unit : schedule.chunks[chunk(random)].units) {
      unit.forward_us *= 1.5;
      unit.gather_us *= 1.2;
      unit.reduce_us *= 1.3;
    }
    schedule.boundary_us *= 2;
    EXPECT_GE(step_us(schedule), before - 1e-6);
  }
}

// An evaluator keeps nothing of what it evaluated before.
TEST(StepScheduleProperties, AnEvaluatorIsUsedAgain) {
  std::mt19937_64 random{22};
  ScheduleEvaluator evaluator;
  for (int i = 0; i < 300; ++i) {
    const StepSchedule schedule = random_schedule(random);
    EXPECT_EQ(evaluator.evaluate(schedule).step_us, step_us(schedule));
  }
}

// Side by side with others of their pipeline, of few and of many micro-batches, with and without delays.
TEST(StepScheduleProperties, ManyTakeAsLongAsEachAlone) {
  std::mt19937_64 random{23};
  std::vector<StepSchedule> schedules;
  for (int i = 0; i < 300; ++i) {
    StepSchedule schedule = random_schedule(random);
    for (std::uint32_t n = 0; n < 1 + random() % 12; ++n) {
      const StepSchedule other = random_schedule(random);
      if (other.chunks.size() == schedule.chunks.size()) schedule.chunks = other.chunks;
      schedule.gather = other.gather;
      schedule.reduce = other.reduce;
      schedule.boundary_us = other.boundary_us;
      schedules.push_back(schedule);
      if (random() % 2 == 1) schedules.back().shape.micro_batches += schedule.shape.stages * 20;
      if (random() % 4 == 0) schedules.back().delay_us.assign(schedule.chunks.size(), 3);
    }
  }
  std::vector<const StepSchedule*> all;
  for (const StepSchedule& schedule : schedules) all.push_back(&schedule);
  std::vector<double> together_us(all.size());
  ScheduleEvaluator{}.evaluate(all, together_us);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(together_us[i], step_us(schedules[i])) << i;
}

}  // namespace
}  // namespace stepcast::step_schedule_test
