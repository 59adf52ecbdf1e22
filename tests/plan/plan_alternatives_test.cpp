// The best plan on at most a number of GPUs, and batches that divide among all of them: by hand, and over growing numbers.
#include "stepcast/plan/plan_alternatives.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/report/plan_answer.h"

namespace stepcast::plan_alternatives_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Platform& platform() {
  static const Platform kPlatform = [] {
    Result<Platform> loaded = load_platform("dgx-h100");
    if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
    return std::move(*loaded);
  }();
  return kPlatform;
}

// A small search: short lists, and no refinement.
PlanRequest request_of(std::int64_t n_gpus, std::int64_t batch) {
  PlanRequest request;
  request.job.model = "llama-3-8b";
  request.job.settings.global_batch_sequences = batch;
  request.job.settings.seq_len_tokens = 4096;
  request.n_gpus = n_gpus;
  request.top = 1;
  request.threads = 2;
  request.restrictions.tensor = std::vector<std::int64_t>{1, 2, 4};
  request.restrictions.context = std::vector<std::int64_t>{1};
  request.restrictions.micro_batch = std::vector<std::int64_t>{1};
  return request;
}

double expected_us(const LayoutPlan& plan) { return chosen_layout(plan).promise.time.value(); }

TEST(PlanAlternatives, OnlyStagesUseSomeFactors) {
  // 384 / gcd(384, 1024) = 3, which divides neither a node of 8 nor a power of two, but one of 72.
  EXPECT_EQ(factor_for_stages(384, 1024, 8), 3);
  EXPECT_EQ(factor_for_stages(384, 1024, 72), 1);
  // 1024 / gcd(1024, 1536) = 2: tensor parallelism.
  EXPECT_EQ(factor_for_stages(1024, 1536, 8), 1);
  // 1000 / 8 = 125.
  EXPECT_EQ(factor_for_stages(1000, 1024, 8), 125);
}

TEST(PlanAlternatives, NearestBatchesThatDivide) {
  EXPECT_THAT(dividing_batches(384, 1024, 8), ElementsAre(768, 1152));
  EXPECT_THAT(dividing_batches(1000, 1024, 8), ElementsAre(1000, 2000));
  EXPECT_THAT(dividing_batches(96, 64, 8), ElementsAre(96));  // none below
  EXPECT_THAT(dividing_batches(1024, 1536, 8), IsEmpty());
}

TEST(PlanAlternatives, TheNoteNamesWhatHelps) {
  LayoutSpace space{.tensor = {1, 2, 4, 8}, .context = {1, 2}, .n_gpus = 384};
  EXPECT_THAT(note_of_batch(space, 1024, 8).value_or(""),
              AllOf(HasSubstr("a factor 3 of 384 GPUs"), HasSubstr("--gbs 768 or 1152")));
  EXPECT_EQ(note_of_batch(space, 768, 8), std::nullopt);
  space.context = {1, 3};  // given with --cp
  EXPECT_EQ(note_of_batch(space, 1024, 8), std::nullopt);
}

TEST(PlanAlternatives, SmallerCountsAreWholeNodesAndPartsOfOne) {
  EXPECT_THAT(smaller_gpu_counts(16, 4), ElementsAre(12, 8, 4, 3, 2, 1));
  EXPECT_THAT(smaller_gpu_counts(10, 4), ElementsAre(8, 4, 3, 2, 1));
  EXPECT_THAT(smaller_gpu_counts(3, 4), ElementsAre(2, 1));
  EXPECT_THAT(smaller_gpu_counts(1, 4), IsEmpty());
}

// 32 sequences do not divide among 24, 40 and 48 GPUs.
TEST(PlanAlternatives, MoreGpusAreNeverSlower) {
  double before = std::numeric_limits<double>::infinity();
  bool leaves_some_idle = false;
  for (const std::int64_t n : {8, 16, 24, 32, 40, 48}) {
    const PlanRequest request = request_of(n, 32);
    const Result<PlanAtMost> best = plan_at_most(request, platform());
    ASSERT_TRUE(best.ok()) << best.error().message();
    ASSERT_FALSE(best->plan.ranking.layouts.empty()) << n;
    const double step_us = expected_us(best->plan);
    EXPECT_LE(step_us, before) << n;
    before = step_us;
    const Result<LayoutPlan> on_all = plan_layouts(request, platform());
    if (on_all.ok() && !on_all->ranking.layouts.empty()) {
      EXPECT_LE(step_us, expected_us(*on_all)) << n;
    }
    leaves_some_idle = leaves_some_idle || best->plan.space.n_gpus < n;
  }
  EXPECT_TRUE(leaves_some_idle);
}

// With data parallelism alone, 16 sequences run on 16 GPUs but not on 24.
TEST(PlanAlternatives, TheAnswerNamesIdleGpus) {
  PlanRequest request = request_of(24, 16);
  request.restrictions.tensor = std::vector<std::int64_t>{1};
  request.restrictions.pipeline = std::vector<std::int64_t>{1};
  const Result<PlanAtMost> best = plan_at_most(request, platform());
  ASSERT_TRUE(best.ok()) << best.error().message();
  EXPECT_EQ(best->plan.space.n_gpus, 16);
  // 24 and 48 are divisible by 24; 16 is below the first one.
  ASSERT_EQ(best->alternatives.size(), 1U);
  EXPECT_EQ(best->alternatives.front().n_gpus, 24);
  EXPECT_EQ(best->alternatives.front().global_batch, 24);
  PlanSubject subject{"dgx-h100", platform().device.name, 1};
  subject.gpu_limit = 24;
  subject.alternatives = best->alternatives;
  const PlanAnswer answer = plan_answer(best->plan, subject);
  EXPECT_THAT(report_text(plan_document(answer)),
              AllOf(HasSubstr("On at most 24 GPUs"), HasSubstr("16 of 24 GPUs: "),
                    HasSubstr("no layout runs and fits on all"), HasSubstr("8 GPUs stay idle: ")));
  EXPECT_THAT(plan_json(answer), AllOf(HasSubstr(R"("gpu_limit": 24)"), HasSubstr(R"("alternatives": [)")));
}

// By hand: 16 GPUs take 3 s and 24 GPUs 4 s. 3 s is 25 % shorter; 8 idle GPUs x 3 s = 24 GPU-s; 16 x 3 of 24 x 4 GPU-s is half.
TEST(PlanAlternatives, TheTextHasTheCostOfIdleGpus) {
  PlanRequest request = request_of(16, 16);
  request.restrictions.pipeline = std::vector<std::int64_t>{1};
  const Result<LayoutPlan> plan = plan_layouts(request, platform());
  ASSERT_TRUE(plan.ok() && !plan->ranking.layouts.empty());
  PlanSubject subject{"dgx-h100", platform().device.name, 1};
  subject.gpu_limit = 24;
  subject.alternatives = {
      {.n_gpus = 24, .global_batch = 16, .step_us = 4e6, .layout = "pp3 dp8", .flags = ""}};
  PlanAnswer answer = plan_answer(*plan, subject);
  answer.chosen.promised_ms = 3000;
  EXPECT_THAT(
      report_text(plan_document(answer)),
      AllOf(HasSubstr("16 of 24 GPUs: 3.00 s, 25.0 % shorter than on all."),
            HasSubstr("8 GPUs stay idle: 24.0 GPU-s per step."), HasSubstr("50.0 % fewer GPU-hours")));
}

}  // namespace
}  // namespace stepcast::plan_alternatives_test
