// The published composition beside ours: its worked example, and the cases in which its formulas go wrong.
#include <stdexcept>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

#include "lab/published_forecast.h"

namespace stepcast::published_composition_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Llemma-7B, 16 A100: 4 stages x 2 tensor-parallel x 2 data-parallel ranks, micro-batches of 4, 8 per update.
// 32 encoders of 22,006 / 67,770 us: 8 + 9 + 9 + 6 of them.
PublishedComponents worked_example() {
  PublishedComponents c;
  c.n_stages = 4;
  c.micro_batches = 8;
  c.data_parallel = 2;
  c.p2p_us = 23223;
  c.head = {.forward_us = 179055,
            .backward_us = 544224,
            .all_reduce_us = 24405,
            .all_gather_us = 18607,
            .optimizer_us = 23469};
  c.middle = {.forward_us = 198055,
              .backward_us = 609930,
              .all_reduce_us = 24364,
              .all_gather_us = 18488,
              .optimizer_us = 22148};
  c.tail = {.forward_us = 149611,
            .backward_us = 435203,
            .all_reduce_us = 19175,
            .all_gather_us = 14484,
            .optimizer_us = 23950};
  return c;
}

//   max F = 198,055 + 23,223 = 221,278     max B = 609,930 + 23,223 = 633,153
//   (8 - 1 + 4)(221,278 + 633,153) = 9,398,741
//   + all-reduce of the head 24,405 + max(23,469 + 18,607, 22,148 + 18,488, 23,950 + 14,484) = 42,076
//   = 9,465,222; the stored result from unrounded components is 9,465,235.01
TEST(PublishedComposition, WorkedExample) {
  const PublishedStep step = compose_as_published(worked_example());
  EXPECT_DOUBLE_EQ(step.longest_forward_us, 221278);
  EXPECT_DOUBLE_EQ(step.longest_backward_us, 633153);
  EXPECT_DOUBLE_EQ(step.passes_us, 9398741);
  EXPECT_DOUBLE_EQ(step.all_reduce_us, 24405);
  EXPECT_DOUBLE_EQ(step.update_us, 42076);
  EXPECT_DOUBLE_EQ(step.step_us(), 9465222);
  EXPECT_NEAR(step.step_us(), 9465235.01, 20);
}

// The stages of the example from its encoder: 8 x 22,006 + embedding and one all-reduce, 9 x 22,006, ...
TEST(PublishedComposition, SplitOfTheWorkedExample) {
  const PublishedLayerSplit split = published_layer_split(32, 4);
  EXPECT_EQ(split, (PublishedLayerSplit{8, 9, 6}));
  EXPECT_EQ(split.counted(4), 32);
  EXPECT_NEAR(9 * 22006, worked_example().middle.forward_us, 5);
  EXPECT_NEAR(9 * 67770, worked_example().middle.backward_us, 5);
}

// Sum of forwards + (M - 1)(F + B of the tail) + sum of backwards: the variant for uneven stages that the published code
// holds and does not use. Forwards are sent by head and middle, backwards by middle and tail. The update is the same.
PublishedStep compose_as_published_exact(const PublishedComponents& c) {
  PublishedStep step = compose_as_published(c);
  const auto middles = static_cast<double>(c.n_stages - 2);
  const double tail_backward = c.tail.backward_us + c.p2p_us;
  const double forwards =
      c.head.forward_us + c.p2p_us + middles * (c.middle.forward_us + c.p2p_us) + c.tail.forward_us;
  const double backwards = c.head.backward_us + middles * (c.middle.backward_us + c.p2p_us) + tail_backward;
  step.passes_us =
      forwards + static_cast<double>(c.micro_batches - 1) * (c.tail.forward_us + tail_backward) + backwards;
  return step;
}

// The sum of forwards, seven more rounds of the tail, the sum of backwards:
//   F = 202,278 + 2 x 221,278 + 149,611 = 794,445    B = 544,224 + 2 x 633,153 + 458,426 = 2,268,956
//   794,445 + 7 x (149,611 + 458,426) + 2,268,956 = 7,319,660
TEST(PublishedComposition, ExactVariantOfTheWorkedExample) {
  const PublishedStep step = compose_as_published_exact(worked_example());
  EXPECT_DOUBLE_EQ(step.passes_us, 7319660);
  EXPECT_DOUBLE_EQ(step.step_us(), 7319660 + 24405 + 42076);
}

// Ours on the same stages. A pipeline is as fast as its slowest stage, which is no more the tail than it is
// all of them: the published formula is above, the published exact variant far below.
TEST(PublishedComposition, OursOnTheWorkedExampleLiesBetween) {
  const PublishedComponents c = worked_example();
  StepSchedule schedule;
  schedule.shape = {PipelineSchedule::one_f_one_b, 4, 1, 8};
  for (const PublishedStage* stage : {&c.head, &c.middle, &c.middle, &c.tail}) {
    schedule.chunks.push_back({{{stage->forward_us, stage->backward_us}}});
    schedule.reduce_at_end_us.push_back(stage->all_reduce_us);
    schedule.gather_after_step_us.push_back(stage->all_gather_us);
    schedule.optimizer_us.push_back(stage->optimizer_us);
  }
  schedule.boundary_us = c.p2p_us;
  schedule.reduce = GradientReduce::at_end;
  schedule.gather = WeightGather::after_step;
  const double ours = ScheduleEvaluator{}.evaluate(schedule).step_us;
  EXPECT_LT(ours, compose_as_published(c).step_us());
  EXPECT_GT(ours, compose_as_published_exact(c).step_us());
  // The slowest stage alone needs 8 x (198,055 + 609,930 + its two transfers).
  EXPECT_GT(ours, 8 * (198055 + 609930 + 2 * 23223.0));
}

// --------------------------------------------------------------------------------------------- its traps

// Layers are lost unless (n + 5) mod p <= 1; with 30 layers on 4 stages 2 of them. Ours runs all.
TEST(PublishedTraps, LayersVanish) {
  EXPECT_EQ(published_layer_split(30, 4), (PublishedLayerSplit{7, 8, 5}));
  EXPECT_EQ(published_layer_split(30, 4).counted(4), 28);
  for (std::int64_t stages = 2; stages <= 16; ++stages) {
    for (std::int64_t layers = stages; layers <= 128; ++layers) {
      const bool all = published_layer_split(layers, stages).counted(stages) == layers;
      EXPECT_EQ(all, (layers + 5) % stages <= 1) << layers << " layers on " << stages << " stages";
    }
  }
}

// Ours refuses to lose layers: uneven stages have to be given, and must sum to the model's.
TEST(PublishedTraps, OursNamesLayersThatDoNotDivide) {
  const Transformer model{.name = "gpt",
                          .n_layers = 30,
                          .hidden_size = 1024,
                          .ffn_hidden_size = 4096,
                          .n_heads = 16,
                          .vocab_size = 50257,
                          .max_position = 2048};
  Layout layout{.degrees = {.pipeline = 4}, .batch = {.global_batch_sequences = 8, .seq_len_tokens = 2048}};
  EXPECT_FALSE(check(layout, model).ok());
  layout.pipeline.layers_per_stage = {7, 8, 8, 5};
  EXPECT_THAT(check(layout, model).error().message(),
              AllOf(HasSubstr("28 layers"), HasSubstr("n_layers 30")));
  layout.pipeline.layers_per_stage = {7, 8, 8, 7};
  EXPECT_TRUE(check(layout, model).ok());
}

const Platform& platform() {
  static const Platform kPlatform = [] {
    Result<Platform> loaded = load_platform("dgx-a100");
    if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
    return std::move(*loaded);
  }();
  return kPlatform;
}

Transformer gpt(std::int64_t n_layers) {
  return {.name = "gpt",
          .n_layers = n_layers,
          .hidden_size = 4096,
          .ffn_hidden_size = 16384,
          .n_heads = 32,
          .vocab_size = 50257,
          .max_position = 2048};
}

struct Both {
  PublishedStep published;
  PublishedComponents components;
  double ours_us = 0;
  PricedStep priced;
};

Both both(const Transformer& model, const Layout& layout) {
  StepAssumptions assumptions;
  assumptions.step_fixed_us = 0;  // the published method has nothing of the kind
  StepModel steps{platform(), assumptions};
  Result<PricedStep> step = steps.price(model, layout);
  EXPECT_TRUE(step.ok()) << step.error().message();
  Result<PublishedComponents> components = published_components(*step, layout);
  EXPECT_TRUE(components.ok()) << components.error().message();
  Both result{compose_as_published(*components), *components,
              ScheduleEvaluator{}.evaluate(step->schedule).step_us, std::move(*step)};
  return result;
}

Layout layout_of(std::int64_t pp, std::int64_t dp) {
  Layout layout{
      .degrees = {.tensor = 2, .pipeline = pp, .data = dp},
      .batch = {.micro_batch_sequences = 4, .global_batch_sequences = 32 * dp, .seq_len_tokens = 2048}};
  layout.layer.recompute.kind = Recompute::full;
  return layout;
}

// (31 + 5) mod 4 = 0: nothing is lost, and both describe nearly the same step.
TEST(PublishedTraps, AgreesWithOursWhereItsFormulasHold) {
  Layout layout = layout_of(4, 2);
  layout.pipeline.layers_per_stage = {7, 9, 9, 6};
  const Both b = both(gpt(31), layout);
  EXPECT_NEAR(b.published.step_us() / b.ours_us, 1, 0.08);
  EXPECT_GT(b.published.step_us(), b.ours_us);  // the maxima of all stages at once
}

// One stage of 32 layers is counted as its "middle": 37 layers and two transfers that do not exist.
TEST(PublishedTraps, OneStageCountsAMiddleOne) {
  EXPECT_EQ(published_layer_split(32, 1), (PublishedLayerSplit{35, 37, 34}));
  const Both b = both(gpt(32), layout_of(1, 2));
  EXPECT_GT(b.published.passes_us / b.ours_us, 1.05);
  const PricedStep::Layer& layer = b.priced.layers.front();
  EXPECT_GE(b.published.passes_us, 8 * 37 * (layer.forward.time_us + layer.backward.time_us) * (1 - 1e-12));
}

// Two stages of 17 and 15 layers, but the middle one that the maxima see has 18.
TEST(PublishedTraps, TwoStagesCountAMiddleOne) {
  EXPECT_EQ(published_layer_split(32, 2), (PublishedLayerSplit{17, 18, 15}));
  EXPECT_EQ(published_layer_split(32, 2).counted(2), 32);
  const Both b = both(gpt(32), layout_of(2, 2));
  EXPECT_GT(b.published.longest_forward_us, b.components.head.forward_us);
  EXPECT_GT(b.published.longest_forward_us, b.components.tail.forward_us);
  EXPECT_GT(b.published.step_us(), b.ours_us);
}

// Without data parallelism the published step has no optimizer; ours always updates its weights.
TEST(PublishedTraps, NoOptimizerWithoutDataParallelism) {
  const Both b = both(gpt(31), [] {
    Layout layout = layout_of(4, 1);
    layout.pipeline.layers_per_stage = {7, 9, 9, 6};
    return layout;
  }());
  EXPECT_EQ(b.published.update_us, 0);
  for (const double us : b.priced.schedule.optimizer_us) EXPECT_GT(us, 0);
  PublishedComponents two = b.components;
  two.data_parallel = 2;
  EXPECT_GT(compose_as_published(two).update_us, 0);
}

// Trained parameters of one encoder on one of `tensor_parallel` ranks as published: 4 d for two layer norms,
// QKV, output and a feed-forward part of 4 d with biases. Knows no gated FFN and no grouped queries.
double published_encoder_parameters(std::int64_t hidden_size, std::int64_t tensor_parallel) {
  const auto d = static_cast<double>(hidden_size), mp = static_cast<double>(tensor_parallel);
  return 2 * 2 * d + 3 * d * (d + 1) / mp + d * (d + 1) / mp + 4 * d * (d + 1) / mp + d * (4 * d + 1) / mp;
}

// Rows of the embedding of one rank: always those of 50,257 tokens, padded.
std::int64_t published_vocabulary(std::int64_t tensor_parallel) {
  const std::int64_t step = 128 * tensor_parallel;
  return 128 * ((50257 + step - 1) / step);
}

// Whatever the model's vocabulary, 50,257 tokens are embedded; whatever its FFN, it is 4 d wide and not
// gated.
TEST(PublishedTraps, VocabularyAndFeedForwardAreFixed) {
  EXPECT_EQ(published_vocabulary(1), 50304);
  EXPECT_EQ(published_vocabulary(2), 25216);  // 128 x ceil(50257 / 256)
  EXPECT_EQ(published_vocabulary(8), 6400);
  // 12 d^2 + 13 d of a GPT layer on one rank.
  EXPECT_DOUBLE_EQ(published_encoder_parameters(4096, 1), 12 * 4096.0 * 4096 + 13 * 4096);
  EXPECT_DOUBLE_EQ(published_encoder_parameters(4096, 1),
                   static_cast<double>(layer_parameter_count(gpt(1), 0).total()));
  Transformer llama = gpt(1);
  llama.ffn_hidden_size = 11008;
  llama.gated_ffn = true;
  EXPECT_NE(published_encoder_parameters(4096, 1),
            static_cast<double>(layer_parameter_count(llama, 0).total()));
}

// Exposed is the all-reduce of the head alone; a slower one elsewhere changes nothing.
TEST(PublishedTraps, OnlyTheHeadReducesItsGradients) {
  PublishedComponents c = worked_example();
  const double before = compose_as_published(c).step_us();
  c.tail.all_reduce_us *= 10;
  EXPECT_EQ(compose_as_published(c).step_us(), before);
  c.head.all_reduce_us += 100;
  EXPECT_DOUBLE_EQ(compose_as_published(c).step_us(), before + 100);
}

TEST(PublishedTraps, NamesWhatItHasNoFormulaFor) {
  StepModel steps{platform()};
  const auto message = [&](const Transformer& model, const Layout& layout) -> std::string {
    const Result<PricedStep> step = steps.price(model, layout);
    EXPECT_TRUE(step.ok()) << step.error().message();
    const Result<PublishedComponents> components = published_components(*step, layout);
    return components.ok() ? "no error" : components.error().message();
  };
  Layout layout = layout_of(4, 2);
  EXPECT_EQ(message(gpt(32), layout), "no error");
  layout.pipeline.schedule = PipelineSchedule::zero_bubble_h1;
  EXPECT_THAT(message(gpt(32), layout), HasSubstr("no formula for the schedule zero_bubble_h1"));
  layout = layout_of(4, 2);
  layout.layer.recompute.every_n_layers = 2;
  EXPECT_THAT(message(gpt(32), layout), HasSubstr("layers of 2 kinds"));
  // (8 + 5) / 8: the tail would have -2 layers.
  EXPECT_THAT(message(gpt(8), layout_of(8, 1)), HasSubstr("leave the published tail -2 layers"));
}

}  // namespace
}  // namespace stepcast::published_composition_test
