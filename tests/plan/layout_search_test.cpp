// The search over layouts: against every layout asked one by one, against the expanded engine, its reasons by hand.
#include "stepcast/plan/layout_search.h"

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/stop.h"
#include "stepcast/base/units.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/layout_rules.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/simulate/engine.h"
#include "stepcast/workload/layer_words.h"

#include "tests/support/fails_with.h"

namespace stepcast::layout_search_test {
namespace {

using ::testing::HasSubstr;

const Platform& platform() {
  static const Platform kPlatform = [] {
    Result<Platform> loaded = load_platform("dgx-h100");
    if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
    return std::move(*loaded);
  }();
  return kPlatform;
}

PlanRequest request_of(std::string model, std::int64_t n_gpus, std::int64_t batch) {
  PlanRequest request;
  request.job.model = std::move(model);
  request.job.settings.global_batch_sequences = batch;
  request.job.settings.seq_len_tokens = 4096;
  request.n_gpus = n_gpus;
  request.threads = 2;
  return request;
}

LayoutPlan plan_of(const PlanRequest& request) {
  Result<LayoutPlan> plan = plan_layouts(request, platform());
  if (!plan.ok()) throw std::runtime_error(plan.error().message());
  return std::move(*plan);
}

// All points of the product of the lists.
std::vector<LayoutPoint> all_points(const LayoutSpace& space) {
  std::vector<LayoutPoint> all{LayoutPoint{}};
  const auto cross = [&](const auto& list, auto set) {
    std::vector<LayoutPoint> next;
    for (const LayoutPoint& point : all) {
      for (const auto& value : list) {
        next.push_back(point);
        set(next.back(), value);
      }
    }
    all = std::move(next);
  };
  using P = LayoutPoint;
  cross(space.tensor, [](P& p, std::int32_t v) { p.tensor = v; });
  cross(space.pipeline, [](P& p, std::int32_t v) { p.pipeline = v; });
  cross(space.context, [](P& p, std::int32_t v) { p.context = v; });
  cross(space.expert, [](P& p, std::int32_t v) { p.expert = v; });
  cross(space.expert_tensor, [](P& p, std::int32_t v) { p.expert_tensor = v; });
  cross(space.micro_batch, [](P& p, std::int32_t v) { p.micro_batch = v; });
  cross(space.forms, [](P& p, const PipelineForm& f) {
    p.schedule = f.schedule;
    p.virtual_stages = f.virtual_stages;
  });
  cross(space.shardings, [](P& p, const DataSharding& v) { p.sharding = v; });
  cross(space.recomputations, [](P& p, Recompute v) { p.recompute = v; });
  cross(space.sequence_parallel, [](P& p, bool v) { p.sequence_parallel = v; });
  cross(space.dtypes, [](P& p, DType v) { p.dtype = v; });
  return all;
}

// Asked one by one, from the rules of the layout alone: what runs and fits, and how long it takes.
void expect_brute_force(const PlanRequest& request) {
  const LayoutPlan plan = plan_of(request);
  EXPECT_EQ(plan.found.n_layouts(), plan.space.size());
  std::map<LayoutPoint, double> priced;
  for (const PricedLayout& layout : plan.found.priced) priced.emplace(layout.point, layout.step_us);
  ASSERT_EQ(priced.size(), plan.found.priced.size()) << "a layout was priced twice";

  StepModel steps{platform()};
  std::size_t n_seen = 0, n_fit = 0;
  double best = 1e300;
  for (LayoutPoint point : all_points(plan.space)) {
    const std::int64_t replica = std::int64_t{point.tensor} * point.pipeline * point.context;
    if (plan.space.n_gpus % replica != 0) continue;
    point.data = static_cast<std::int32_t>(plan.space.n_gpus / replica);
    const Layout layout = plan.prototypes.layout(point);
    if (!check(layout, plan.prototypes.model(), plan.space.n_gpus).ok()) {
      EXPECT_EQ(priced.count(point), 0U) << to_string(point);
      continue;
    }
    if (plan.prototypes.shard_group(point) < 0) continue;
    const Result<StepPrediction> step = steps.predict(plan.prototypes.model(), layout);
    const Result<MemoryForecast> memory = memory_forecast(plan.prototypes.model(), layout, plan.memory);
    ASSERT_TRUE(memory.ok()) << memory.error().message();
    const bool fits = memory->verdict != MemoryVerdict::does_not_fit;
    const auto found = priced.find(point);
    if (found != priced.end()) {
      ++n_seen;
      ASSERT_TRUE(step.ok()) << step.error().message();
      EXPECT_NEAR(found->second / step->step.time.value(), 1, 1e-12) << to_string(point);
      EXPECT_TRUE(fits) << to_string(point);
      continue;
    }
    if (!step.ok() || !fits) continue;
    // It runs and fits, and was not priced: a rule of the framework says no, or another one is the same.
    const LayoutVerdict rules[] = {
        check_degrees(point, plan.space, plan.prototypes), check_stages(point, plan.prototypes),
        check_layers(point, plan.space, plan.prototypes), check_sharding(point, plan.space, plan.prototypes)};
    const bool same = std::any_of(std::begin(rules), std::end(rules),
                                  [](const LayoutVerdict& v) { return v.kind == LayoutVerdict::Kind::same; });
    const bool refused = std::any_of(std::begin(rules), std::end(rules), [](const LayoutVerdict& v) {
      return v.kind == LayoutVerdict::Kind::refused;
    });
    EXPECT_TRUE(same || refused) << to_string(point);
    if (refused) continue;
    ++n_fit;
    best = std::min(best, step->step.time.value());
    EXPECT_TRUE(std::any_of(
        priced.begin(), priced.end(),
        [&](const auto& one) { return std::abs(one.second / step->step.time.value() - 1) < 1e-12; }))
        << to_string(point) << " is said to be the same as another";
  }
  EXPECT_EQ(n_seen, priced.size());
  ASSERT_FALSE(plan.found.priced.empty());
  EXPECT_GE(best * (1 + 1e-12), plan.found.priced.front().step_us);
  EXPECT_GT(n_fit, 0U);
}

TEST(LayoutSearch, FindsWhatEveryLayoutAskedByItselfSays) {
  PlanRequest request = request_of("llama-3-8b", 16, 64);
  request.restrictions.micro_batch = {1, 4};
  request.restrictions.virtual_stages = {1, 2, 4};
  expect_brute_force(request);
}

TEST(LayoutSearch, FindsItWithExpertsToo) {
  PlanRequest request = request_of("mixtral-8x7b", 32, 64);
  request.restrictions.micro_batch = {1};
  request.restrictions.pipeline = {1, 4};
  request.restrictions.context = {1};
  request.restrictions.recomputations = {Recompute::none, Recompute::full};
  expect_brute_force(request);
}

TEST(LayoutSearch, FindsItWhereWeightsAreShardedOverSomeNodes) {
  PlanRequest request = request_of("llama-3-8b", 32, 64);
  request.job.framework = Framework::torchtitan;
  request.restrictions.micro_batch = {1};
  expect_brute_force(request);
}

TEST(LayoutSearch, DoesNotDependOnThreads) {
  PlanRequest request = request_of("llama-3-8b", 16, 64);
  request.restrictions.context = {1};
  const LayoutPlan two = plan_of(request);
  request.threads = 1;
  const LayoutPlan one = plan_of(request);
  ASSERT_EQ(one.found.priced.size(), two.found.priced.size());
  for (std::size_t i = 0; i < one.found.priced.size(); ++i) {
    EXPECT_EQ(one.found.priced[i].point, two.found.priced[i].point);
    EXPECT_EQ(one.found.priced[i].step_us, two.found.priced[i].step_us);
  }
  ASSERT_EQ(one.found.too_large.size(), two.found.too_large.size());
  for (std::size_t i = 0; i < one.found.too_large.size(); ++i)
    EXPECT_EQ(one.found.too_large[i].example, two.found.too_large[i].example);
}

// Every operation of every micro-batch as a task of the engine.
TEST(LayoutSearch, TheExpandedEngineAgreesOnASample) {
  PlanRequest request = request_of("llama-3-8b", 32, 64);
  request.restrictions.schedules = {PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
                                    PipelineSchedule::zero_bubble_h1};
  const LayoutPlan plan = plan_of(request);
  std::mt19937 random{7};
  StepModel steps{platform()};
  const std::vector<PricedLayout>& all = plan.found.priced;
  double best_us = 1e300, best_expanded_us = 1e300;
  LayoutPoint best, best_expanded;
  for (int i = 0; i < 24; ++i) {
    const PricedLayout& one = all[random() % all.size()];
    const Result<PredictedStep> step =
        predict_step(plan.prototypes.model(), plan.prototypes.layout(one.point), steps);
    ASSERT_TRUE(step.ok()) << step.error().message();
    const double expanded_us = step->timeline.end_us();
    EXPECT_NEAR(expanded_us / one.step_us, 1, 1e-9) << to_string(one.point);
    if (one.step_us < best_us) best_us = one.step_us, best = one.point;
    if (expanded_us < best_expanded_us) best_expanded_us = expanded_us, best_expanded = one.point;
  }
  EXPECT_EQ(best, best_expanded);
}

// What is printed to be pasted is the layout that was priced.
TEST(LayoutSearch, FlagsSayTheLayout) {
  PlanRequest request = request_of("llama-3.1-405b", 512, 256);
  request.restrictions.dtypes = {DType::bf16, DType::fp8};
  const LayoutPlan plan = plan_of(request);
  ASSERT_GT(plan.ranking.layouts.size(), 10U);
  std::size_t n_uneven = 0;
  for (const RankedLayout& ranked : plan.ranking.layouts) {
    const auto flags = megatron_text(ranked.point, ranked.layout, plan.prototypes);
    ASSERT_TRUE(flags.has_value());
    if (!ranked.layout.pipeline.layers_per_stage.empty()) ++n_uneven;
    const Result<MegatronWords> words = parse_megatron_command_line(*flags);
    ASSERT_TRUE(words.ok()) << words.error().message();
    Job job{.model = "llama-3.1-405b", .n_gpus = 512};
    job.settings = words->settings;
    const Result<ResolvedJob> resolved = resolve(job);
    ASSERT_TRUE(resolved.ok()) << resolved.error().message() << " of " << *flags;
    Layout expected = ranked.layout;
    expected.degrees.expert_tensor = resolved->layout.degrees.expert_tensor;  // 0 and `tensor` say the same
    EXPECT_EQ(resolved->layout, expected) << *flags;
  }
  EXPECT_GT(n_uneven, 0U);
}

// Sharded weights in several copies: settings say how many, as flags of Megatron-LM.
TEST(LayoutSearch, SettingsSayHybridSharding) {
  PlanRequest request = request_of("llama-3-8b", 64, 128);
  request.job.framework = Framework::torchtitan;
  request.restrictions.shardings = std::vector{DataSharding{Sharding::zero3, 2}};
  const LayoutPlan plan = plan_of(request);
  for (const RankedLayout& ranked : plan.ranking.layouts) {
    Job job = request.job;
    job.n_gpus = 64;
    job.settings = over(job.settings, complete_settings(ranked.point, ranked.layout, plan.prototypes));
    const Result<ResolvedJob> resolved = resolve(job);
    ASSERT_TRUE(resolved.ok()) << resolved.error().message();
    EXPECT_EQ(resolved->layout.shard_group(), ranked.layout.shard_group()) << to_string(ranked.point);
    EXPECT_LT(resolved->layout.shard_group(), std::int64_t{ranked.point.data} * ranked.point.context);
  }
}

// TorchTitan of 2024 had no gradients of several micro-batches to add up: without a pipeline a rank takes its share at once.
TEST(LayoutSearch, OldReleasesAddUpNoGradients) {
  PlanRequest request = request_of("llama-3-8b", 8, 24);
  request.job.framework = Framework::torchtitan;
  const auto most = [&] {
    const LayoutPlan plan = plan_of(request);
    std::int64_t micro_batches = 0;
    for (const RankedLayout& ranked : plan.ranking.layouts)
      if (ranked.point.pipeline == 1) micro_batches = std::max(micro_batches, ranked.layout.micro_batches());
    return micro_batches;
  };
  EXPECT_GT(most(), 1);
  request.job.settings.framework_date = "2024-12";
  EXPECT_EQ(most(), 1);
}

TEST(LayoutSearch, TorchTitansConfigSaysTheLayout) {
  PlanRequest request = request_of("llama-3-8b", 64, 128);
  request.job.framework = Framework::torchtitan;
  request.restrictions.sequence_parallel = {true};
  request.restrictions.recomputations = {Recompute::none, Recompute::selective_ops, Recompute::full};
  const LayoutPlan plan = plan_of(request);
  std::size_t n_pipelines = 0, n_hybrid = 0;
  for (const RankedLayout& ranked : plan.ranking.layouts) {
    const auto text = torchtitan_text(ranked.layout, plan.prototypes.model());
    if (!text) continue;
    Job job{.model = "llama-3-8b", .n_gpus = 64};
    job.torchtitan = ConfigText{*text, "made.toml"};
    const Result<ResolvedJob> resolved = resolve(job);
    ASSERT_TRUE(resolved.ok()) << resolved.error().message() << " of\n" << *text;
    EXPECT_EQ(resolved->layout.degrees, ranked.layout.degrees) << *text;
    EXPECT_EQ(resolved->layout.batch, ranked.layout.batch) << *text;
    EXPECT_EQ(stage_chunks(resolved->model, resolved->layout), stage_chunks(resolved->model, ranked.layout));
    EXPECT_EQ(resolved->layout.pipeline.schedule, ranked.layout.pipeline.schedule);
    EXPECT_EQ(resolved->layout.sharding.kind, ranked.layout.sharding.kind);
    EXPECT_EQ(resolved->layout.shard_group(), ranked.layout.shard_group());
    EXPECT_EQ(resolved->layout.layer.recompute.kind, ranked.layout.layer.recompute.kind);
    if (ranked.point.pipeline > 1) ++n_pipelines;
    if (ranked.point.sharding.nodes > 0) ++n_hybrid;
  }
  EXPECT_GT(n_pipelines, 0U);
  EXPECT_GT(n_hybrid, 0U);
}

LayoutVerdict verdict_of(LayoutPoint point, const LayoutPlan& plan) {
  return check_degrees(point, plan.space, plan.prototypes);
}

TEST(LayoutRules, SayWhatIsWrongAndWhatIsNearest) {
  PlanRequest request = request_of("llama-3-8b", 48, 96);  // 32 heads, 8 of keys and values, 32 layers
  const LayoutPlan plan = plan_of(request);
  // 48 / (4 x 8) is no whole number; 32 and 64 GPUs are.
  const LayoutVerdict gpus = verdict_of({.tensor = 4, .pipeline = 8}, plan);
  EXPECT_EQ(gpus.kind, LayoutVerdict::Kind::refused);
  EXPECT_EQ(gpus.example, "4 x 8 x 1 = 32");
  EXPECT_EQ(gpus.cure, "--gpus 32 or 64");
  EXPECT_EQ(verdict_of({.tensor = 3}, plan).reason, "n_heads 32 is not divisible by tensor_parallel 3");
  EXPECT_EQ(verdict_of({.tensor = 3}, plan).cure, "nearest that work: tensor_parallel 2 or 4");

  const LayoutPrototypes& p = plan.prototypes;
  // 96 sequences on 48 ranks x 4 are half a micro-batch.
  const LayoutVerdict batch = check_batch({.data = 48, .micro_batch = 4}, p);
  EXPECT_EQ(batch.example, "4 x 48 = 192");
  EXPECT_EQ(batch.cure, "--gbs 192");
  const auto interleaved = PipelineSchedule::interleaved;
  // 96 / (24 x 1) = 4 micro-batches; in groups of 2 they can be interleaved, in groups of 16 not.
  EXPECT_EQ(check_stages({.pipeline = 2, .data = 24, .virtual_stages = 2, .schedule = interleaved}, p).kind,
            LayoutVerdict::Kind::runs);
  const LayoutVerdict few =
      check_stages({.pipeline = 16, .data = 24, .virtual_stages = 2, .schedule = interleaved}, p);
  EXPECT_EQ(few.example, "4 micro-batches, 16 stages");
  EXPECT_EQ(few.cure, "--gbs 384");  // 24 x 16
  // 3 x 4 = 12 chunks: neither 32 nor 34 layers divide.
  EXPECT_EQ(check_stages({.pipeline = 3, .data = 1, .virtual_stages = 4, .schedule = interleaved}, p).example,
            "3 x 4 = 12");
  EXPECT_EQ(check_layers({.tensor = 1, .sequence_parallel = true}, plan.space, p).kind,
            LayoutVerdict::Kind::same);
  EXPECT_EQ(check_layers({.recompute = Recompute::selective}, plan.space, p).kind, LayoutVerdict::Kind::same);
  const auto sharded = [&](LayoutPoint point, Sharding kind, std::int32_t nodes = 0) {
    point.sharding = {kind, nodes};
    return check_sharding(point, plan.space, p);
  };
  EXPECT_THAT(sharded({.pipeline = 2, .data = 4}, Sharding::zero2).reason,
              HasSubstr("ZeRO-2 with a pipeline"));
  EXPECT_THAT(sharded({.pipeline = 2, .data = 4}, Sharding::zero3).cure, "--sharding zero1");
  EXPECT_EQ(sharded({.data = 1}, Sharding::zero1).kind, LayoutVerdict::Kind::same);
  EXPECT_THAT(sharded({.data = 8}, Sharding::zero3, 1).reason, HasSubstr("hybrid sharding"));
  EXPECT_EQ(sharded({.data = 48}, Sharding::zero3, 1).kind, LayoutVerdict::Kind::runs);
}

TEST(LayoutSpace, DealsOutLayersThatDivideIntoNoNumberOfChunks) {
  EXPECT_TRUE(divides_into_chunks(80, 4, 2));   // 80 / 8
  EXPECT_TRUE(divides_into_chunks(94, 16, 3));  // (94 + 2) / 48
  EXPECT_TRUE(divides_into_chunks(61, 8, 2));   // 63 on 16 chunks: 4 at most, where 3.94 are even
  EXPECT_FALSE(divides_into_chunks(61, 8, 3));  // 63 on 24 chunks: 3 at most, where 2.6 are even
  EXPECT_FALSE(divides_into_chunks(80, 4, 7));  // 82 on 28 chunks are even enough, but 80 on 8 are even
  EXPECT_FALSE(divides_into_chunks(5, 4, 2));
}

TEST(LayoutSpace, NamesHybridShardingOverMoreNodesThanThereAre) {
  PlanRequest request = request_of("llama-3-8b", 16, 64);
  request.restrictions.shardings = {{Sharding::zero3, 99}};
  EXPECT_THAT(plan_layouts(request, platform()), test::FailsWith("`hybrid:99`, but 16 GPUs are 2 nodes"));
}

TEST(LayoutSearch, SaysByHowMuchALayoutIsTooLargeAndWhatCuresIt) {
  PlanRequest request = request_of("llama-3-8b", 8, 64);
  request.restrictions.tensor = {1};
  request.restrictions.pipeline = {1};
  request.restrictions.context = {1};
  request.restrictions.micro_batch = {1};
  request.restrictions.recomputations = {Recompute::none};
  const LayoutPlan plan = plan_of(request);
  // Plain data parallelism keeps 18 bytes of 8e9 parameters: far above 80 GiB.
  ASSERT_EQ(plan.found.n_too_large, 1U);
  EXPECT_THAT(plan.found.too_large.front().example, HasSubstr("dp8 mbs1: stage 0 over by "));
  EXPECT_THAT(plan.found.too_large.front().cure, HasSubstr("sharding none -> zero1: "));
}

TEST(LayoutPlan, EndsWhereSomebodyAsksItTo) {
  std::stop_source stop;
  const StopScope scope{stop.get_token()};
  const PlanRequest request = request_of("llama-3-8b", 16, 64);
  EXPECT_TRUE(plan_layouts(request, platform()).ok());
  stop.request_stop();
  EXPECT_THAT(plan_layouts(request, platform()), test::FailsWith("interrupted"));
}

// What is kept from other questions changes no number: experts and none, other assumptions, other threads.
TEST(LayoutPlan, IsTheSameWithModelsThatPlannedBefore) {
  const StepModel kept{platform()};
  for (const char* model : {"llama-3-8b", "mixtral-8x7b", "llama-3-8b"}) {
    for (const double slower : {1.0, 2.0}) {
      PlanRequest request = request_of(model, 16, 64);
      request.refines = true;
      request.assumptions.inter_node_factor = slower;
      const LayoutPlan alone = plan_of(request);
      request.steps = &kept;
      request.threads = 1;
      const LayoutPlan shared = plan_of(request);
      ASSERT_EQ(alone.found.priced.size(), shared.found.priced.size());
      for (std::size_t i = 0; i < alone.found.priced.size(); ++i) {
        EXPECT_EQ(alone.found.priced[i].point, shared.found.priced[i].point);
        EXPECT_EQ(alone.found.priced[i].step_us, shared.found.priced[i].step_us);
        EXPECT_EQ(alone.found.priced[i].peak_bytes, shared.found.priced[i].peak_bytes);
      }
      ASSERT_EQ(alone.refined.size(), shared.refined.size());
      for (std::size_t i = 0; i < alone.refined.size(); ++i)
        EXPECT_EQ(alone.refined[i].step.step.time, shared.refined[i].step.step.time);
    }
  }
}

TEST(LayoutPlan, NoLayoutIsExplained) {
  PlanRequest request = request_of("llama-3-70b", 1, 8);
  const LayoutPlan plan = plan_of(request);
  ASSERT_TRUE(plan.found.priced.empty());
  EXPECT_THAT(why_none(plan).message(), HasSubstr("layouts runs on 1 GPU,"));
  EXPECT_THAT(why_none(plan).message(), HasSubstr("do not fit 80.0 GiB"));
}

TEST(LayoutRanking, WhatTwoLayoutsShareCancels) {
  StepPrediction a;
  a.step = {Microseconds{1000}, Microseconds{900}, Microseconds{1100}, EstimateSource::fitted};
  a.shares.class_us[static_cast<std::size_t>(KernelClass::gemm)] = 800;
  a.shares.bubble_us = 200;
  StepPrediction b = a;
  b.shares.bubble_us = 300;
  // The bands are 10 % to either side. The products cancel; 100 us more bubble are off by 10 us; what is each one's
  // own is 7 % of 1,000 us: sqrt(10^2 + 70^2), with experts 20 %: sqrt(10^2 + 200^2).
  EXPECT_NEAR(uncertain_difference_us(a, b, DifferenceOf::dense), 70.71, 0.01);
  EXPECT_NEAR(uncertain_difference_us(a, b, DifferenceOf::experts), 200.25, 0.01);
  EXPECT_NEAR(uncertain_difference_us(a, b, DifferenceOf::unmeasured), 280.18, 0.01);
}

TEST(LayoutRanking, ChoosesSafeMemoryThenThePlainerLayout) {
  std::vector<RankedLayout> layouts(4);
  layouts[0].point = {.tensor = 4, .pipeline = 8, .virtual_stages = 12};
  layouts[1].point = {.tensor = 4, .pipeline = 8, .virtual_stages = 6};
  layouts[2].point = {.tensor = 4, .pipeline = 8};
  layouts[3].point = {.tensor = 4};
  const double us[] = {1000, 1001, 1001.9, 1002};
  for (std::size_t i = 0; i < 4; ++i) {
    layouts[i].step.step.time = Microseconds{us[i]};
    layouts[i].alike = i < 3;
  }
  EXPECT_EQ(choose(layouts, LayoutPoint{}), 2U);  // three changes each, and two; the last one is not alike
  layouts[2].step.step.time = Microseconds{1002.1};
  EXPECT_EQ(choose(layouts, LayoutPoint{}), 0U);  // more than 0.2 % behind
  layouts[0].memory.verdict = MemoryVerdict::tight;
  EXPECT_EQ(choose(layouts, LayoutPoint{}), 2U);  // 0.1 % behind the fastest that is safe
  layouts[2].unmeasured = "a new kind";
  EXPECT_EQ(choose(layouts, LayoutPoint{}), 1U);  // the only one that is safe and of a kind that was run
  layouts[1].alike = false;
  EXPECT_EQ(choose(layouts, LayoutPoint{}), 2U);
}

}  // namespace
}  // namespace stepcast::layout_search_test
