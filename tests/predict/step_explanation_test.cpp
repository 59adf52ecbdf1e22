// What `--explain` shows is what was counted.
#include "stepcast/predict/step_explanation.h"

#include <random>
#include <stdexcept>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"

#include "tests/predict/random_training.h"

namespace stepcast::step_explanation_test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

StepModel& steps() {
  static const Platform kPlatform = value_of(load_platform("dgx-h100"));
  static StepModel model{kPlatform};
  return model;
}

std::vector<ExplainedList> explanation(const PricedStep& step) {
  return value_of(explain(step, steps().worker(step).pricer()));
}

const ExplainedList& titled(const std::vector<ExplainedList>& lists, std::string_view title) {
  for (const ExplainedList& list : lists) {
    if (list.title == title) return list;
  }
  throw std::runtime_error(fmt::format("no list is titled {}", title));
}

double sum_of_items(const ExplainedList& list) {
  double sum = 0;
  for (const ExplainedItem& item : list.items) {
    sum += item.collective.empty() ? item.duration_us : item.exposed_us;
  }
  return sum;
}

// Every stage of an interleaved pipeline updates the layers of all its chunks, not of the first alone.
TEST(StepExplanation, CountsAllChunksOfAStageInItsUpdate) {
  const Transformer model = value_of(find_preset("gpt3-175b"));
  Layout layout;
  layout.degrees = {.tensor = 8, .pipeline = 16, .data = 4, .virtual_stages = 6};
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 256, .seq_len_tokens = 2048};
  layout.pipeline.schedule = PipelineSchedule::interleaved;
  layout.software.framework = Framework::megatron;
  const PricedStep step = value_of(steps().price(model, layout));
  const std::vector<ExplainedList> lists = explanation(step);
  const ExplainedList& middle = titled(lists, "update of stages 1 to 14");
  // One layer in each of six chunks: six times the parameters of one chunk.
  const double of_stage = 6 * step.work.layer_kinds[0]->dense_parameters;
  EXPECT_NEAR(step.update(1).dense_parameters / of_stage, 1, 1e-12);
  EXPECT_NEAR(sum_of_items(middle) / step.schedule.optimizer_us[1], 1, 1e-12);
  EXPECT_NEAR(titled(lists, "update of stage 0").time_us() / step.schedule.optimizer_us[0], 1, 1e-12);
}

// Experts are shared by fewer ranks than the rest: 64 GPUs with expert parallelism 8 shard them over 8 ranks.
TEST(StepExplanation, DividesExpertsByTheRanksThatShareThem) {
  const Transformer model = value_of(find_preset("mixtral-8x7b"));
  Layout layout;
  layout.degrees = {.data = 64, .expert = 8};
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 256, .seq_len_tokens = 4096};
  layout.sharding.kind = Sharding::zero1;
  const PricedStep step = value_of(steps().price(model, layout));
  const std::vector<ExplainedList> lists = explanation(step);
  const ExplainedList& update = titled(lists, "update");
  EXPECT_NEAR(sum_of_items(update) / step.schedule.optimizer_us[0], 1, 1e-12);
  const PricedStep::Update& whole = step.update(0);
  const auto* shape = std::get_if<OptimizerShape>(&whole.work[2].operation()->shape);
  ASSERT_NE(shape, nullptr);
  EXPECT_NEAR(static_cast<double>(shape->parameters),
              whole.dense_parameters / 64 + whole.expert_parameters / 8, 1);
}

TEST(StepExplanation, ShowsTheTimesOfTheSchedule) {
  std::mt19937_64 random{12};
  for (int i = 0; i < 60; ++i) {
    const test::RandomTraining training = test::random_training(random);
    SCOPED_TRACE(describe(training));
    const PricedStep step = value_of(steps().price(training.model, training.layout));
    const std::vector<ExplainedList> lists = explanation(step);
    for (const ExplainedList& list : lists) {
      EXPECT_NEAR(list.gpu_us, sum_of_items(list), 1e-9 * list.gpu_us) << list.title;
    }
    const std::string layer = step.layers.size() == 1 ? "layer" : "layer of kind 0";
    EXPECT_DOUBLE_EQ(titled(lists, layer + ", forward").time_us(), step.layers[0].forward.time_us);
    EXPECT_DOUBLE_EQ(titled(lists, "head, backward").time_us(), step.head.backward.time_us);
    double updates_us = 0, counted_us = 0;
    for (const ExplainedList& list : lists) {
      if (list.title.starts_with("update")) updates_us += list.time_us();
    }
    for (const PricedStep::Update& update : step.updates) counted_us += update.price.time_us;
    EXPECT_DOUBLE_EQ(updates_us, counted_us);
  }
}

}  // namespace
}  // namespace stepcast::step_explanation_test
