// The expanded form of a described step, simulated by the engine, against the recurrences of
// ScheduleEvaluator: two implementations of the same rules.
#include "stepcast/predict/step_program.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/simulate/engine.h"

#include "tests/predict/random_training.h"
#include "tests/support/composition.h"

namespace stepcast::step_program_test {
namespace {

const Platform& platform() {
  static const Platform kPlatform = [] {
    Result<Platform> loaded = load_platform("dgx-h100");
    if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
    return std::move(*loaded);
  }();
  return kPlatform;
}

// Tests share it, so that what one priced is a table for the next.
StepModel& steps() {
  static StepModel model{platform()};
  return model;
}

struct Expanded {
  Program program;
  double evaluated_us = 0;
  std::size_t passes = 0, passes_walked = 0;
};

Result<Expanded> expand(const test::RandomTraining& training) {
  STEPCAST_ASSIGN(const PricedStep step, steps().price(training.model, training.layout));
  Expanded result;
  STEPCAST_ASSIGN(result.program, step_program(step, training.layout, steps().worker(step).pricer()));
  ScheduleEvaluator evaluator;
  result.evaluated_us = evaluator.evaluate(step.schedule).step_us;
  result.passes_walked = evaluator.passes_walked();
  const bool held_back = splits_backward(step.schedule.shape.schedule);
  result.passes =
      step.schedule.chunks.size() * step.schedule.shape.micro_batches * std::size_t{held_back ? 3U : 2U};
  return result;
}

double end_of(const Program& program, const SimulateOptions& options = {}) {
  const Result<Plan> plan = Plan::compile(program);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  if (!plan.ok()) return -1;
  const Result<Timeline> timeline = plan->simulate(Costs{program}, options);
  EXPECT_TRUE(timeline.ok()) << timeline.error().message();
  return timeline.ok() ? timeline->end_us() : -1;
}

TEST(StepProgram, EngineAndRecurrencesAgree) {
  std::mt19937_64 random{7};
  std::map<std::string, int> seen;
  for (int i = 0; i < 1000; ++i) {
    const test::RandomTraining training = test::random_training(random);
    SCOPED_TRACE(fmt::format("{}: {}", i, describe(training)));
    const Result<Expanded> expanded = expand(training);
    ASSERT_TRUE(expanded.ok()) << expanded.error().message();
    const double simulated = end_of(expanded->program);
    ASSERT_NEAR(simulated / expanded->evaluated_us, 1, 1e-9)
        << "engine " << simulated << " us, recurrences " << expanded->evaluated_us << " us";
    const Layout& l = training.layout;
    ++seen[fmt::format("schedule {}", to_string(l.pipeline.schedule))];
    ++seen[fmt::format("sharding {}", to_string(l.sharding.kind))];
    ++seen[fmt::format("dtype {}", to_string(l.layer.precision.compute))];
    ++seen[fmt::format("recompute {}", to_string(l.layer.recompute.kind))];
    if (l.degrees.context > 1) ++seen[fmt::format("context {}", to_string(l.layer.context_parallel_kind))];
    if (l.degrees.expert > 1) ++seen["experts"];
    if (l.degrees.virtual_stages > 1) ++seen["interleaved"];
  }
  EXPECT_GE(seen.size(), 4U + 4 + 4 + 4 + 3 + 2);
  for (const auto& [what, n] : seen) EXPECT_GE(n, 15) << what;
}

// Where the evaluator leaves rounds of a long step out, the engine runs them all.
TEST(StepProgram, EngineAndRecurrencesAgreeOnManyMicroBatches) {
  std::mt19937_64 random{9};
  int shortened = 0;
  for (int i = 0; i < 150; ++i) {
    const test::RandomTraining training = test::random_training(random, 30);
    SCOPED_TRACE(fmt::format("{}: {}", i, describe(training)));
    const Result<Expanded> expanded = expand(training);
    ASSERT_TRUE(expanded.ok()) << expanded.error().message();
    ASSERT_NEAR(end_of(expanded->program) / expanded->evaluated_us, 1, 1e-9);
    if (2 * expanded->passes_walked < expanded->passes) ++shortened;
  }
  EXPECT_GT(shortened, 75);
}

TEST(StepProgram, CompositionAgrees) {
  std::mt19937_64 random{8};
  for (int i = 0; i < 60; ++i) {
    const test::RandomTraining training = test::random_training(random);
    SCOPED_TRACE(fmt::format("{}: {}", i, describe(training)));
    const Result<Expanded> expanded = expand(training);
    ASSERT_TRUE(expanded.ok()) << expanded.error().message();
    const Result<ComposedProgram> composed =
        ComposedProgram::compose(expanded->program, Costs{expanded->program});
    ASSERT_TRUE(composed.ok()) << composed.error().message();
    const Result<ComposedResult> result = composed->evaluate();
    ASSERT_TRUE(result.ok()) << result.error().message();
    ASSERT_NEAR(result->end_us() / expanded->evaluated_us, 1, 1e-9);
  }
}

Transformer gpt_7b() {
  return {.name = "gpt-7b",
          .n_layers = 16,
          .hidden_size = 4096,
          .ffn_hidden_size = 16384,
          .n_heads = 32,
          .vocab_size = 51200,
          .max_position = 2048};
}

test::RandomTraining training_on_128() {
  test::RandomTraining training{
      gpt_7b(),
      {.degrees = {.tensor = 4, .pipeline = 4, .data = 8},
       .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 128, .seq_len_tokens = 2048}}};
  training.layout.sharding.kind = Sharding::zero1;
  training.layout.sharding.overlap_gradient_reduce = training.layout.sharding.overlap_parameter_gather = true;
  return training;
}

// One rank class per stage stands for 32 ranks. All 128 on their own have the same times.
TEST(StepProgram, Unfolded128RanksHaveTheTimesOfTheirClass) {
  const Result<Expanded> expanded = expand(training_on_128());
  ASSERT_TRUE(expanded.ok()) << expanded.error().message();
  const Program& program = expanded->program;
  const Result<Plan> plan = Plan::compile(program);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  const Costs costs{program};
  const Result<Timeline> folded = plan->simulate(costs);
  const Result<Timeline> unfolded = plan->simulate(costs, {.unfold = true});
  ASSERT_TRUE(folded.ok() && unfolded.ok());
  ASSERT_TRUE(unfolded->unfolded());
  std::uint32_t ranks = 0;
  for (std::size_t c = 0; c < program.rank_classes().size(); ++c) {
    const RankClassId rank_class{static_cast<std::uint32_t>(c)};
    for (std::uint32_t rank = 0; rank < program.rank_classes()[c].multiplicity; ++rank, ++ranks) {
      EXPECT_EQ(unfolded->rank_end_us(rank_class, rank), folded->rank_end_us(rank_class));
      const auto one = unfolded->lane_free_us(rank_class, rank), all = folded->lane_free_us(rank_class);
      ASSERT_TRUE(std::equal(one.begin(), one.end(), all.begin(), all.end()));
    }
  }
  EXPECT_EQ(ranks, 128U);
  EXPECT_NEAR(unfolded->end_us() / expanded->evaluated_us, 1, 1e-9);
}

// A late rank holds up its own pipeline alone until stages meet for the gradient norm; which of the ranks of
// a class it is changes nothing.
TEST(StepProgram, WhichRankOfAClassIsLateIsIrrelevant) {
  const Result<Expanded> expanded = expand(training_on_128());
  ASSERT_TRUE(expanded.ok()) << expanded.error().message();
  const auto end_with_late_rank = [&](std::size_t rank) {
    SimulateOptions options{.unfold = true};
    options.start_offset_us.assign(128, 0);
    options.start_offset_us[rank] = 5000;
    return end_of(expanded->program, options);
  };
  const double first = end_with_late_rank(0);
  EXPECT_GT(first, expanded->evaluated_us);
  for (const std::size_t rank : {1U, 17U, 31U}) EXPECT_EQ(end_with_late_rank(rank), first);
}

// Every pass of every micro-batch is an instance; names say what a task is.
TEST(StepProgram, HoldsEveryPassOfEveryMicroBatch) {
  const test::RandomTraining training = training_on_128();
  const Result<Expanded> expanded = expand(training);
  ASSERT_TRUE(expanded.ok()) << expanded.error().message();
  const Program& program = expanded->program;
  ASSERT_EQ(program.rank_classes().size(), 4U);
  for (const RankClass& rank_class : program.rank_classes()) {
    EXPECT_EQ(rank_class.multiplicity, 32U);
    EXPECT_EQ(rank_class.instances.size(), 2U * 16 + 1);  // forwards, backwards, the update
  }
  EXPECT_TRUE(program.check().ok());
}

}  // namespace
}  // namespace stepcast::step_program_test
