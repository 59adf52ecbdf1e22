#include "stepcast/recommend/dlrm_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/recommend/dlrm_presets.h"

namespace stepcast::dlrm_step_test {
namespace {

Platform load(const char* name) {
  Result<Platform> platform = load_platform(name);
  if (!platform.ok()) throw std::runtime_error(platform.error().message());
  return std::move(*platform);
}

ShardingPlan round_robin(const Dlrm& model, std::int32_t n) {
  ShardingPlan plan;
  for (std::size_t t = 0; t < model.tables.size(); ++t)
    plan.tables.push_back({.ranks = {static_cast<std::int32_t>(t) % n}});
  return plan;
}

DlrmStepModel steps_of(const Dlrm& model, const DlrmTraining& training, std::int64_t n,
                       const char* platform = "dgx-a100") {
  Result<DlrmStepModel> steps = DlrmStepModel::create(model, training, load(platform), n);
  if (!steps.ok()) throw std::runtime_error(steps.error().message());
  return std::move(*steps);
}

TEST(DlrmStep, AShardingIsAScenarioOfOneProgram) {
  const Dlrm model = *dlrm_preset("dlrm-torchrec");
  DlrmStepModel steps = steps_of(model, {.global_batch = 16384}, 8);
  const Program* program = &steps.program();
  const ShardingPlan even = round_robin(model, 8);
  ShardingPlan skewed = even;
  for (TablePlan& t : skewed.tables) t.ranks = {0};
  const double even_us = steps.step_us(even, true), skewed_us = steps.step_us(skewed, true);
  EXPECT_GT(skewed_us, even_us);
  EXPECT_EQ(&steps.program(), program);
  // Nothing of the other scenario is left behind.
  EXPECT_DOUBLE_EQ(steps.step_us(even, true), even_us);
}

// The step alone is found without the tasks that no sharding changes; a prediction is simulated with all of them.
TEST(DlrmStep, IsAsLongByItsSkeletonAsSimulated) {
  Dlrm model = *dlrm_preset("dlrm-dcnv2-mlperf");
  for (std::size_t t = 0; t < model.tables.size(); ++t)
    model.tables[t].pooling = t % 3 == 0 ? 1 : 20 + static_cast<double>(t);
  for (const DlrmStack stack :
       {DlrmStack::torchrec, DlrmStack::nvidia, DlrmStack::hugectr, DlrmStack::hugectr_2}) {
    DlrmStepModel steps = steps_of(model, {.stack = stack, .global_batch = 65536}, 16);
    for (std::int32_t seed = 1; seed < 40; ++seed) {
      ShardingPlan plan = round_robin(model, 16);
      for (std::size_t t = 0; t < plan.tables.size(); ++t)
        plan.tables[t].ranks = {(seed * static_cast<std::int32_t>(t * t + 7)) % 16};
      steps.set_what_if({.rank_skew = seed % 2 == 0 ? 1.0 : 3.0});
      const double us = steps.step_us(plan, true);
      const double simulated_us = steps.predict(plan)->time.time.value();
      EXPECT_NEAR(us, simulated_us, 1e-9 * simulated_us) << seed;
    }
  }
}

// Ranks whose tables stay keep their sums from sharding to sharding: to the last bit those of a sharding asked for alone.
TEST(DlrmStep, AShardingTakesAsLongWhateverWasAskedBefore) {
  const Dlrm model = *dlrm_preset("dlrm-dcnv2-mlperf");
  std::mt19937_64 random{25};
  const auto below = [&](std::size_t n) { return static_cast<std::int32_t>(random() % n); };
  for (const DlrmStack stack : {DlrmStack::torchrec, DlrmStack::hugectr_2}) {
    DlrmStepModel one_by_one = steps_of(model, {.stack = stack, .global_batch = 65536}, 16);
    DlrmStepModel alone = steps_of(model, {.stack = stack, .global_batch = 65536}, 16);
    ShardingPlan plan = round_robin(model, 16);
    std::vector<std::int32_t> all(16);
    std::iota(all.begin(), all.end(), 0);
    for (int i = 0; i < 200; ++i) {
      TablePlan& table = plan.tables[random() % plan.tables.size()];
      switch (below(6)) {
        case 0: table = {.kind = ShardingKind::row_wise, .ranks = all}; break;
        case 1: table = {.kind = ShardingKind::data_parallel}; break;
        case 2: table = {.kind = ShardingKind::column_wise, .ranks = {below(8), 8 + below(8)}}; break;
        case 3: table = {.ranks = {below(16)}, .memory = TableMemory::uvm}; break;
        case 4:
          table = {.kind = ShardingKind::table_row_wise, .ranks = {all.begin(), all.begin() + 8}};
          break;
        default: table = {.ranks = {below(16)}};
      }
      const ShardingPlan other{.tables = {plan.tables.front()}};  // of one table: nothing is kept
      static_cast<void>(alone.step_us(other, true));
      EXPECT_EQ(one_by_one.expected_us(plan, true), alone.expected_us(plan, true)) << i;
      EXPECT_EQ(one_by_one.expected_us(plan), alone.expected_us(plan)) << i;
      const double simulated_us = alone.predict(plan)->time.time.value();
      EXPECT_NEAR(one_by_one.step_us(plan, true), simulated_us, 1e-9 * simulated_us) << i;
    }
  }
}

// What DistributedDataParallel keeps on every rank is a parameter of the dense optimizer: all of its rows.
TEST(DlrmStep, TablesOnEveryRankAreUpdatedAsAWhole) {
  Dlrm model = *dlrm_preset("dlrm-ddp");
  const DlrmTraining training{.stack = DlrmStack::torchrec, .cuda_graphs = true, .global_batch = 4096};
  const auto backward_us = [&](std::int64_t rows) {
    model.tables[0].rows = rows;
    DlrmStepModel steps = steps_of(model, training, 4);
    ShardingPlan plan = round_robin(model, 4);
    plan.tables[0] = {.kind = ShardingKind::data_parallel};
    EXPECT_TRUE(steps.predict(plan).ok());
    double us = 0;
    const auto explained = steps.explain();
    for (const ExplainedItem& item : explained.front().items)
      if (item.name == "lookup backward") us = item.duration_us;
    return us;
  };
  // 128 columns of 4 bytes: weights and gradients are read, weights written; about 2 TB/s.
  EXPECT_NEAR(backward_us(1'100'000) - backward_us(100'000), 1e6 * 128 * 12 / 2e6, 400);
}

TEST(DlrmStep, EveryByteIsSentOnceAndEveryTableIsHeldOnce) {
  const Dlrm model = *dlrm_preset("dlrm-torchrec");
  DlrmStepModel steps = steps_of(model, {.global_batch = 16384}, 8);
  const Result<DlrmStep> step = steps.predict(round_robin(model, 8));
  ASSERT_TRUE(step.ok());
  double sent = 0, held = 0;
  for (const DlrmRank& rank : step->ranks) sent += rank.sent_bytes, held += rank.table_bytes;
  // 16,384 samples x 26 vectors of 512 bytes, 7 of 8 to other ranks.
  EXPECT_DOUBLE_EQ(sent, 16384.0 * 26 * 512 * 7 / 8);
  EXPECT_DOUBLE_EQ(held, model.table_bytes());
}

TEST(DlrmStep, ColumnAndRowPartsShareATable) {
  Dlrm model = *dlrm_preset("dlrm-ddp");
  model.interaction = Interaction::concatenate;
  DlrmStepModel steps = steps_of(model, {.global_batch = 4096}, 4);
  ShardingPlan plan = round_robin(model, 4);
  plan.tables[0] = {.kind = ShardingKind::column_wise, .ranks = {0, 1}};
  plan.tables[1] = {.kind = ShardingKind::row_wise, .ranks = {0, 1, 2, 3}};
  plan.tables[2] = {.kind = ShardingKind::data_parallel};
  const Result<DlrmStep> step = steps.predict(plan);
  ASSERT_TRUE(step.ok()) << step.error().message();
  double held = 0;
  for (const DlrmRank& rank : step->ranks) held += rank.table_bytes;
  EXPECT_NEAR(held, model.table_bytes() * (8 + 3) / 8, 1);
  const double whole = steps.shard_cost({.table = 0}).lookups;
  EXPECT_DOUBLE_EQ(steps.shard_cost({.table = 0, .parts = 2, .kind = ShardingKind::column_wise}).lookups,
                   whole);
  EXPECT_NEAR(steps.shard_cost({.table = 1, .parts = 4, .kind = ShardingKind::row_wise}).lookups, whole / 4,
              1e-6);
}

TEST(DlrmStep, MoreGpusAndMoreBandwidthAreFaster) {
  const Dlrm model = *dlrm_preset("dlrm-mlperf-v1");
  const DlrmTraining training{.stack = DlrmStack::hugectr, .global_batch = 55296, .dtype = DType::fp16};
  const auto us = [&](std::int64_t n, const char* platform) {
    DlrmStepModel steps = steps_of(model, training, n, platform);
    return steps.predict({})->time.time.value();
  };
  EXPECT_LT(us(8, "dgx-a100"), us(4, "dgx-a100"));
  EXPECT_LT(us(8, "dgx-h100"), us(8, "dgx-a100"));
  EXPECT_LT(us(8, "dgx-a100"), us(8, "8xa100-pcie-80gb"));
}

TEST(DlrmStep, IsNeverFasterThanItsBound) {
  for (const char* name : {"dlrm-mlperf-v1", "dlrm-dcnv2-mlperf", "dlrm-torchrec"}) {
    const Dlrm model = *dlrm_preset(name);
    DlrmStepModel steps = steps_of(model, {.global_batch = 65536}, 8);
    const Result<DlrmStep> step = steps.predict(round_robin(model, 8));
    ASSERT_TRUE(step.ok());
    EXPECT_GT(step->time.time.value(), step->bound_us) << name;
  }
}

TEST(DlrmStep, SaysWhichRankDoesNotFit) {
  const Dlrm model = *dlrm_preset("dlrm-torchrec");
  DlrmStepModel steps = steps_of(model, {.global_batch = 8192}, 2, "dgx-a100-40gb");
  ShardingPlan plan = round_robin(model, 2);
  for (TablePlan& t : plan.tables) t.ranks = {1};
  const Result<DlrmStep> step = steps.predict(plan);
  ASSERT_TRUE(step.ok());
  EXPECT_FALSE(step->fits);
  EXPECT_EQ(step->worst_rank, 1);
  EXPECT_TRUE(std::isinf(steps.step_us(plan)));
}

TEST(DlrmStep, ANewBatchOfReuseFactorsChangesTheLookups) {
  Dlrm model = *dlrm_preset("dlrm-ddp");
  model.interaction = Interaction::concatenate;
  DlrmStepModel steps = steps_of(model, {.global_batch = 8192}, 4);
  const ShardingPlan plan = round_robin(model, 4);
  const double before = steps.step_us(plan);
  ReuseFactors hot;
  hot.of_rows[10] = hot.of_lookups[10] = 1;
  hot.lookups = 819200;
  hot.distinct_rows = 1000;
  steps.set_reuse(std::vector<ReuseFactors>(model.tables.size(), hot));
  EXPECT_LT(steps.step_us(plan), before);
}

TEST(DlrmStep, OldHugeCtrHidesNothing) {
  const Dlrm model = *dlrm_preset("dlrm-mlperf-v1");
  const auto step_of = [&](DlrmStack stack) {
    DlrmStepModel steps =
        steps_of(model, {.stack = stack, .global_batch = 55296, .dtype = DType::fp16}, 8, "dgx-a100");
    return *steps.predict(stack == DlrmStack::hugectr ? ShardingPlan{} : round_robin(model, 8));
  };
  EXPECT_GT(step_of(DlrmStack::hugectr_2).time.time.value(),
            1.2 * step_of(DlrmStack::hugectr).time.time.value());
}

TEST(DlrmStep, GradientsOfWeightsRunBesideProductsThatLeaveProcessors) {
  const Dlrm model = *dlrm_preset("dlrm-mlperf-v1");
  const auto share_beside = [&](std::int64_t samples, std::int32_t release) {
    DlrmStepModel steps = steps_of(
        model,
        {.stack = DlrmStack::hugectr, .release = release, .global_batch = 8 * samples, .dtype = DType::fp16},
        8);
    const Program& program = steps.program();
    double beside = 0, all = 0;
    for (const TaskInfo& task : program.block(BlockId{0}).tasks()) {
      if (program.names.text(task.name) != "weight gradient") continue;
      all += task.work_times;
      const std::span<const TaskInfo> tasks = program.block(BlockId{0}).tasks();
      const TaskId id{static_cast<std::uint32_t>(&task - tasks.data())};
      if (program.block(BlockId{0}).lanes()[program.block(BlockId{0}).lane_of(id).index()].name ==
          "gradients of weights")
        beside += task.work_times;
    }
    EXPECT_DOUBLE_EQ(all, 8);  // of three layers and of five, each as a whole
    return beside / all;
  };
  EXPECT_GT(share_beside(640, 2109), 0.5);
  EXPECT_LT(share_beside(6912, 2109), share_beside(640, 2109));
  EXPECT_EQ(share_beside(1 << 20, 2109), 0);
  EXPECT_EQ(share_beside(640, 2105), 0);
}

TEST(DlrmStep, VectorsTravelInTheTypeThatIsAskedFor) {
  Dlrm model = *dlrm_preset("dlrm-ddp");
  model.interaction = Interaction::concatenate;
  const auto step_of = [&](DType dtype) {
    DlrmStepModel steps = steps_of(
        model,
        {.stack = DlrmStack::torchrec, .cuda_graphs = true, .global_batch = 1 << 17, .exchange_dtype = dtype},
        8);
    return *steps.predict(round_robin(model, 8));
  };
  const DlrmStep as_it_is = step_of(DType::unknown), whole = step_of(DType::fp32),
                 half = step_of(DType::fp16), quarter = step_of(DType::int8);
  EXPECT_EQ(whole.time.time, as_it_is.time.time);
  EXPECT_DOUBLE_EQ(half.ranks[0].sent_bytes, whole.ranks[0].sent_bytes / 2);
  EXPECT_DOUBLE_EQ(quarter.ranks[0].sent_bytes, whole.ranks[0].sent_bytes / 4);
  // Casts cost less than the links save, and are not free.
  EXPECT_LT(half.time.time, whole.time.time);
  EXPECT_GT(half.exchange_us, whole.exchange_us / 2);
}

TEST(DlrmStep, ExplainsWhatLookupsAndExchangesMove) {
  Dlrm model = *dlrm_preset("dlrm-ddp");
  model.interaction = Interaction::concatenate;
  model.tables.resize(4);
  for (EmbeddingTable& table : model.tables) table.pooling = 2, table.dim = 64;
  DlrmStepModel steps = steps_of(model, {.stack = DlrmStack::torchrec, .global_batch = 4096}, 4);
  ASSERT_TRUE(steps.predict(round_robin(model, 4)).ok());
  const std::vector<ExplainedList> lists = steps.explain();
  const auto bytes_of = [&](std::string_view name) {
    for (const ExplainedItem& item : lists.front().items)
      if (item.name == name) return item.bytes;
    return -1.0;
  };
  // One table of each rank: 4,096 bags of two rows of 64 numbers, and a vector of 64 for every sample.
  EXPECT_DOUBLE_EQ(bytes_of("lookup"), 4096.0 * 2 * 64 * 4);
  EXPECT_GT(bytes_of("lookup backward"), bytes_of("lookup"));
  EXPECT_DOUBLE_EQ(bytes_of("all-to-all"), 4096.0 * 64 * 4);
  EXPECT_DOUBLE_EQ(bytes_of("input all-to-all"), 8.0 * (4096 * 2 + 4096));
  EXPECT_EQ(bytes_of("all-reduce of tables"), 0);
}

TEST(DlrmStep, PartsOfOneNodeSendOneSum) {
  Dlrm model = *dlrm_preset("dlrm-ddp");
  model.interaction = Interaction::concatenate;
  model.tables.resize(1);
  const DlrmTraining training{.stack = DlrmStack::hugectr, .global_batch = 16384};
  DlrmStepModel steps = steps_of(model, training, 16);
  ShardingPlan plan{.tables = {{.kind = ShardingKind::row_wise}}};
  for (std::int32_t r = 0; r < 8; ++r) plan.tables[0].ranks.push_back(r);
  const Result<DlrmStep> step = steps.predict(plan);
  ASSERT_TRUE(step.ok());
  // 128 columns of 4 bytes of every sample, an eighth from each rank, 15 of 16 to others.
  EXPECT_DOUBLE_EQ(step->ranks[0].sent_bytes, 16384.0 * 128 * 4 / 8 * 15 / 16);
}

TEST(DlrmStep, LookupsDoNotWaitForTheAllReduceOfTheDensePart) {
  // 1 ms and more to reduce 400 MB of dense gradients; the backward of the lookups is as long without.
  Dlrm model = *dlrm_preset("dlrm-ddp");
  model.interaction = Interaction::concatenate;
  model.top_mlp = {10000, 10000, 1};
  for (EmbeddingTable& t : model.tables) t.pooling = 200;
  const DlrmTraining training{.cuda_graphs = true, .global_batch = 4096};
  DlrmStepModel steps = steps_of(model, training, 4);
  const Result<DlrmStep> step = steps.predict(round_robin(model, 4));
  ASSERT_TRUE(step.ok());
  double all_reduce_end = 0, backward_start = 1e300;
  const std::span<const TaskInfo> tasks = steps.program().block(BlockId{0}).tasks();
  const std::span<const Interval> at = steps.timeline().instance(RankClassId{0}, 0, InstanceId{0});
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const std::string_view name = steps.program().names.text(tasks[t].name);
    if (name == "all-reduce") all_reduce_end = std::max(all_reduce_end, at[t].end_us);
    if (name == "lookup backward") backward_start = at[t].start_us;
  }
  EXPECT_LT(backward_start, all_reduce_end);
}

TEST(DlrmStep, ExpectsLongerStepsWhereARowMayBeHotInOneBlock) {
  // Two tables with as many lookups; in the second one row has half of them.
  Dlrm model = *dlrm_preset("dlrm-ddp");
  model.interaction = Interaction::concatenate;
  model.tables.resize(2);
  for (EmbeddingTable& t : model.tables) t.rows = 1'000'000, t.pooling = 50, t.skew = 0;
  std::array<double, 17> reuse{};
  reuse[0] = 1 - 1e-5, reuse[16] = 1e-5;  // one of 100,000 rows
  model.tables[1].reuse = reuse;
  model.tables[1].reuse_lookups = 4096 * 50;
  DlrmStepModel steps = steps_of(model, {.global_batch = 4096}, 2);
  const ShardingPlan plan = round_robin(model, 2);
  const double hot = steps.expected_us(plan);
  EXPECT_GT(hot, steps.step_us(plan));
  // 104,800 gradients of 10 ns, in half of the plausible models.
  EXPECT_NEAR(steps.expected_us(plan) - steps.step_us(plan), 0.5 * 0.01 * (4096 * 50 - 1e5), 300);
  EXPECT_LE(steps.least_expected_us(), hot);
  EXPECT_TRUE(std::isfinite(steps.expected_lookup_us({.table = 1})));
}

TEST(DlrmStep, NamesWhatEachExchangeIsWaitedFor) {
  const Dlrm model = *dlrm_preset("dlrm-ddp");
  DlrmStepModel steps = steps_of(model, {.global_batch = 16384}, 8);
  ASSERT_TRUE(steps.predict(round_robin(model, 8)).ok());
  std::vector<std::string> labels;
  for (const RankGroup& group : steps.program().groups()) labels.push_back(group.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"world", "embedding indices", "embedding vectors",
                                              "embedding gradients", "embedding tables"}));
  for (const Collective& c : steps.program().collectives()) EXPECT_NE(c.op, CollectiveOp::unknown);
}

TEST(DlrmStep, WhatIfRowsWereReusedMoreARankHadMoreOrLinksWereOthers) {
  Dlrm model = *dlrm_preset("dlrm-default");
  const DlrmTraining training{.stack = DlrmStack::hugectr, .global_batch = 16384};
  DlrmStepModel steps = steps_of(model, training, 8, "dgx-a100");
  const ShardingPlan plan = round_robin(model, 8);
  const double before = steps.step_us(plan);
  steps.set_what_if({.reuse = 4});
  EXPECT_LT(steps.step_us(plan), before);
  steps.set_what_if({.rank_skew = 1.5});
  EXPECT_GT(steps.step_us(plan), before);
  steps.set_what_if({});
  EXPECT_DOUBLE_EQ(steps.step_us(plan), before);
  const Platform pcie = load("8xa100-pcie-80gb");
  Result<DlrmStepModel> other = DlrmStepModel::create(model, training, load("dgx-a100"), 8, {}, {}, &pcie);
  ASSERT_TRUE(other.ok());
  EXPECT_GT(other->step_us(plan), before);
}

TEST(DlrmStep, RefusesWhatCannotBe) {
  Dlrm model = *dlrm_preset("dlrm-ddp");
  EXPECT_FALSE(DlrmStepModel::create(model, {.global_batch = 2}, load("dgx-a100"), 8).ok());
  constexpr std::int64_t kBillion = 1'000'000'000;  // refused before a list of them is made
  const auto many = DlrmStepModel::create(model, {.global_batch = kBillion}, load("dgx-a100"), kBillion);
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(many.error().message(), testing::HasSubstr("expected 1 to 4096"));
  model.tables[0].rows = 0;
  EXPECT_FALSE(DlrmStepModel::create(model, {}, load("dgx-a100"), 8).ok());
}

}  // namespace
}  // namespace stepcast::dlrm_step_test
